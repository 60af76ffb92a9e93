package main

import (
	"context"
	"errors"
	"io"

	"github.com/condensehq/condense/compare"
)

func writeHTML(_ context.Context, _ io.Writer, _ *compare.Report, _ *evidence) error {
	return errors.New("no HTML yet")
}
