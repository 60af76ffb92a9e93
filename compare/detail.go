package compare

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/compare/retention"
	"github.com/condensehq/condense/core"
)

// A Detail is one row, message by message: what a report shows when somebody asks where a
// number comes from. It holds the text of the session.
type Detail struct {
	Row      Row             `json:"row"`
	Messages []DetailMessage `json:"messages"`
	// Needs are the names that were needed later, the heaviest first.
	Needs []retention.Need `json:"needs"`
}

// What became of a message.
const (
	StateKept      = "kept"
	StateRewritten = "rewritten"
	StateHidden    = "hidden"
	StateNew       = "new"
)

// A DetailMessage is a message before the cut, or one that a strategy put there.
type DetailMessage struct {
	// At is the index of the message in the session; -1 if it is new.
	At    int          `json:"at"`
	State string       `json:"state"`
	Role  core.Role    `json:"role"`
	Kind  core.Kind    `json:"kind,omitempty"`
	Parts []DetailPart `json:"parts"`
	// After are the parts as the strategy rewrote them; absent unless rewritten.
	After        []DetailPart `json:"after,omitempty"`
	TokensBefore int          `json:"tokens_before"`
	TokensAfter  int          `json:"tokens_after"`
	// Needs are the indices of [Detail.Needs] that stand in the message.
	Needs []int `json:"needs,omitempty"`
}

// A DetailPart is a part of a message as text.
type DetailPart struct {
	Type string `json:"type"`           // text, call, result, image, reasoning, opaque
	Name string `json:"name,omitempty"` // of the tool that is called
	Text string `json:"text"`
	// Error says that the tool reported one.
	Error bool `json:"error,omitempty"`
}

// Examine condenses once more, as [Run] did for the row with this budget, cut and strategy
// of item, and returns what became of every message. The strategy may be a bound by name.
func Examine(ctx context.Context, item Item, s Strategy, budget, cut string, opts *Options) (*Detail, error) {
	o, encoding, err := opts.settled()
	if err != nil {
		return nil, err
	}
	want, err := ParseBudget(budget)
	if err != nil {
		return nil, err
	}
	r := &runner{opts: o, encoding: encoding, start: o.Now()}
	session, counter, err := r.read(item)
	if err != nil {
		return nil, err
	}
	w := &sessionWork{runner: r, session: session, counter: counter}
	for _, t := range want.tasks(session, retention.Cuts(session, counter), counter) {
		if t.cut.Name != cut {
			continue
		}
		b := w.bench(item.Name, t)
		b.scorer = w.scorer(t.cut)
		return b.examine(ctx, &s)
	}
	return nil, fmt.Errorf("%s: no cut %q under budget %s", item.Name, cut, budget)
}

func (b *bench) examine(ctx context.Context, s *Strategy) (*Detail, error) {
	d := &Detail{}
	var view []core.Message
	if len(s.candidates()) == 0 {
		d.Row, view = b.bounded(s.Name)
	} else {
		out, took, err := b.condense(ctx, s, b.task.cut.Prefix(), 1)
		if err != nil {
			return nil, err
		}
		d.Row = b.row(s.Name)
		d.Row.Values["ms"] = milliseconds(took)
		d.Row.Usage, d.Row.Provider = out.Usage, out.Provider
		d.Row.Outcome, d.Row.Error = outcome(out)
		view = out.Messages
		b.judge(&d.Row, view)
	}
	d.Needs = b.scorer.Needs(view)
	d.Messages = b.align(view)
	for n := range d.Needs {
		for i := range d.Messages {
			for _, m := range d.Needs[n].Messages {
				if d.Messages[i].At == m {
					d.Messages[i].Needs = append(d.Messages[i].Needs, n)
				}
			}
		}
	}
	return d, nil
}

// align lists the messages of the prefix, each with what became of it, and the new ones
// where they stand.
func (b *bench) align(view []core.Message) []DetailMessage {
	prefix := b.task.cut.Prefix()
	at := make(map[string]int, len(prefix))
	for i := range prefix {
		at[prefix[i].ID] = i
	}
	var out []DetailMessage
	next := 0
	hide := func(until int) {
		for ; next < until; next++ {
			m := &prefix[next]
			out = append(out, DetailMessage{At: next, State: StateHidden, Role: m.Role, Kind: m.Kind, Parts: detailParts(m.Parts), TokensBefore: m.Tokens})
		}
	}
	for i := range view {
		v := &view[i]
		size := core.MessageTokens(b.counter, *v)
		k, known := at[v.ID]
		if !known || v.ID == "" || k < next {
			out = append(out, DetailMessage{At: -1, State: StateNew, Role: v.Role, Kind: v.Kind, Parts: detailParts(v.Parts), TokensAfter: size})
			continue
		}
		hide(k)
		m := &prefix[k]
		d := DetailMessage{At: k, State: StateKept, Role: m.Role, Kind: m.Kind, Parts: detailParts(m.Parts), TokensBefore: m.Tokens, TokensAfter: size}
		if !m.Equal(*v) {
			d.State, d.After = StateRewritten, detailParts(v.Parts)
		}
		out = append(out, d)
		next = k + 1
	}
	hide(len(prefix))
	return out
}

func detailParts(parts []core.Part) []DetailPart {
	out := make([]DetailPart, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			out = append(out, DetailPart{Type: "text", Text: string(p)})
		case core.ToolCall:
			out = append(out, DetailPart{Type: "call", Name: p.Name, Text: p.Args})
		case core.ToolResult:
			d := DetailPart{Type: "result", Error: p.IsError}
			for i, c := range detailParts(p.Content) {
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
