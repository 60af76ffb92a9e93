package history

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/core"
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
	// RewrittenBy is the ID of the condensation whose parts it has; empty if they are
	// its own.
	RewrittenBy string
	// HiddenBy are the IDs of the active condensations that keep it out of the view,
	// oldest first: those that hide it and, for undone ones, those that hide what replaced
	// it. It is in the view if there are none.
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
		for _, a := range hiders[n] {
			e.HiddenBy = append(e.HiddenBy, a.ID)
		}
		entries = append(entries, e)
	}
	return entries
}

// hiders returns the active condensations that hide each message, oldest first.
func (j *Journal) hiders() map[*node][]*applied {
	hiders := map[*node][]*applied{}
	for _, a := range slices.Backward(j.applied) { // as in refresh
		for _, h := range a.hides {
			by := []*applied{a}
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

func merge(a, b []*applied) []*applied {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y *applied) int { return cmp.Compare(x.pos, y.pos) })
	return slices.Compact(all)
}
