package core_test

import (
	"fmt"

	"github.com/condensehq/condense/core"
)

// A place is the position of a call or result.
type place struct{ message, part int }

// pairs finds the call that each result answers, by definition and at quadratic cost:
// the oldest before it with its ID that no result before it has answered.
func pairs(m []core.Message) map[place]place {
	callOf := map[place]place{}
	taken := map[place]bool{}
	walk(m, func(at place, p core.Part) {
		r, ok := p.(core.ToolResult)
		if !ok {
			return
		}
		found := false
		walk(m, func(before place, p core.Part) {
			c, ok := p.(core.ToolCall)
			earlier := before.message < at.message || before.message == at.message && before.part < at.part
			if ok && !found && earlier && c.ID == r.CallID && !taken[before] {
				callOf[at], taken[before], found = before, true, true
			}
		})
	})
	return callOf
}

func walk(m []core.Message, f func(place, core.Part)) {
	for i := range m {
		for j, p := range m[i].Parts {
			f(place{i, j}, p)
		}
	}
}

// name names a call or result by what a provider may not change about it. Those of one
// ID in one message are distinguished by their order.
func name(m []core.Message, at place) string {
	n := 0
	key := func(p core.Part) string {
		switch p := p.(type) {
		case core.ToolCall:
			return fmt.Sprintf("call %q of %q", p.ID, p.Name)
		case core.ToolResult:
			return fmt.Sprintf("result of %q", p.CallID)
		default:
			return ""
		}
	}
	parts := m[at.message].Parts
	for _, p := range parts[:at.part] {
		if key(p) == key(parts[at.part]) {
			n++
		}
	}
	return fmt.Sprintf("%q: %s #%d", m[at.message].ID, key(parts[at.part]), n)
}

// brokenPair says which pair of before is torn, wed or invented in after; empty if none
// is.
func brokenPair(before, after []core.Message) string {
	names := func(m []core.Message) (all map[string]bool, partner map[string]string) {
		all, partner = map[string]bool{}, map[string]string{}
		walk(m, func(at place, p core.Part) {
			switch p.(type) {
			case core.ToolCall, core.ToolResult:
				all[name(m, at)] = true
			default:
			}
		})
		for r, c := range pairs(m) {
			partner[name(m, r)], partner[name(m, c)] = name(m, c), name(m, r)
		}
		return all, partner
	}
	was, partnerWas := names(before)
	is, partnerIs := names(after)
	for n := range is {
		if !was[n] {
			return n + " was not there"
		}
		if partnerIs[n] != partnerWas[n] {
			return fmt.Sprintf("%s belonged to %q, belongs to %q", n, partnerWas[n], partnerIs[n])
		}
	}
	return ""
}
