package wire

import (
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// notInEdits are the rules of core whose violations edits cannot express, such as a wrong order of messages. The host
// would receive a valid result that is not the intended one, so the plugin's end checks them. The host checks the
// others.
var notInEdits = map[string]bool{
	"answer": true, "valid-parts": true, "known-ids": true, "unique-ids": true, "keep-order": true, "keep-role": true,
}

// expressible returns an error if res cannot be expressed as edits of req.
func expressible(req *core.Request, res *core.Result) error {
	rules := *req
	rules.Counter = nil // the host measures
	all, ok := core.Verify(&rules, res).(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var errs []error
	for _, err := range all.Unwrap() {
		if v := new(core.ViolationError); errors.As(err, &v) && notInEdits[v.Rule] {
			errs = append(errs, err)
		}
	}
	const most = 5
	if len(errs) > most {
		errs = append(errs[:most:most], fmt.Errorf("and %d more", len(errs)-most))
	}
	return errors.Join(errs...)
}

// edits calls emit with the edits that turn before into after, in batches of about
// [chunkSize] bytes. At has the indexes of before by ID.
func edits(before, after []core.Message, at map[string]int, emit func(*condensepb.Edit) error) error {
	named := append([]core.Message(nil), after...)
	for i, serial := 0, 0; i < len(named); i++ {
		for named[i].ID == "" { // Diff requires an ID; the host sets another
			serial++
			if id := "new-" + strconv.Itoa(serial); !has(at, id) {
				named[i].ID = id
			}
		}
	}
	d := core.Diff(before, named)
	b := &batch{emit: emit, edit: &condensepb.Edit{}}
	for i := 0; i < len(d.Hide); {
		j := i + 1
		for j < len(d.Hide) && at[d.Hide[j]] == at[d.Hide[j-1]]+1 {
			j++
		}
		r := &condensepb.MessageRange{First: name(d.Hide[i])}
		if j-i > 1 {
			r.Last = name(d.Hide[j-1])
		}
		b.edit.Hide = append(b.edit.Hide, r)
		if err := b.added(proto.Size(r), 1); err != nil {
			return err
		}
		i = j
	}
	for _, r := range d.Rewrite {
		parts, err := newParts(before[at[r.ID]].Parts, r.Parts)
		if err != nil {
			return fmt.Errorf("message %q: %w", r.ID, err)
		}
		w := &condensepb.Rewrite{Id: name(r.ID), Parts: parts}
		b.edit.Rewrite = append(b.edit.Rewrite, w)
		if err := b.added(proto.Size(w), weight(r.Parts)); err != nil {
			return err
		}
	}
	for _, in := range d.Insert {
		parts, err := toParts(in.Message.Parts)
		if err != nil {
			return fmt.Errorf("new message: %w", err)
		}
		w := &condensepb.Insert{Role: name(string(in.Message.Role)), Kind: name(string(in.Message.Kind)), Parts: parts}
		if in.After != "" {
			w.After = name(in.After)
		}
		b.edit.Insert = append(b.edit.Insert, w)
		if err := b.added(proto.Size(w), weight(in.Message.Parts)); err != nil {
			return err
		}
	}
	return b.flush()
}

func has(m map[string]int, k string) bool {
	_, ok := m[k]
	return ok
}

// A batch emits an edit when it is large enough.
type batch struct {
	emit    func(*condensepb.Edit) error
	edit    *condensepb.Edit
	size, n int
}

// maxBatch limits the weight of an edit before the last entry is added, so that it stays
// below maxEntries.
const maxBatch = maxEntries / 8

// weight returns an upper bound of the entries of a message with these parts in an edit.
func weight(parts []core.Part) int {
	n := 1
	for _, p := range parts {
		n += 3 // the new part, the part, its kind
		if r, ok := p.(core.ToolResult); ok {
			n += 3 * len(r.Content)
		}
	}
	return n
}

func (b *batch) added(size, weight int) error {
	b.size += size
	if b.n += weight; b.size < chunkSize && b.n < maxBatch {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	if b.n == 0 {
		return nil
	}
	e := b.edit
	b.edit, b.size, b.n = &condensepb.Edit{}, 0, 0
	return b.emit(e)
}

// newParts encodes is as references to was, so that unchanged parts take no space.
func newParts(was, is []core.Part) ([]*condensepb.NewPart, error) {
	m := newMatcher(was)
	out := make([]*condensepb.NewPart, len(is))
	for i, p := range is {
		if j, ok := m.same(p); ok {
			out[i] = &condensepb.NewPart{Kind: &condensepb.NewPart_Keep{Keep: uint32(j)}}
			continue
		}
		if r, ok := p.(core.ToolResult); ok {
			if j, ok := m.result(r); ok {
				content, err := newParts(was[j].(core.ToolResult).Content, r.Content) //nolint:errcheck // it is one
				if err != nil {
					return nil, err
				}
				out[i] = &condensepb.NewPart{Kind: &condensepb.NewPart_Result{
					Result: &condensepb.ResultEdit{Part: uint32(j), Content: content},
				}}
				continue
			}
		}
		w, err := toPart(p)
		if err != nil {
			return nil, err
		}
		out[i] = &condensepb.NewPart{Kind: &condensepb.NewPart_Put{Put: w}}
	}
	return out, nil
}

// A matcher finds parts among the previous parts of a message.
type matcher struct {
	was     []core.Part
	at      map[core.Part]int // of comparable parts: all but tool results
	results map[string][]int  // by call
}

func newMatcher(was []core.Part) *matcher {
	m := &matcher{was: was, at: make(map[core.Part]int, len(was)), results: map[string][]int{}}
	for i, p := range was {
		if r, ok := p.(core.ToolResult); ok {
			m.results[r.CallID] = append(m.results[r.CallID], i)
		} else if _, ok := m.at[p]; !ok {
			m.at[p] = i
		}
	}
	return m
}

// same returns the index of a part equal to p.
func (m *matcher) same(p core.Part) (int, bool) {
	if r, ok := p.(core.ToolResult); ok {
		for _, i := range m.results[r.CallID] {
			if core.EqualParts(m.was[i:i+1], []core.Part{p}) {
				return i, true
			}
		}
		return 0, false
	}
	i, ok := m.at[p]
	return i, ok
}

// result returns the index of a result of the same call that differs in content only.
func (m *matcher) result(r core.ToolResult) (int, bool) {
	for _, i := range m.results[r.CallID] {
		if o, ok := m.was[i].(core.ToolResult); ok && o.IsError == r.IsError {
			return i, true
		}
	}
	return 0, false
}
