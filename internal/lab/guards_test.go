package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/transcript"
)

// provider returns a strategy that calls f.
func provider(name string, f func(req *core.Request) ([]core.Message, error)) lab.Strategy {
	return lab.Strategy{Name: name, Provider: framing{func(_ context.Context, req *core.Request) (*core.Result, error) {
		m, err := f(req)
		return &core.Result{Messages: m}, err
	}}}
}

// framing is a provider whose messages get no frame, which counts in small sessions.
type framing struct{ core.ProviderFunc }

func (framing) Frames() bool { return true }

// say returns a message that replaces everything, and the end of the conversation, which is fixed.
func say(req *core.Request, text string) []core.Message {
	out := []core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(text)}}}
	for _, i := range core.Pending(req.Messages) {
		out = append(out, req.Messages[i])
	}
	return out
}

// fit cuts text to the room of req.
func fit(req *core.Request, text string) string {
	for len(text) > 8 && core.MessageTokens(req.Counter, core.Message{Parts: []core.Part{core.Text(text)}}) > req.Budget.Room() {
		text = text[:len(text)*9/10]
	}
	return text
}

// names returns a bare list of names.
func names(req *core.Request) ([]core.Message, error) {
	seen := map[string]bool{}
	var list []string
	for _, m := range slices.Backward(req.Messages) {
		raw, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		for _, w := range strings.FieldsFunc(string(raw), func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && r != '/' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			if len(w) > 3 && !seen[w] && strings.ContainsAny(w[1:], "_-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				seen[w] = true
				list = append(list, w)
			}
		}
	}
	return say(req, fit(req, strings.Join(list, " "))), nil
}

// cheat returns a strategy that knows the rest of every session.
func cheat(t *testing.T, items []lab.Item) lab.Strategy {
	t.Helper()
	ends := map[string][]core.Message{} // by the ID of a message, all that came after it
	for _, it := range items {
		f, err := it.Open()
		if err != nil {
			t.Fatal(err)
		}
		d, err := transcript.Read(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := d.Journal.Messages()
		for i := range all {
			ends[fingerprint(all[i])] = all[i+1:]
		}
	}
	return provider("prophet", func(req *core.Request) ([]core.Message, error) {
		var b strings.Builder
		for _, m := range ends[fingerprint(req.Messages[len(req.Messages)-1])] {
			for _, p := range m.Parts {
				switch p := p.(type) {
				case core.Text:
					b.WriteString(string(p) + "\n")
				case core.ToolCall:
					b.WriteString(p.Name + " " + p.Args + "\n")
				default:
				}
			}
		}
		return say(req, fit(req, b.String())), nil
	})
}

func fingerprint(m core.Message) string {
	var s string
	for _, p := range m.Parts {
		s += core.Handle(p)
	}
	return s
}

func TestGuards(t *testing.T) {
	t.Parallel()
	items := small()
	r := run(
		t, items, lab.Options{Budgets: budgets(t, "25%"), Jobs: 2},
		window("window", "budget"),
		provider("names", names),
		cheat(t, items),
		provider("nothing", func(req *core.Request) ([]core.Message, error) { return say(req, "Go on."), nil }),
		provider("everything", func(req *core.Request) ([]core.Message, error) { return req.Messages, nil }),
		provider("emptied", func(*core.Request) ([]core.Message, error) { return nil, nil }),
		provider("broken", func(*core.Request) ([]core.Message, error) { return nil, errors.New("out of luck") }),
		lab.Strategy{Name: "saved", Chain: []core.NamedProvider{
			{Name: "first", Provider: core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return &core.Result{}, nil })},
			{Name: "last", Provider: window("window", "budget").Provider},
		}},
	)
	warned := map[string]string{}
	for _, w := range r.Warnings {
		if w.Strategy == "saved" && w.Unfit {
			t.Errorf("a chain that works is unfit: %s", w.Text)
		}
		if w.Unfit || w.Strategy == "saved" {
			warned[w.Strategy] += w.Text + "; "
		}
	}
	for _, c := range []struct {
		strategy  string
		low, high float64 // of the panel; negative: there is none
		warning   string
	}{
		{"window", 0.2, 0.9, ""},
		{"names", 0, 0.02, "a list of names is no memory"},
		{"prophet", 0, 1, "knows the future"},
		{"nothing", 0, 0.01, "nothing is left"},
		{"everything", 1, 1, "over the budget"},
		{"emptied", -1, -1, "rejected"},
		{"broken", -1, -1, "out of luck"},
		{"saved", 0.2, 0.9, "another one contributed"},
	} {
		l := line(t, r, "25%", c.strategy)
		panel, ok := l.Values["panel"]
		if ok != (c.low >= 0) {
			t.Errorf("%s: panel %v, measured %v", c.strategy, panel, ok)
		} else if ok && (panel.Mean < c.low || panel.Mean > c.high) {
			t.Errorf("%s: panel %.3f, want %v to %v", c.strategy, panel.Mean, c.low, c.high)
		}
		switch got := warned[c.strategy]; {
		case c.warning == "" && got != "":
			t.Errorf("%s: warned without a reason: %s", c.strategy, got)
		case !strings.Contains(got, c.warning):
			t.Errorf("%s: got the warning %q, want one with %q", c.strategy, got, c.warning)
		}
	}
	if l := line(t, r, "25%", "names"); l.Values["plain"].Mean < 0.5 {
		t.Errorf("the list of names has %.2f plain recall: it tests nothing", l.Values["plain"].Mean)
	}
	if l := line(t, r, "25%", "emptied"); l.Values["lawful"].Mean != 0 || l.Failed != l.Cuts {
		t.Errorf("emptied: lawful %v, %d of %d failed", l.Values["lawful"].Mean, l.Failed, l.Cuts)
	}
	if l := line(t, r, "25%", "saved"); l.Values["lawful"].Mean != 0 || l.Failed != 0 {
		t.Errorf("saved: lawful %v, %d failed", l.Values["lawful"].Mean, l.Failed)
	}
	for _, v := range r.Verdicts {
		if v.Best != "window" && v.Best != "" {
			t.Errorf("the verdict on %s %s names %s", v.Budget, v.Mode, v.Best)
		}
	}
}
