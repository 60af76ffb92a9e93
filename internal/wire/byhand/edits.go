package byhand

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/condensehq/condense/core"
)

// notInEdits are the rules of core whose violations edits cannot express, such as a wrong order of messages. The host
// would receive a valid result that is not the intended one, so the plugin's end checks them. The host checks the
// others.
var notInEdits = map[string]bool{
	"answer": true, "valid-parts": true, "known-ids": true, "unique-ids": true, "keep-order": true, "keep-role": true,
}

// Expressible returns an error if res cannot be expressed as edits of req.
func Expressible(req *core.Request, res *core.Result) error {
	all, ok := core.VerifyPlaces(req, res).(interface{ Unwrap() []error })
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

// The numbers of the fields of an Edit and of its parts, from condense.proto.
const (
	numEditHide    = 1
	numEditRewrite = 2
	numEditInsert  = 3

	numRewriteParts = 2

	numInsertParts = 4

	numNewPartKeep   = 1
	numNewPartResult = 2
	numNewPartPut    = 3

	numResultEditPart    = 1
	numResultEditContent = 2
)

// NumDone is the field of the answer of a guest in WebAssembly, next to those of an Edit, that holds a Done.
const NumDone = 15

// Edits calls emit with encodings of Edit that together turn before into after, of about batchSize bytes each. At has the
// indexes of before by ID.
func Edits(before, after []core.Message, at map[string]int, emit func(edit []byte) error) error {
	if unnamed := func(m core.Message) bool { return m.ID == "" }; slices.ContainsFunc(after, unnamed) {
		after = slices.Clone(after)
		for i, serial := 0, 0; i < len(after); i++ {
			for after[i].ID == "" { // Diff requires an ID; the host sets another
				serial++
				id := "new-" + strconv.Itoa(serial)
				if _, taken := at[id]; !taken {
					after[i].ID = id
				}
			}
		}
	}
	d := core.Diff(before, after)
	b := &Batch{Emit: emit}
	for i := 0; i < len(d.Hide); {
		j := i + 1
		for j < len(d.Hide) && at[d.Hide[j]] == at[d.Hide[j-1]]+1 {
			j++
		}
		if err := b.Add(numEditHide, AppendRange(nil, d.Hide[i], d.Hide[j-1]), 1); err != nil {
			return err
		}
		i = j
	}
	for _, r := range d.Rewrite {
		w, err := appendNewParts(AppendStrings(nil, Name(r.ID)), numRewriteParts, before[at[r.ID]].Parts, r.Parts)
		if err != nil {
			return fmt.Errorf("message %q: %w", r.ID, err)
		}
		if err := b.Add(numEditRewrite, w, weight(r.Parts)); err != nil {
			return err
		}
	}
	for _, in := range d.Insert {
		m := &in.Message
		w, err := AppendParts(AppendStrings(nil, Name(in.After), Name(string(m.Role)), Name(string(m.Kind))), numInsertParts, m.Parts)
		if err != nil {
			return fmt.Errorf("new message: %w", err)
		}
		if err := b.Add(numEditInsert, w, weight(m.Parts)); err != nil {
			return err
		}
	}
	return b.Flush()
}

// AppendRange writes a MessageRange from one message to another, or of only one.
func AppendRange(b []byte, first, last string) []byte {
	if last == first {
		return AppendStrings(b, Name(first))
	}
	return AppendStrings(b, Name(first), Name(last))
}

// AppendParts writes parts into the field num.
func AppendParts(b []byte, num protowire.Number, parts []core.Part) ([]byte, error) {
	for i, p := range parts {
		if err := encodable(p); err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		b = appendPart(b, num, p)
	}
	return b, nil
}

// encodable returns an error for a value that is not a part.
func encodable(p core.Part) error {
	if r, ok := p.(core.ToolResult); ok {
		for i, c := range r.Content {
			if err := encodable(c); err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
		}
		return nil
	}
	if _, ok := p.(core.Text); ok {
		return nil
	}
	if num, _ := kindOf(p); num == 0 {
		return fmt.Errorf("%T is not a part", p)
	}
	return nil
}

// A Batch emits an edit when it is large enough.
type Batch struct {
	Emit func(edit []byte) error
	edit []byte
	n    int
}

const (
	// batchSize is the size in bytes at which an edit is emitted.
	batchSize = 256 << 10
	// maxBatch limits the weight of an edit before the last entry is added, so that it stays below the most entries that
	// a host accepts in one message, 131,072.
	maxBatch = 1 << 14
)

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

// Add adds an entry, which counts as many as weight.
func (b *Batch) Add(num protowire.Number, entry []byte, weight int) error {
	b.edit = AppendBytes(b.edit, num, entry)
	if b.n += weight; len(b.edit) < batchSize && b.n < maxBatch {
		return nil
	}
	return b.Flush()
}

// Flush emits the rest.
func (b *Batch) Flush() error {
	if b.n == 0 {
		return nil
	}
	edit := b.edit
	b.edit, b.n = nil, 0
	return b.Emit(edit)
}

// AppendBytes writes value into the field num.
func AppendBytes(b []byte, num protowire.Number, value []byte) []byte {
	return append(appendBytesTag(b, num, len(value)), value...)
}

// appendNewParts writes is into the field num, as references to was where it can, so that unchanged parts take no space.
func appendNewParts(b []byte, num protowire.Number, was, is []core.Part) ([]byte, error) {
	m := newMatcher(was)
	for i, p := range is {
		entry, err := m.newPart(p)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", i, err)
		}
		b = AppendBytes(b, num, entry)
	}
	return b, nil
}

// newPart encodes a part of a rewritten message.
func (m *matcher) newPart(p core.Part) ([]byte, error) {
	if j, ok := m.same(p); ok {
		return AppendNumber(nil, numNewPartKeep, uint64(j)), nil
	}
	if r, ok := p.(core.ToolResult); ok {
		if j, ok := m.result(r); ok {
			was := m.was[j].(core.ToolResult) //nolint:errcheck // it is one
			edit, err := appendNewParts(AppendNumber(nil, numResultEditPart, uint64(j)), numResultEditContent, was.Content, r.Content)
			return AppendBytes(nil, numNewPartResult, edit), err
		}
	}
	if err := encodable(p); err != nil {
		return nil, err
	}
	return appendPart(nil, numNewPartPut, p), nil
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
