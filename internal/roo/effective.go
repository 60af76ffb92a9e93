package roo

import "slices"

// SinceLastSummary returns the messages from the last summary on, all of them if there is
// none.
func SinceLastSummary(messages []*Message) []*Message {
	for i, m := range slices.Backward(messages) {
		if m.IsSummary() {
			return slices.Clip(messages[i:])
		}
	}
	return messages
}

// Effective returns the messages that are sent to the model.
//
// If there is a summary, these are the last one and what follows it, whatever the tags
// say, without the tool results in user messages whose call is not among them (a user
// message that holds nothing else, or nothing, is left out) and without what a marker
// among them hides.
//
// If there is none, these are all messages but those that an existing marker hides. Tool
// results stay as they are.
func Effective(messages []*Message) []*Message {
	for i, m := range slices.Backward(messages) {
		if m.tags != nil && m.tags.summaryTrue {
			visible := withoutOrphanResults(slices.Clip(messages[i:]))
			return hide(visible, nil, markers(visible))
		}
	}
	// A summary whose flag is truthy without being true is none above and one here.
	return hide(messages, summaries(messages), markers(messages))
}

// summaries returns the names of the summaries among messages.
func summaries(messages []*Message) nameSet {
	var names nameSet
	for _, m := range messages {
		if m.IsSummary() {
			names = names.add(m.name(CondenseID))
		}
	}
	return names
}

// markers returns the names of the truncation markers among messages.
func markers(messages []*Message) nameSet {
	var names nameSet
	for _, m := range messages {
		if m.IsTruncationMarker() {
			names = names.add(m.name(TruncationID))
		}
	}
	return names
}

// hide returns messages without those whose parent is among summaries or markers.
func hide(messages []*Message, summaries, markers nameSet) []*Message {
	if len(summaries) == 0 && len(markers) == 0 {
		return messages
	}
	return filter(messages, func(m *Message) bool {
		return !summaries.has(m.name(CondenseParent)) && !markers.has(m.name(TruncationParent))
	})
}

// filter returns the messages to keep, messages itself if these are all.
func filter(messages []*Message, keep func(*Message) bool) []*Message {
	for i, m := range messages {
		if keep(m) {
			continue
		}
		kept := make([]*Message, i, len(messages)-1)
		copy(kept, messages)
		for _, m := range messages[i+1:] {
			if keep(m) {
				kept = append(kept, m)
			}
		}
		return kept
	}
	return messages
}

// withoutOrphanResults returns messages without the tool results in user messages whose
// call is in no assistant message, and without the user messages that are an empty array,
// then or from the start.
func withoutOrphanResults(messages []*Message) []*Message {
	calls := toolCalls(messages)
	orphan := func(b Block) bool { return b.kind == blockToolResult && !calls.has(b.name) }
	out := messages
	copied := false
	for i, m := range messages {
		kept := m
		if m.role == "user" && m.blocks != nil {
			if orphans := countBlocks(m.blocks, orphan); orphans == len(m.blocks) {
				kept = nil
			} else if orphans > 0 {
				kept = m.withBlocks(slices.DeleteFunc(slices.Clone(m.blocks), orphan))
			}
		}
		if kept != m && !copied {
			out = slices.Grow([]*Message(nil), len(messages))
			out = append(out, messages[:i]...)
			copied = true
		}
		if copied && kept != nil {
			out = append(out, kept)
		}
	}
	return out
}

// toolCalls returns the ids of the tool calls in assistant messages.
func toolCalls(messages []*Message) nameSet {
	var ids nameSet
	for _, m := range messages {
		if m.role != "assistant" {
			continue
		}
		for _, b := range m.blocks {
			if b.kind == blockToolUse {
				ids = ids.add(b.name)
			}
		}
	}
	return ids
}

func countBlocks(blocks []Block, match func(Block) bool) int {
	n := 0
	for _, b := range blocks {
		if match(b) {
			n++
		}
	}
	return n
}
