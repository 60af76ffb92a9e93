// Package sessions finds the sessions that agents recorded, and makes copies that the agents resume.
//
// Its input was written by other programs and is not trusted: files are opened only in the agent's own folders, and
// no path is made of their content.
package sessions

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// ErrNone reports that there is no such session.
var ErrNone = errors.New("no session found")

// A Session is a file in which an agent recorded a session.
type Session struct {
	Agent *Agent
	ID    string
	Path  string
	// Beside is the path that its whole conversation and originals are kept beside: Path, or a name in the folder of the program for
	// state if the agent keeps its sessions in a store.
	Beside string
	Dir    string // the folder that the agent was started in; empty if it is not recorded
	Exec   bool   // the agent ran without a terminal, by its command for scripts

	Modified time.Time

	project string // hash of the folder, where that is all that is recorded
	temp    string // a folder that Close removes
	part    bool   // of another session: a sub-agent's
}

// folder returns the folder of the agent's sessions.
func (a *Agent) folder() (string, error) {
	top, _, _ := strings.Cut(a.files, "/")
	if dir := os.Getenv(a.home[0]); dir != "" {
		if a.above {
			dir = filepath.Join(dir, a.home[1])
		}
		return filepath.Join(dir, top), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, a.home[1], top), err
}

// CheckID reports whether the text has the form of the agent's IDs, which cannot be a path, a pattern or a flag.
func (a *Agent) CheckID(id string) error {
	if a.id != nil {
		if !a.id().MatchString(id) {
			return fmt.Errorf("%q is not the ID of a session of %s: want one as in ses_277daa810ffePOBsdfS6gm8uA2", id, a.Title)
		}
		return nil
	}
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return fmt.Errorf("%q is not the ID of a session: want one as in 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b", id)
	}
	return nil
}

// Find returns the session with an ID. The caller closes it.
func (a *Agent) Find(ctx context.Context, id string) (*Session, error) {
	if err := a.CheckID(id); err != nil {
		return nil, err
	}
	if a.store != nil {
		return a.exported(ctx, id)
	}
	return a.latest(func(s *Session) bool { return s.ID == id }, "with the ID "+id)
}

// Newest returns the session started in a folder that was written to last, not counting sessions of sub-agents. The
// caller closes it.
func (a *Agent) Newest(ctx context.Context, dir string) (*Session, error) {
	resolved := func(path string) string {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			return p
		}
		return filepath.Clean(path)
	}
	want := resolved(dir)
	if a.store != nil {
		id, err := a.store.newest(ctx, want)
		if err != nil {
			return nil, err
		}
		if a.CheckID(id) != nil {
			return nil, fmt.Errorf("%w: %s has none that was started in %s", ErrNone, a.Title, dir)
		}
		return a.exported(ctx, id)
	}
	project := hashed(want)
	return a.latest(func(s *Session) bool {
		return s.read() == nil && !s.part && (s.Dir != "" && resolved(s.Dir) == want || s.project == project)
	}, "that was started in "+dir)
}

// exported returns a session of a store.
func (a *Agent) exported(ctx context.Context, id string) (*Session, error) {
	temp, err := os.MkdirTemp("", "condense-")
	if err != nil {
		return nil, err
	}
	s := &Session{Agent: a, ID: id, Path: filepath.Join(temp, id+".json"), temp: temp}
	if s.Beside, err = a.kept(id); err == nil {
		err = a.store.export(ctx, id, s.Path)
	}
	if err == nil {
		err = s.read()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close removes temporary files of reading the session.
func (s *Session) Close() {
	if s.temp != "" {
		_ = os.RemoveAll(s.temp) // it is in the folder for temporary files
	}
}

// All returns the sessions that the agent has in files, with their descriptions, in no order; none for an agent with a
// store.
func (a *Agent) All() ([]*Session, error) {
	if a.store != nil {
		return nil, nil
	}
	all, _, err := a.list()
	return slices.DeleteFunc(all, func(s *Session) bool { return s.read() != nil }), err
}

// Recent returns the sessions in files without their descriptions, the newest first, and their folder.
func (a *Agent) Recent() (all []*Session, folder string, err error) {
	if a.store != nil {
		return nil, "", nil
	}
	all, folder, err = a.list()
	slices.SortStableFunc(all, func(x, y *Session) int { return y.Modified.Compare(x.Modified) })
	return all, folder, err
}

// Whole returns the file that has the whole conversation of a session, if the session's own begins with a condensed view. Path is the
// session's Beside.
func Whole(path string) string { return filepath.Join(path+".history", "whole.jsonl") }

// copies returns the folder beside whose names the whole conversations of an agent with a store are kept.
func (a *Agent) copies() (string, error) {
	dir, err := disk.StateDir()
	return filepath.Join(dir, "copies", a.Name), err
}

// kept returns the path in that folder for the session with an ID.
func (a *Agent) kept(id string) (string, error) {
	dir, err := a.copies()
	return filepath.Join(dir, id), cmp.Or(a.CheckID(id), err)
}

// Named returns the file of the whole conversation of a copy that is named by its ID, in an agent's store; any other name unchanged.
func Named(name string) string {
	for _, a := range Agents() {
		if path, err := a.kept(name); err == nil && a.store != nil {
			if _, err := os.Lstat(Whole(path)); err == nil {
				return Whole(path)
			}
		}
	}
	return name
}

// wholes returns where whole conversations of the agent's sessions may be, the latest first.
func (a *Agent) wholes() []string {
	if a.store == nil {
		all, _, _ := a.Recent()
		return plain.Each(all, func(s *Session) string { return Whole(s.Path) })
	}
	dir, err := a.copies()
	if err != nil {
		return nil
	}
	found, _ := filepath.Glob(Whole(filepath.Join(disk.Pattern(dir), "*"))) // the pattern is ours; later IDs sort first
	return found
}

// Wholes yields the conversations beside the sessions of all agents, of each the latest first. One that cannot be read is left out.
func Wholes() iter.Seq[*history.Journal] {
	return func(yield func(*history.Journal) bool) {
		for _, a := range Agents() {
			for _, path := range a.wholes() {
				data, err := os.ReadFile(path)
				if err != nil {
					continue
				}
				if j, _, err := history.Decode(bytes.NewReader(data)); err == nil && !yield(j) {
					return
				}
			}
		}
	}
}

// list returns the sessions in files, described only if that is how they are recognized, and their folder. The error may be about
// a folder among others.
func (a *Agent) list() (all []*Session, folder string, err error) {
	if folder, err = a.folder(); err != nil {
		return nil, "", err
	}
	_, pattern, _ := strings.Cut(a.files, "/")
	in := &reader{FS: os.DirFS(folder), dir: folder}
	paths, err := fs.Glob(in, pattern)
	if err != nil {
		return nil, folder, err
	}
	for _, path := range paths {
		s := &Session{Agent: a, Path: filepath.Join(folder, filepath.FromSlash(path))}
		s.Beside = s.Path
		name := strings.TrimSuffix(filepath.Base(s.Path), ".jsonl")
		s.ID = name[max(0, len(name)-len(uuid.Nil.String())):]
		info, err := os.Lstat(s.Path)
		if err != nil || !info.Mode().IsRegular() || a.inside && s.read() != nil || a.CheckID(s.ID) != nil {
			continue
		}
		s.Modified = info.ModTime()
		all = append(all, s)
	}
	return all, folder, in.err
}

// A reader is a folder that remembers the first one in it that could not be read: [fs.Glob] passes over them.
type reader struct {
	fs.FS
	dir string
	err error
}

// ReadDir implements [fs.ReadDirFS].
func (r *reader) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, filepath.FromSlash(name)))
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		r.err = cmp.Or(r.err, err)
	}
	return entries, err
}

// latest returns the wanted session that was written to last.
func (a *Agent) latest(wanted func(*Session) bool, what string) (*Session, error) {
	all, folder, err := a.Recent()
	for _, s := range all {
		if wanted(s) {
			return s, s.read()
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s has none in %s %s", ErrNone, a.Title, folder, what)
}

// head is the size of the part of a file that is read for a description of the session, which is in the first lines.
const head = 1 << 20

// read reads the description of the session.
func (s *Session) read() error {
	f, err := os.Open(s.Path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, head))
	if s.Agent.inside {
		s.Agent.describe(data, s)
		return err
	}
	for line := range bytes.Lines(data) {
		if s.Dir != "" {
			break
		}
		if line = bytes.TrimSpace(line); rawjson.IsObject(line) && rawjson.Complete(line) {
			s.Agent.describe(line, s)
		}
	}
	return err
}

// Command returns the command with which the agent goes on with a session of this ID.
func (s *Session) Command(id string) string {
	if s.Agent == codex && s.Exec {
		return "codex exec resume " + id
	}
	return s.Agent.resume + id
}

// Where returns where the session is, for people.
func (s *Session) Where() string { return s.Agent.where(s.ID, s.Path) }

func (a *Agent) where(id, path string) string {
	if a.store != nil {
		return a.Title + " session " + id
	}
	return path
}

// Remove deletes a session that was made for the agent, but not what is beside it.
func (a *Agent) Remove(ctx context.Context, id, path string) error {
	if a.store != nil {
		return a.store.remove(ctx, id)
	}
	return os.Remove(path)
}

// A Copy is a new session of the agent, not yet written. Its originals are kept beside Path.
type Copy struct {
	Of       *Session
	ID, Path string
}

// Copy returns a copy of s with a new ID, for a file where the agent looks for it.
func (s *Session) Copy(now time.Time) (*Copy, error) {
	if s.Agent.store != nil {
		id := newSessionID(now)
		path, err := s.Agent.kept(id)
		return &Copy{Of: s, ID: id, Path: path}, err
	}
	id, err := s.Agent.version()
	if err != nil {
		return nil, err
	}
	return &Copy{Of: s, ID: id.String(), Path: s.Agent.path(s, id.String(), now)}, nil
}

// Write writes the file of the copy, readable by its owner only. Data is the changed file of the session, in the
// agent's format. Thinking that models refuse after a changed history is left out.
func (c *Copy) Write(ctx context.Context, data []byte) error {
	if store := c.Of.Agent.store; store != nil {
		return store.adopt(ctx, c.Of.Dir, c.ID, data)
	}
	lines := bytes.Split(bytes.TrimRight(data, "\r\n"), []byte("\n"))
	before, err := os.ReadFile(c.Of.Path)
	if err != nil {
		return err
	}
	return create(c.Path, c.Of.Agent.adapt(lines, bytes.Split(before, []byte("\n")), c.Of.ID, c.ID))
}

// create writes the lines of a new session, readable by its owner only.
func create(path string, lines [][]byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return disk.Create(path, func(w io.Writer) error {
		_, err := w.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
		return err
	})
}

// Where returns where the copy is, for people.
func (c *Copy) Where() string { return c.Of.Agent.where(c.ID, c.Path) }
