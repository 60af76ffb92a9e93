//go:build !linux

package supervise

import (
	"errors"
	"io"
	"os"
)

func sealed(io.Reader) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
func sealedPath(*os.File) string                 { return "" }
