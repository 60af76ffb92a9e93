package history

import "fmt"

// Protect has the message id kept verbatim by every condensation from now on, or with on
// false not any more, whatever [core.Message.Protected] said when it was recorded. It says
// nothing about condensations before: a message that is hidden stays hidden. A rewind does
// not change it, and neither does an undo. Nothing changes if it returns an error, as it does
// if the message is not part of the conversation. The cost is linear in the timeline.
func (j *Journal) Protect(id string, on bool) error {
	n, err := j.protectable(id)
	if err != nil {
		return err
	}
	r := record{protect: id}
	if !on {
		r = record{unprotect: id}
	}
	if err := j.keep(true, r); err != nil {
		return err
	}
	j.protect(n, on)
	j.refresh()
	return nil
}

func (j *Journal) protectable(id string) (*node, error) {
	n := j.nodes[id]
	switch {
	case n == nil:
		return nil, fmt.Errorf("protect: there is no message %q", id)
	case n.dropped:
		return nil, fmt.Errorf("protect: message %q was dropped by a rewind", id)
	case !n.inForce():
		return nil, fmt.Errorf("protect: message %q was inserted by condensation %q, which is undone", id, n.by.ID)
	}
	return n, nil
}

func (j *Journal) protect(n *node, on bool) {
	r := record{protect: n.message.ID}
	if !on {
		r = record{unprotect: n.message.ID}
	}
	j.log = append(j.log, r)
	n.keep = &on
}
