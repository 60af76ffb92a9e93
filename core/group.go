package core

import "slices"

// A Span is a run of messages: those with index Start up to but not including End.
type Span struct{ Start, End int }

// Groups cuts messages into the smallest runs that keep every tool call together with
// its result, in order and without gaps. A message that neither calls nor answers is a
// group of its own; so is a call that nobody answered. Hiding whole groups never breaks
// a pair. Where an ID is used more than once, a result answers the oldest call before it
// that is still open. The cost is linear.
func Groups(messages []Message) []Span {
	reach := make([]int, len(messages)) // the last message that must stay with this one
	var open openCalls
	for i := range messages {
		reach[i] = i
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case ToolCall:
				open.call(p.ID, i)
			case ToolResult:
				if call, ok := open.result(p.CallID); ok {
					reach[call] = i
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
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

// groupEnd returns where the group that begins with message start ends.
func groupEnd(reach []int, start int) int {
	end := reach[start]
	for i := start; i <= end; i++ {
		end = max(end, reach[i])
	}
	return end + 1
}

// KeepGroups returns the messages for which keep reports true, and those that must stay with
// them: system and protected messages, calls whose results are still to come, and the rest
// of each tool group. The argument of keep is an index in messages. The result respects the
// rules on protection, system messages and tools.
func KeepGroups(messages []Message, keep func(i int) bool) []Message {
	var out []Message
	pending := Pending(messages)
	for _, g := range Groups(messages) {
		for i := g.Start; i < g.End; i++ {
			_, waits := slices.BinarySearch(pending, i)
			if waits || isPinned(messages[i]) || keep(i) {
				out = append(out, messages[g.Start:g.End]...)
				break
			}
		}
	}
	return out
}
