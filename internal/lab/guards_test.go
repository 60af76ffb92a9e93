package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	return core.KeepRequest(req, out)
}

// fit cuts text to the room of req that the fixed end leaves.
func fit(req *core.Request, text string) string {
	room := req.Budget.Room() - core.TotalTokens(say(req, ""))
	for len(text) > 8 && core.MessageTokens(req.Counter, core.Message{Parts: []core.Part{core.Text(text)}}) > room {
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

// followed returns a strategy whose provider calls f and is followed by truncation.
func followed(name string, f func(context.Context, *core.Request) (*core.Result, error)) lab.Strategy {
	return lab.Strategy{Name: name, Key: name, Truncation: "truncation", Chain: []core.NamedProvider{
		{Name: "tried", Provider: core.ProviderFunc(f)},
		{Name: "truncation", Provider: window("window", "budget").Provider},
	}}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	items := small()
	var crashes, once atomic.Int64
	r := run(
		t, items, lab.Options{Budgets: budgets(t, "25%"), Jobs: 2},
		window("window", "budget"),
		provider("names", names),
		cheat(t, items),
		provider("nothing", func(req *core.Request) ([]core.Message, error) { return say(req, "Go on."), nil }),
		provider("everything", func(req *core.Request) ([]core.Message, error) { return req.Messages, nil }),
		provider("emptied", func(*core.Request) ([]core.Message, error) { return nil, nil }),
		provider("broken", func(*core.Request) ([]core.Message, error) { return nil, errors.New("out of luck") }),
		followed("rejected", func(context.Context, *core.Request) (*core.Result, error) { return &core.Result{}, nil }),
		followed("crashing", func(context.Context, *core.Request) (*core.Result, error) {
			if crashes.Add(1) > 3 { // as the host does with a plugin
				return nil, fmt.Errorf("its last calls failed: %w", core.ErrUnavailable)
			}
			return nil, errors.New("it crashed")
		}),
		followed("stumbling", func(_ context.Context, req *core.Request) (*core.Result, error) {
			if once.Add(1) == 1 {
				return nil, errors.New("it stumbled")
			}
			return &core.Result{Messages: req.Messages}, nil
		}),
	)
	warned := map[string]string{}
	for _, w := range r.Warnings {
		if w.Strategy == "stumbling" && w.Unfit {
			t.Errorf("a chain that works is unfit: %s", w.Text)
		}
		if w.Unfit || w.Strategy == "stumbling" {
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
		{"rejected", 0.2, 0.9, "another one did its work"},
		{"crashing", 0.2, 0.9, "another one did its work. The first: tried: it crashed"},
		{"stumbling", 0.2, 0.9, "at 1 of "},
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
	if l := line(t, r, "25%", "rejected"); l.Values["lawful"].Mean != 0 || l.Failed != 0 {
		t.Errorf("rejected: lawful %v, %d failed", l.Values["lawful"].Mean, l.Failed)
	}
	// By its panel, a provider that crashed or was not asked any more looks like truncation: these two measures show
	// it.
	for strategy, want := range map[string][2]float64{"rejected": {1, 0}, "crashing": {1, 0}, "window": {0, 1}} {
		v := line(t, r, "25%", strategy).Values
		if got := [2]float64{v[lab.MeasureFailed].Mean, v[lab.MeasureOwn].Mean}; got != want {
			t.Errorf("%s: failed at %v of the cuts and saved %v by itself, want %v", strategy, got[0], got[1], want)
		}
	}
	for _, v := range r.Verdicts {
		for _, n := range slices.Concat([]string{v.Best}, v.Ties) {
			if n != "window" && n != "stumbling" && n != "" {
				t.Errorf("the verdict on %s %s names %s", v.Budget, v.Mode, n)
			}
		}
	}
}

// A plugin that crashed yesterday is asked again today: its failure is not its result for ever.
func TestAPassingFailureIsNotKeptInTheCache(t *testing.T) {
	t.Parallel()
	var broken bool
	var asked int
	s := followed("mended", func(_ context.Context, req *core.Request) (*core.Result, error) {
		asked++
		if broken {
			return nil, fmt.Errorf("the model does not answer: %w", core.ErrUnavailable)
		}
		return &core.Result{Messages: req.Messages}, nil
	})
	opts := lab.Options{Budgets: budgets(t, "25%"), Cache: t.TempDir()}
	items := small()[:1]
	for _, c := range []struct {
		name   string
		broken bool
		failed float64
	}{{"while it fails", true, 1}, {"when it works", false, 0}, {"from the cache", true, 0}} {
		broken, asked = c.broken, 0
		r := run(t, items, opts, s)
		if got := line(t, r, "25%", "mended").Values[lab.MeasureFailed].Mean; got != c.failed {
			t.Errorf("%s: failed at %v of the cuts, want %v", c.name, got, c.failed)
		}
		if fromCache := asked == 0; fromCache != (c.name == "from the cache") {
			t.Errorf("%s: asked %d times", c.name, asked)
		}
	}
}

// One that works without truncation, but is not asked any more, has no result.
func TestASkippedProviderIsNoResult(t *testing.T) {
	t.Parallel()
	s := provider("skipped", func(*core.Request) ([]core.Message, error) { return nil, core.ErrUnavailable })
	r := run(t, small()[:1], lab.Options{Budgets: budgets(t, "25%")}, s)
	if l := line(t, r, "25%", "skipped"); l.Failed != l.Cuts || !l.Unfit {
		t.Errorf("%d of %d cuts failed, unfit %v", l.Failed, l.Cuts, l.Unfit)
	}
}
