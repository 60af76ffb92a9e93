package compare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Item is a session that can be read when it is needed, so that a million of them need
// no more memory than the few that are worked on.
type Item struct {
	Name string // the path of its file; unique
	Open func() (io.ReadCloser, error)
}

// File returns the item of a file.
func File(name string) Item {
	return Item{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
}

// Bytes returns the item of a transcript in memory.
func Bytes(name string, data []byte) Item {
	return Item{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// suffixes are those of files that may hold a transcript.
var suffixes = []string{".json", ".jsonl", ".json.gz", ".jsonl.gz", ".condense"}

// beside are files that tools keep beside their transcripts.
var beside = []string{"ui_messages.json", "task_metadata.json", "index.json", "history_item.json", "package.json", "settings.json", "config.json"}

// Find returns the sessions that paths name, sorted: files as they are, folders with all
// that is in them and looks like a transcript (what cannot be opened fails when it is read), patterns as of [filepath.Glob], and "demo:"
// for the sessions that come with the program. It reads no file. A path that names nothing
// is an error.
func Find(paths ...string) ([]Item, error) {
	found := map[string]Item{}
	var errs []error
	for _, p := range paths {
		items, err := find(p)
		if err != nil {
			errs = append(errs, err)
		}
		for _, it := range items {
			found[it.Name] = it
		}
	}
	out := make([]Item, 0, len(found))
	for _, it := range found {
		out = append(out, it)
	}
	slices.SortFunc(out, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return out, errors.Join(errs...)
}

func find(p string) ([]Item, error) {
	if name, ok := strings.CutPrefix(p, "demo:"); ok {
		return demo(name)
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && !info.IsDir():
		return []Item{File(p)}, nil
	case err == nil:
		return folder(p)
	case !strings.ContainsAny(p, "*?["):
		return nil, err
	}
	names, err := filepath.Glob(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	var out []Item
	for _, name := range names {
		items, err := find(name)
		if err != nil {
			return nil, err
		}
		out = append(out, items...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no such files", p)
	}
	return out, nil
}

func folder(p string) ([]Item, error) {
	var out []Item
	err := filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if name == p {
				return err
			}
			// One folder of somebody else's must not keep the rest from being read.
			out = append(out, Item{Name: name, Open: func() (io.ReadCloser, error) { return nil, err }})
			return fs.SkipDir
		}
		base := d.Name()
		if d.IsDir() && name != p && (strings.HasPrefix(base, ".") || base == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || slices.Contains(beside, base) {
			return nil
		}
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(base, s) }) {
			out = append(out, File(name))
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no transcript in it: looked for %s", p, strings.Join(suffixes, ", "))
	}
	return out, err
}
