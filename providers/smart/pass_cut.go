package smart

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

type cutSettings struct {
	Tokens int `json:"tokens" doc:"smallest size to which a result is cut if the target is not met"`
	Start  int `json:"start" doc:"size to which results are cut first; halved until the target is met"`
	Keep   int `json:"keep" doc:"number of newest calls whose results are kept whole"`
}

// Validate says which setting is out of range.
func (s *cutSettings) Validate() error { return limits(s.Tokens, s.Start, s.Keep) }

// limits reports which of the settings that both passes have is out of range.
func limits(tokens, start, keep int) error {
	if start < tokens {
		return cmp.Or(atLeast(40, "tokens", tokens), fmt.Errorf("start: %d is below tokens, %d", start, tokens))
	}
	return cmp.Or(atLeast(40, "tokens", tokens), atLeast(0, "keep", keep))
}

var cutPass = define("cut", classLossy, "",
	"Cuts long results by their type: keeps the first, last and unusual elements of a JSON array, the failures of a log, the changes of a diff, the signatures of code, the header of a table.",
	cutSettings{Tokens: 120, Start: 2000, Keep: 2},
	func(ctx context.Context, w *work, c cutSettings) error {
		return cutResults(ctx, w, c.Start, c.Tokens, c.Keep, false, cutSegment)
	})

// cutResults calls cut with every result except the results of the newest keep calls, oldest first,
// until the target is met, or to the last result if all is set. The first round has the limit start; each further round
// halves it, down to least.
func cutResults(ctx context.Context, w *work, start, least, keep int, all bool, cut func(w *work, i, limit int)) error {
	answered := w.answered()
	answered = answered[:max(0, len(answered)-keep)]
	for limit := start; ; limit = max(least, limit/2) {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, u := range answered {
			if w.fits() && !all {
				return nil
			}
			for i := u.results.Start; i < u.results.End; i++ {
				if limit == start {
					w.visited(1)
				}
				if w.segments[i].kind == dialog.KindToolResult {
					cut(w, i, limit)
				}
			}
		}
		if limit == least {
			return nil
		}
	}
}

// cutSegment shortens segment i to about limit tokens by its structure.
func cutSegment(w *work, i, limit int) {
	p := &w.segments[i]
	s, bytes, ok := gapStub(w, i, limit, 0)
	if !ok {
		return
	}
	t := understand(p.text, p.use, p.of.File)
	text, ok := t.cut(bytes, s)
	if !ok || len(t.units) == 1 {
		text, ok = cutMiddle(p.text, bytes/2, bytes/2, s)
	}
	if ok {
		w.put(i, text)
	}
}

// gapStub returns the stub of a gap in segment i, and how many bytes of the text may stay next to
// it within limit tokens, minus spare. It reports false if the segment is not too long or nothing
// may stay.
func gapStub(w *work, i, limit, spare int) (s stub, bytes int, ok bool) {
	p := &w.segments[i]
	if p.fixed || p.gone || p.tokens <= limit || hasStub(p.text) && p.tokens <= limit+limit/2 {
		return s, 0, false
	}
	s.gap = true
	w.describe(i, &s)
	room := limit - w.count(s.String()) - spare
	// Bytes per token, as the text has them on average.
	return s, int(int64(len(p.text)) * int64(room) / int64(p.tokens)), room > 0
}

type headTailSettings struct {
	Tokens int     `json:"tokens" doc:"smallest size to which a result is cut if the target is not met"`
	Start  int     `json:"start" doc:"size to which results are cut first; halved until the target is met"`
	Head   float64 `json:"head" doc:"share of it for the beginning"`
	Keep   int     `json:"keep" doc:"number of newest calls whose results are kept whole"`
	Fit    bool    `json:"fit" doc:"cut all results to one size, the largest with which the target is met"`
}

// Validate says which setting is out of range.
func (s *headTailSettings) Validate() error {
	return cmp.Or(share("head", s.Head), limits(s.Tokens, s.Start, s.Keep))
}

var headTailPass = define("headtail", classLossy, "",
	"Keeps the beginning and the end of long results, in whole lines where there are any. With `fit`, `start` has no effect.",
	headTailSettings{Tokens: 120, Start: 2000, Head: 0.5, Keep: 2},
	func(ctx context.Context, w *work, c headTailSettings) error {
		cut := func(w *work, start, least int) error {
			return cutResults(ctx, w, start, least, c.Keep, c.Fit, func(w *work, i, limit int) { headTail(w, i, limit, c.Head) })
		}
		if !c.Fit {
			return cut(w, c.Start, c.Tokens)
		}
		most := c.Tokens
		for i := range w.segments {
			most = max(most, w.segments[i].tokens)
		}
		limit := fitted(w, c.Tokens, most, func(w *work, limit int) { _ = cut(w, limit, limit) }) // an error ends cut below too
		return cut(w, limit, limit)
	})

// fitted returns the largest number between least and most, to within a few percent, with which try meets the
// target. It is least if there is none.
func fitted(w *work, least, most int, try func(w *work, n int)) int {
	const precision = 32
	for most-least > least/precision {
		n := least + (most-least+1)/2
		trial := w.clone()
		trial.step = &core.Step{Saved: map[string]int{}}
		if try(trial, n); trial.fits() {
			least = n
		} else {
			most = n - 1
		}
	}
	return least
}

// headTail cuts the middle out of segment i, so that about limit tokens stay, of which the
// beginning gets the share head.
func headTail(w *work, i, limit int, head float64) {
	s, bytes, ok := gapStub(w, i, limit, 2)
	if !ok {
		return
	}
	first := int(head * float64(bytes))
	if text, ok := cutMiddle(w.segments[i].text, first, bytes-first, s); ok {
		w.put(i, text)
	}
}

// cutMiddle keeps about head and tail bytes of text, in whole lines unless a line is longer
// than that, and puts s between. It reports false if there is nothing to cut.
func cutMiddle(text string, head, tail int, s stub) (string, bool) {
	if head+tail >= len(text) {
		return "", false
	}
	from, to := lineEnd(text, head), lineStart(text, len(text)-tail)
	if to <= from {
		return "", false
	}
	gaps := []gap{{Span: core.Span{Start: from, End: to}}}
	wholeTags(text, gaps)
	from, to = gaps[0].Start, gaps[0].End
	removed := text[from:to]
	s.lines, s.bytes = 0, len(removed)
	s.lines += plain.Sum(slices.Collect(strings.Lines(removed)), stubLines)
	before, after := text[:from], text[to:]
	if before != "" && !strings.HasSuffix(before, "\n") && strings.Contains(removed, "\n") {
		before += "\n"
	}
	glue := ""
	if strings.HasSuffix(removed, "\n") {
		glue = "\n"
	}
	return before + gaps[0].fill(text, s) + glue + after, true
}

// lineEnd returns the end of the last whole line within the first n bytes of s; if the
// first line is longer than that, the start of a character.
func lineEnd(s string, n int) int {
	n = min(n, len(s))
	if i := strings.LastIndexByte(s[:n], '\n'); i >= 0 {
		return i + 1
	}
	if i := strings.IndexByte(s[n:], '\n'); i >= 0 && i < 40 && n > 0 {
		return n + i + 1
	}
	return plain.Back(s, n)
}

// lineStart returns the start of the first whole line at or after n; if there is none, the
// start of a character.
func lineStart(s string, n int) int {
	n = max(n, 0)
	if n == 0 || s[n-1] == '\n' {
		return n
	}
	if i := strings.IndexByte(s[n:], '\n'); i >= 0 && n+i+1 < len(s) {
		return n + i + 1
	}
	return plain.On(s, n)
}

type scoreSettings struct {
	Error     int  `json:"error" doc:"points for failed calls, by the flag or the text of the result, and for messages that mention an error"`
	Calls     int  `json:"calls" doc:"points for messages that call tools"`
	Files     int  `json:"files" doc:"points for messages about files"`
	User      int  `json:"user" doc:"points for messages of the user"`
	Short     int  `json:"short" doc:"points for messages of less than 50 bytes"`
	Thinking  int  `json:"thinking" doc:"points for messages that mention thinking"`
	KeepUsers int  `json:"keep_users" doc:"number of newest user messages that are never hidden"`
	KeepCalls bool `json:"keep_calls" doc:"never hide messages that call tools"`
	KeepError bool `json:"keep_errors" doc:"never hide failed calls, by the flag or the text of the result"`
}

// Validate says which setting is out of range.
func (s *scoreSettings) Validate() error { return atLeast(0, "keep_users", s.KeepUsers) }

var scorePass = onDemand(define("score", classLossy,
	"Roo-Code's documented smart truncation, with its points; order and pairs are kept",
	"Hides whole messages, those with the fewest points first (of equal ones the oldest), until the target is met; messages of the user go last. The first message, the user's newest and the last are never hidden.",
	scoreSettings{Error: 10, Calls: 8, Files: 7, User: 5, Short: -3, Thinking: -2, KeepUsers: 2},
	func(_ context.Context, w *work, c scoreSettings) error {
		hideByPoints(w, &c)
		return nil
	}))

// hideByPoints hides groups until the target is met, those with the fewest points first and of
// equals the oldest. Groups with words of the user go last.
func hideByPoints(w *work, c *scoreSettings) {
	groups := w.groups()
	points := make([]int, len(groups))
	about := w.scores()
	users, keep := make([]int, len(groups)), max(c.KeepUsers, 1) // the newest request always stays
	for k := len(groups) - 1; k >= 0; k-- {
		g := &groups[k]
		w.visited(g.End - g.Start)
		s := about.group(g.Span)
		points[k] = s.points(c)
		if s.user {
			users[k] = 1
		}
		if s.user && !s.calls && keep > 0 {
			keep--
			g.stays = true
		}
		g.stays = g.stays || s.calls && c.KeepCalls || s.failed && c.KeepError
	}
	order := make([]int, 0, len(groups))
	for k := range groups {
		if !groups[k].stays {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(users[a], users[b]), cmp.Compare(points[a], points[b])) })
	hideInOrder(w, groups, order)
}

// hideInOrder hides groups until the target is met, the markers counted. If the target
// cannot be met, all of them go.
func hideInOrder(w *work, groups []group, order []int) {
	cost := w.marker(1000).Tokens
	gone := make([]bool, len(groups)+2) // with an edge at both ends
	for k := range groups {
		gone[k+1] = w.hidden[groups[k].Start]
	}
	for _, k := range order {
		if w.fits() {
			return
		}
		if gone[k+1] {
			continue
		}
		g := groups[k]
		left, right := gone[k], gone[k+2]
		switch {
		case !left && !right:
			if g.tokens <= cost {
				continue // the marker is as long
			}
			w.tokens += cost
		case left && right:
			w.tokens -= cost
		}
		gone[k+1] = true
		w.hide(g)
	}
}

// A score has the properties of a message, or of a group of them.
type score struct{ failed, wrong, calls, files, user, thinking, short bool }

func (s score) points(c *scoreSettings) int {
	n := 0
	for _, t := range []struct {
		is     bool
		points int
	}{{s.wrong, c.Error}, {s.calls, c.Calls}, {s.files, c.Files}, {s.user, c.User}, {s.short, c.Short}, {s.thinking, c.Thinking}} {
		if t.is {
			n += t.points
		}
	}
	return n
}

type scores []score

func (s scores) group(g core.Span) score {
	var out score
	out.short = true
	for _, m := range s[g.Start:g.End] {
		out.failed = out.failed || m.failed
		out.wrong = out.wrong || m.wrong
		out.calls = out.calls || m.calls
		out.files = out.files || m.files
		out.user = out.user || m.user
		out.thinking = out.thinking || m.thinking
		out.short = out.short && m.short
	}
	return out
}

// scores looks at every message once.
func (w *work) scores() scores {
	out := make(scores, len(w.msgs))
	bytes := make([]int, len(w.msgs))
	for i := range w.segments {
		p := &w.segments[i]
		s := &out[w.message(i)]
		bytes[w.message(i)] += len(p.text)
		s.user = s.user || p.kind == dialog.KindUser
		if p.kind == dialog.KindToolCall || p.kind == dialog.KindToolResult {
			s.calls = true
			u := p.use
			s.failed = s.failed || u.IsError()
			switch u.Info.Family {
			case dialog.FamilyRead, dialog.FamilyWrite, dialog.FamilyEdit:
				s.files = true
			case dialog.FamilyUnknown, dialog.FamilyList, dialog.FamilySearch, dialog.FamilyCommand, dialog.FamilyWeb, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
			}
		}
		said := p.kind == dialog.KindUser || p.kind == dialog.KindAssistant
		s.wrong = s.wrong || s.failed || said && strings.Contains(p.text, "error")
		s.thinking = s.thinking || strings.Contains(p.text, "thinking")
	}
	for i := range out {
		out[i].short = bytes[i] < 50
	}
	return out
}

type windowSettings struct {
	KeepUsers int `json:"keep_users" doc:"number of newest user messages that are never hidden"`
}

// Validate says which setting is out of range.
func (s *windowSettings) Validate() error { return atLeast(0, "keep_users", s.KeepUsers) }

var windowPass = onDemand(define("window", classLossy,
	"Roo-Code's documented sliding window; the first message and pairs are kept",
	"Hides whole messages, the oldest first, until the target is met; messages of the user go last. The first message, the user's newest and the last are never hidden.",
	windowSettings{},
	func(_ context.Context, w *work, c windowSettings) error {
		hideByPoints(w, &scoreSettings{KeepUsers: c.KeepUsers}) // all have the same points
		return nil
	}))
