package smart

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
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
			Room: core.TotalTokens(before) - less, Counter: w.req.Counter, Reader: w.reader, Original: w.originalOf, NoHandles: w.req.NoRecall,
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
