package smart_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

func open(tb testing.TB, settings string) core.CondensationProvider {
	tb.Helper()
	p, err := smart.Strategy().Open(tb.Context(), json.RawMessage(settings), registry.Env{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func presets() []string { return smart.Presets() }

// A form is a list of passes with a name.
type form struct{ name, settings string }

// forms are the presets, and the lists that the laboratory compares them with.
func forms() []form {
	var out []form
	for _, p := range presets() {
		out = append(out, form{p, `{"preset": "` + p + `"}`})
	}
	return append(out,
		form{"observation_masking", `{"passes": ["mask"]}`},
		form{"clear_tool_uses", `{"passes": [{"pass": "mask", "keep": 3}]}`},
		form{"prune", `{"passes": ["prune"]}`},
		form{"headtail", `{"passes": [{"pass": "headtail", "fit": true, "tokens": 40, "keep": 0}]}`},
		form{"score", `{"passes": ["score"]}`},
	)
}

func TestPresetsAreListed(t *testing.T) {
	if got, want := smart.Strategy().Settings()[0].Enum, presets(); !slices.Equal(got, want) {
		t.Errorf("the setting preset lists %v, want %v", got, want)
	}
}

func TestConformance(t *testing.T) {
	for i, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			if i > 0 {
				testkit.Slow(t) // all of them together
			}
			coretest.Run(t, func(t *testing.T) core.CondensationProvider { return open(t, f.settings) })
		})
	}
}

// condense asks p and checks the answer as a host would. The messages come back as the
// chain would adopt them.
func condense(t failer, p core.CondensationProvider, req *core.Request) *core.Result {
	t.Helper()
	res, err := p.Condense(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Fatalf("invalid: %v", err)
	}
	return res
}

// again returns the request that the host would make of an answer.
func again(req *core.Request, res *core.Result) *core.Request {
	next := *req
	next.Messages = make([]core.Message, len(res.Messages))
	for i, m := range res.Messages {
		if m.ID == "" {
			m.ID = "new" + string(rune('a'+i%26)) + string(rune('a'+i/26))
			if m.Kind == core.KindOriginal {
				m.Kind = core.KindSummary
			}
		}
		m.Tokens = core.MessageTokens(req.Counter, m)
		next.Messages[i] = m
	}
	return &next
}

// What presets leave is valid and never larger, and a second run changes nothing.
func TestPresetsAreValidAndIdempotent(t *testing.T) {
	opened := map[string]core.CondensationProvider{}
	var names []string
	for _, f := range forms() {
		opened[f.name] = open(t, f.settings)
		names = append(names, f.name)
	}
	for range 3 { // 300 histories
		t.Run("", func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := opened[rapid.SampledFrom(names).Draw(t, "preset")]
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				messages := coretest.Random(r, &coretest.RandomOptions{Tidy: rapid.Bool().Draw(t, "tidy")})
				req := coretest.Request(messages, rapid.IntRange(1, 4000).Draw(t, "target"))
				req.Typed = dialog.Typed // as hosts do
				res := condense(t, p, req)
				for _, s := range res.Steps {
					if s.Looked > 0 && s.Changed > s.Looked {
						t.Fatalf("%s says that it changed %d of %d", s.Name, s.Changed, s.Looked)
					}
				}
				if was, now := sum(messages), sum(again(req, res).Messages); now > was {
					t.Fatalf("%d tokens became %d", was, now)
				}
				isStable(t, p, req, res)
			})
		})
	}
}

// isStable checks that a second run changes nothing in the result of the first.
func isStable(t failer, p core.CondensationProvider, req *core.Request, res *core.Result) {
	t.Helper()
	next := again(req, res)
	second := condense(t, p, next)
	for i := range second.Messages {
		if i >= len(next.Messages) || !second.Messages[i].Equal(next.Messages[i]) {
			t.Fatalf("a second run changed message %d:\n%v\n%v", i, next.Messages[i], second.Messages[i])
		}
	}
}

// TestSecondRunKeepsWords: a second run keeps the lines of the user where the room is so small that the newest words are lost, that they
// fit to the token, or that their message stands beside an extract.
func TestSecondRunKeepsWords(t *testing.T) {
	p := open(t, `{"preset": "gentle"}`)
	for _, c := range []struct {
		seed   uint64
		tidy   bool
		target int
	}{{0x162a1d2e, false, 35}, {0x25242, false, 133}, {0x1e2f8d02, true, 80}, {1092, true, 108}, {1638, true, 171}, {2538, true, 174}, {23389, true, 195}} {
		req := coretest.Request(coretest.Random(rand.New(rand.NewPCG(c.seed, 0)), &coretest.RandomOptions{Tidy: c.tidy}), c.target)
		req.Typed = dialog.Typed
		isStable(t, p, req, condense(t, p, req))
	}
}

func sum(messages []core.Message) (n int) {
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

// A failer is a test or a property of one.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
