// Package trust stores what a user has agreed to, outside of all projects: which
// configuration files may start programs, name addresses and read keys, and which programs
// may run as plugins.
//
// A store is a folder of small files, one for each agreement, so that concurrent commands
// lose nothing. Only its user can read it.
package trust

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/disk"
)

// A Kind is what an agreement is about.
type Kind string

// The kinds of agreements.
const (
	// Config trusts the sensitive parts of a configuration file. A file may have several
	// agreements, one for each content that was trusted: branches are switched.
	Config Kind = "config"
	// Plugin approves a program, PluginFolder a folder with a program and its files. Each
	// path has one agreement: the last.
	Plugin       Kind = "plugin"
	PluginFolder Kind = "plugin-folder"
)

// An Entry is one agreement.
type Entry struct {
	Kind   Kind   `json:"kind"`
	Digest string `json:"sha256"` // 64 hexadecimal digits in lower case
	Path   string `json:"path"`   // absolute
}

// A Store is a folder of agreements. The zero value has none and accepts none. It is safe
// for concurrent use, also by several processes.
type Store struct{ dir string }

// Open returns the store in a folder, which need not exist. An empty path means no store.
func Open(dir string) Store { return Store{dir} }

// RealPath returns the absolute path of a file without links, as far as it exists.
func RealPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}

// Config reports whether the content with this digest of a configuration file is trusted.
func (s Store) Config(path, digest string) (bool, error) {
	e, err := s.read(s.file(Entry{Config, digest, RealPath(path)}))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && e.Kind == Config && e.Digest == digest && e.Path == RealPath(path), err
}

// Pin returns the approved digest of a plugin's program or folder; empty if there is none.
func (s Store) Pin(path string, folder bool) (string, error) {
	want := Entry{Kind: pluginKind(folder), Path: RealPath(path)}
	e, err := s.read(s.file(want))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if e.Kind != want.Kind || e.Path != want.Path {
		return "", fmt.Errorf("%s: belongs to %s; remove the file and approve the plugin again", s.file(want), e.Path)
	}
	return e.Digest, nil
}

// SetPin approves a plugin's program or folder with this digest.
func (s Store) SetPin(path string, folder bool, digest string) error {
	return s.Add(PluginEntry(path, folder, digest))
}

// PluginEntry returns the approval of a plugin's program or folder with this digest.
func PluginEntry(path string, folder bool, digest string) Entry {
	return Entry{pluginKind(folder), strings.ToLower(digest), path}
}

func pluginKind(folder bool) Kind {
	if folder {
		return PluginFolder
	}
	return Plugin
}

// Add stores an agreement.
func (s Store) Add(e Entry) error {
	if s.dir == "" {
		return errors.New("there is no folder to store it in: set HOME or XDG_CONFIG_HOME")
	}
	e.Path = RealPath(e.Path)
	if !digits.MatchString(e.Digest) {
		return fmt.Errorf("%q is not a digest of 64 hexadecimal digits", e.Digest)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	// The temporary file is outside of the folder, so that the folder's time changes once, when
	// the file is complete.
	return disk.Put(s.file(e), filepath.Dir(s.dir), fmt.Appendf(nil, "%s %s %s\n", e.Kind, e.Digest, strconv.Quote(e.Path)))
}

// Remove forgets every agreement about a path and returns them.
func (s Store) Remove(path string) ([]Entry, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	path = RealPath(path)
	all = slices.DeleteFunc(all, func(e Entry) bool { return e.Path != path })
	for _, e := range all {
		if err := os.Remove(s.file(e)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return all, nil
}

// All returns every agreement, in order of path. Other files in the folder are an error.
func (s Store) All() ([]Entry, error) {
	if s.dir == "" {
		return nil, nil
	}
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Entry
	for _, f := range files {
		e, err := s.read(filepath.Join(s.dir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by another process
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Digest, b.Digest))
	})
	return all, nil
}

// Changed returns when the store last changed; zero if it does not exist.
func (s Store) Changed() time.Time {
	if info, err := os.Stat(s.dir); err == nil && s.dir != "" {
		return info.ModTime()
	}
	return time.Time{}
}

// file returns where an agreement is kept.
func (s Store) file(e Entry) string {
	name := string(e.Kind) + "\x00" + e.Path
	if e.Kind == Config {
		name += "\x00" + e.Digest
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
}

var (
	digits = regexp.MustCompile(`^[0-9a-f]{64}$`)
	entry  = regexp.MustCompile(`^(config|plugin|plugin-folder) ([0-9a-f]{64}) (".*")\n$`)
)

func (s Store) read(file string) (Entry, error) {
	if s.dir == "" {
		return Entry{}, fs.ErrNotExist
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Entry{}, err
	}
	m := entry.FindStringSubmatch(string(text))
	if m == nil {
		return Entry{}, fmt.Errorf("%s: was not written by condense; remove the file and trust again", file)
	}
	path, err := strconv.Unquote(m[3])
	if err != nil {
		return Entry{}, fmt.Errorf("%s: was not written by condense; remove the file and trust again", file)
	}
	return Entry{Kind(m[1]), m[2], path}, nil
}
