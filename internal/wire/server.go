package wire

import (
	"log/slog"

	"github.com/condensehq/condense/internal/wire/condensepb"
	"github.com/condensehq/condense/registry"
)

// ServerOptions adjust a [Server]. A nil pointer and the zero value of every field mean
// the defaults.
type ServerOptions struct {
	Version string       // of the plugin; default: unknown
	Logger  *slog.Logger // for what does not belong to a call; default: discard
}

// A Server is the plugin's end of the protocol: a strategy, served.
type Server struct {
	condensepb.UnimplementedProviderServiceServer

	strategy registry.Strategy
	opts     ServerOptions
}

// NewServer returns a server of s.
func NewServer(s registry.Strategy, opts *ServerOptions) *Server {
	srv := &Server{strategy: s}
	if opts != nil {
		srv.opts = *opts
	}
	return srv
}
