package core

import "slices"

// A use is a call or a result.
type use struct {
	message int    // index of its message
	call    string // ID of the call
	tool    string // of a call; empty for a result
	result  bool
	partner int // index of the result or call that belongs to it; -1 if none does
	next    int // for a call, the next one of its ID that was open when it was
}

// String says what u is, for people.
func (u *use) String() string {
	if u.result {
		return "the result of call " + u.call
	}
	return "call " + u.call
}

func sameCall(a, b use) bool { return a.call == b.call && a.result == b.result }

// A pairing says which call each result answers, by the same rule as [Groups].
type pairing struct {
	uses   []use // in order
	starts []int // where the uses of a message start; one more than there are messages
}

// pairUp needs memory for the calls that are open at one time, not for all.
func pairUp(messages []Message) *pairing {
	n := 0
	for i := range messages {
		for _, part := range messages[i].Parts {
			switch part.(type) {
			case ToolCall, ToolResult:
				n++
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	p := &pairing{uses: make([]use, 0, n), starts: make([]int, len(messages)+1)}
	type queue struct{ first, last int }
	open := map[string]queue{}
	for i := range messages {
		for _, part := range messages[i].Parts {
			k := len(p.uses)
			switch part := part.(type) {
			case ToolCall:
				p.uses = append(p.uses, use{message: i, call: part.ID, tool: part.Name, partner: -1})
				q, ok := open[part.ID]
				if ok {
					p.uses[q.last].next = k
				} else {
					q.first = k
				}
				q.last = k
				open[part.ID] = q
			case ToolResult:
				p.uses = append(p.uses, use{message: i, call: part.CallID, result: true, partner: -1})
				q, ok := open[part.CallID]
				if !ok {
					continue
				}
				p.uses[k].partner, p.uses[q.first].partner = q.first, k
				if q.first == q.last {
					delete(open, part.CallID)
				} else {
					q.first = p.uses[q.first].next
					open[part.CallID] = q
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
		p.starts[i+1] = len(p.uses)
	}
	return p
}

// pending returns the indices of the calls whose results are still to come: they were not
// answered, and whatever stands behind them is of the same turn.
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
// only the assistant and results stand behind it. It is 0 if there are no messages.
func waiting(messages []Message) int {
	i := max(0, len(messages)-1)
	for ; i > 0; i-- {
		if messages[i].Role != RoleAssistant && !slices.ContainsFunc(messages[i].Parts, isResult) {
			break
		}
	}
	return i
}

func isResult(p Part) bool {
	_, ok := p.(ToolResult)
	return ok
}

// Pending returns the indices, ascending, of the messages with tool calls whose results
// are still to come. They may be rewritten but not hidden. The cost is linear.
func Pending(messages []Message) []int {
	var at []int
	p := pairUp(messages)
	for _, k := range p.pending(messages) {
		if i := p.uses[k].message; len(at) == 0 || at[len(at)-1] != i {
			at = append(at, i)
		}
	}
	return at
}
