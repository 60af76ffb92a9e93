package wire

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/condensehq/condense/internal/wire/byhand"
)

// toStatus returns the status that a plugin sends for err.
func toStatus(err error) error {
	return status.Error(codes.Code(byhand.CodeOf(err, uint32(codes.FailedPrecondition))), valid(err.Error()))
}
