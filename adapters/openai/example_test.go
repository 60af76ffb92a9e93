package condenseopenai_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/openai"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A program calls Fit before each request.
func Example() {
	ctx := context.Background()
	vendor := httptest.NewServer(upstream.New(upstream.Options{Script: []upstream.Step{{Text: "Good day."}}}))
	defer vendor.Close()
	client := openai.NewClient(option.WithBaseURL(vendor.URL+"/v1"), option.WithAPIKey("none"))

	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	memory := condenseopenai.NewChat(h, nil, condense.Turn{NoRecall: true})
	params := openai.ChatCompletionNewParams{Model: "gpt-5.4", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")}}
	if err := memory.Fit(ctx, &params); err != nil {
		log.Fatal(err)
	}
	answer, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Choices[0].Message.Content)
	fmt.Println(memory.Report().Reason)
	// Output:
	// Good day.
	// not due: 5 of 200,000 tokens (0 %), threshold 80 %
}
