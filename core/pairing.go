package core

import "slices"

// A use is a call or a result.
type use struct {
	message int    // index of its message
	call    string // ID of the call
	tool    string // of a call; empty for a result
	result  bool
	partner int // index of the result or call that belongs to it; -1 if none does
}

// String says what u is, for people.
func (u *use) String() string {
	if u.result {
		return "the result of call " + u.call
	}
	return "call " + u.call
}

func sameCall(a, b use) bool { return a.call == b.call && a.result == b.result }

// A pairing says which call each result answers.
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
// are still to come. They may be rewritten but not hidden. The cost is linear, and only
// that of the turn that is not over if it makes no calls.
func Pending(messages []Message) []int {
	start := waiting(messages)
	if !slices.ContainsFunc(messages[start:], hasCall) {
		return nil
	}
	// What came before matters too: a result may answer an older call of the same ID.
	var open openCalls
	for i := range messages {
		for _, part := range messages[i].Parts {
			switch part := part.(type) {
			case ToolCall:
				open.call(part.ID, i)
			case ToolResult:
				open.result(part.CallID)
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	var at []int
	for i := range open.keys() {
		if i >= start {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

func hasCall(m Message) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool {
		_, ok := p.(ToolCall)
		return ok
	})
}
