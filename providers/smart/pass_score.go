package smart

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

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
		if s.calls && c.KeepCalls || s.failed && c.KeepError {
			g.stays = true
		}
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
			s.failed = s.failed || u.IsError
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
