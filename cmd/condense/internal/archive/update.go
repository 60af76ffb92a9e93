package archive

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
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
	Sessions, Pieces int   // that were added or changed
	Text             int64 // bytes of the texts of these pieces
	Deleted          int   // sessions whose files are gone
	Unreadable       int   // files that are no session in a known format
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
		if old := known[f.Path]; old != [2]int64{s.size, s.changed} {
			todo = append(todo, s)
		}
		delete(known, f.Path)
	}
	slices.SortFunc(todo, func(x, y scanned) int { return cmp.Compare(x.changed, y.changed) }) // the newest have the greatest IDs
	for path := range known {
		n, err := a.remove(ctx, path)
		if err != nil {
			return c, err
		}
		c.Deleted += n
	}
	gone, err := a.addAll(ctx, todo, &c, progress)
	if err == nil && (gone || c.Deleted > 0) {
		err = a.scrub(ctx)
	}
	return c, err
}

// known returns the size and the time of change of the files in the index.
func (a *Archive) known(ctx context.Context) (map[string][2]int64, error) {
	rows, err := a.db.QueryContext(ctx, "SELECT path, size, changed FROM session")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	known := map[string][2]int64{}
	for rows.Next() {
		var path string
		var at [2]int64
		if err := rows.Scan(&path, &at[0], &at[1]); err != nil {
			return nil, err
		}
		known[path] = at
	}
	return known, rows.Err()
}

// addAll reads files with all processors and writes them one after the other. It reports whether pieces were deleted.
func (a *Archive) addAll(ctx context.Context, todo []scanned, c *Change, progress func(done, of int)) (gone bool, err error) {
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
	w := writer{archive: a, change: c, kinds: map[string]int64{}}
	defer w.rollback()
	done := 0
	for s := range results {
		if done++; progress != nil {
			progress(done, len(todo))
		}
		if s.err != nil {
			c.Unreadable++
			s.content = content{}
		}
		if err := w.add(context.WithoutCancel(ctx), &s); err != nil {
			return w.gone, err
		}
	}
	return w.gone, errors.Join(w.commit(), ctx.Err())
}
