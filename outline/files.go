package outline

import (
	"context"
	"errors"
)

// Options adjust [Files].
type Options struct {
	// Root is the directory that all files must lie beneath, and that relative paths are
	// relative to. Required.
	Root string
	// Chars is the budget of all blocks together, in UTF-16 code units; 0 means
	// [DefaultChars].
	Chars int
	// MaxBytes is the size above which a file is not read; 0 means 1 MiB.
	MaxBytes int64
	// Ignore has more patterns of files not to be read, in the syntax of .gitignore,
	// relative to Root. They win over those of the files.
	Ignore []string
}

// Files reads and folds files, in order: give the newest first, because the budget of
// [Pack] may leave out the last ones.
func Files(ctx context.Context, paths []string, o Options) (Folded, error) {
	if o.Root == "" {
		return Folded{}, errors.New("outline: no root directory")
	}
	chars := o.Chars
	if chars == 0 {
		chars = DefaultChars
	}
	return Pack(paths, chars, func(string) (string, error) { return "", ctx.Err() }), nil
}
