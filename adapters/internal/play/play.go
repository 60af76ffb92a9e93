// Package play is the script of the agents in the tests of the adapters, and the check of every request that they send.
package play

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

// Turns is how often the scripted model calls tools, and Window the size of its context.
const (
	Turns  = 60
	Window = 24_000
)

// Words are the person's, one for each run of the agent.
func Words() []string {
	return []string{
		"Find out why the importer of invoices loses the last row of every file, and do not touch the schema.",
		"Use the colour heliotrope for the warning, and keep the port 7731 free.",
	}
}

// A Call is one that the scripted model makes.
type Call struct{ ID, Name, Path string }

// Args returns the arguments.
func (c Call) Args() string { return fmt.Sprintf(`{"path":%q}`, c.Path) }

// Calls returns those of a turn, from 0: every third has three at once.
func Calls(turn int) []Call {
	n := 1
	if turn%3 == 0 {
		n = 3
	}
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = Call{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: "read", Path: fmt.Sprintf("src/part%d/file%d.go", turn, i)}
	}
	return calls
}

// Result is the tool's answer: lines of code, or now and then nothing.
func Result(path string) string {
	if strings.Contains(path, "5/") {
		return ""
	}
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "func step%d(rows []row) error { return check(rows, %q, %d) }\n", i, path, i*i)
	}
	return b.String()
}

// Open returns a host for a model with the window, without files.
func Open(tb testing.TB) *condense.Host {
	tb.Helper()
	h, err := condense.Open(context.Background(), &condense.Options{Values: &config.Values{
		Profiles: map[string]config.ProfileValues{"small": {Window: new(Window)}}, DefaultProfile: "small",
	}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

// A Watch sees every request of an agent.
type Watch struct {
	T        testing.TB
	Words    []string // said so far
	Requests int
	Largest  int // tokens
	counter  *tokens.Counter
}

// Saw checks the messages of a request.
func (w *Watch) Saw(messages []core.Message) {
	w.T.Helper()
	if w.counter == nil {
		e, err := tokens.Open(tokens.O200kBase)
		if err != nil {
			w.T.Fatal(err)
		}
		w.counter = tokens.NewCounter(e)
	}
	w.Requests++
	size, open, said := 0, []string{}, ""
	for i := range messages {
		size += core.MessageTokens(w.counter, messages[i])
		calls, results := adapters.Calls(messages[i].Parts)
		for _, r := range results {
			at := slices.Index(open, r.CallID)
			if at < 0 {
				w.T.Errorf("request %d: the result of %s has no call", w.Requests, r.CallID)
				continue
			}
			open = slices.Delete(open, at, at+1)
		}
		if len(results) == 0 && len(open) > 0 {
			w.T.Errorf("request %d: the calls %v have no result", w.Requests, open)
		}
		for _, c := range calls {
			open = append(open, c.ID)
		}
		if messages[i].Role == core.RoleUser {
			said += adapters.Joined(messages[i].Parts) + "\n"
		}
	}
	if len(open) > 0 {
		w.T.Errorf("request %d: the calls %v have no result", w.Requests, open)
	}
	for _, words := range w.Words {
		if !strings.Contains(said, words) {
			w.T.Errorf("request %d: lost: %s", w.Requests, words)
		}
	}
	if w.Largest = max(w.Largest, size); size > Window {
		w.T.Errorf("request %d: %d tokens for a window of %d", w.Requests, size, Window)
	}
}

// Ended checks the conversation after the agent's last turn: it was condensed repeatedly, and undoing every condensation gives back
// all messages.
func (w *Watch) Ended(c *condense.Conversation, messages int) {
	w.T.Helper()
	active := c.Journal().Condensations()
	if len(active) < 3 {
		w.T.Errorf("%d condensations", len(active))
	}
	for _, a := range slices.Backward(active) {
		if err := c.Undo(a.ID); err != nil {
			w.T.Fatal(err)
		}
	}
	if n := len(c.View()); n != messages {
		w.T.Errorf("after undo the view has %d messages, want %d", n, messages)
	}
}

// Plain returns parts with texts side by side as one, and without empty ones: as libraries write them.
func Plain(parts []core.Part) []core.Part {
	var out []core.Part
	for _, p := range parts {
		if r, ok := p.(core.ToolResult); ok {
			r.Content = Plain(r.Content)
			p = r
		}
		if p == core.Part(core.Text("")) {
			continue
		}
		if t, ok := p.(core.Text); ok && len(out) > 0 {
			if last, ok := out[len(out)-1].(core.Text); ok {
				out[len(out)-1] = last + "\n" + t
				continue
			}
		}
		out = append(out, p)
	}
	return out
}

// Merged returns messages with those of the assistant that follow each other as one: an API may have an item for each call.
func Merged(messages []core.Message) []core.Message {
	var out []core.Message
	for _, m := range messages {
		if n := len(out); n > 0 && m.Role == core.RoleAssistant && out[n-1].Role == core.RoleAssistant {
			out[n-1].Parts = append(slices.Clone(out[n-1].Parts), m.Parts...)
			continue
		}
		out = append(out, m)
	}
	return out
}
