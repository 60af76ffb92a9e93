package history

import (
	"errors"
	"fmt"
	"slices"
)

// Undo undoes the condensation id permanently: messages that it inserted leave the view, and
// messages that it hid or rewrote are restored, unless another condensation also hides,
// rewrites or covers them (see the package comment). It is an error if there is no such
// condensation or it is already undone; then nothing changes. The cost is linear in the
// timeline.
func (j *Journal) Undo(id string) error {
	a, err := j.undoable(id)
	if err != nil {
		return err
	}
	if err := j.keep(true, record{undo: id}); err != nil {
		return err
	}
	j.undo(a)
	j.refresh()
	return nil
}

func (j *Journal) undoable(id string) (*applied, error) {
	a := j.applications[id]
	switch {
	case a == nil:
		return nil, fmt.Errorf("undo: there is no condensation %q", id)
	case a.dropped:
		return nil, fmt.Errorf("undo: condensation %q was dropped by a rewind", id)
	case a.undone:
		return nil, fmt.Errorf("undo: condensation %q is undone already", id)
	}
	return a, nil
}

func (j *Journal) undo(a *applied) {
	j.log = append(j.log, record{undo: a.ID})
	a.undone = true
}

// Rewind returns to the state in which the message id was recorded; a summary or marker was
// recorded with its condensation. Later messages and condensations are dropped. A
// condensation that was undone since stays undone, so the view may differ from that of the
// time. It is an error if the message is not part of the conversation; then nothing changes.
// The cost is linear in the timeline.
func (j *Journal) Rewind(id string) error {
	n, err := j.inTimeline("rewind", id)
	if err != nil {
		return err
	}
	r := &rewound{to: id}
	if err := j.keep(true, record{rewind: r}); err != nil {
		return err
	}
	j.rewind(n, r)
	j.refresh()
	return nil
}

func (j *Journal) rewind(to *node, r *rewound) {
	j.log = append(j.log, record{rewind: r})
	j.drop(to)
}

// drop applies a rewind.
func (j *Journal) drop(to *node) {
	for len(j.applied) > 0 {
		a := j.applied[len(j.applied)-1]
		if a.pos <= to.pos {
			break
		}
		j.applied = j.applied[:len(j.applied)-1]
		a.dropped = true
		for _, n := range a.rewrites {
			n.rewrites = n.rewrites[:len(n.rewrites)-1] // a's is the youngest
		}
		for _, n := range a.inserts {
			n.dropped = true
			j.unlink(n)
		}
	}
	// The rest was appended, so it is at the end.
	for j.last != nil && j.last.pos > to.pos {
		j.last.dropped = true
		j.unlink(j.last)
	}
}

// UndoRewind undoes the latest rewind that is not undone yet, and returns the ID of the message to which it went
// back. The dropped messages and condensations are restored before later records. It fails, and changes nothing, if
// there is no such rewind, or if a condensation recorded since is active: undo that first. The cost is the cost of
// reading the journal.
func (j *Journal) UndoRewind() (to string, err error) {
	r, err := j.rewindToUndo()
	if err != nil {
		return "", err
	}
	if err := j.keep(true, record{undoRewind: r}); err != nil {
		return "", err
	}
	j.undoRewind(r)
	j.refresh()
	return r.to, nil
}

// ErrNoRewind means that there is no rewind to undo.
var ErrNoRewind = errors.New("undo: there is no rewind")

func (j *Journal) rewindToUndo() (*rewound, error) {
	for at, r := range slices.Backward(j.log) {
		if r.rewind == nil || r.rewind.undone {
			continue
		}
		for _, a := range j.applied {
			if a.pos > at && !a.undone {
				return nil, fmt.Errorf("undo: condensation %q was recorded after the rewind to message %q; undo it first", a.ID, r.rewind.to)
			}
		}
		return r.rewind, nil
	}
	return nil, ErrNoRewind
}

// undoRewind rebuilds the journal without the rewind r: it applies every record again. That
// cannot fail: without r there are more messages to refer to, not fewer.
func (j *Journal) undoRewind(r *rewound) {
	r.undone = true
	log := append(j.log, record{undoRewind: r})
	j.log, j.applied, j.first, j.last = make([]record, 0, len(log)), nil, nil, nil
	j.nodes, j.applications = make(map[string]*node, len(j.nodes)), make(map[string]*applied, len(j.applications))
	for _, r := range log {
		switch {
		case r.message != nil:
			added := []node{{message: r.message.message, epoch: r.message.epoch}}
			j.nodes[r.message.message.ID] = &added[0]
			j.extend(added)
		case r.condensation != nil:
			j.apply(r.condensation.Condensation)
			for i, n := range j.applications[r.condensation.ID].inserts { // which counter measured it
				was := r.condensation.inserts[i]
				n.message.Tokens, n.epoch = was.message.Tokens, was.epoch
			}
		case r.undo != "":
			j.undo(j.applications[r.undo])
		case r.rewind != nil && !r.rewind.undone:
			j.rewind(j.nodes[r.rewind.to], r.rewind)
		case r.protect != "":
			j.protect(j.nodes[r.protect], true)
		case r.unprotect != "":
			j.protect(j.nodes[r.unprotect], false)
		default:
			j.log = append(j.log, r)
		}
	}
}

// Dropped returns the messages that were dropped by rewinds that are not undone, as recorded
// and in the order of recording, including those that condensations inserted.
func (j *Journal) Dropped() []Entry {
	var entries []Entry
	for _, r := range j.log {
		if n := r.message; n != nil && n.dropped {
			entries = append(entries, Entry{Message: n.message, Original: n.message})
		}
		if a := r.condensation; a != nil && a.dropped {
			for _, n := range a.inserts {
				entries = append(entries, Entry{Message: n.message, Original: n.message, InsertedBy: a.ID})
			}
		}
	}
	return entries
}
