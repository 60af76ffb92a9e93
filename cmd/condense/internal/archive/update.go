package archive

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/condensehq/condense/internal/plain"
)

// A File is a session's file, or a session in the database of [OpenCode].
type File struct {
	Path, Agent, Name, Dir string // Name is the session's ID; all but Path may be empty
	size, changed          int64  // of a session in a database: the number of its parts, and the time in nanoseconds
}

// stat returns the size and the time of change of a session, by which it is known to be unchanged.
func (f *File) stat() (size, changed int64, ok bool) {
	if f.changed != 0 {
		return f.size, f.changed, true
	}
	info, err := os.Stat(f.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, 0, false
	}
	return info.Size(), info.ModTime().UnixNano(), true
}

// A Change is the outcome of an update.
type Change struct {
	Sessions, Pieces int      // that were added or changed
	Text             int64    // bytes of the texts of these pieces
	Deleted          int      // sessions whose files are gone
	Unreadable       []string // new or changed files that are no session in a known format, in no order
}

const (
	maxFile = 1 << 30
	// A transaction ends after so many bytes of texts. Each one writes a part of the full-text index, and parts are merged
	// later.
	perWrite = 64 << 20
)

type scanned struct {
	file    File
	size    int64
	changed int64
	content content
	err     error
}

// Update reads the files that are new or changed, and forgets the sessions whose files are not in the list. Keys are
// left out. If ctx ends, sessions read so far stay.
func (a *Archive) Update(ctx context.Context, files []File, progress func(done, of int)) (Change, error) {
	var c Change
	known, err := a.known(ctx)
	if err != nil {
		return c, err
	}
	var todo []scanned
	for _, f := range files {
		size, changed, ok := f.stat()
		if !ok {
			continue
		}
		s := scanned{file: f, size: size, changed: changed}
		if old := known[f.Path]; old.size != s.size || old.changed != s.changed {
			todo = append(todo, s)
		}
		delete(known, f.Path)
	}
	slices.SortFunc(todo, func(x, y scanned) int { return cmp.Compare(x.changed, y.changed) }) // the newest have the greatest IDs
	gone := plain.Each(slices.Collect(maps.Values(known)), func(f knownFile) int64 { return f.id })
	if c.Deleted = len(gone); c.Deleted > 0 {
		if err := a.remove(ctx, gone); err != nil {
			return c, err
		}
	}
	return c, a.addAll(ctx, todo, &c, progress)
}

// A knownFile is a session in the index, with the size and the time of change of its file.
type knownFile struct{ id, size, changed int64 }

// known returns the files in the index by their paths.
func (a *Archive) known(ctx context.Context) (map[string]knownFile, error) {
	known := map[string]knownFile{}
	var path string
	var f knownFile
	rows, err := a.db.QueryContext(ctx, "SELECT path, id, size, changed FROM session")
	return known, scan(rows, err, func() { known[path] = f }, &path, &f.id, &f.size, &f.changed)
}

// addAll reads files with all processors and writes them one after the other.
func (a *Archive) addAll(ctx context.Context, todo []scanned, c *Change, progress func(done, of int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work, results := make(chan scanned), make(chan scanned)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			var r reader
			for s := range work {
				s.content, s.err = r.read(ctx, &s.file)
				select {
				case results <- s:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() {
		defer close(results)
		defer readers.Wait()
		defer close(work)
		for _, s := range todo {
			select {
			case work <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := writer{archive: a, change: c}
	defer w.rollback()
	done := 0
	for s := range results {
		if done++; progress != nil {
			progress(done, len(todo))
		}
		if s.err != nil {
			c.Unreadable = append(c.Unreadable, s.file.Path)
			s.content = content{}
		}
		if err := w.add(context.WithoutCancel(ctx), &s); err != nil {
			return err
		}
	}
	return errors.Join(w.commit(context.WithoutCancel(ctx)), ctx.Err())
}
