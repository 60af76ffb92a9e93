package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
)

// A Detail shows one row message by message, and so where its numbers come from. It contains the text
// of the session.
type Detail struct {
	Row      Row             `json:"row"`
	Messages []DetailMessage `json:"messages"`
	// Needs are the names that were needed later, by falling weight.
	Needs []score.Need `json:"needs"`
}

// The states of a message in a [Detail].
const (
	StateKept      = "kept"
	StateRewritten = "rewritten"
	StateHidden    = "hidden"
	StateNew       = "new"
)

// A DetailMessage is a message before the cut, or a message that a strategy inserted.
type DetailMessage struct {
	// At is the index of the message in the session; -1 if it is new.
	At    int          `json:"at"`
	State string       `json:"state"`
	Role  core.Role    `json:"role"`
	Kind  core.Kind    `json:"kind,omitempty"`
	Parts []DetailPart `json:"parts"`
	// After are the rewritten parts; absent unless the state is StateRewritten.
	After        []DetailPart `json:"after,omitempty"`
	TokensBefore int          `json:"tokens_before"`
	TokensAfter  int          `json:"tokens_after"`
	// Needs are indices of [Detail.Needs]: the names that are in the message.
	Needs []int `json:"needs,omitempty"`
}

// A DetailPart is a part of a message as text.
type DetailPart struct {
	Type string `json:"type"`           // text, call, result, image, reasoning, opaque
	Name string `json:"name,omitempty"` // of the tool that is called
	Text string `json:"text"`
	// Error reports whether the tool failed.
	Error bool `json:"error,omitempty"`
}

// Examine condenses again for each of rows, and returns the state of every message, in the order of
// rows. The rows are results of [Run] with the same items, strategies and options; strategies need
// not contain the bounds. Each session is read once. Options.Jobs sessions are processed at a time, and
// Options.Progress is called after each. Row.Values are copied, not measured again.
func Examine(ctx context.Context, items []Item, strategies []Strategy, rows []Row, opts *Options) ([]*Detail, error) {
	o, encoding, err := opts.settled()
	if err != nil {
		return nil, err
	}
	r := &runner{opts: o, encoding: encoding, strategies: strategies, start: o.Now()}
	bySession := map[string][]int{} // indices of rows
	var order []string
	for i := range rows {
		name := rows[i].Session
		if bySession[name] == nil {
			order = append(order, name)
		}
		bySession[name] = append(bySession[name], i)
	}
	r.items = append(r.items, plain.Only(items, func(it Item) bool { return bySession[it.Name] != nil })...)
	if len(r.items) < len(order) {
		return nil, fmt.Errorf("examine: %d of %d sessions are not among the items", len(order)-len(r.items), len(order))
	}
	out := make([]*Detail, len(rows))
	return out, r.each(ctx, func(ctx context.Context, it Item) (outcomeOf, error) {
		own := bySession[it.Name]
		err := r.examine(ctx, it, rows, own, out)
		return outcomeOf{info: SessionInfo{Name: it.Name}, rows: make([]Row, len(own))}, err
	})
}

// examine fills in the elements of out with the indices in own, which are the rows of one session.
func (r *runner) examine(ctx context.Context, it Item, rows []Row, own []int, out []*Detail) error {
	session, counter, err := r.read(it)
	if err != nil {
		return err
	}
	w := &sessionWork{run: r, session: session, counter: counter}
	cuts := score.Cuts(session, counter)
	for _, i := range own {
		row := &rows[i]
		t, err := taskOf(row, session, cuts, counter)
		if err != nil {
			return err
		}
		s := Strategy{Name: row.Strategy} // a bound
		if k := slices.IndexFunc(r.strategies, func(s Strategy) bool { return s.Name == row.Strategy }); k >= 0 {
			s = r.strategies[k]
		}
		b := w.trial(it.Name, t)
		b.scorer = w.scorer(t.cut)
		if out[i], err = b.examine(ctx, &s, row); err != nil {
			return fmt.Errorf("%s, %s: %w", row.Session, row.Strategy, err)
		}
	}
	return nil
}

// taskOf returns the cut and the budget of a row.
func taskOf(row *Row, s *score.Session, cuts []score.Cut, c core.Counter) (task, error) {
	b, err := ParseBudget(row.Budget)
	if err != nil {
		return task{}, err
	}
	for _, t := range b.tasks(s, cuts, c) {
		if t.cut.Name == row.Cut {
			return t, nil
		}
	}
	return task{}, fmt.Errorf("%s: no cut %q under budget %s", row.Session, row.Cut, row.Budget)
}

func (b *trial) examine(ctx context.Context, s *Strategy, row *Row) (*Detail, error) {
	d := &Detail{Row: *row}
	var view []core.Message
	if len(s.providers()) == 0 {
		view = b.boundView(s.Name)
	} else {
		out, _, err := b.condense(ctx, s, b.task.cut.Prefix(), 1)
		if err != nil {
			return nil, err
		}
		view = out.Messages
	}
	d.Needs = b.scorer.Needs(view)
	d.Messages = b.align(view)
	at := map[int]int{} // index of a message of the session to index of d.Messages
	for i := range d.Messages {
		if d.Messages[i].At >= 0 {
			at[d.Messages[i].At] = i
		}
	}
	for n := range d.Needs {
		for _, m := range d.Needs[n].Messages {
			if i, ok := at[m]; ok {
				d.Messages[i].Needs = append(d.Messages[i].Needs, n)
			}
		}
	}
	return d, nil
}

// align returns the messages of the prefix with their states, and the new ones in their places.
func (b *trial) align(view []core.Message) []DetailMessage {
	prefix := b.task.cut.Prefix()
	at := plain.Index(prefix, func(x core.Message) string { return x.ID })
	var out []DetailMessage
	next := 0
	hide := func(until int) {
		for ; next < until; next++ {
			m := &prefix[next]
			out = append(out, DetailMessage{At: next, State: StateHidden, Role: m.Role, Kind: m.Kind, Parts: DetailParts(m.Parts), TokensBefore: m.Tokens})
		}
	}
	for i := range view {
		v := &view[i]
		size := core.MessageTokens(b.counter, *v)
		k, known := at[v.ID]
		if !known || v.ID == "" || k < next {
			out = append(out, DetailMessage{At: -1, State: StateNew, Role: v.Role, Kind: v.Kind, Parts: DetailParts(v.Parts), TokensAfter: size})
			continue
		}
		hide(k)
		m := &prefix[k]
		d := DetailMessage{At: k, State: StateKept, Role: m.Role, Kind: m.Kind, Parts: DetailParts(m.Parts), TokensBefore: m.Tokens, TokensAfter: size}
		if !m.Equal(*v) {
			d.State, d.After = StateRewritten, DetailParts(v.Parts)
		}
		out = append(out, d)
		next = k + 1
	}
	hide(len(prefix))
	return out
}

// DetailParts returns parts as text.
func DetailParts(parts []core.Part) []DetailPart {
	out := make([]DetailPart, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			out = append(out, DetailPart{Type: "text", Text: string(p)})
		case core.ToolCall:
			out = append(out, DetailPart{Type: "call", Name: p.Name, Text: p.Args})
		case core.ToolResult:
			d := DetailPart{Type: "result", Error: p.IsError}
			for i, c := range DetailParts(p.Content) {
				if i > 0 {
					d.Text += "\n"
				}
				d.Text += c.Text
			}
			out = append(out, d)
		case core.Image:
			out = append(out, DetailPart{Type: "image", Text: "[" + p.MediaType + "]"})
		case core.Reasoning:
			out = append(out, DetailPart{Type: "reasoning", Text: p.Text})
		case core.Opaque:
			out = append(out, DetailPart{Type: "opaque", Text: p.JSON})
		}
	}
	return out
}
