package servecmd

import (
	"fmt"
	"os"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
)

// streams returns the standard streams, which must be files, because the program gets them directly.
func streams(a *cli.App) ([]*os.File, error) {
	var files []*os.File
	for _, s := range []any{a.Stdin, a.Stdout, a.Stderr} {
		f := term.File(s)
		if f == nil {
			return nil, fmt.Errorf("standard stream %d is no file", len(files))
		}
		files = append(files, f)
	}
	return files, nil
}
