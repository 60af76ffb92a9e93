package history

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/condensehq/condense/core"
)

// A LineError describes a line of a damaged journal that could not be kept unchanged.
type LineError struct {
	Line int
	// Err describes the damage and how it was repaired.
	Err error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Repair reads a damaged journal. It returns a journal of all readable lines, and an error for each other line, in
// order. A damaged line is left out, and so is a later line that depends on it: messages hidden by such a
// condensation are in the view, and messages dropped by such a rewind are restored. Messages with the same ID, which
// two programs write that do not lock, are all kept, with new IDs. A damaged header is replaced by one with another
// ID and without meta. The error is r's, or reports that the data is not a journal.
func Repair(r io.Reader) (*Journal, []*LineError, error) {
	d := newDecoder(r)
	d.repair = &repair{used: map[string]int{}}
	if err := d.run(); err != nil {
		return nil, nil, err
	}
	if d.recovery != nil {
		d.repair.add(d.recovery.Line, errors.New("it was not completely written; it is left out"))
	}
	faults := d.repair.faults
	if len(d.journal.log) == 0 && len(faults) > 0 && faults[0].Line == 1 {
		return nil, nil, fmt.Errorf("no line belongs to a journal: %w", faults[0])
	}
	d.journal.unsealed = false
	return d.journal, faults, nil
}

// A repair is the handling of unreadable lines in a decoder.
type repair struct {
	faults []*LineError
	used   map[string]int // how often an ID was used, for IDs used twice
}

func (r *repair) add(line int, err error) { r.faults = append(r.faults, &LineError{line, err}) }

// line recovers the readable part of a line that cannot be read because of err.
func (r *repair) line(d *decoder, text []byte, err error) {
	if d.line == 1 {
		d.journal = New()
		// Its version is unknown, so both kinds of lines are accepted.
		d.mixed = true
		r.add(1, fmt.Errorf("%w; there is a new header, without the system prompt, the tools and the former format", err))
		return
	}
	saved := 0
	for _, record := range sealedIn(text) {
		if d.bare(record) == nil {
			saved++
		}
	}
	if saved > 0 {
		r.add(d.line, fmt.Errorf("%w; intact records kept: %d", err, saved))
		return
	}
	r.add(d.line, fmt.Errorf("%w; it is left out", err))
}

// sealedIn returns the records in a line that have a valid checksum. There are several if a
// newline was damaged.
func sealedIn(text []byte) [][]byte {
	var records [][]byte
	start, from, sum := 0, 0, uint32(0)
	for {
		at := bytes.Index(text[from:], []byte(sealStart))
		if at < 0 {
			return records
		}
		at += from
		sum = crc32.Update(sum, castagnoli, text[from:at])
		if bytes.HasPrefix(text[at:], appendSeal(nil, sum)) {
			records = append(records, append(bytes.Clone(text[start:at]), '}'))
			start = min(at+sealSize+1, len(text)) // the former newline
			from, sum = start, 0
			continue
		}
		sum = crc32.Update(sum, castagnoli, text[at:at+1])
		from = at + 1
	}
}

// message gives a message a new ID if its own is already used.
func (r *repair) message(d *decoder, m *core.Message) {
	was := m.ID
	for d.journal.nodes[m.ID] != nil {
		r.used[was] = max(r.used[was], 1) + 1
		m.ID = fmt.Sprintf("%s-%d", was, r.used[was])
	}
	if m.ID != was {
		r.add(d.line, fmt.Errorf("message %q: the ID was used before; the message is kept as %q", was, m.ID))
	}
}

// condensation removes references to missing messages from an edit.
func (r *repair) condensation(d *decoder, c *Condensation) {
	missing := 0
	gone := func(id string) bool {
		if d.journal.nodes[id] != nil {
			return false
		}
		missing++
		return true
	}
	c.Edit.Hide = slices.DeleteFunc(c.Edit.Hide, gone)
	c.Edit.Rewrite = slices.DeleteFunc(c.Edit.Rewrite, func(w core.Rewrite) bool { return gone(w.ID) })
	for i := range c.Edit.Insert {
		// A summary usually follows the last message that it is for.
		if in := &c.Edit.Insert[i]; in.After != "" && gone(in.After) && len(c.Edit.Hide) > 0 {
			in.After = c.Edit.Hide[len(c.Edit.Hide)-1]
		}
	}
	if missing > 0 {
		r.add(d.line, fmt.Errorf("condensation %q: messages that it names are missing; it is kept for the others", c.ID))
	}
}
