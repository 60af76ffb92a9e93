package core

// FramingTokens is the cost of a message in addition to its parts: role and separators. The
// number is from OpenAI's published recipe for chat models (three tokens per message and one
// for the role); other vendors do not publish theirs.
const FramingTokens = 4

// A Counter measures content in tokens. Implementations are safe for concurrent use, return
// the same number for the same parts, and cache what they have counted.
type Counter interface {
	// Count returns the tokens of parts, without the framing of a message.
	Count(parts ...Part) int
}

// A BatchCounter is a [Counter] that counts several contents in one call. It is worth
// having where a call is expensive: in a plugin each one asks the host.
type BatchCounter interface {
	Counter
	// CountEach returns the tokens of each content.
	CountEach(contents ...[]Part) []int
}

// CountEach returns the tokens of each content by c, in one call if c is a [BatchCounter].
func CountEach(c Counter, contents ...[]Part) []int {
	if c, ok := c.(BatchCounter); ok {
		return c.CountEach(contents...)
	}
	counts := make([]int, len(contents))
	for i, parts := range contents {
		counts[i] = c.Count(parts...)
	}
	return counts
}

// MessageTokens returns the size of m by c, including framing.
func MessageTokens(c Counter, m Message) int {
	return FramingTokens + c.Count(m.Parts...)
}

// Measure sets Tokens on every message where it is 0.
func Measure(c Counter, messages []Message) {
	for i := range messages {
		if messages[i].Tokens == 0 {
			messages[i].Tokens = MessageTokens(c, messages[i])
		}
	}
}
