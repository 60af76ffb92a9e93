package lab

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/lab/canary"
)

// An Item is a session that is opened when it is needed, so that a list of a million sessions takes
// little memory. Package compare documents its fields.
type Item struct {
	Name     string
	Canaries string
	Evidence bool
	Open     func() (io.ReadCloser, error)
}

// file returns the item of a file.
func file(name string) Item {
	return Item{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
}

// suffixes are the ends of the names of files that may contain a transcript.
var suffixes = []string{".json", ".jsonl", ".json.gz", ".jsonl.gz", ".condense"}

// companions are files that tools keep next to their transcripts.
var companions = []string{"ui_messages.json", "task_metadata.json", "index.json", "history_item.json", "package.json", "settings.json", "config.json"}

// Find returns the sessions that paths name, sorted by name. A path is a file, a folder with everything in it that
// looks like a transcript, a pattern as of [filepath.Glob], or "demo:" for the sessions that come with the program.
// "canaries:" or "canaries2:" before any of these plants sentences in the sessions; by itself it means the sessions
// that come with the program. "evidence:" before a path marks its files as conversations with gold evidence. Links to
// files and folders are followed; each folder is read once. Find reads no file: a file or folder that cannot be
// opened becomes an item that fails when it is read. A path that names nothing is an error.
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
	return slices.SortedFunc(maps.Values(found), func(a, b Item) int { return strings.Compare(a.Name, b.Name) }), errors.Join(errs...)
}

func find(p string) ([]Item, error) {
	for _, set := range canary.Sets {
		if of, ok := strings.CutPrefix(p, string(set)+":"); ok {
			return withCanaries(set, cmp.Or(of, "demo:"))
		}
	}
	if of, ok := strings.CutPrefix(p, evidencePrefix); ok {
		items, err := find(of)
		for i := range items {
			items[i].Name, items[i].Evidence = evidencePrefix+items[i].Name, true
		}
		return items, err
	}
	if name, ok := strings.CutPrefix(p, "demo:"); ok {
		return demo(name)
	}
	info, err := os.Stat(p)
	switch {
	case err == nil && !info.IsDir():
		return []Item{file(p)}, nil
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

// withCanaries returns the sessions that p names, for canaries.
func withCanaries(set canary.Set, p string) ([]Item, error) {
	items, err := find(p)
	for i := range items {
		items[i].Name, items[i].Canaries = string(set)+":"+items[i].Name, string(set)
	}
	return items, err
}

func folder(p string) ([]Item, error) {
	w := walk{seen: map[string]bool{}}
	err := w.folder(p)
	if err == nil && len(w.found) == 0 {
		err = fmt.Errorf("%s: no transcript in it: looked for %s", p, strings.Join(suffixes, ", "))
	}
	return w.found, err
}

// A walk visits folders and links to folders.
type walk struct {
	found []Item
	seen  map[string]bool // folders by their real path; entering each once ends every cycle of links
}

func (w *walk) folder(p string) error {
	return filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if name == p {
				return err
			}
			// A folder without permission must not prevent reading the others.
			w.unreadable(name, err)
			return fs.SkipDir
		}
		switch {
		case d.IsDir():
			if name != p && hidden(d.Name()) || !w.enter(name) {
				return fs.SkipDir
			}
		case d.Type()&fs.ModeSymlink != 0:
			w.link(name)
		case d.Type().IsRegular():
			w.file(name)
		}
		return nil
	})
}

// hidden reports whether a folder with the name base is skipped.
func hidden(base string) bool { return strings.HasPrefix(base, ".") || base == "node_modules" }

// enter reports whether the folder is entered for the first time.
func (w *walk) enter(name string) bool {
	place, err := filepath.EvalSymlinks(name)
	if err == nil {
		place, err = filepath.Abs(place)
	}
	if err != nil || w.seen[place] {
		return err != nil // a folder that cannot be resolved fails when it is read
	}
	w.seen[place] = true
	return true
}

// link follows a link to a file or a folder.
func (w *walk) link(name string) {
	info, err := os.Stat(name)
	switch {
	case err != nil: // a broken link: reported when it is read
		w.file(name)
	case info.Mode().IsRegular():
		w.file(name)
	case info.IsDir() && !hidden(filepath.Base(name)):
		// WalkDir follows a link that ends with a separator.
		if err := w.folder(name + string(filepath.Separator)); err != nil {
			w.unreadable(name, err)
		}
	}
}

// unreadable adds an item that fails with err when it is read.
func (w *walk) unreadable(name string, err error) {
	w.found = append(w.found, Item{Name: name, Open: func() (io.ReadCloser, error) { return nil, err }})
}

// file adds a file that looks like a transcript.
func (w *walk) file(name string) {
	base := filepath.Base(name)
	if !slices.Contains(companions, base) && slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(base, s) }) {
		w.found = append(w.found, file(name))
	}
}

// The demo sessions, converted and with names replaced. demo/NOTICE.md names their sources and
// licences.
//
//go:embed demo/*.json.gz
var demoFiles embed.FS

// Demo returns the sessions that come with the program: small, real, of several agents. They are for showing a
// comparison, and too few for choosing a strategy.
func Demo() []Item {
	items, err := demo("")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return items
}

// ours reports whether a session comes with the program, also as a file of the repository.
func ours(name string) bool {
	f, err := demoFiles.Open(path.Join("demo", path.Base(filepath.ToSlash(strings.TrimPrefix(name, "demo:")))))
	return err == nil && f.Close() == nil
}

// demo returns the demo sessions whose names begin with prefix.
func demo(prefix string) ([]Item, error) {
	entries, err := demoFiles.ReadDir("demo")
	if err != nil {
		return nil, err
	}
	var out []Item
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		out = append(out, Item{Name: "demo:" + name, Open: func() (io.ReadCloser, error) {
			return demoFiles.Open(path.Join("demo", name))
		}})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("demo:%s: no such session", prefix)
	}
	return out, nil
}
