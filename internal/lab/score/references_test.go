package score_test

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

// A reference makes a view of the prefix of a cut.
type reference func(s *score.Scorer, messages []core.Message, budget int, c core.Counter) ([]core.Message, error)

// references are strategies in their simplest form, without regard to the rules of an API: bounds, what
// other tools do, and what the metric must not reward.
var references = map[string]reference{
	"everything": func(_ *score.Scorer, m []core.Message, _ int, _ core.Counter) ([]core.Message, error) { return m, nil },
	"random_lines": func(s *score.Scorer, _ []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		return s.RandomLines(budget, 1, c), nil
	},
	"keep_last": func(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		return score.KeepLast(m, budget, c), nil
	},
	"roo_halving": rooHalving,
	"masking":     masking,
	"headtail":    headTail,
	"identifiers": identifiers,
}

// On a large and mixed set of sessions the reference strategies keep what an independent
// implementation of the metric found them to keep on 119 sessions. What does not depend on
// how a strategy is made to fit a budget agrees within 0.02.
var published = map[string][3]float64{ // panel at 10, 25 and 50 %
	"everything":   {1, 1, 1},
	"headtail":     {0.42, 0.65, 0.83},
	"keep_last":    {0.30, 0.49, 0.68},
	"random_lines": {0.22, 0.43, 0.70},
	"identifiers":  {0.02, 0.02, 0.02},
	"masking":      {0.35, 0.55, 0.73},
	"roo_halving":  {0.34, 0.49, 0.63},
}

var tolerance = map[string]float64{"random_lines": 0.03, "masking": 0.05, "roo_halving": 0.06}

// shares are the budgets, of the tokens of a prefix.
var shares = [3]float64{0.10, 0.25, 0.50}

// panels returns the mean panel of every reference for every budget, and the number of sessions.
func panels(t *testing.T) (panel map[string][3]float64, sessions int) {
	t.Helper()
	list, counter := scorers(t, tokens.O200kBase)
	bySession := map[string][]*score.Scorer{}
	for _, s := range list {
		if cut := s.Cut(); cut.Compaction < 0 {
			bySession[cut.Session.ID] = append(bySession[cut.Session.ID], s)
		}
	}
	panel = map[string][3]float64{}
	for name, view := range references {
		var mean [3]float64
		for i, share := range shares {
			sum, n := 0.0, 0.0
			for _, id := range slices.Sorted(maps.Keys(bySession)) {
				ofSession, cuts := 0.0, 0.0
				for _, s := range bySession[id] {
					cut := s.Cut()
					m, err := view(s, slices.Clone(cut.Prefix()), int(math.Round(float64(cut.Tokens)*share)), counter)
					if err != nil {
						t.Fatalf("%s: %s %s: %v", name, id, cut.Name, err)
					}
					if v, ok := s.Score(m).Panel(); ok {
						ofSession, cuts = ofSession+v, cuts+1
					}
				}
				if cuts > 0 {
					sum, n = sum+ofSession/cuts, n+1
				}
			}
			mean[i] = sum / n
		}
		panel[name] = mean
		t.Logf("%-12s %.3f", name, mean)
	}
	return panel, len(bySession)
}

func TestReferences(t *testing.T) {
	testkit.Slow(t)
	got, sessions := panels(t)
	for i, share := range shares {
		if sessions >= 60 {
			for name, want := range published {
				if d := math.Abs(got[name][i] - want[i]); d > max(0.02, tolerance[name]) {
					t.Errorf("%s at %.2f: panel %.3f, published %.2f", name, share, got[name][i], want[i])
				}
			}
		}
		// This order holds on any set of sessions.
		for _, pair := range [][2]string{{"everything", "headtail"}, {"headtail", "keep_last"}, {"keep_last", "identifiers"}, {"random_lines", "identifiers"}} {
			if got[pair[0]][i] <= got[pair[1]][i] {
				t.Errorf("at %.2f: %s %.3f, not above %s %.3f", share, pair[0], got[pair[0]][i], pair[1], got[pair[1]][i])
			}
		}
	}
}

func size(m []core.Message) int {
	n := 0
	for i := range m {
		n += m[i].Tokens
	}
	return n
}

// rooHalving is Roo-Code's truncation, again and again: the first message is kept, half of
// the rest, rounded down to even, is dropped.
func rooHalving(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	for size(m) > budget && len(m) > 1 {
		n := (len(m) - 1) / 2
		n -= n % 2
		if n == 0 {
			break
		}
		m = append([]core.Message{m[0]}, m[1+n:]...)
	}
	if size(m) > budget {
		return firstAndLast(m, budget, c), nil
	}
	return m, nil
}

// mapResults returns m with f applied to the text of every tool result but the last keep.
func mapResults(m []core.Message, keep int, c core.Counter, f func(string) string) []core.Message {
	total := 0
	for i := range m {
		for _, p := range m[i].Parts {
			if _, ok := p.(core.ToolResult); ok {
				total++
			}
		}
	}
	out := make([]core.Message, len(m))
	n := 0
	for i := range m {
		out[i] = m[i]
		var parts []core.Part
		for j, p := range m[i].Parts {
			r, ok := p.(core.ToolResult)
			if !ok {
				continue
			}
			if n++; n > total-keep {
				continue
			}
			if parts == nil {
				parts = append(parts, m[i].Parts...)
			}
			content := make([]core.Part, len(r.Content))
			for k, q := range r.Content {
				content[k] = q
				if t, ok := q.(core.Text); ok {
					content[k] = core.Text(f(string(t)))
				}
			}
			r.Content = content
			parts[j] = r
		}
		if parts != nil {
			out[i].Parts = parts
			out[i].Tokens = core.MessageTokens(c, out[i])
		}
	}
	return out
}

// masking hides the results of tools but the last ten, as SWE-agent does, then what is
// oldest.
func masking(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	if size(m) <= budget {
		return m, nil
	}
	m = mapResults(m, 10, c, func(string) string { return "[old tool result cleared]" })
	if size(m) <= budget {
		return m, nil
	}
	return firstAndLast(m, budget, c), nil
}

// firstAndLast keeps the first message, if it takes no more than a quarter of the budget,
// and the newest groups.
func firstAndLast(m []core.Message, budget int, c core.Counter) []core.Message {
	if len(m) > 0 && m[0].Tokens <= budget/4 {
		return append([]core.Message{m[0]}, score.KeepLast(m[1:], budget-m[0].Tokens, c)...)
	}
	return score.KeepLast(m, budget, c)
}

// headTail cuts the middle out of every long result, as many bytes as it takes; if that is
// not enough, what is oldest goes.
func headTail(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	if size(m) <= budget {
		return m, nil
	}
	cut := func(limit int) []core.Message {
		return mapResults(m, 0, c, func(s string) string {
			if len(s) <= limit {
				return s
			}
			return s[:limit*6/10] + "\n[…]\n" + s[len(s)-limit*4/10:]
		})
	}
	least, most := 200, 100_000
	out := cut(least)
	if size(out) > budget {
		return firstAndLast(out, budget, c), nil
	}
	for most-least > least/20 {
		limit := (least + most) / 2
		if try := cut(limit); size(try) <= budget {
			out, least = try, limit
		} else {
			most = limit
		}
	}
	return out, nil
}

// identifiers is the cheat that plain recall falls for: every name, once, and nothing said
// about it.
func identifiers(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	seen := map[string]bool{}
	var out []string
	tokens := 0
	for _, msg := range slices.Backward(m) {
		text, err := json.Marshal(msg)
		if err != nil {
			return nil, err
		}
		for _, w := range strings.FieldsFunc(string(text), func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && r != '/' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			if len(w) < 4 || seen[w] || !strings.ContainsAny(w[1:], "_-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				continue
			}
			seen[w] = true
			if tokens += (len(w) + 3) / 3; tokens > budget {
				break
			}
			out = append(out, w)
		}
	}
	msg := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Join(out, " "))}}
	msg.Tokens = core.MessageTokens(c, msg)
	return []core.Message{msg}, nil
}

// randomGroups returns tool groups of messages, chosen at random, that have no more than
// budget tokens.
func randomGroups(messages []core.Message, budget int, seed uint64) []core.Message {
	groups := core.Groups(messages)
	keep := make([]bool, len(groups))
	used := 0
	for _, at := range rand.New(rand.NewPCG(seed, 1)).Perm(len(groups)) {
		n := 0
		for i := groups[at].Start; i < groups[at].End; i++ {
			n += messages[i].Tokens
		}
		if used+n <= budget {
			used, keep[at] = used+n, true
		}
	}
	var out []core.Message
	for at, g := range groups {
		if keep[at] {
			out = append(out, messages[g.Start:g.End]...)
		}
	}
	return out
}
