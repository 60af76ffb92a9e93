package condense

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/internal/supervise"
	"github.com/condensehq/condense/internal/wire"
)

// PluginFault reports whether the error of an attempt means that a plugin is broken, and not
// that it declined: its process ended, its code panicked, or it broke the protocol.
func PluginFault(err error) bool {
	if _, crashed := errors.AsType[*supervise.CrashError](err); crashed || errors.Is(err, wire.ErrProtocol) {
		return true
	}
	remote, ok := errors.AsType[*wire.RemoteError](err)
	return ok && remote.Code == codes.Internal
}
