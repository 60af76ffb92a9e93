package smart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

type maskSettings struct {
	Keep        int      `json:"keep" doc:"results of the newest calls that stay"`
	UntilTarget bool     `json:"until_target" doc:"oldest first, and no more than the target needs"`
	Inputs      bool     `json:"inputs" doc:"long arguments of the calls go too"`
	Except      []string `json:"except" doc:"tools whose results stay"`
	Errors      bool     `json:"errors" doc:"results of failed calls go too"`
}

// Validate says which setting is out of range.
func (s *maskSettings) Validate() error {
	if s.Keep < 0 {
		return fmt.Errorf("keep: %d is negative", s.Keep)
	}
	return nil
}

var maskPass = define("mask", classLossy,
	"OpenHands observation_masking; Anthropic clear_tool_uses_20250919",
	"Takes out the results of all but the newest tool calls, pictures included.",
	maskSettings{Keep: 10, Errors: true, Except: []string{}},
	func(_ context.Context, w *work, c maskSettings) error {
		answered := w.answered()
		for _, k := range answered[:max(0, len(answered)-c.Keep)] {
			if c.UntilTarget && w.met() {
				break
			}
			u := &w.uses[k]
			w.looked()
			if u.IsError && !c.Errors || slices.Contains(c.Except, u.Name) {
				continue
			}
			w.clear(u)
			if c.Inputs && u.Called {
				w.shortenCall(u.call, 0, "")
			}
		}
		return nil
	})

// answered returns the uses that have a result, oldest first.
func (w *work) answered() []int {
	var out []int
	for k := range w.uses {
		if u := &w.uses[k]; u.results.Start < u.results.End && !w.hidden[u.Message] {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return w.uses[a].results.Start - w.uses[b].results.Start })
	return out
}

type pruneSettings struct {
	Protect int      `json:"protect" doc:"tokens of the newest results that stay"`
	Minimum int      `json:"minimum" doc:"tokens that must go, or none do"`
	Turns   int      `json:"turns" doc:"turns of the user, counted from the end, whose results stay"`
	Except  []string `json:"except" doc:"tools whose results stay"`
}

// Validate says which setting is out of range.
func (s *pruneSettings) Validate() error {
	if s.Protect < 0 || s.Minimum < 0 || s.Turns < 0 {
		return fmt.Errorf("protect, minimum and turns: %d, %d, %d; none may be negative", s.Protect, s.Minimum, s.Turns)
	}
	return nil
}

var prunePass = define("prune", classLossy,
	"opencode prune: 40,000 protected, at least 20,000 pruned, 2 turns, never the tool skill",
	"Takes out old results, except a number of newest tokens of results, if enough would be removed.",
	pruneSettings{Protect: 40_000, Minimum: 20_000, Turns: 2, Except: []string{"skill"}},
	func(_ context.Context, w *work, c pruneSettings) error {
		last := w.turnFromEnd(c.Turns)
		var prune []int
		kept, gain := 0, 0
		answered := w.answered()
		for _, k := range slices.Backward(answered) {
			u := &w.uses[k]
			if u.Message >= last || slices.ContainsFunc(c.Except, func(n string) bool { return strings.EqualFold(n, u.Name) }) {
				continue
			}
			if w.pieces[u.results.Start].fixed {
				continue
			}
			w.looked()
			n := w.resultTokens(k)
			if kept += n; kept > c.Protect {
				prune = append(prune, k)
				gain += n
			}
		}
		if gain <= c.Minimum {
			return nil
		}
		for _, k := range slices.Backward(prune) {
			w.clear(&w.uses[k])
		}
		return nil
	})

func (w *work) resultTokens(k int) int {
	n := 0
	for i := w.uses[k].results.Start; i < w.uses[k].results.End; i++ {
		n += w.pieces[i].tokens
	}
	return n
}

// turnFromEnd returns the message with which the nth turn from the end began: the message
// of a user's words. It is the number of messages if n is 0, and 0 if there are fewer.
func (w *work) turnFromEnd(n int) int {
	if n == 0 {
		return len(w.msgs)
	}
	seen := -1
	for i := len(w.pieces) - 1; i >= 0; i-- {
		if p := &w.pieces[i]; p.kind == dialog.KindUser && w.message(i) != seen && !w.hidden[w.message(i)] {
			seen = w.message(i)
			if n--; n == 0 {
				return seen
			}
		}
	}
	return 0
}
