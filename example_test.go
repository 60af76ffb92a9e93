package condense_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/extractive"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
)

// A program that talks to a model embeds a host in a few lines. Chain is what holds where
// the configuration names no chain; without it, that is truncation alone. [config.Load] in
// the place of [config.New] reads the user's files.
func Example() {
	ctx := context.Background()
	reg, err := registry.New(providers.Builtin()...)
	if err != nil {
		log.Fatal(err)
	}
	conf, err := config.New(config.Values{}, config.Options{Builtin: reg.Names(), Chain: providers.Chain()})
	if err != nil {
		log.Fatal(err)
	}
	h, err := condense.Open(ctx, conf, reg, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	c := condense.NewConversation(history.New())
	err = c.Append(core.Message{ID: "1", Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}})
	if err != nil {
		log.Fatal(err)
	}
	report, err := h.Manage(ctx, c, condense.Turn{System: "Be brief."}) // before every request
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Reason)
	fmt.Println(len(c.View()), "message to send")
	// Output:
	// not due: 12 of 200,000 tokens (0 %), threshold 80 %
	// 1 message to send
}

// talk returns a conversation of n messages of about 100 tokens each.
func talk(n int) *condense.Conversation {
	c := condense.NewConversation(history.New())
	for i := range n {
		m := core.Message{ID: strconv.Itoa(i + 1), Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("word ", 96))}}
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		if err := c.Append(m); err != nil {
			log.Fatal(err)
		}
	}
	return c
}

// openWith returns a host with values over the defaults. Where they name no chain, it
// truncates.
func openWith(v config.Values, opts *condense.Options) *condense.Host {
	reg, err := registry.New(providers.Builtin()...)
	if err != nil {
		log.Fatal(err)
	}
	c, err := config.New(v, config.Options{Builtin: reg.Names(), Strategies: reg.Names()})
	if err != nil {
		log.Fatal(err)
	}
	h, err := condense.Open(context.Background(), c, reg, opts)
	if err != nil {
		log.Fatal(err)
	}
	return h
}

// Values can be given in the program. An observer follows what happens, for a user
// interface.
func ExampleOptions_observe() {
	h := openWith(
		config.Values{Profiles: map[string]config.ProfileValues{"small": {Window: new(8000)}}, DefaultProfile: "small"},
		&condense.Options{Observe: func(e condense.Event) {
			switch e.Kind {
			case condense.EventStarted:
				fmt.Println("started:", e.Decision.Reason)
			case condense.EventAttempt:
				fmt.Println("attempt:", e.Provider, e.Attempt.Outcome)
			case condense.EventFinished:
				fmt.Println("finished:", e.Report.Messages.Hidden, "messages hidden")
			case condense.EventEstimated, condense.EventAsking, condense.EventReloaded:
			}
		}})
	defer h.Close()
	if _, err := h.Manage(context.Background(), talk(100), condense.Turn{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// started: limit
	// attempt: truncation applied
	// finished: 73 messages hidden
}

// If the model's API refuses a conversation as too large although the count says that it
// fits, it is condensed whatever the threshold, and sent again.
func ExampleHost_Overflow() {
	h := openWith(config.Values{}, nil)
	defer h.Close()
	ctx := context.Background()
	c := talk(100)
	send := func(view []core.Message) error { // stands for the request to the model
		if len(view) > 80 {
			return errors.New("400 Bad Request: prompt is too long: 200001 tokens > 200000 maximum")
		}
		return nil
	}
	turn := condense.Turn{}
	for {
		if _, err := h.Manage(ctx, c, turn); err != nil {
			log.Fatal(err)
		}
		err := send(c.View())
		if err == nil {
			break
		}
		if refused, err := h.Overflow(turn, err); err != nil || !refused {
			log.Fatal(err)
		}
		turn.Trigger = core.TriggerOverflow
	}
	fmt.Println("sent", len(c.View()), "messages")
	// Output:
	// sent 38 messages
}

// A person can ask for a condensation at any time, and take it back.
func ExampleConversation_Undo() {
	h := openWith(config.Values{}, nil)
	defer h.Close()
	c := talk(100)
	report, err := h.Manage(context.Background(), c, condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.View()), "messages")
	if err := c.Undo(report.CondensationID); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.View()), "messages")
	// Output:
	// 51 messages
	// 100 messages
}

// A program with a client of its own lends it to the providers, under the name that their
// settings use. It takes one method: see [model.Generator].
func ExampleOptions_models() {
	h := openWith(config.Values{
		Profiles: map[string]config.ProfileValues{"p": {Window: new(16000), Tuning: config.Tuning{Chain: []string{"summary"}}}},
		Providers: map[string]config.ProviderValues{
			"summary": {Strategy: "native", Settings: json.RawMessage(`{"model": "ours"}`)},
		},
	}, &condense.Options{Models: map[string]model.Generator{"ours": extractive.New()}}) // yours in its place
	defer h.Close()
	ctx := context.Background()
	c := talk(150)
	estimates, err := h.Estimate(ctx, c, condense.Turn{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at most", estimates[0].Usage.Calls, "call of", estimates[0].Provider)
	report, err := h.Manage(ctx, c, condense.Turn{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Attempts[0].Provider, report.Attempts[0].Outcome)
	// Output:
	// at most 1 call of summary
	// summary applied
}

// What was hidden is found by the handle that a provider left in its place.
func ExampleConversation_Recall() {
	h := openWith(config.Values{}, nil)
	defer h.Close()
	messages := slices.Clone(talk(100).View())
	messages[3].Parts = []core.Part{core.Text("The port is 8443, not 443.")}
	said := messages[3].Parts[0]
	c := condense.NewConversation(history.New())
	if err := c.Append(messages...); err != nil {
		log.Fatal(err)
	}
	if _, err := h.Manage(context.Background(), c, condense.Turn{Trigger: core.TriggerManual}); err != nil {
		log.Fatal(err)
	}
	r := c.Recall(core.Handle(said))[0]
	fmt.Println("message", r.Message.ID, "has it, in the view:", r.InView)
	// Output:
	// message 4 has it, in the view: false
}
