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
	all, _, err := a.list()
	return slices.DeleteFunc(all, func(s *Session) bool { return s.read() != nil }), err
}

// Recent returns the sessions in files without their descriptions, the newest first, and their folder.
func (a *Agent) Recent() (all []*Session, folder string, err error) {
	all, folder, err = a.list()
	slices.SortStableFunc(all, func(x, y *Session) int { return y.Modified.Compare(x.Modified) })
	return all, folder, err
}

// Whole returns the file that has the whole conversation of a session, if the session's own begins with a condensed view. Path is the
// session's Beside.
func Whole(path string) string { return filepath.Join(path+".history", "whole.jsonl") }

// copies is the folder in the program's for state with the whole conversations of agents that have a store.
const copies = "copies"

// kept returns the path that the whole conversation of a session in the agent's store is beside.
func (a *Agent) kept(id string) (string, error) {
	dir, err := disk.StateDir()
	return filepath.Join(dir, copies, a.Name, id), cmp.Or(a.CheckID(id), err)
}

// Named returns the file of the whole conversation of a copy that is named by its ID, in an agent's store; any other name unchanged.
func Named(name string) string {
	if path, err := opencode.kept(name); err == nil {
		if _, err := os.Lstat(Whole(path)); err == nil {
			return Whole(path)
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
	dir, err := disk.StateDir()
	if err != nil {
		return nil
	}
	found, _ := filepath.Glob(Whole(filepath.Join(disk.Pattern(dir), copies, a.Name, "*"))) // the pattern is ours; later IDs sort first
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
	if folder, err = a.folder(); a.store != nil || err != nil {
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
	return s.describe(f)
}

func (s *Session) describe(file io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(file, head))
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

// Folder returns the folder that a session in JSON lines names as the agent's; empty if it names none. Format is the transcript format.
func Folder(format string, session io.Reader) string {
	for _, a := range Agents() {
		if a.Format == format && !a.inside {
			s := &Session{Agent: a}
			_ = s.describe(session) // what could be read has it or not
			return s.Dir
		}
	}
	return ""
}

// Command returns the command with which the agent goes on with the session.
func (s *Session) Command() string {
	if s.Agent == codex && s.Exec {
		return "codex exec resume " + s.ID
	}
	return s.Agent.resume + s.ID
}

// Where returns where the session is, for people.
func (s *Session) Where() string {
	if s.Agent.store != nil {
		return s.Agent.Title + " session " + s.ID
	}
	return s.Path
}

// Copy returns a new session of the agent, not yet written, in the folder of s and for a file where the agent looks for it.
func (s *Session) Copy(now time.Time) (*Session, error) {
	if s.Agent.store != nil {
		id := newSessionID(now)
		path, err := s.Agent.kept(id)
		return &Session{Agent: s.Agent, ID: id, Path: path, Dir: s.Dir}, err
	}
	id, err := s.Agent.version()
	if err != nil {
		return nil, err
	}
	return &Session{Agent: s.Agent, ID: id.String(), Path: s.Agent.path(s, id.String(), now), Dir: s.Dir, Exec: s.Exec}, nil
}

// Write writes the file of a copy, readable by its owner only. Data is the changed file of s, in the agent's format. Thinking that models
// refuse after a changed history is left out.
func (s *Session) Write(ctx context.Context, copied *Session, data []byte) error {
	if store := s.Agent.store; store != nil {
		return store.adopt(ctx, s.Dir, copied.ID, data)
	}
	lines := bytes.Split(bytes.TrimRight(data, "\r\n"), []byte("\n"))
	before, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	return create(copied.Path, s.Agent.adapt(lines, bytes.Split(before, []byte("\n")), s.ID, copied.ID))
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
