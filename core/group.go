package core

import "slices"

// A Span is a run of messages, from index Start up to but not including End.
type Span struct{ Start, End int }

// Groups divides messages into the smallest runs that keep every tool call together with its
// result, in order and without gaps. A message without calls and results is a group of its
// own; so is a call without a result. Hiding whole groups never separates a call from its
// result. If an ID is used more than once, a result answers the oldest open call before it.
// The cost is linear.
func Groups(messages []Message) []Span {
	reach := make([]int, len(messages)) // the last message that must stay with this one
	for i := range reach {
		reach[i] = i
	}
	track(messages, func(call, result int) { reach[call] = result })
	n := 0
	for start := 0; start < len(messages); n++ {
		start = groupEnd(reach, start)
	}
	groups := make([]Span, 0, n)
	for start := 0; start < len(messages); {
		end := groupEnd(reach, start)
		groups = append(groups, Span{start, end})
		start = end
	}
	return groups
}

// groupEnd returns the end of the group that begins with message start.
func groupEnd(reach []int, start int) int {
	end := reach[start]
	for i := start; i <= end; i++ {
		end = max(end, reach[i])
	}
	return end + 1
}

// KeepGroups returns the messages for which keep reports true, and the messages that must stay with them: system and
// protected messages, requests of the user without an answer, calls whose results are still to come, and the rest of each tool group. The
// argument of keep is an index in messages. The result respects the rules on protection, system messages, requests and tools.
func KeepGroups(messages []Message, keep func(i int) bool) []Message {
	var out []Message
	pending, asked := Pending(messages), (&Request{Messages: messages}).Unanswered()
	for _, g := range Groups(messages) {
		for i := g.Start; i < g.End; i++ {
			_, waits := slices.BinarySearch(pending, i)
			_, asks := slices.BinarySearch(asked, i)
			if waits || asks || anyPinned(messages[i:i+1]) || keep(i) {
				out = append(out, messages[g.Start:g.End]...)
				break
			}
		}
	}
	return out
}

// A use is a call or a result.
type use struct {
	message int    // index of its message
	call    string // ID of the call
	tool    string // of a call; empty for a result
	result  bool
	partner int // index of the matching result or call; -1 if there is none
}

// String describes u in an error.
func (u *use) String() string {
	if u.result {
		return "the result of call " + u.call
	}
	return "call " + u.call
}

func sameCall(a, b use) bool { return a.call == b.call && a.result == b.result }

// A pairing matches calls and results.
type pairing struct {
	uses   []use // in order
	starts []int // where the uses of a message start; one more than there are messages
}

// pairUp needs memory for the calls that are open at one time, not for all.
func pairUp(messages []Message) *pairing {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			if is[ToolCall](part) || is[ToolResult](part) {
				n++
			}
		}
	}
	p := &pairing{uses: make([]use, 0, n), starts: make([]int, len(messages)+1)}
	var open openCalls
	for i := range messages {
		for _, part := range messages[i].Parts {
			k := len(p.uses)
			switch part := part.(type) {
			case ToolCall:
				p.uses = append(p.uses, use{message: i, call: part.ID, tool: part.Name, partner: -1})
				open.call(part.ID, k)
			case ToolResult:
				p.uses = append(p.uses, use{message: i, call: part.CallID, result: true, partner: -1})
				if call, ok := open.result(part.CallID); ok {
					p.uses[k].partner, p.uses[call].partner = call, k
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
		p.starts[i+1] = len(p.uses)
	}
	return p
}

// pending returns the indices of the calls whose results are still to come: they were not
// answered, and all later messages belong to the same turn.
func (p *pairing) pending(messages []Message) []int {
	var calls []int
	for k := p.starts[waiting(messages)]; k < len(p.uses); k++ {
		if u := &p.uses[k]; !u.result && u.partner < 0 {
			calls = append(calls, k)
		}
	}
	return calls
}

// waiting returns the index of the first message whose open calls may still be answered:
// only messages of the assistant and results follow it. It is 0 if there are no messages.
func waiting(messages []Message) int {
	i := max(0, len(messages)-1)
	for ; i > 0; i-- {
		if messages[i].Role != RoleAssistant && !slices.ContainsFunc(messages[i].Parts, is[ToolResult]) {
			break
		}
	}
	return i
}

func is[T Part](p Part) bool {
	_, ok := p.(T)
	return ok
}

// Pending returns the indices, ascending, of the messages with tool calls whose results
// are still to come. They may be rewritten but not hidden. The cost is linear; only the
// unfinished turn is read if it has no calls.
func Pending(messages []Message) []int {
	if !slices.ContainsFunc(messages[waiting(messages):], func(m Message) bool { return slices.ContainsFunc(m.Parts, is[ToolCall]) }) {
		return nil
	}
	var at []int
	open := track(messages, func(int, int) {}) // earlier messages matter too: a result may answer an older call with the same ID
	for _, c := range open.few {
		at = append(at, c.key)
	}
	for _, keys := range open.many {
		at = append(at, keys...)
	}
	start := waiting(messages)
	at = slices.DeleteFunc(at, func(i int) bool { return i < start })
	slices.Sort(at)
	return slices.Compact(at)
}

// track calls answered for each result that answers a call, with the indices of their messages, and returns the calls that are open.
func track(messages []Message, answered func(call, result int)) (open openCalls) {
	for i := range messages {
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case ToolCall:
				open.call(p.ID, i)
			case ToolResult:
				if call, ok := open.result(p.CallID); ok {
					answered(call, i)
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	return open
}

// openCalls are the tool calls of a conversation, read from its beginning, that have no
// result yet. A result answers the oldest open call with its ID; this is decided only here.
// The zero value is empty.
//
// Usually few calls are open at a time. They are kept in a list, which is searched faster
// than a hash is computed; a map is made only for more.
type openCalls struct {
	few  []openCall // oldest first; unused once there is a map
	many map[string][]int
}

type openCall struct {
	id  string
	key int // chosen by the caller
}

// maxFew is how many calls are searched one by one.
const maxFew = 16

// call adds a call.
func (o *openCalls) call(id string, key int) {
	if o.many == nil && len(o.few) < maxFew {
		o.few = append(o.few, openCall{id, key})
		return
	}
	if o.many == nil {
		o.many = make(map[string][]int, 2*maxFew)
		for _, c := range o.few {
			o.many[c.id] = append(o.many[c.id], c.key)
		}
		o.few = nil
	}
	o.many[id] = append(o.many[id], key)
}

// result removes the call that a result answers and returns its key; false if none is open.
func (o *openCalls) result(id string) (key int, ok bool) {
	if o.many == nil {
		i := slices.IndexFunc(o.few, func(c openCall) bool { return c.id == id })
		if i < 0 {
			return 0, false
		}
		key = o.few[i].key
		o.few = slices.Delete(o.few, i, i+1)
		return key, true
	}
	keys := o.many[id]
	if len(keys) == 0 {
		return 0, false
	}
	if o.many[id] = keys[1:]; len(keys) == 1 {
		delete(o.many, id)
	}
	return keys[0], true
}
