package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// TestHiddenMessagesOnDemand: a provider reads again what earlier condensations hid or rewrote, and may insert it, in its own name. What
// was redacted stays so, also after it was hidden, and keys of vendors are left out.
func TestHiddenMessagesOnDemand(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ-kL7mNpQA"
	rounds := 0
	var err error
	back := func(req *core.Request) []core.Message {
		m := slices.Clone(req.Messages)
		switch rounds++; rounds {
		case 1: // redacts a password, and hides two messages
			m[2].Parts = []core.Part{core.Text("My password is [redacted], and the rest is as before.")}
			return slices.Delete(m, 3, 5)
		case 2: // hides what was redacted
			return slices.Delete(m, 2, 4)
		}
		list, fault := req.Hidden()
		if fault != nil {
			err = fault
			return m
		}
		var ids []string
		for _, h := range list {
			ids = append(ids, h.ID)
			if h.Parts != nil || h.Tokens <= 0 {
				err = fmt.Errorf("in the list there is %+v", h)
			}
		}
		found, fault := req.Hidden(ids...)
		var all []string
		for _, h := range found {
			all = append(all, fmt.Sprint(h.Role, h.Parts))
		}
		text := strings.Join(all, "\n")
		for _, want := range []string{"user[My password is [redacted]", "assistant[The port is 8443.", "user[The key is"} {
			if !strings.Contains(text, want) {
				err = fmt.Errorf("%q is not in %q", want, text)
			}
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, key) || fault != nil || len(found) != 4 {
			err = fmt.Errorf("got %q, error %w", text, fault)
		}
		if _, unknown := req.Hidden(ids[0], "nobody"); unknown == nil || !strings.Contains(unknown.Error(), `no message "nobody" is hidden`) {
			err = fmt.Errorf("an unknown one: %w", unknown)
		}
		port, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprint(found[1].Parts), "["), " Some")
		again := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(port)}}
		return slices.Insert(slices.Delete(m, 2, 3), 1, again)
	}
	reader := registry.Define("reader", "Reads what is hidden.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				return &core.Result{Messages: back(req)}, nil
			}), nil
		})
	h, fault := condense.Open(t.Context(), &condense.Options{
		Load:       loadText(t, "tokenizer: chars4\nprofiles: {p: {window: 100000, chain: [reader]}}\nproviders: {reader: {strategy: reader}}\n"),
		Strategies: []registry.Strategy{reader},
	})
	if fault != nil {
		t.Fatal(fault)
	}
	t.Cleanup(func() { _ = h.Close() })
	long := strings.Repeat(" Some more words.", 200)
	c := conversation(t, said(core.RoleUser, "Set up the server."), said(core.RoleAssistant, "Which one?"),
		said(core.RoleUser, "My password is hunter2, and the rest is as before."), said(core.RoleAssistant, "The port is 8443."+long),
		said(core.RoleUser, "The key is "+key+"."+long), core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Reasoning{Text: "So it is " + key}, core.Text("I use it." + long)}}, said(core.RoleUser, "Fine."+long),
		said(core.RoleAssistant, "It runs."), said(core.RoleUser, "And now?"))
	for range 3 {
		r, fault := h.Manage(t.Context(), c, condense.Turn{Profile: "p", Trigger: core.TriggerManual})
		if fault != nil || err != nil {
			t.Fatal(fault, err)
		}
		if !r.Acted {
			t.Fatal(r.Reason, r.Attempts)
		}
	}
	view := fmt.Sprint(c.View())
	if want := core.Frame("reader") + "\nThe port is 8443."; !strings.Contains(view, want) {
		t.Errorf("%q is not in %.600q", want, view)
	}
	if rounds != 3 {
		t.Errorf("%d rounds", rounds)
	}
}
