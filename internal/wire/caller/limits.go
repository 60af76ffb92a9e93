package caller

import (
	"cmp"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/condensehq/condense/internal/wire"
)

// Limits limit the resources that a plugin may use in one call. A zero field means its
// default. A call that exceeds a limit ends with an error that wraps [ErrProtocol], except
// that excess logs and progress are dropped and excess callbacks are answered with an error.
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
	// ModelCalls bounds the requests to language models of the host. Default 64.
	ModelCalls int
	// ModelInput and ModelOutput bound their input, in tokens by the host's counter, and
	// their output, in tokens by their own. Defaults 4,000,000 and 500,000.
	ModelInput, ModelOutput int
	// LogLines bounds how many lines are logged for a call; the rest is dropped. Default
	// 1,000. A line is cut at 8 KiB.
	LogLines int
	// Envelopes bounds how many messages of any kind a plugin sends in a call. Default
	// 1,000,000.
	Envelopes int
}

func (l Limits) withDefaults() Limits {
	or := func(n, def int) int { return cmp.Or(max(n, 0), def) }
	return Limits{
		AnswerBytes: or(l.AnswerBytes, 64<<20), NewMessages: or(l.NewMessages, 10_000), NewParts: or(l.NewParts, 1_000_000),
		Callbacks: or(l.Callbacks, 100_000), CountBytes: or(l.CountBytes, 256<<20), ModelCalls: or(l.ModelCalls, 64),
		ModelInput: or(l.ModelInput, 4_000_000), ModelOutput: or(l.ModelOutput, 500_000),
		LogLines: or(l.LogLines, 1_000), Envelopes: or(l.Envelopes, 1_000_000),
	}
}

// DialTuning returns options for a host's connection to a plugin. Nearly all that it
// carries is written by the host, in runs of [chunkSize]: a larger buffer than gRPC's 32
// KiB means fewer calls of the system.
func DialTuning() []grpc.DialOption { return []grpc.DialOption{grpc.WithWriteBufferSize(128 << 10)} }

// Plugins returns the VersionedPlugins of a plugin.ClientConfig, whose clients are a [*Client] with opts; nil means the defaults.
func Plugins(opts *Options) map[int]plugin.PluginSet {
	return wire.Plugins(&wire.Plugin{Dial: func(conn grpc.ClientConnInterface) any { return NewClient(conn, opts) }})
}
