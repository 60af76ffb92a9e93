package strategies

import (
	"context"
	"slices"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// headTailName is the baseline that a method has to beat: the first message, the newest messages, and the beginning and
// the end of every older result. Its values were chosen on a third of the sessions of tools/sessions, so that it is as strong
// as a few lines can be.
const headTailName = "headtail"

const (
	headTailWhole = 0.35 // share of the room for the newest messages, which stay whole
	headTailFirst = 0.2  // share for the oldest messages, which stay if others have to go
	headTailLeast = 80   // bytes that stay of an older result at least
	headTailShare = 0.6  // of them for its beginning
	headTailGap   = "\n[…]\n"
)

// headTailStrategy returns the baseline under a name, with or without the truncation that follows strategies.
func headTailStrategy(name, sizeOf string, alone bool) lab.Strategy {
	s := lab.Strategy{
		Name: name, SizeOf: sizeOf,
		About: "baseline: the first message and the newest, and the beginning and the end of older results",
		Chain: []core.NamedProvider{{Name: headTailName, Provider: headTail{}}},
	}
	if program := program(); program != "" {
		s.Key = headTailName + " " + program
	}
	if !alone {
		s.Chain = append(s.Chain, core.NamedProvider{Name: condense.Truncation, Provider: slidingwindow.New(slidingwindow.DefaultConfig())})
		s.Truncation = condense.Truncation
	} else {
		s.Key += " alone"
	}
	return s
}

// headTail cuts the middle out of all long results but the newest, each to the same size: the largest with which the target
// is met. If the smallest is too large, the oldest groups after the first go as well. Nothing else is written: no handle,
// and no note on the missing text.
type headTail struct{}

// Condense implements [core.CondensationProvider].
func (headTail) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	room := req.Budget.Room()
	if core.TotalTokens(req.Messages) <= room {
		return &core.Result{Messages: req.Messages}, nil
	}
	h := shortener{counter: req.Counter, whole: newest(req.Messages, int(headTailWhole*float64(room)))}
	messages, dropped, at := h.drop(req.Messages, room)
	least, most := headTailLeast, headTailLeast
	for i := range messages {
		for _, p := range messages[i].Parts {
			if r, ok := p.(core.ToolResult); ok {
				for _, c := range r.Content {
					if t, ok := c.(core.Text); ok {
						most = max(most, len(t))
					}
				}
			}
		}
	}
	out := h.cut(messages, least)
	for most-least > 1 && core.TotalTokens(out)*100 < room*99 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		middle := (least + most) / 2
		if try := h.cut(messages, middle); core.TotalTokens(try) <= room {
			out, least = try, middle
		} else {
			most = middle
		}
	}
	return &core.Result{Messages: h.refill(out, dropped, at, room)}, nil
}

// refill adds as much of the newest of the dropped messages, which stood before the message at, as there is room.
func (h *shortener) refill(messages, dropped []core.Message, at, room int) []core.Message {
	left := room - core.TotalTokens(messages)
	if len(dropped) == 0 || left*50 < room {
		return messages
	}
	part, size := core.Cut(h.counter, dropped, left)
	if size > left {
		return messages
	}
	return slices.Insert(messages, at, part...)
}

// newest returns the IDs of the newest groups that fit into room.
func newest(messages []core.Message, room int) map[string]bool {
	out := map[string]bool{}
	for _, g := range slices.Backward(core.Groups(messages)) {
		if room -= core.TotalTokens(messages[g.Start:g.End]); room < 0 {
			break
		}
		for i := g.Start; i < g.End; i++ {
			out[messages[i].ID] = true
		}
	}
	return out
}

// A shortener cuts results. Messages in whole, by ID, stay as they are.
type shortener struct {
	counter core.Counter
	whole   map[string]bool
}

// drop removes the oldest groups but the first until the rest fits with its results cut to the least. It also returns the
// newest removed group, and its place in the rest. If removing is not enough, or the first user message takes
// more than a quarter of the room, all stay, and truncation has to follow.
func (h *shortener) drop(messages []core.Message, room int) (kept, last []core.Message, at int) {
	short := h.cut(messages, headTailLeast)
	total, first := core.TotalTokens(short), int(headTailFirst*float64(room))
	if total <= room {
		return messages, nil, 0
	}
	task := slices.IndexFunc(messages, func(m core.Message) bool { return m.Role == core.RoleUser })
	gone := make([]bool, len(messages))
	var newest core.Span
	for _, g := range core.FixedGroups(&core.Request{Messages: messages, Counter: h.counter}) {
		size := core.TotalTokens(short[g.Start:g.End])
		isTask := g.Start <= task && task < g.End
		if total <= room || isTask && g.Tokens > room/4 {
			break
		}
		if first -= size; g.Pinned || g.Open || isTask || first >= 0 {
			continue
		}
		first = 0
		newest, total = g.Span, total-size
		for i := g.Start; i < g.End; i++ {
			gone[i] = true
		}
	}
	if total > room {
		return short, nil, 0
	}
	for i := range newest.Start {
		if !gone[i] {
			at++
		}
	}
	return core.KeepGroups(messages, func(i int) bool { return !gone[i] }), messages[newest.Start:newest.End], at
}

// cut returns the messages with every long result cut to limit bytes.
func (h *shortener) cut(messages []core.Message, limit int) []core.Message {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if h.whole[m.ID] || m.Protected {
			continue
		}
		var parts []core.Part
		for k, p := range m.Parts {
			r, ok := p.(core.ToolResult)
			if !ok {
				continue
			}
			if content, ok := cutContent(r.Content, limit); ok {
				if parts == nil {
					parts = slices.Clone(m.Parts)
				}
				r.Content = content
				parts[k] = r
			}
		}
		if parts != nil {
			m.Parts = parts
			m.Tokens = core.MessageTokens(h.counter, *m)
		}
	}
	return out
}

// cutContent cuts the texts of a result, and reports whether one was long.
func cutContent(content []core.Part, limit int) ([]core.Part, bool) {
	out, changed := slices.Clone(content), false
	for i, c := range out {
		if t, ok := c.(core.Text); ok && len(t) > limit+len(headTailGap) {
			out[i], changed = core.Text(ends(string(t), limit)), true
		}
	}
	return out, changed
}

// ends returns the beginning and the end of text, of limit bytes in all.
func ends(text string, limit int) string {
	from := int(headTailShare * float64(limit))
	return text[:plain.Back(text, from)] + headTailGap + text[plain.On(text, len(text)-(limit-from)):]
}
