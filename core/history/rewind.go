package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
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

// Restore returns the journal of a file in another format. Timeline holds every message in order, including hidden
// and inserted ones; condensations are in the order of application. The Insert of an edit names messages of timeline
// by Message.ID alone; their position and content are taken from timeline. An edit may hide and rewrite any message
// that existed when it was applied, hidden or not. The replacement of a hidden message follows from the positions
// unless Substitutes names it: see [Journal.Substitutes].
//
// Which messages existed at the time of a condensation, which Rewind and Settled need, its Newest says. Without it
// Restore assumes those up to the last one that the condensation names or inserted, and those whose Time is not later:
// clocks may be wrong.
func Restore(timeline []core.Message, condensations []Condensation) (*Journal, error) {
	r := restorer{timeline: timeline, journal: New()}
	if err := r.own(condensations); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	for i, c := range condensations {
		c.Edit.Insert = r.inserts(i, c.Edit.Insert)
		if err := r.appendTo(r.moment(&c)); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		c.Newest = "" // the journal knows it now
		if err := r.journal.check(&c, (*node).inTimeline); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		r.journal.apply(c)
	}
	if err := r.appendTo(len(timeline)); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	r.journal.refresh()
	return r.journal, nil
}

type restorer struct {
	timeline []core.Message
	at       map[string]int // ID to index in timeline
	owner    []int          // index of the condensation that inserted it, or original
	journal  *Journal
	done     int // messages of timeline that are in the journal, or are not original
}

const original = -1

// own determines which condensation inserted each message.
func (r *restorer) own(condensations []Condensation) error {
	r.at = make(map[string]int, len(r.timeline))
	r.owner = make([]int, len(r.timeline))
	for i := range r.timeline {
		id := r.timeline[i].ID
		if _, ok := r.at[id]; ok {
			return fmt.Errorf("message %q is in the timeline twice", id)
		}
		r.at[id], r.owner[i] = i, original
	}
	for i := range condensations {
		c := &condensations[i]
		for k := range c.Edit.Insert {
			id := c.Edit.Insert[k].Message.ID
			at, ok := r.at[id]
			if !ok {
				return fmt.Errorf("condensation %q inserts message %q, which is not in the timeline", c.ID, id)
			}
			if r.owner[at] != original {
				return fmt.Errorf("condensation %q inserts message %q, which condensation %q inserted", c.ID, id, condensations[r.owner[at]].ID)
			}
			r.owner[at] = i
		}
	}
	return nil
}

// appendTo records the original messages of timeline up to end, if they are not yet.
func (r *restorer) appendTo(end int) error {
	for ; r.done < end; r.done++ {
		if r.owner[r.done] != original {
			continue
		}
		added, err := r.journal.register(r.timeline[r.done : r.done+1])
		if err != nil {
			return err
		}
		r.journal.extend(added)
	}
	return nil
}

// inserts completes the inserts of condensation c. A message is inserted after the nearest
// earlier one that is older, so that its position is right whatever came between.
func (r *restorer) inserts(c int, inserts []core.Insert) []core.Insert {
	if len(inserts) == 0 {
		return nil
	}
	places := plain.Each(inserts, func(x core.Insert) int { return r.at[x.Message.ID] })
	slices.Sort(places)
	out := make([]core.Insert, len(places))
	passed, after := 0, "" // the state at the places before
	for i, place := range places {
		k := place - 1
		for k >= passed && r.owner[k] >= c {
			k--
		}
		if k >= passed {
			after = r.timeline[k].ID
		}
		passed = place
		out[i] = core.Insert{After: after, Message: r.timeline[place]}
	}
	return out
}

// moment returns how many messages of the timeline existed at the time of c.
func (r *restorer) moment(c *Condensation) int {
	end := 0
	see := func(id string) {
		if i, ok := r.at[id]; ok {
			end = max(end, i+1)
		}
	}
	for _, id := range c.Edit.Hide {
		see(id)
	}
	for i := range c.Edit.Rewrite {
		see(c.Edit.Rewrite[i].ID)
	}
	for i := range c.Edit.Insert {
		see(c.Edit.Insert[i].Message.ID)
	}
	if at, ok := r.at[c.Newest]; ok {
		return max(end, at+1)
	}
	if c.Time.IsZero() {
		return end
	}
	for i := len(r.timeline) - 1; i >= end; i-- {
		if t := r.timeline[i].Time; !t.IsZero() && !t.After(c.Time) {
			return i + 1
		}
	}
	return end
}
