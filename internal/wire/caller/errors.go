package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/internal/wire/byhand"
)

// ErrProtocol means that the plugin violates the protocol: it sent too much, or referred to
// something that does not exist. The plugin is at fault, not this call.
var ErrProtocol = errors.New("the plugin breaks the protocol")

// A RemoteError is an error of the plugin, or of the connection to it. It wraps the error of this module that
// corresponds to its code, if there is one: [core.ErrUnavailable] for Unavailable, which is also the code for a dead
// plugin, [core.ErrInvalidRequest] for InvalidArgument, [errors.ErrUnsupported] for Unimplemented,
// [context.DeadlineExceeded] for DeadlineExceeded. FailedPrecondition is any other error that a provider returned.
type RemoteError struct {
	Code codes.Code
	Text string
}

// Error returns the plugin's message.
func (e *RemoteError) Error() string { return cmp.Or(e.Text, e.Code.String()) }

// Fault reports whether the plugin did not return: its code panicked or threw. Internal is a panic, and Unknown what gRPC makes of an
// exception that nobody catches.
func (e *RemoteError) Fault() bool { return e.Code == codes.Internal || e.Code == codes.Unknown }

// Unwrap returns the error that corresponds to the code, or nil.
func (e *RemoteError) Unwrap() error {
	for _, m := range byhand.Statuses {
		if codes.Code(m.Code) == e.Code {
			return m.Err
		}
	}
	return nil
}

// fromStatus returns the host's error for the status of a call with ctx.
func fromStatus(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		// Whatever gRPC says, this is why.
		return fmt.Errorf("%w (%s)", ctx.Err(), status.Convert(err).Message())
	}
	s := status.Convert(err)
	e := &RemoteError{Code: s.Code(), Text: printable(s.Message())}
	if e.Code == codes.Canceled {
		e.Code = codes.Unavailable // not canceled on this side: the error of a closed connection
	}
	return e
}
