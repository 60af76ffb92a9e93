package condenseeino_test

import (
	"context"
	"fmt"
	"log"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/condensehq/condense"

	condenseeino "github.com/condensehq/condense/adapters/eino"
)

// A ChatModelAgent asks the memory before each call of its model.
func Example() {
	ctx := context.Background()
	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	memory := condenseeino.NewMemory(h, nil, condense.Turn{NoRecall: true})
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "helper", Description: "helps", Model: polite{},
		Middlewares: []adk.AgentMiddleware{{BeforeChatModel: memory.BeforeChatModel}},
	})
	if err != nil {
		log.Fatal(err)
	}
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent}).Query(ctx, "Hello")
	for e, ok := events.Next(); ok; e, ok = events.Next() {
		if e.Err != nil {
			log.Fatal(e.Err)
		}
		fmt.Println(e.Output.MessageOutput.Message.Content)
	}
	fmt.Println(memory.Report().Reason)
	// Output:
	// Good day.
	// not due: 10 of 200,000 tokens (0 %), threshold 80 %
}

// A polite model has one answer.
type polite struct{}

func (polite) Generate(context.Context, []*schema.Message, ...model.Option) (*schema.Message, error) {
	return schema.AssistantMessage("Good day.", nil), nil
}

func (p polite) Stream(ctx context.Context, in []*schema.Message, _ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := p.Generate(ctx, in)
	return schema.StreamReaderFromArray([]*schema.Message{m}), err
}

func (p polite) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return p, nil }
