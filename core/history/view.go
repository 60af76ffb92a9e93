package history

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// View returns the messages that would be sent, oldest first. The slice is read-only. It
// stays as it is, whatever happens to the journal, and may be read while that happens.
// The cost is constant.
func (j *Journal) View() []core.Message { return slices.Clip(j.view) }

// Len returns the number of messages in the view.
func (j *Journal) Len() int { return len(j.view) }

// Settled reports whether the view is as an active condensation left it, one that put
// something in place of messages: nothing was appended since, and what was condensed since
// only hid or rewrote. The cost is linear in what was recorded since.
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

// Tokens returns the sum of Tokens over the view, at constant cost. Messages that were
// not measured count zero; after [Journal.Measure] there are none.
func (j *Journal) Tokens() int { return j.tokens }

// Measure counts the view with c, whatever it was measured with before, and makes c the
// counter of the journal: what enters the view later is counted with it, except for
// messages that come with Tokens set, which are taken to be measured with c. Messages
// outside the view are not counted until they enter it. Nothing is written to a [File].
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
	// Always a new array: the old one is in the hands of others. The room to spare
	// lets the next messages be appended without another copy.
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

// current returns n as it is sent, measured, and what rewrote it, if anything.
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
	// Source says what the parts were.
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
