package core

import "slices"

// tools checks the pairing of calls and results.
func (v *verifier) tools() {
	before, after := pairUp(v.req.Messages), pairUp(v.out)
	was := v.match(before, after)
	for k := range after.uses {
		u := &after.uses[k]
		id := v.out[u.message].ID
		switch b := was[k]; {
		case v.from[u.message] < 0:
			v.fault(ruleCalls, id, "%s is in new message %d", u, u.message)
		case b < 0:
			v.fault(ruleCalls, id, "%s was not there", u)
		case before.uses[b].tool != u.tool:
			v.fault(ruleCalls, id, "%s was of tool %q, is of %q", u, before.uses[b].tool, u.tool)
		default:
			v.pair(before, after, was, k)
		}
	}
	v.split(before, after, was)
	v.pending(before, was)
}

// match returns, for each use in the result, the index of the use in the request; -1 if there is none. A use is
// identified in its message by its call ID and its number among the uses of that ID.
func (v *verifier) match(before, after *pairing) []int {
	was := make([]int, len(after.uses))
	for i := range v.out {
		start, end := after.starts[i], after.starts[i+1]
		if start == end {
			continue
		}
		if v.from[i] < 0 {
			for k := start; k < end; k++ {
				was[k] = -1
			}
			continue
		}
		first := before.starts[v.from[i]]
		there := before.uses[first:before.starts[v.from[i]+1]]
		if slices.EqualFunc(after.uses[start:end], there, sameCall) {
			for k := start; k < end; k++ {
				was[k] = first + k - start
			}
			continue
		}
		type key struct {
			call   string
			result bool
		}
		left := map[key][]int{}
		for n, u := range there {
			left[key{u.call, u.result}] = append(left[key{u.call, u.result}], first+n)
		}
		for k := start; k < end; k++ {
			was[k] = -1
			id := key{after.uses[k].call, after.uses[k].result}
			if l := left[id]; len(l) > 0 {
				was[k], left[id] = l[0], l[1:]
			}
		}
	}
	return was
}

// pair checks that after.uses[k] has the partner that it had.
func (v *verifier) pair(before, after *pairing, was []int, k int) {
	u := &after.uses[k]
	old, now := before.uses[was[k]].partner, u.partner
	switch {
	case old < 0 && now < 0, old >= 0 && now >= 0 && was[now] == old:
		return
	case now >= 0 && was[now] < 0:
		return // it was invented or moved, which is reported
	}
	id := v.out[u.message].ID
	owner := func() string { return v.req.Messages[before.uses[old].message].ID }
	partner := func() string { return v.out[after.uses[now].message].ID }
	switch {
	case now < 0 && u.result:
		v.fault(rulePairs, id, "%s stays without the call, which message %s had", u, owner())
	case now < 0:
		v.fault(rulePairs, id, "%s stays without its result, which message %s had", u, owner())
	case old >= 0:
		v.fault(rulePairs, id, "%s belonged to message %s, belongs to %s", u, owner(), partner())
	default:
		v.fault(rulePairs, id, "%s had no partner, belongs to message %s", u, partner())
	}
}

// split checks that no new message came between a call and its result, not even if the
// result is still to come: it will follow the last message.
func (v *verifier) split(before, after *pairing, was []int) {
	fresh := make([]int, len(v.out)+1) // how many of the messages before i are new
	for i := range v.out {
		fresh[i+1] = fresh[i]
		if v.from[i] < 0 {
			fresh[i+1]++
		}
	}
	waiting := waiting(v.req.Messages)
	for k := range after.uses {
		u := &after.uses[k]
		switch {
		case was[k] < 0: // reported by tools
		case u.result && u.partner >= 0:
			if call := after.uses[u.partner].message; was[u.partner] >= 0 && call < u.message && fresh[u.message] > fresh[call+1] {
				v.fault(ruleSplit, v.out[u.message].ID, "a new message is between call %s and its result", u.call)
			}
		case !u.result && before.uses[was[k]].partner < 0 && v.from[u.message] >= waiting:
			if fresh[len(v.out)] > fresh[u.message+1] {
				v.fault(ruleSplit, v.out[u.message].ID, "a new message is after call %s, whose result is still to come", u.call)
			}
		}
	}
}

// pending checks that calls whose results are still to come were not removed: their results
// would be orphans.
func (v *verifier) pending(before *pairing, was []int) {
	kept := make([]bool, len(before.uses))
	for _, b := range was {
		if b >= 0 {
			kept[b] = true
		}
	}
	for _, k := range before.pending(v.req.Messages) {
		if u := &before.uses[k]; !kept[k] {
			v.fault(rulePending, v.req.Messages[u.message].ID, "%s is gone, and its result is still to come", u)
		}
	}
}
