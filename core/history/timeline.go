package history

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An Entry is a message of the timeline and its state.
type Entry struct {
	// Message is the message as in the view, or as it would be if it were not hidden.
	Message core.Message
	// Original is the message as recorded. Message differs from it if it was rewritten, and
	// in Protected if [Journal.Protect] changed that.
	Original core.Message
	// InsertedBy is the ID of the condensation that inserted it; empty if it was
	// appended.
	InsertedBy string
	// RewrittenBy is the ID of the condensation that wrote its parts; empty if they are the original ones.
	RewrittenBy string
	// HiddenBy are the IDs of the active condensations that keep it out of the view, oldest first: those that hide it
	// and, in place of undone ones, those that hide their replacement of it. It is in the view if there are none.
	HiddenBy []string
}

// Timeline returns every message of the conversation in order, hidden or not, without
// those that were inserted by a condensation that is undone.
func (j *Journal) Timeline() []Entry {
	hiders := j.hiders()
	var entries []Entry
	for n := j.first; n != nil; n = n.next {
		if !n.inForce() {
			continue
		}
		if entries == nil {
			entries = make([]Entry, 0, len(j.nodes))
		}
		e := Entry{Message: n.message, Original: n.message}
		if r := n.rewritten(); r != nil {
			e.Message.Parts, e.Message.Tokens, e.Message.Source = r.parts, r.tokens, nil
			e.RewrittenBy = r.by.ID
		}
		if n.keep != nil {
			e.Message.Protected = *n.keep
		}
		if n.by != nil {
			e.InsertedBy = n.by.ID
		}
		e.HiddenBy = slices.Compact(plain.Each(hiders[n], func(c cover) string { return c.by.ID }))
		entries = append(entries, e)
	}
	return entries
}

// Substitutes returns, by the ID of each active condensation, the messages that it hides and the messages that
// replace them while a later one hides those: the IDs of messages that it inserted, "" for none. It includes messages
// that a condensation hides since an earlier one was undone; they can have several. [Restore] finds the same by the
// positions in most timelines; for the rest, [Condensation.Substitutes] has it.
func (j *Journal) Substitutes() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for n, covers := range j.hiders() {
		if !n.inForce() {
			continue
		}
		for _, c := range covers {
			of := all[c.by.ID]
			if of == nil {
				of = map[string][]string{}
				all[c.by.ID] = of
			}
			id := ""
			if c.substitute != nil {
				id = c.substitute.message.ID
			}
			of[n.message.ID] = append(of[n.message.ID], id)
		}
	}
	for _, of := range all {
		for _, ids := range of {
			slices.Sort(ids)
		}
	}
	return all
}

// A cover is an active condensation that hides a message, and its replacement of it; nil if there is none.
type cover struct {
	by         *applied
	substitute *node
}

// hiders returns the covers of each message, the oldest condensation first.
func (j *Journal) hiders() map[*node][]cover {
	hiders := map[*node][]cover{}
	for _, a := range slices.Backward(j.applied) { // as in refresh
		for _, h := range a.hides {
			by := []cover{{a, h.substitute}}
			if a.undone {
				by = hiders[h.substitute]
			}
			if len(by) > 0 {
				hiders[h.node] = merge(hiders[h.node], by)
			}
		}
	}
	return hiders
}

func merge(a, b []cover) []cover {
	all := slices.Concat(a, plain.Only(b, func(c cover) bool { return !slices.Contains(a, c) }))
	slices.SortStableFunc(all, func(x, y cover) int { return cmp.Compare(x.by.pos, y.by.pos) })
	return all
}

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
