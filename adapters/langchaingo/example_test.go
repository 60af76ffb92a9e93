package condenselangchain_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/fake"

	"github.com/condensehq/condense"

	condenselangchain "github.com/condensehq/condense/adapters/langchaingo"
)

// An agent asks its model through the memory.
func Example() {
	ctx := context.Background()
	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	memory := condenselangchain.NewMemory(h, nil, condense.Turn{NoRecall: true})
	agent := agents.NewOpenAIFunctionsAgent(memory.Model(fake.NewFakeLLM([]string{"Good day."})), nil)
	answer, err := chains.Run(ctx, agents.NewExecutor(agent), "Hello")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer)
	fmt.Println(memory.Report().Reason)
	// Output:
	// Good day.
	// not due: 16 of 200,000 tokens (0 %), threshold 80 %
}
