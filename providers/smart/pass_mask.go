package smart

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

type maskSettings struct {
	Keep        int      `json:"keep" doc:"number of newest calls whose results are kept"`
	UntilTarget bool     `json:"until_target" doc:"remove the oldest first, and no more than the target requires"`
	Inputs      bool     `json:"inputs" doc:"also remove long arguments of the calls"`
	Except      []string `json:"except" doc:"tools whose results are kept"`
	Errors      bool     `json:"errors" doc:"also remove results of failed calls"`
}

// Validate says which setting is out of range.
func (s *maskSettings) Validate() error { return atLeast(0, "keep", s.Keep) }

var maskPass = define("mask", classLossy,
	"OpenHands observation_masking; Anthropic clear_tool_uses_20250919",
	"Removes the results of all but the newest tool calls, including images.",
	maskSettings{Keep: 10, Errors: true, Except: []string{}},
	func(_ context.Context, w *work, c maskSettings) error {
		answered := w.answered()
		for _, u := range answered[:max(0, len(answered)-c.Keep)] {
			if c.UntilTarget && w.fits() {
				break
			}
			w.visited(u.results.End - u.results.Start)
			if c.Inputs && u.Called {
				w.visited(1)
			}
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
func (w *work) answered() []*use {
	var out []*use
	for k := range w.uses {
		if u := &w.uses[k]; u.results.Start < u.results.End && !w.hidden[u.Message] {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b *use) int { return a.results.Start - b.results.Start })
	return out
}

type pruneSettings struct {
	Protect int      `json:"protect" doc:"tokens of the newest results to keep"`
	Minimum int      `json:"minimum" doc:"tokens that must be removed, else nothing is"`
	Turns   int      `json:"turns" doc:"number of newest user turns whose results are kept"`
	Except  []string `json:"except" doc:"tools whose results are kept"`
}

// Validate says which setting is out of range.
func (s *pruneSettings) Validate() error {
	return cmp.Or(atLeast(0, "protect", s.Protect), atLeast(0, "minimum", s.Minimum), atLeast(0, "turns", s.Turns))
}

var prunePass = define("prune", classLossy,
	"opencode prune: 40,000 protected, at least 20,000 pruned, 2 turns, never the tool skill",
	"Removes old results beyond a number of newest tokens, if enough would be removed.",
	pruneSettings{Protect: 40_000, Minimum: 20_000, Turns: 2, Except: []string{"skill"}},
	func(_ context.Context, w *work, c pruneSettings) error {
		last := w.turnFromEnd(c.Turns)
		var prune []*use
		kept, gain := 0, 0
		for _, u := range slices.Backward(w.answered()) {
			if u.Message >= last || slices.ContainsFunc(c.Except, func(n string) bool { return strings.EqualFold(n, u.Name) }) {
				continue
			}
			if w.segments[u.results.Start].fixed {
				continue
			}
			w.visited(u.results.End - u.results.Start)
			n := 0
			for _, p := range w.segments[u.results.Start:u.results.End] {
				n += p.tokens
			}
			if kept += n; kept > c.Protect {
				prune = append(prune, u)
				gain += n
			}
		}
		if gain <= c.Minimum {
			return nil
		}
		for _, u := range slices.Backward(prune) {
			w.clear(u)
		}
		return nil
	})

// turnFromEnd returns the message with which the nth turn from the end began: the message
// of a user's words. It is the number of messages if n is 0, and 0 if there are fewer.
func (w *work) turnFromEnd(n int) int {
	if n == 0 {
		return len(w.msgs)
	}
	seen := -1
	for i := len(w.segments) - 1; i >= 0; i-- {
		if p := &w.segments[i]; p.kind == dialog.KindUser && w.message(i) != seen && !w.hidden[w.message(i)] {
			seen = w.message(i)
			if n--; n == 0 {
				return seen
			}
		}
	}
	return 0
}
