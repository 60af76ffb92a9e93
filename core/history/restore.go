package history

import (
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
)

// Restore returns the journal behind the tags of a foreign file. Timeline holds every
// message in order, hidden and inserted ones included; condensations what happened to
// them, in the order of application. An edit names in Insert the messages of timeline
// that it put there, by Message.ID alone: where they stand and what they say is taken
// from timeline. It may hide and rewrite any message that was there when it was applied,
// hidden or not.
//
// A foreign file does not say which messages were there when a condensation took place,
// which is what Rewind goes by. Restore takes those up to the last one that the
// condensation names or inserted, and those that by their Time are not younger than it.
func Restore(timeline []core.Message, condensations []Condensation) (*Journal, error) {
	r := restorer{timeline: timeline, at: make(map[string]int, len(timeline)), owner: make([]int, len(timeline))}
	for i := range timeline {
		if _, ok := r.at[timeline[i].ID]; ok {
			return nil, fmt.Errorf("restore: message %q stands in the timeline twice", timeline[i].ID)
		}
		r.at[timeline[i].ID] = i
		r.owner[i] = original
	}
	for c := range condensations {
		for i := range condensations[c].Edit.Insert {
			id := condensations[c].Edit.Insert[i].Message.ID
			at, ok := r.at[id]
			if !ok {
				return nil, fmt.Errorf("restore: condensation %q inserts message %q, which is not in the timeline", condensations[c].ID, id)
			}
			if r.owner[at] != original {
				return nil, fmt.Errorf("restore: condensation %q inserts message %q, which another one inserted", condensations[c].ID, id)
			}
			r.owner[at] = c
		}
	}
	j := New()
	appended := 0 // messages of timeline that were considered
	appendTo := func(end int) error {
		for ; appended < end; appended++ {
			if r.owner[appended] != original {
				continue
			}
			added, err := j.register(timeline[appended : appended+1])
			if err != nil {
				return fmt.Errorf("restore: %w", err)
			}
			j.extend(added)
		}
		return nil
	}
	for i, c := range condensations {
		c.Edit.Insert = r.inserts(i, c.Edit.Insert)
		if err := appendTo(r.moment(&c)); err != nil {
			return nil, err
		}
		if err := j.check(&c, (*node).inTimeline); err != nil {
			return nil, fmt.Errorf("restore: %w", err)
		}
		j.apply(c)
	}
	if err := appendTo(len(timeline)); err != nil {
		return nil, err
	}
	j.refresh()
	return j, nil
}

// original, in place of the index of a condensation, owns what was appended.
const original = -1

type restorer struct {
	timeline []core.Message
	at       map[string]int // ID to index in timeline
	owner    []int          // which condensation inserted it
}

// inserts completes the inserts of condensation c. A message goes behind the nearest one
// before it that is older, so that it ends up where it stands whatever came between.
func (r *restorer) inserts(c int, inserts []core.Insert) []core.Insert {
	places := make([]int, len(inserts))
	for i := range inserts {
		places[i] = r.at[inserts[i].Message.ID]
	}
	slices.Sort(places)
	out := make([]core.Insert, len(places))
	passed, after := 0, "" // what is known of the places before
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

// moment returns how much of the timeline was there when c took place.
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
