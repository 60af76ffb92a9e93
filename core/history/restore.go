package history

import (
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
)

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
	places := make([]int, len(inserts))
	for i := range inserts {
		places[i] = r.at[inserts[i].Message.ID]
	}
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
