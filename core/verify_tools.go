package core

import "slices"

// tools checks the pairing of calls and results. A call or result is told apart from
// others with the same ID by its message and by its number among those of that ID there.
func (v *verifier) tools(messages []Message) {
	before, after := pairUp(v.req.Messages), pairUp(messages)
	for i := range messages {
		m := &messages[i]
		for _, p := range m.Parts {
			if _, ok := v.original(m); ok {
				continue
			}
			switch p := p.(type) {
			case ToolCall:
				v.fault(ruleCalls, m.ID, "call %s of %s stands in a new message", p.ID, p.Name)
			case ToolResult:
				v.fault(ruleCalls, m.ID, "the result of call %s stands in a new message", p.CallID)
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	for _, k := range after.order {
		name, known := before.names[k]
		switch {
		case v.isNew(k.message): // reported above
		case !known && k.result:
			v.fault(ruleCalls, k.message, "the result of call %s was not there", k.call)
		case !known:
			v.fault(ruleCalls, k.message, "call %s was not there", k.call)
		case name != after.names[k]:
			v.fault(ruleCalls, k.message, "call %s was of tool %q, is of %q", k.call, name, after.names[k])
		default:
			v.pair(k, before, after)
		}
	}
	v.split(messages, before, after)
}

func (v *verifier) isNew(id string) bool {
	_, ok := v.at[id]
	return !ok || id == ""
}

func (v *verifier) pair(k callKey, before, after pairing) {
	was, had := before.partner[k]
	is, has := after.partner[k]
	if had == has && was == is {
		return
	}
	if _, known := before.names[is]; has && !known {
		return // it was invented or moved, which is reported
	}
	switch what := k.what(); {
	case had && !has && k.result:
		v.fault(rulePairs, k.message, "%s stays without the call, which message %s had", what, was.message)
	case had && !has:
		v.fault(rulePairs, k.message, "%s stays without its result, which message %s had", what, was.message)
	case had:
		v.fault(rulePairs, k.message, "%s belonged to message %s, belongs to %s", what, was.message, is.message)
	default:
		v.fault(rulePairs, k.message, "%s had no partner, belongs to message %s", what, is.message)
	}
}

// split checks that no new message came between a call and its result, not even if the
// result is still to come: it will follow the last message.
func (v *verifier) split(messages []Message, before, after pairing) {
	fresh := make([]int, len(messages)+1) // how many of the messages before i are new
	at := make(map[string]int, len(messages))
	for i := range messages {
		fresh[i+1] = fresh[i]
		if v.isNew(messages[i].ID) {
			fresh[i+1]++
		} else {
			at[messages[i].ID] = i
		}
	}
	for _, k := range after.order {
		if call, ok := after.partner[k]; ok && k.result {
			i, ok1 := at[call.message]
			j, ok2 := at[k.message]
			if ok1 && ok2 && i < j && fresh[j] > fresh[i+1] {
				v.fault(ruleSplit, k.message, "a new message stands between call %s and its result", k.call)
			}
		}
	}
	waiting := v.waiting()
	for _, k := range before.order {
		if _, answered := before.partner[k]; answered || k.result || v.at[k.message] < waiting {
			continue
		}
		if i, ok := at[k.message]; ok && fresh[len(messages)] > fresh[i+1] {
			v.fault(ruleSplit, k.message, "a new message stands behind call %s, whose result is still to come", k.call)
		}
	}
}

// waiting returns the index of the first message of the request whose open calls may
// still be answered: nothing but results stands behind it.
func (v *verifier) waiting() int {
	i := len(v.req.Messages) - 1
	for ; i > 0; i-- {
		if !slices.ContainsFunc(v.req.Messages[i].Parts, isResult) {
			break
		}
	}
	return i
}

func isResult(p Part) bool {
	_, ok := p.(ToolResult)
	return ok
}

// A callKey names a call or a result.
type callKey struct {
	message string // its ID
	call    string // the call's ID
	result  bool
	n       int // among those of the same call ID in the message
}

func (k callKey) what() string {
	if k.result {
		return "the result of call " + k.call
	}
	return "call " + k.call
}

// A pairing says which call each result answers, by the same rule as [Groups].
type pairing struct {
	order   []callKey
	names   map[callKey]string // tool of a call; empty for a result
	partner map[callKey]callKey
}

func pairUp(messages []Message) pairing {
	p := pairing{names: map[callKey]string{}, partner: map[callKey]callKey{}}
	open := map[string][]callKey{}
	taken := map[callKey]int{} // uses of a key with n = 0
	add := func(k callKey, name string) callKey {
		first := k
		k.n = taken[first]
		taken[first]++
		p.names[k] = name
		p.order = append(p.order, k)
		return k
	}
	for i := range messages {
		for _, part := range messages[i].Parts {
			switch part := part.(type) {
			case ToolCall:
				k := add(callKey{message: messages[i].ID, call: part.ID}, part.Name)
				open[part.ID] = append(open[part.ID], k)
			case ToolResult:
				k := add(callKey{message: messages[i].ID, call: part.CallID, result: true}, "")
				if calls := open[part.CallID]; len(calls) > 0 {
					p.partner[k], p.partner[calls[0]] = calls[0], k
					open[part.CallID] = calls[1:]
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	return p
}
