package caller

import (
	"errors"
	"fmt"
	"math"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// An answer collects the edits of a call and applies them to the host's own messages, so
// that everything the plugin did not change, or did not receive, is kept.
type answer struct {
	messages []core.Message
	at       map[string]int // ID to index in messages
	limits   Limits

	hidden    []bool
	rewritten map[int][]core.Part
	inserted  map[int][]core.Message // by the index that they are before

	bytes, inserts, parts int // so far
}

func newAnswer(messages []core.Message, limits Limits) answer {
	return answer{
		messages: messages, at: byhand.Index(messages), limits: limits, hidden: make([]bool, len(messages)),
		rewritten: map[int][]core.Part{}, inserted: map[int][]core.Message{},
	}
}

// add adds edits of the given encoded size.
func (a *answer) add(e *condensepb.Edit, size int) error {
	if a.bytes += size; a.bytes > a.limits.AnswerBytes {
		return fmt.Errorf("edits of more than %d bytes", a.limits.AnswerBytes)
	}
	for _, r := range e.GetHide() {
		if err := a.hide(r); err != nil {
			return fmt.Errorf("hide: %w", err)
		}
	}
	for _, r := range e.GetRewrite() {
		if err := a.rewrite(r); err != nil {
			return fmt.Errorf("rewrite of message %q: %w", r.GetId(), err)
		}
	}
	for _, in := range e.GetInsert() {
		if err := a.insert(in); err != nil {
			return fmt.Errorf("insert after message %q: %w", in.GetAfter(), err)
		}
	}
	return nil
}

func (a *answer) hide(r *condensepb.MessageRange) error {
	first, last, err := span(a.at, r)
	if err != nil {
		return err
	}
	for i := first; i <= last; i++ {
		if a.hidden[i] {
			return fmt.Errorf("message %q is hidden twice", a.messages[i].ID)
		}
		if _, ok := a.rewritten[i]; ok {
			return fmt.Errorf("message %q is rewritten too", a.messages[i].ID)
		}
		a.hidden[i] = true
	}
	return nil
}

// span returns the indexes of the first and the last message of r.
func span(at map[string]int, r *condensepb.MessageRange) (first, last int, err error) {
	first, err = index(at, r.GetFirst())
	if err != nil || r.GetLast() == "" {
		return first, first, err
	}
	last, err = index(at, r.GetLast())
	if err == nil && last < first {
		err = fmt.Errorf("message %q is before %q", r.GetLast(), r.GetFirst())
	}
	return first, last, err
}

func index(at map[string]int, id string) (int, error) {
	if i, ok := at[byhand.Unname(id)]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("there is no message %q", id)
}

func (a *answer) rewrite(r *condensepb.Rewrite) error {
	i, err := index(a.at, r.GetId())
	if err != nil {
		return err
	}
	if _, ok := a.rewritten[i]; ok || a.hidden[i] {
		return errors.New("it is rewritten twice, or hidden")
	}
	parts, err := a.newParts(a.messages[i].Parts, r.GetParts(), true)
	if err != nil {
		return err
	}
	a.rewritten[i] = parts
	return nil
}

// newParts returns the given parts after the edits.
func (a *answer) newParts(was []core.Part, to []*condensepb.NewPart, top bool) ([]core.Part, error) {
	if err := a.room(len(to)); err != nil {
		return nil, err
	}
	parts := make([]core.Part, len(to))
	for i, n := range to {
		p, err := a.newPart(was, n, top)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		parts[i] = p
	}
	return parts, nil
}

func (a *answer) newPart(was []core.Part, n *condensepb.NewPart, top bool) (core.Part, error) {
	pick := func(i uint32) (core.Part, error) {
		if uint64(i) >= uint64(len(was)) {
			return nil, fmt.Errorf("there is no part %d to keep, only %d parts", i, len(was))
		}
		return was[i], nil
	}
	switch k := n.GetKind().(type) {
	case *condensepb.NewPart_Keep:
		return pick(k.Keep)
	case *condensepb.NewPart_Put:
		return a.put(k.Put, top)
	case *condensepb.NewPart_Result:
		p, err := pick(k.Result.GetPart())
		if err != nil {
			return nil, err
		}
		r, ok := p.(core.ToolResult)
		if !ok || !top {
			return nil, fmt.Errorf("part %d is no tool result", k.Result.GetPart())
		}
		r.Content, err = a.newParts(r.Content, k.Result.GetContent(), false)
		return r, err
	default:
		return nil, errors.New("neither kept nor put")
	}
}

// put returns a new part of the plugin.
func (a *answer) put(p *condensepb.Part, top bool) (core.Part, error) {
	switch k := p.GetKind().(type) {
	case nil:
		return nil, errors.New("a part without a kind, or of a kind that this host does not know")
	case *condensepb.Part_ToolResult:
		if !top {
			return nil, errors.New("a tool result inside a tool result")
		}
		content := k.ToolResult.GetContent()
		if err := a.room(len(content)); err != nil {
			return nil, err
		}
		for i, c := range content {
			if _, err := a.put(c, false); err != nil {
				return nil, fmt.Errorf("content %d: %w", i, err)
			}
		}
	case *condensepb.Part_ToolCall:
		if !top {
			return nil, errors.New("a tool call inside a tool result")
		}
	}
	parts, err := fromParts([]*condensepb.Part{p})
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// room returns an error if n more parts exceed the limit.
func (a *answer) room(n int) error {
	if a.parts += n; a.parts > a.limits.NewParts {
		return fmt.Errorf("more than %d parts in new and rewritten messages", a.limits.NewParts)
	}
	return nil
}

func (a *answer) insert(in *condensepb.Insert) error {
	before := 0
	if in.GetAfter() != "" {
		i, err := index(a.at, in.GetAfter())
		if err != nil {
			return err
		}
		before = i + 1
	}
	if a.inserts++; a.inserts > a.limits.NewMessages {
		return fmt.Errorf("more than %d new messages", a.limits.NewMessages)
	}
	if err := a.room(len(in.GetParts())); err != nil {
		return err
	}
	m := core.Message{Role: core.Role(byhand.Unname(in.GetRole())), Kind: core.Kind(byhand.Unname(in.GetKind()))}
	for i, p := range in.GetParts() {
		part, err := a.put(p, true)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		m.Parts = append(m.Parts, part)
	}
	a.inserted[before] = append(a.inserted[before], m)
	return nil
}

// result returns the messages after the edits.
func (a *answer) result(d *condensepb.Done) (*core.Result, error) {
	u := d.GetUsage()
	if u.GetCalls() < 0 || u.GetInputTokens() < 0 || u.GetOutputTokens() < 0 || u.GetCachedTokens() < 0 || u.GetUnpriced() < 0 ||
		!(u.GetUsd() >= 0) || math.IsInf(u.GetUsd(), 0) {
		return nil, fmt.Errorf("usage is %v", fromUsage(u))
	}
	out := make([]core.Message, 0, len(a.messages)+a.inserts)
	for i := range a.messages {
		out = append(out, a.inserted[i]...)
		if a.hidden[i] {
			continue
		}
		m := a.messages[i]
		if parts, ok := a.rewritten[i]; ok {
			m.Parts, m.Tokens, m.Source = parts, 0, nil
		}
		out = append(out, m)
	}
	return &core.Result{
		Messages: append(out, a.inserted[len(a.messages)]...), State: d.GetState(), Later: line(d.GetLater(), maxStepNote), Usage: fromUsage(u), Steps: fromSteps(d.GetSteps()),
	}, nil
}
