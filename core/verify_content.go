package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// content checks the content of new and rewritten messages.
func (v *verifier) content() {
	for i := range v.out {
		if v.same[i] {
			continue
		}
		m := &v.out[i]
		if v.from[i] < 0 {
			if m.Blank() {
				v.fault(ruleEmpty, m.ID, "new message %d says nothing", i)
			}
			if slices.ContainsFunc(m.Parts, sealed) {
				v.fault(ruleReasoning, m.ID, "signed or encrypted reasoning is in new message %d", i)
			}
			if slices.ContainsFunc(m.Parts, func(p Part) bool { return isMedia(p) && !isCompaction(p) }) {
				v.fault(ruleMedia, m.ID, "an image or a block is in new message %d", i)
			}
			continue
		}
		o := &v.req.Messages[v.from[i]]
		if m.Blank() && !o.Blank() {
			v.fault(ruleEmpty, m.ID, "says nothing any more")
		}
		v.media(m.ID, "", o.Parts, m.Parts, hasNewText(o.Parts, m.Parts))
		v.results(m, o)
		v.reasoning(m, o)
	}
}

// results checks the tool results of a rewritten message as content checks messages.
func (v *verifier) results(m, o *Message) {
	is := map[string][]ToolResult{} // by call ID, in order
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok {
			is[r.CallID] = append(is[r.CallID], r)
		}
	}
	for _, p := range o.Parts {
		r, ok := p.(ToolResult)
		if !ok {
			continue
		}
		if len(is[r.CallID]) == 0 { // gone, which keep-pairs judges, and its pictures with it
			v.media(m.ID, " with the result of call "+r.CallID, r.Content, nil, hasNewText(o.Parts, m.Parts))
			continue
		}
		after := is[r.CallID][0].Content
		if is[r.CallID][0].IsError != r.IsError {
			v.fault(ruleCalls, m.ID, "the result of call %s is a failure no more, or has become one", r.CallID)
		}
		is[r.CallID] = is[r.CallID][1:]
		if blankParts(after) && !blankParts(r.Content) {
			v.fault(ruleEmpty, m.ID, "the result of call %s says nothing any more", r.CallID)
		}
		v.media(m.ID, " in the result of call "+r.CallID, r.Content, after, hasNewText(r.Content, after))
	}
}

// media checks that images and blocks of unknown kind were not dropped silently, since text must replace them, and not made up.
func (v *verifier) media(id, where string, before, after []Part, text bool) {
	kept := countParts(after)
	for _, p := range before {
		what := "an image"
		if block, ok := p.(Opaque); ok {
			what = fmt.Sprintf("a block of kind %q", block.Kind)
		}
		switch {
		case !isMedia(p):
		case kept[p] > 0:
			kept[p]--
		case !text:
			v.fault(ruleMedia, id, "%s is gone%s and no text replaces it", what, where)
		}
	}
	for p, n := range kept {
		if n > 0 && isMedia(p) {
			v.fault(ruleMedia, id, "an image or a block is new%s", where)
		}
	}
}

// isCompaction reports whether p is a vendor's own compaction of a conversation.
func isCompaction(p Part) bool {
	var is struct{ Type string }
	block, ok := p.(Opaque)
	return ok && json.Unmarshal([]byte(block.JSON), &is) == nil && is.Type == "compaction"
}

// hasNewText reports whether after has a text that before has not.
func hasNewText(before, after []Part) bool {
	was := countParts(before)
	return slices.ContainsFunc(after, func(p Part) bool { t, ok := p.(Text); return ok && was[t] == 0 && !blank(string(t)) })
}

func (v *verifier) reasoning(m, o *Message) {
	was := countParts(o.Parts)
	for _, p := range m.Parts {
		r, ok := p.(Reasoning)
		if !ok {
			continue
		}
		if was[r]--; was[r] < 0 {
			v.fault(ruleReasoning, m.ID, "reasoning was changed or repeated")
		}
	}
}

// sealed reports whether p is reasoning that only a vendor can have written.
func sealed(p Part) bool {
	r, ok := p.(Reasoning)
	return ok && (r.Signature != "" || r.Encrypted != "")
}

// countParts counts equal parts. Tool results, which are not comparable, are left out, and so are other types that
// implement Part: a request may have them, and they may not be comparable either.
func countParts(parts []Part) map[Part]int {
	n := make(map[Part]int, len(parts))
	for _, p := range parts {
		switch p.(type) {
		case Text, ToolCall, Image, Reasoning, Opaque:
			n[p]++
		case ToolResult:
		}
	}
	return n
}

// words checks that the words of the system and of the user are unchanged or visibly shortened.
func (v *verifier) words() {
	for j := range v.req.Messages {
		o := &v.req.Messages[j]
		i := v.kept[j]
		switch {
		case o.Role == RoleSystem && i < 0:
			v.fault(ruleSystem, o.ID, "is hidden")
		case i < 0 || v.same[i]:
		case o.Role == RoleSystem:
			v.fault(ruleSystem, o.ID, "is rewritten")
		case v.out[i].Blank(): // which is a fault of its own
		case o.Role == RoleUser && o.Kind == KindOriginal:
			if !Shortens(joinTexts(o.Parts, v.out[i].Parts), joinTexts(v.out[i].Parts, o.Parts), v.req.Originals) {
				v.fault(ruleWords, o.ID, "has words that are not the user's, or lacks some without a mark")
			}
		}
	}
}

// request checks that the newest request of the user is there, whole if it can be.
func (v *verifier) request() {
	asked := v.req.Unanswered()
	touched := func(i int) bool { return v.kept[i] < 0 || !v.same[v.kept[i]] }
	if !slices.ContainsFunc(asked, touched) {
		return
	}
	held := make([]bool, len(v.req.Messages))
	if v.req.Counter != nil {
		for _, g := range FixedGroups(v.req) {
			for i, h := range g.holds {
				held[g.Start+i] = h != holdNothing
			}
		}
	}
	for n, i := range asked {
		o, newest := &v.req.Messages[i], n == len(asked)-1
		switch k := v.kept[i]; {
		case o.Protected: // another rule has it
		case k < 0 && (held[i] || newest):
			v.fault(ruleRequest, o.ID, "the user's newest request is hidden, and nobody has answered it")
		case k < 0, !held[i] && (!newest || !v.uncut): // it is larger than the limit
		case !v.req.says(o, &v.out[k]):
			v.fault(ruleRequest, o.ID, "the user's newest request is changed, and nobody has answered it")
		}
	}
}

// says reports whether m still has all that the user typed in o, in order, and what is shown there.
func (r *Request) says(o, m *Message) bool {
	own := func(parts []Part) []Part {
		return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool {
			_, text := p.(Text)
			return !isMedia(p) && (!text || r.Typed != nil)
		})
	}
	if !EqualParts(own(o.Parts), own(m.Parts)) {
		return false
	}
	if r.Typed == nil {
		return true
	}
	rest := joinTexts(m.Parts, nil)
	for _, text := range r.Typed(o) {
		text = strings.TrimSpace(text)
		at := strings.Index(rest, text)
		if at < 0 {
			return false
		}
		rest = rest[at+len(text):]
	}
	return true
}

// joinTexts returns the texts of parts, with marks for images and blocks that others have, too.
func joinTexts(parts, others []Part) string {
	var b strings.Builder
	common := countParts(others)
	for _, p := range parts {
		if t, ok := p.(Text); ok {
			b.WriteString(string(t) + "\n")
		} else if isMedia(p) && common[p] > 0 {
			b.WriteString("\x00" + Handle(p) + "\n")
		}
	}
	return b.String()
}

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
