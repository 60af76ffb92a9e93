package history

import "fmt"

// Protect sets or clears the protection of messages by their IDs: condensations keep a protected
// message verbatim. It overrides [core.Message.Protected] as recorded. It has no effect on
// earlier condensations: a hidden message stays hidden. Rewinds and undos do not change it.
// It is an error if a message is not part of the conversation; then nothing changes. The
// cost is linear in the timeline, however many messages are named.
func (j *Journal) Protect(on bool, ids ...string) error {
	named, records := make([]*node, len(ids)), make([]record, len(ids))
	for i, id := range ids {
		n, err := j.inTimeline("protect", id)
		if err != nil {
			return err
		}
		named[i], records[i] = n, protection(on, id)
	}
	if len(ids) == 0 {
		return nil
	}
	if err := j.keep(true, records...); err != nil {
		return err
	}
	for _, n := range named {
		j.protect(n, on)
	}
	j.refresh()
	return nil
}

// inTimeline returns a message for what is to be done with it.
func (j *Journal) inTimeline(what, id string) (*node, error) {
	n := j.nodes[id]
	switch {
	case n == nil:
		return nil, fmt.Errorf("%s: there is no message %q", what, id)
	case n.dropped:
		return nil, fmt.Errorf("%s: message %q was dropped by an earlier rewind", what, id)
	case !n.inForce():
		return nil, fmt.Errorf("%s: message %q was inserted by condensation %q, which is undone", what, id, n.by.ID)
	}
	return n, nil
}

func (j *Journal) protect(n *node, on bool) {
	j.log = append(j.log, protection(on, n.message.ID))
	n.keep = &on
}

func protection(on bool, id string) record {
	if on {
		return record{protect: id}
	}
	return record{unprotect: id}
}
