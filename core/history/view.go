package history

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// View returns the messages that would be sent, oldest first. The slice is read-only. Later
// changes of the journal do not affect it, and it may be read during them. The cost is
// constant.
func (j *Journal) View() []core.Message { return slices.Clip(j.view) }

// Len returns the number of messages in the view.
func (j *Journal) Len() int { return len(j.view) }

// Settled reports whether the view is the result of an active condensation that inserted a
// message: nothing was appended since, and later condensations only hid or rewrote. The cost
// is linear in the records since.
func (j *Journal) Settled() bool {
	for _, r := range slices.Backward(j.log) {
		switch a := r.condensation; {
		case r.message != nil && !r.message.dropped:
			return false
		case a != nil && !a.undone && !a.dropped && len(a.inserts) > 0:
			return true
		}
	}
	return false
}

// Appended returns how many messages were appended since the last active condensation; 0 if there is none. They are the
// last ones of the view. The cost is linear in the records since.
func (j *Journal) Appended() int {
	n := 0
	for _, r := range slices.Backward(j.log) {
		switch a := r.condensation; {
		case r.message != nil && !r.message.dropped:
			n++
		case a != nil && !a.undone && !a.dropped:
			return n
		}
	}
	return 0
}

// Tokens returns the sum of Tokens over the view, at constant cost. Messages that were not
// measured count as zero; after [Journal.Measure] all are measured.
func (j *Journal) Tokens() int { return j.tokens }

// Measure counts the view with c and makes c the counter of the journal: messages that enter
// the view later are counted with it, except messages with Tokens set, which must be measured
// with c. Messages outside the view are not counted until they enter it. Nothing is written
// to a [File].
func (j *Journal) Measure(c core.Counter) {
	j.counter = c
	j.epoch++
	j.refresh()
}

// epochOf returns the epoch of a new message that has tokens; a message that has none
// belongs to no counter.
func (j *Journal) epochOf(tokens int) int {
	if tokens == 0 {
		return -1
	}
	return j.epoch
}

// refresh computes the view from the timeline.
func (j *Journal) refresh() {
	j.pass++
	// Newest first: a condensation that hides a substitute is always newer than the one that
	// inserted it, so by then it is known whether the substitute is hidden.
	for _, a := range slices.Backward(j.applied) {
		for _, h := range a.hides {
			if !a.undone || h.substitute != nil && h.substitute.gone == j.pass {
				h.node.gone = j.pass
			}
		}
	}
	size := 0
	for n := j.first; n != nil; n = n.next {
		n.shown = n.gone != j.pass && n.inForce()
		if n.shown {
			size++
		}
	}
	// Always a new array: callers have the old one. The spare capacity allows the next
	// messages to be appended without another copy.
	j.view, j.tokens = make([]core.Message, 0, size+size/8+8), 0
	for n := j.first; n != nil; n = n.next {
		if n.shown {
			j.show(n)
		}
	}
}

// show puts n at the end of the view.
func (j *Journal) show(n *node) {
	n.shown = true
	m, _ := j.current(n)
	j.view = append(j.view, m)
	j.tokens += m.Tokens
}

// current returns n in the form in which it is sent, measured, and the condensation that rewrote it, or nil.
func (j *Journal) current(n *node) (core.Message, *applied) {
	r := n.rewritten()
	if r == nil && j.counter != nil && n.epoch != j.epoch {
		n.message.Tokens, n.epoch = core.MessageTokens(j.counter, n.message), j.epoch
	}
	m := n.message
	if n.keep != nil {
		m.Protected = *n.keep
	}
	if r == nil {
		return m, nil
	}
	// Source describes the original parts.
	m.Parts, m.Source = r.parts, nil
	if j.counter != nil && r.epoch != j.epoch {
		r.tokens, r.epoch = core.MessageTokens(j.counter, m), j.epoch
	}
	m.Tokens = r.tokens
	return m, r.by
}

// rewritten returns the latest active rewrite of n, or nil.
func (n *node) rewritten() *rewrite {
	for _, r := range slices.Backward(n.rewrites) {
		if !r.by.undone {
			return r
		}
	}
	return nil
}
