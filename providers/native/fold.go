package native

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/outline"
)

// A folder returns blocks with signatures of the files that the agent has read, newest
// first, with about so many characters in all. It fails only if ctx ends.
type folder func(ctx context.Context, req *core.Request, chars int) ([]string, error)

// foldFiles is the folder that reads files.
func foldFiles(ctx context.Context, req *core.Request, chars int) ([]string, error) {
	folded, err := outline.Files(ctx, req.FilesRead, outline.Options{Root: req.Dir, Chars: chars})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, nil //nolint:nilerr // a folder that cannot be read is no reason to lose a summary
	}
	blocks := make([]string, len(folded.Blocks))
	for i, b := range folded.Blocks {
		blocks[i] = b.Text
	}
	return blocks, nil
}
