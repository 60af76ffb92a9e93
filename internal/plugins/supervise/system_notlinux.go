//go:build !linux

package supervise

import (
	"errors"
	"io"
	"os"
)

func sealed(io.Reader) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
func sealedPath(*os.File) string                 { return "" }

// killEscaped does nothing: this system does not expose the environment of processes.
func (system) killEscaped(string) {}

func lockThread() (unlock func()) { return func() {} }
