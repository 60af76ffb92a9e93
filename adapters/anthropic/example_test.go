package condenseanthropic_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/anthropic"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A program calls Fit before each request.
func Example() {
	ctx := context.Background()
	vendor := httptest.NewServer(upstream.New(upstream.Options{Script: []upstream.Step{{Text: "Good day."}}}))
	defer vendor.Close()
	client := anthropic.NewClient(option.WithBaseURL(vendor.URL), option.WithAPIKey("none"))

	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	memory := condenseanthropic.NewMemory(h, nil, condense.Turn{NoRecall: true})
	params := anthropic.MessageNewParams{
		Model: "claude-opus-4-6", MaxTokens: 4096,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello"))},
	}
	if err := memory.Fit(ctx, &params); err != nil {
		log.Fatal(err)
	}
	answer, err := client.Messages.New(ctx, params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Content[0].Text)
	fmt.Println(memory.Report().Reason)
	// Output:
	// Good day.
	// not due: 5 of 200,000 tokens (0 %), threshold 80 %
}
