package model_test

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// ours is a program's own client of a language model, here one that always says the same.
type ours struct{}

func (ours) Info() model.Info {
	return model.Info{Name: "ours", Window: 100_000, MaxOutput: 4000, Free: true}
}

func (m ours) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil { // pass ctx on to whatever is asked
		return nil, err
	}
	usage := core.Usage{Calls: 1, InputTokens: 9000, OutputTokens: 12} // as it reports them
	return &model.Answer{
		Text:  fmt.Sprintf("A summary of %d messages.", len(p.Messages)-1),
		Usage: m.Info().Charge(usage),
	}, nil
}

// A program makes its own client available to providers under a name.
func Example() {
	ctx := context.Background()
	values := config.Values{
		Profiles: map[string]config.ProfileValues{"main": {Window: new(10_000), Tuning: config.Tuning{Chain: []string{"summary"}}}},
		Providers: map[string]config.ProviderValues{
			"summary": {Strategy: "native", Settings: []byte(`{"model": "ours"}`)},
		},
	}
	h, err := condense.Open(ctx, &condense.Options{Values: &values, Models: map[string]model.Generator{"ours": ours{}}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	c := condense.NewConversation()
	for i := range 90 {
		m := core.Message{ID: strconv.Itoa(i), Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("word ", 96))}}
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		if err := c.Append(m); err != nil {
			log.Fatal(err)
		}
	}
	report, err := h.Manage(ctx, c, condense.Turn{})
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range report.Attempts {
		fmt.Println(a.Provider, a.Outcome)
	}
	fmt.Println(report.Usage.Calls, "call,", report.Usage.Unpriced, "of unknown price")
	// Output:
	// summary applied
	// truncation skipped
	// 1 call, 0 of unknown price
}
