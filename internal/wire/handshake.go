package wire

import (
	"cmp"
	"context"
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// ProtocolVersion is the version of the protocol: the 1 of condense.v1. It changes only when
// old and new peers are incompatible.
const ProtocolVersion = 1

// PluginName is the name under which go-plugin dispenses the client of a plugin.
const PluginName = "condense"

// Handshake must be the same in host and plugin. The cookie is not a secret: it shows a
// plugin that it was started by a host, not by a user.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "CONDENSE_PLUGIN_COOKIE",
	MagicCookieValue: "8e9d1f52-4c0b-4d77-9f6b-c3c2b1d7a6e0",
}

// Environment variables of host and plugin in addition to go-plugin's.
const (
	// EnvExitWithStdin, if it is "1", tells a plugin to exit when its standard input
	// ends. A host that sets it holds the other end of the pipe, so that no plugin
	// outlives it. Without it a plugin leaves standard input alone.
	EnvExitWithStdin = "CONDENSE_PLUGIN_EXIT_WITH_STDIN"
	// EnvReattach lists plugins that are already running, for instance under a debugger: a
	// JSON object from the name of a configured provider to a [Reattach].
	EnvReattach = "CONDENSE_REATTACH"
)

// A Reattach is the address of a running plugin that the host did not start. A plugin in
// debug mode prints it. The format is that of Terraform's providers.
type Reattach struct {
	Protocol        string // "grpc"
	ProtocolVersion int
	Pid             int
	Test            bool // the host does not end the process
	Addr            ReattachAddr
}

// A ReattachAddr is the address of a [Reattach].
type ReattachAddr struct {
	Network string // "unix" or "tcp"
	String  string
}

// A Plugin is either end of the protocol in the form that go-plugin requires.
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin

	Served  Served         // the plugin's server; nil in a host
	Options *ClientOptions // for the clients of a host; nil means the defaults
}

// Served is a [Server] or a [Relay].
type Served interface{ Register(grpc.ServiceRegistrar) }

var _ plugin.GRPCPlugin = (*Plugin)(nil)

// Plugins returns p as the VersionedPlugins of a plugin.ClientConfig or ServeConfig.
func Plugins(p *Plugin) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: p}}
}

// ServeConfig returns the configuration with which a plugin serves.
func ServeConfig(s Served, stderr io.Writer) *plugin.ServeConfig {
	return &plugin.ServeConfig{
		HandshakeConfig:  Handshake,
		VersionedPlugins: Plugins(&Plugin{Served: s}),
		GRPCServer:       func(opts []grpc.ServerOption) *grpc.Server { return NewServerTransport(opts...) },
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: stderr, JSONFormat: true}),
	}
}

// GRPCServer registers the server of p; go-plugin calls it.
func (p *Plugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	p.Served.Register(s)
	return nil
}

// GRPCClient returns a [*Client]; go-plugin calls it for Dispense(PluginName).
func (p *Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewClient(conn, p.Options), nil
}

// Sizes in bytes, for both ends.
const (
	// MaxEnvelope is the largest message on a stream: larger ones are sent in fragments.
	// gRPC refuses 4 MiB and more by default; the rest is slack.
	MaxEnvelope = 3 << 20
	// fragmentSize is the size of a fragment's data.
	fragmentSize = 1 << 20
	// chunkSize is the size at which the host ends a run of messages. A smaller one costs
	// more CPU (64 KiB: a fifth more), a larger one costs memory and leaves the plugin idle
	// for longer at the beginning.
	chunkSize = 256 << 10
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
