package wire

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// ProtocolVersion is the version of the protocol: the 1 of condense.v1. It changes only
// when an old peer could not work with a new one any more.
const ProtocolVersion = 1

// PluginName is the name under which go-plugin dispenses the client of a plugin.
const PluginName = "condense"

// Handshake is what host and plugin must agree on before anything else. The cookie is no
// secret: it tells a plugin that a host started it, and not a person.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  ProtocolVersion,
	MagicCookieKey:   "CONDENSE_PLUGIN_COOKIE",
	MagicCookieValue: "8e9d1f52-4c0b-4d77-9f6b-c3c2b1d7a6e0",
}

// Environment variables that host and plugin use beside those of go-plugin.
const (
	// EnvExitWithStdin, if it is "1", tells a plugin to exit when its standard input
	// ends. A host that sets it holds the other end of the pipe, so that no plugin
	// outlives it. Without it a plugin leaves standard input alone.
	EnvExitWithStdin = "CONDENSE_PLUGIN_EXIT_WITH_STDIN"
	// EnvReattach tells a host of plugins that run already, under a debugger for
	// instance: a JSON object from the name of a configured provider to a [Reattach].
	EnvReattach = "CONDENSE_REATTACH"
)

// A Reattach says where a plugin runs that somebody else started. It is what a plugin in
// debug mode prints, and has the form that Terraform's providers made common.
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

// A Plugin is either end of the protocol as go-plugin wants it.
type Plugin struct {
	plugin.NetRPCUnsupportedPlugin

	Served  *Server        // what a plugin serves; nil in a host
	Options *ClientOptions // for the clients of a host; nil means the defaults
}

var _ plugin.GRPCPlugin = (*Plugin)(nil)

// Plugins returns p as the VersionedPlugins of a plugin.ClientConfig or ServeConfig.
func Plugins(p *Plugin) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: p}}
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
