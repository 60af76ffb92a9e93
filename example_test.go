package condense_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A program that talks to a model opens a host and manages a conversation before every
// request. Without options the host has the built-in strategies and configuration.
func Example() {
	ctx := context.Background()
	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	c := condense.NewConversation()
	err = c.Append(core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}})
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

// With Load the host reads the files of the user and the project, as the command line
// does; with Watch it follows their changes. Path names a file instead.
func ExampleOptions_load() {
	file := filepath.Join(os.TempDir(), "condense-example.yaml")
	defer os.Remove(file) //nolint:errcheck // a temporary file
	if err := os.WriteFile(file, []byte("threshold: 60\nprofiles: {local: {window: 32768}}\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	h, err := condense.Open(context.Background(), &condense.Options{
		Load:  &config.Options{Path: file},
		Watch: &config.WatchOptions{},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	d, err := h.Check(condense.NewConversation(), condense.Turn{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
	// Output:
	// not due: 0 of 32,768 tokens (0 %), threshold 60 %
}

// A strategy of the program is one method. It is configured under its name, as the
// built-in ones are.
func ExampleOptions_strategies() {
	type settings struct {
		Keep int `json:"keep" doc:"how many messages to keep"`
	}
	last := registry.Define("last", "Keeps the last messages.", func() settings { return settings{Keep: 10} },
		func(_ context.Context, s settings, _ registry.Env) (core.CondensationProvider, error) {
			return keepLast(s.Keep), nil
		})
	h, err := condense.Open(context.Background(), &condense.Options{
		Strategies: []registry.Strategy{last},
		Values:     &config.Values{Tuning: config.Tuning{Chain: []string{"last"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	c := talk(100)
	if _, err := h.Manage(context.Background(), c, condense.Turn{Trigger: core.TriggerManual}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.View()), "messages")
	// Output:
	// 10 messages
}

// A keepLast keeps that many messages and the first.
type keepLast int

// Condense implements [core.CondensationProvider].
func (n keepLast) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	all := req.Messages
	return &core.Result{Messages: append(all[:1:1], all[max(1, len(all)-int(n)+1):]...)}, nil
}

// talk returns a conversation of n messages of about 100 tokens each.
func talk(n int) *condense.Conversation {
	c := condense.NewConversation()
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

// openWith returns a host with values over the defaults and truncation alone.
func openWith(v config.Values, opts *condense.Options) *condense.Host {
	if opts == nil {
		opts = &condense.Options{}
	}
	if v.Chain == nil {
		v.Chain = []string{condense.Truncation}
	}
	opts.Values = &v
	h, err := condense.Open(context.Background(), opts)
	if err != nil {
		log.Fatal(err)
	}
	return h
}

// An observer follows what happens, for a user interface.
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
	send := func(view []core.Message) error { // sends the request to the model
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

// The user can ask for a condensation at any time, and undo it.
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

// ours stands for a client of the program's own.
type ours struct{}

func (ours) Info() model.Info { return model.Info{Name: "ours", Window: 200_000, Free: true} }

func (ours) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: fmt.Sprintf("A conversation of %d messages.", len(p.Messages))}, nil
}

// A language model of the program is one method, see [model.Generator]. Providers use it
// under the name in their settings.
func ExampleOptions_models() {
	h := openWith(config.Values{
		Profiles: map[string]config.ProfileValues{"p": {Window: new(16000), Tuning: config.Tuning{Chain: []string{"summary"}}}},
		Providers: map[string]config.ProviderValues{
			"summary": {Strategy: "native", Settings: json.RawMessage(`{"model": "ours"}`)},
		},
	}, &condense.Options{Models: map[string]model.Generator{"ours": ours{}}})
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

// Hidden content is found by the handle that a provider put in its place.
func ExampleConversation_Recall() {
	h := openWith(config.Values{}, nil)
	defer h.Close()
	messages := slices.Clone(talk(100).View())
	messages[3].Parts = []core.Part{core.Text("The port is 8443, not 443.")}
	said := messages[3].Parts[0]
	c := condense.NewConversation()
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
