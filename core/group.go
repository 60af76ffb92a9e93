package core

// A Span is a run of messages: those with index Start up to but not including End.
type Span struct{ Start, End int }

// Groups cuts messages into the smallest runs that keep every tool call together with
// its result, in order and without gaps. A message that neither calls nor answers is a
// group of its own; so is a call that nobody answered. Hiding whole groups never breaks
// a pair. Where an ID is used more than once, a result answers the oldest call before it
// that is still open. The cost is linear.
func Groups(messages []Message) []Span {
	reach := make([]int, len(messages)) // the last message that must stay with this one
	open := map[string][]int{}          // call ID to the messages with unanswered calls
	for i := range messages {
		reach[i] = i
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case ToolCall:
				open[p.ID] = append(open[p.ID], i)
			case ToolResult:
				if calls := open[p.CallID]; len(calls) > 0 {
					reach[calls[0]] = i
					open[p.CallID] = calls[1:]
				}
			case Text, Image, Reasoning, Opaque:
			}
		}
	}
	var groups []Span
	for start := 0; start < len(messages); {
		end := reach[start]
		for i := start; i <= end; i++ {
			end = max(end, reach[i])
		}
		groups = append(groups, Span{start, end + 1})
		start = end + 1
	}
	return groups
}
