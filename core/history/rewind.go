package history

import "fmt"

// Undo takes the condensation id back, for good: what it inserted leaves the view, and
// what it hid or rewrote is there again as it was, unless another condensation hides or
// rewrites it too or covers it (see the package comment). Nothing changes if Undo returns
// an error, as it does if there is no such condensation or it is undone already. The cost
// is linear in the timeline.
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

// Rewind goes back to when the message id was recorded: by itself or, if it is a summary
// or marker, with its condensation. Messages and condensations recorded later are
// dropped. A condensation that was undone stays undone, so the view is what it was then
// without such. Nothing changes if it returns an error, as it does if the message is not
// part of the conversation. The cost is linear in the timeline.
func (j *Journal) Rewind(id string) error {
	n, err := j.rewindable(id)
	if err != nil {
		return err
	}
	if err := j.keep(true, record{rewind: id}); err != nil {
		return err
	}
	j.rewind(n)
	j.refresh()
	return nil
}

func (j *Journal) rewindable(id string) (*node, error) {
	n := j.nodes[id]
	switch {
	case n == nil:
		return nil, fmt.Errorf("rewind: there is no message %q", id)
	case n.dropped:
		return nil, fmt.Errorf("rewind: message %q was dropped by an earlier rewind", id)
	case !n.inForce():
		return nil, fmt.Errorf("rewind: message %q was inserted by condensation %q, which is undone", id, n.by.ID)
	}
	return n, nil
}

func (j *Journal) rewind(to *node) {
	j.log = append(j.log, record{rewind: to.message.ID})
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
	// The rest was appended, hence stands at the end.
	for j.last != nil && j.last.pos > to.pos {
		j.last.dropped = true
		j.unlink(j.last)
	}
}
