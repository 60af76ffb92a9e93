package smart

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value"
)

type resultsSettings struct {
	Over  int     `json:"over" doc:"size in tokens above which a result is shortened"`
	Share float64 `json:"share" doc:"share of its tokens that may stay"`
	Most  int     `json:"most" doc:"most tokens that may stay of a result, whatever the share; 0 is no limit"`
}

// Validate says which setting is out of range.
func (s *resultsSettings) Validate() error {
	if !(s.Share > 0 && s.Share < 1) {
		return errors.New("share: want a number above 0 and below 1")
	}
	if err := atLeast(0, "most", s.Most); err != nil {
		return err
	}
	return atLeast(1, "over", s.Over)
}

var resultsPass = define("results", classLossy, "",
	"Keeps of very long results the lines with the highest expected use, in place. Lines with what the goal names (the user's newest words, the agent's, the arguments of the call) are always kept. It does not depend on the target: for results that the agent has not read yet.",
	resultsSettings{Over: 8000, Share: 0.5},
	func(ctx context.Context, w *work, c resultsSettings) error {
		type result struct {
			m    *core.Message
			part int
		}
		before := w.result()
		awaited := core.Pending(before)
		long := map[result]bool{}
		less := 0
		for i := range before {
			m := &before[i]
			if m.Protected || slices.Contains(awaited, i) {
				continue
			}
			for j, p := range m.Parts {
				r, ok := p.(core.ToolResult)
				if !ok || len(r.Content) != 1 {
					continue
				}
				w.visited(1)
				t, _ := r.Content[0].(core.Text)
				if len(t) <= c.Over || hasStub(string(t)) { // a token has a byte or more
					continue
				}
				n := w.req.Counter.Count(t)
				keep := int(c.Share * float64(n))
				if c.Most > 0 {
					keep = min(keep, c.Most)
				}
				if n > c.Over {
					less += n - keep
					long[result{m, j}] = true
				}
			}
		}
		if less == 0 {
			return nil
		}
		res, err := value.Shorten(ctx, before, value.Options{
			Room: core.TotalTokens(before) - less, Counter: w.req.Counter, Reader: w.reader, Original: w.originalOf, NoHandles: w.req.NoRecall, Framed: w.req.Host != "",
			Only: func(m *core.Message, part int) bool { return long[result{m, part}] },
		})
		if err != nil || res.Tokens >= core.TotalTokens(before) {
			return err
		}
		took(w, before, &res)
		calls := map[string]string{}
		for i := range res.Messages {
			m := &res.Messages[i]
			for j, p := range m.Parts {
				switch p := p.(type) {
				case core.ToolCall:
					calls[p.ID] = core.Label(p.Name)
				case core.ToolResult:
					if !long[result{&before[i], j}] {
						continue
					}
					t, _ := p.Content[0].(core.Text)
					was, _ := before[i].Parts[j].(core.ToolResult)
					if was.Content[0] == core.Part(t) {
						continue
					}
					stub := core.Text(asStub(string(t), calls[p.CallID]))
					if p.Content = []core.Part{stub}; w.req.Counter.Count(stub) >= w.req.Counter.Count(was.Content[0]) {
						p.Content = was.Content
					}
					m.Parts[j] = p
					m.Tokens = core.MessageTokens(w.req.Counter, *m)
				default:
				}
			}
		}
		continueWith(w, res.Messages)
		return nil
	})

// asStub returns a result with a stub in place of the mark that value ends it with, which an extract explains
// and a result by itself does not.
func asStub(text, tool string) string {
	at := strings.LastIndexByte(text, '\n') + 1
	mark, ok := strings.CutPrefix(text[at:], stubStart)
	if !ok && text[at:] != value.GapMark {
		return text // it was not shortened
	}
	s := strings.TrimSuffix(mark, stubEnd)
	if !ok {
		s = ""
	}
	s, handle, found := strings.Cut(s, "h:")
	s = strings.TrimRight(stubStart+s, " ")
	if tool != "" {
		s += " of " + tool
	}
	s += stubMark
	if found {
		s += stubHand + handle
	}
	return text[:at] + s + stubEnd
}

type reasoningSettings struct {
	Turns int `json:"turns" doc:"number of newest user turns whose reasoning is kept; at least 1, because vendors require it while tools run"`
}

// Validate says which setting is out of range.
func (s *reasoningSettings) Validate() error { return atLeast(1, "turns", s.Turns) }

var reasoningPass = define("reasoning", classLossy,
	"Anthropic context editing, clear_thinking_20251015: the last turn is kept",
	"Removes the reasoning of old turns. It is signed, so it is removed as a whole, without a stub.",
	reasoningSettings{Turns: 1},
	func(_ context.Context, w *work, c reasoningSettings) error {
		last := w.turnFromEnd(c.Turns)
		for i := range w.segments {
			p := &w.segments[i]
			msg := w.message(i)
			if p.kind != dialog.KindReasoning || p.fixed || p.gone || msg >= last || w.hidden[msg] {
				continue
			}
			if w.fits() {
				break
			}
			w.visited(1)
			if w.saysMore(msg) {
				p := &w.segments[i]
				w.book(p, p.tokens)
				p.text, p.tokens, p.gone, p.edited = "", 0, true, true
			}
		}
		return nil
	})

// saysMore reports whether a message holds anything in addition to its reasoning.
func (w *work) saysMore(msg int) bool {
	m := w.msgs[msg]
	m.Parts = plain.Only(m.Parts, func(p core.Part) bool { _, ok := p.(core.Reasoning); return !ok })
	return !m.Blank()
}

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
			if u.IsError() && !c.Errors || slices.Contains(c.Except, u.Name) {
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
			if u.Message >= last || w.segments[u.results.Start].fixed ||
				slices.ContainsFunc(c.Except, func(n string) bool { return strings.EqualFold(n, u.Name) }) {
				continue
			}
			w.visited(u.results.End - u.results.Start)
			n := plain.Sum(w.segments[u.results.Start:u.results.End], func(p segment) int { return p.tokens })
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
