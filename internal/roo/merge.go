package roo

import (
	"math"
	"slices"
)

// MergeConsecutive returns messages as they are sent to an API that wants the roles to
// alternate: neighbors of the same role become one message, with the content of all as
// blocks, the newest time, and the other members of the first. Storage is never merged.
//
// Only messages of the given roles are merged; nil means user messages. A summary is
// merged into no other message, but others are merged into it. Truncation markers stay
// alone.
func MergeConsecutive(messages []*Message, roles []string) []*Message {
	if roles == nil {
		roles = []string{"user"}
	}
	merged := make([]*Message, 0, len(messages))
	for i := 0; i < len(messages); {
		first := messages[i]
		end := i + 1
		if first.role != "" && slices.Contains(roles, first.role) && !first.IsTruncationMarker() {
			for end < len(messages) && messages[end].mergesInto(first) {
				end++
			}
		}
		merged = append(merged, mergeRun(messages[i:end]))
		i = end
	}
	if len(merged) == len(messages) {
		return messages
	}
	return merged
}

// mergesInto reports whether m may become a part of first, whose role may be merged.
func (m *Message) mergesInto(first *Message) bool {
	return m.role == first.role && !m.IsSummary() && !m.IsTruncationMarker()
}

// mergeRun makes one message of a run, which is not empty.
func mergeRun(run []*Message) *Message {
	first := run[0]
	if len(run) == 1 {
		return first
	}
	var blocks []Block
	for _, m := range run {
		blocks = append(blocks, m.Blocks()...)
	}
	if blocks == nil {
		blocks = []Block{} // content is an array, if an empty one
	}
	ts := first.ts
	for _, m := range run[1:] {
		ts = newestTS(ts, m.ts)
	}
	return first.withBlocks(blocks).withTS(ts)
}

// newestTS is Math.max(a ?? 0, b ?? 0) || a || b of two JSON values.
func newestTS(a, b string) string {
	numeric := func(raw string) float64 {
		if kindOf(raw) <= kindNull {
			return 0
		}
		return toNumber(raw)
	}
	// A number keeps its spelling; only what is converted is spelled anew.
	newest, raw := numeric(a), a
	if n := numeric(b); n > newest || math.IsNaN(n) {
		newest, raw = n, b
	}
	switch {
	case newest != 0 && !math.IsNaN(newest) && !math.IsNaN(numeric(a)):
		if kindOf(raw) == kindNumber {
			return raw
		}
		return formatNumber(newest)
	case truthy(a):
		return a
	}
	return b
}
