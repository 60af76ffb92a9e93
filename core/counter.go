package core

// FramingTokens is what a message costs beside its parts: role and separators. The
// figure is that of OpenAI's published recipe for chat models (three tokens a message
// and one for the role); other vendors do not say theirs.
const FramingTokens = 4

// A Counter measures content in tokens. Implementations are safe for concurrent use,
// give the same number for the same parts, and do not count twice what they have counted
// before.
type Counter interface {
	// Count returns the tokens of parts, without the framing of a message.
	Count(parts ...Part) int
}

// MessageTokens returns the size of m by c, framing included.
func MessageTokens(c Counter, m Message) int {
	return FramingTokens + c.Count(m.Parts...)
}

// Measure sets Tokens on every message that has none.
func Measure(c Counter, messages []Message) {
	for i := range messages {
		if messages[i].Tokens == 0 {
			messages[i].Tokens = MessageTokens(c, messages[i])
		}
	}
}
