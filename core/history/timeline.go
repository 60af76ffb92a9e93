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
		for _, c := range hiders[n] {
			e.HiddenBy = append(e.HiddenBy, c.by.ID)
		}
		e.HiddenBy = slices.Compact(e.HiddenBy)
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
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(x, y cover) int { return cmp.Compare(x.by.pos, y.by.pos) })
	return all
}
