package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
)

// A Store keeps the originals of tool results that were cut, one file each, in the format of
// [history.EncodeOriginals]: hooks are short processes that run in parallel, and 'condense recall' reads the files.
//
//	DIR/AGENT/SESSION/HANDLE.jsonl
//	DIR/AGENT/SESSION/project      the folder that the agent works in
type Store struct {
	Dir     string
	MaxSize int64         // bytes of all files together; a new one that does not fit is refused
	MaxAge  time.Duration // since the last file of a session, after which the session's are removed
}

// The defaults. Claude Code deletes its own sessions after 30 days.
const (
	maxSize = 256 << 20
	maxAge  = 30 * 24 * time.Hour
)

// NewStore returns the store of the user: condense/kept in $XDG_STATE_HOME or ~/.local/state.
func NewStore() (*Store, error) {
	dir, err := disk.StateDir()
	if err != nil {
		return nil, err
	}
	return &Store{Dir: filepath.Join(dir, "kept"), MaxSize: maxSize, MaxAge: maxAge}, nil
}

const (
	extension   = ".jsonl"
	projectFile = "project"
)

var (
	nameRule   = plain.Pattern(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)
	handleRule = plain.Pattern(`^[0-9a-f]{10}$`)
)

// folder returns the folder of a session.
func (s *Store) folder(agent, session string) (string, error) {
	if !slices.Contains(Agents(), agent) || !nameRule().MatchString(session) {
		return "", fmt.Errorf("%q is not the ID of a session", session)
	}
	return filepath.Join(s.Dir, agent, session), nil
}

// keep keeps messages with the content of a handle. It refuses them if they do not fit, and never removes sessions
// younger than MaxAge to make room.
func (s *Store) keep(agent, session, project, handle string, messages []core.Message) error {
	dir, err := s.folder(agent, session)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, handle+extension)
	if _, err := os.Lstat(path); err == nil {
		return nil // the same content
	}
	var b bytes.Buffer
	if err := history.EncodeOriginals(&b, messages); err != nil {
		return err
	}
	used, err := s.expire(time.Now().Add(-s.MaxAge), dir)
	if err != nil {
		return err
	}
	if used+int64(b.Len()) > s.MaxSize {
		return fmt.Errorf("%s is full: it has %d of %d MiB; remove sessions there that you do not need", s.Dir, used>>20, s.MaxSize>>20)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder, or is a link: originals are kept in folders of their own", dir)
	}
	for _, f := range []struct{ path, text string }{{filepath.Join(dir, projectFile), project}, {path, b.String()}} {
		err := disk.Create(f.path, func(w io.Writer) error {
			_, err := io.WriteString(w, f.text)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// expire removes the sessions without a file since a time, except the one in a folder, and returns the size of the
// rest.
func (s *Store) expire(before time.Time, but string) (used int64, err error) {
	sessions, err := filepath.Glob(filepath.Join(disk.Pattern(s.Dir), "*", "*"))
	if err != nil {
		return 0, err
	}
	for _, dir := range sessions {
		files, err := os.ReadDir(dir)
		if err != nil {
			continue // removed, or no folder
		}
		var size int64
		var newest time.Time
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				continue
			}
			size += info.Size()
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
		if len(files) > 0 && newest.Before(before) && dir != but {
			if err := os.RemoveAll(dir); err == nil {
				continue
			}
		}
		used += size
	}
	return used, nil
}

// Newest returns the session of an agent in a project that got a file last; empty if there is none.
func (s *Store) Newest(agent, project string) string {
	found, _ := filepath.Glob(filepath.Join(disk.Pattern(s.Dir), agent, "*", projectFile))
	var newest string
	var at time.Time
	for _, path := range found {
		dir := filepath.Dir(path)
		text, err := os.ReadFile(path)
		if err != nil || string(text) != project {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.ModTime().After(at) {
			newest, at = filepath.Base(dir), info.ModTime()
		}
	}
	return newest
}

// Files returns the files of a session, in order of time.
func (s *Store) Files(agent, session string) []string {
	dir, err := s.folder(agent, session)
	if err != nil {
		return nil
	}
	return ordered(filepath.Join(disk.Pattern(dir), "*"+extension))
}

// Find returns the files with a handle, of any session of an agent: a resumed or forked session has handles of
// another one.
func (s *Store) Find(agent, handle string) []string {
	if !handleRule().MatchString(handle) || !slices.Contains(Agents(), agent) {
		return nil
	}
	return ordered(filepath.Join(disk.Pattern(s.Dir), agent, "*", handle+extension))
}

func ordered(pattern string) []string {
	paths, _ := filepath.Glob(pattern) // the pattern is ours
	age := map[string]time.Time{}
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil {
			age[p] = info.ModTime()
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return age[a].Compare(age[b]) })
	return paths
}
