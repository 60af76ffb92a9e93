package lab

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A Budget says where sessions are cut and how many tokens a strategy may leave: see package compare. Shares are cut as by
// [score.Cuts], and long results are those of [score.LongResult] tokens.
type Budget struct {
	Share         float64
	Window        int
	Real, Results bool
}

// ParseBudget reads "25%", "32k", "128000", "real", "25%@real" or "results".
func ParseBudget(s string) (Budget, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	if n, ok := strings.CutSuffix(t, "@real"); ok && strings.HasSuffix(n, "%") {
		b, err := ParseBudget(n)
		b.Real = true
		return b, err
	}
	if t == "real" {
		return Budget{Real: true}, nil
	}
	if t == "results" {
		return Budget{Results: true}, nil
	}
	if n, ok := strings.CutSuffix(t, "%"); ok {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || !(v > 0 && v < 100) {
			return Budget{}, fmt.Errorf("budget %q: want a share above 0%% and below 100%%", s)
		}
		return Budget{Share: v}, nil
	}
	v, ok := size.Parse(t)
	if !ok || v < 1000 || v > 1e9 {
		return Budget{}, fmt.Errorf(`budget %q: want a share of the prefix ("25%%"), a window of at least 1000 tokens ("32k"), "real" or "results"`, s)
	}
	return Budget{Window: int(v)}, nil
}

// String returns b as ParseBudget reads it.
func (b Budget) String() string {
	switch {
	case b.Real && b.Share > 0:
		return Budget{Share: b.Share}.String() + "@real"
	case b.Real:
		return "real"
	case b.Results:
		return "results"
	case b.Window > 0 && b.Window%1000 == 0:
		return strconv.Itoa(b.Window/1000) + "k"
	case b.Window > 0:
		return strconv.Itoa(b.Window)
	}
	return strconv.FormatFloat(b.Share, 'f', -1, 64) + "%"
}

// A task is a cut and the tokens that may be left of it.
type task struct {
	budget string
	cut    score.Cut
	room   int // tokens for the messages
}

// tasks returns the tasks of s, which has the given cuts, under b.
func (b Budget) tasks(s *score.Session, cuts []score.Cut, c core.Counter) []task {
	var out []task
	name := b.String()
	switch {
	case b.Results:
		out = append(out, plain.Each(score.ResultCuts(s), func(cut score.Cut) task { return task{name, cut, cut.Tokens / 2} })...)
	case b.Window > 0:
		if cut, room, ok := firstDue(s, b.Window, c); ok {
			out = append(out, task{name, cut, room})
		}
	default:
		for _, cut := range cuts {
			if (cut.Compaction >= 0) != b.Real {
				continue
			}
			room := cut.Budget
			if b.Share > 0 {
				room = int(math.Round(float64(cut.Tokens) * b.Share / 100))
			}
			if room > 0 {
				out = append(out, task{name, cut, room})
			}
		}
	}
	return out
}

// whyUncut returns why s, which has the given cuts, has no task under any budget.
func whyUncut(s *score.Session, cuts []score.Cut, budgets []Budget) string {
	if len(s.Messages) == 0 {
		return "no messages"
	}
	var out []string
	for _, b := range budgets {
		why := ""
		switch {
		case b.Window > 0:
			why = fmt.Sprintf("it never fills a window of %s, with %d turns of the assistant to follow", b, score.TurnsAfter)
		case b.Results:
			why = fmt.Sprintf("no result has more than %d tokens, with %d turns of the assistant to follow", score.LongResult, score.TurnsAfterResult)
		case b.Real:
			why = "no compaction with a summary is recorded, with enough before and after it"
		case len(cuts) == 0 || !slices.ContainsFunc(cuts, func(c score.Cut) bool { return c.Compaction < 0 }):
			why = fmt.Sprintf("too short to be cut: at least %d turns of the assistant must follow", score.TurnsAfter)
		}
		if why != "" && !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

// firstDue returns the cut where the recommended policy would first condense s for a model with the
// given window, and the tokens that the policy would leave to the messages.
func firstDue(s *score.Session, window int, c core.Counter) (score.Cut, int, bool) {
	rule := policy.Default(window)
	size := policy.Size{}
	if s.System != "" {
		size.System = c.Count(core.Text(s.System))
	}
	last := 0
	for i := range s.Messages {
		if s.Messages[i].Role == core.RoleAssistant && i > last {
			if d := rule.Decide(size, policy.State{}, core.TriggerAutomatic); d.Act {
				cut, ok := score.CutAt(s, "window "+Budget{Window: window}.String(), i)
				return cut, d.Budget.Room(), ok && d.Budget.Room() > 0
			}
		}
		size.Messages += s.Messages[i].Tokens
	}
	return score.Cut{}, 0, false
}
