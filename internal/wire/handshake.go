package wire

import (
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

	Served Served                             // the plugin's server; nil in a host
	Dial   func(grpc.ClientConnInterface) any // returns the host's client; nil in a plugin
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

// GRPCClient returns the client of p; go-plugin calls it for Dispense(PluginName).
func (p *Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return p.Dial(conn), nil
}

// Sizes in bytes, for both ends.
const (
	// MaxEnvelope is the largest message on a stream: larger ones are sent in fragments.
	// gRPC refuses 4 MiB and more by default; the rest is slack.
	MaxEnvelope = 3 << 20
	// fragmentSize is the size of a fragment's data.
	fragmentSize = 1 << 20
)
