package wire

// Sizes in bytes that both ends keep to.
const (
	// MaxEnvelope is the largest message on a stream: what is larger travels in
	// fragments. gRPC refuses 4 MiB and more by default; the rest is slack.
	MaxEnvelope = 3 << 20
	// FragmentSize is the size of a fragment's data.
	FragmentSize = 1 << 20
	// ChunkSize is what the host puts into one run of messages before it begins the
	// next. Smaller costs more CPU (64 KiB: a fifth more), larger costs memory and leaves
	// the plugin idle for longer at the beginning.
	ChunkSize = 256 << 10
)

// Limits bound what a plugin may cost its host in one call. A zero field stands for its
// default; a call that exceeds one ends with an error that wraps [ErrProtocol], except
// that logs and progress are dropped and callbacks are answered with an error.
type Limits struct {
	// AnswerBytes bounds the encoded edits of a call. Default 64 MiB.
	AnswerBytes int
	// NewMessages bounds how many messages an answer inserts. Default 10,000.
	NewMessages int
	// NewParts bounds how many parts the inserted and rewritten messages have together,
	// the content of tool results included. Default 1,000,000.
	NewParts int
	// Callbacks bounds how many callbacks are answered. Default 100,000.
	Callbacks int
	// CountBytes bounds the content that is counted for a plugin. Default 256 MiB.
	CountBytes int
	// ModelCalls bounds how often language models of the host are asked. Default 64.
	ModelCalls int
	// ModelInput and ModelOutput bound, in tokens, what they read by the host's counter
	// and write by their own. Defaults 4,000,000 and 500,000.
	ModelInput, ModelOutput int
	// LogLines bounds how many lines are logged for a call; the rest is dropped. Default
	// 1,000. A line is cut at 8 KiB.
	LogLines int
	// Envelopes bounds how many messages of any kind a plugin sends in a call. Default
	// 1,000,000.
	Envelopes int
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, def int) {
		if *n <= 0 {
			*n = def
		}
	}
	set(&l.AnswerBytes, 64<<20)
	set(&l.NewMessages, 10_000)
	set(&l.NewParts, 1_000_000)
	set(&l.Callbacks, 100_000)
	set(&l.CountBytes, 256<<20)
	set(&l.ModelCalls, 64)
	set(&l.ModelInput, 4_000_000)
	set(&l.ModelOutput, 500_000)
	set(&l.LogLines, 1_000)
	set(&l.Envelopes, 1_000_000)
	return l
}
