package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// externalFormat is the format of the messages that an external program gets and returns.
const externalFormat = "anthropic"

var errNoMessages = errors.New("it wrote no messages")

// externalDeadline limits one condensation by an external program.
const externalDeadline = 5 * time.Minute

// An external condenses by another program.
type external struct {
	command []string
	dir     string // in which it runs; empty for the current one
	stays   *staying
}

// newExternal returns the program of a list of its path, which may begin in dir, and its arguments.
func newExternal(command []string, dir string, stays bool) (external, error) {
	if len(command) == 0 || command[0] == "" {
		return external{}, errors.New("external: no program")
	}
	e := external{dir: dir}
	name := command[0]
	if dir != "" && strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		_, err = config.AllowPlugin(name, func() (string, error) {
			text, err := os.ReadFile(path)
			return hashOf(text), err
		})
	}
	if err != nil {
		return e, fmt.Errorf("external: %w", err)
	}
	e.command = append([]string{path}, command[1:]...)
	if stays {
		e.stays = &staying{}
	}
	return e, nil
}

// External returns a strategy that runs another program, given as a list of its path and its arguments. Each
// condensation starts it. It reads one JSON object, {"messages": […], "tokens": N, "budget": N}: the messages in the
// form of Anthropic's API, their size, and the size to reach, both in tokens; and writes {"messages": […]}. Its
// output is measured unchanged, whether or not it is valid.
func External(name string, command []string) (Strategy, error) {
	e, err := newExternal(command, "", false)
	if err != nil {
		return Strategy{}, err
	}
	return Strategy{Name: name, Provider: e, Unchecked: true, About: "another program: " + strings.Join(command, " "), Key: e.key()}, nil
}

// mostBeside is how many files beside those of a program are looked at. With more, its results are not cached.
const mostBeside = 2000

// key identifies the program in the cache: by its arguments, the checksums of the program and of the files that they name, and the names,
// sizes and times of all files in the folders of those files. It is empty if one cannot be read. What else it reads is not noticed.
func (e external) key() string {
	h, n := sha256.New(), 0
	fmt.Fprintf(h, "%q\n", e.command)
	for i, arg := range e.command {
		text, err := os.ReadFile(arg)
		if err != nil && i > 0 {
			continue // no file
		}
		fmt.Fprintf(h, "%d %s\n", i, hashOf(text))
		if i > 0 {
			err = filepath.WalkDir(filepath.Dir(arg), func(path string, d fs.DirEntry, err error) error {
				if name := d.Name(); err == nil && d.IsDir() && (name == "__pycache__" || len(name) > 2 && name[0] == '.') {
					return fs.SkipDir // the program writes into them
				}
				info, errInfo := d.Info()
				if err = errors.Join(err, errInfo); err == nil && !d.IsDir() {
					fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
				}
				if n++; n > mostBeside {
					err = errors.New("there are too many files beside it")
				}
				return err
			})
		}
		if err != nil {
			return ""
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Condense implements [core.CondensationProvider].
func (e external) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, externalDeadline)
	defer cancel()
	var body bytes.Buffer
	j := history.New()
	if err := j.Append(slices.Clone(req.Messages)...); err != nil {
		return nil, err
	}
	if _, err := (&transcript.Document{Journal: j}).Write(&body, externalFormat); err != nil {
		return nil, err
	}
	var messages json.RawMessage = body.Bytes()
	if object := (struct{ Messages json.RawMessage }{}); json.Unmarshal(messages, &object) == nil {
		messages = object.Messages
	}
	input, err := json.Marshal(map[string]any{"messages": messages, "tokens": sizeOf(req.Counter, req.Messages), "budget": req.Budget.Room()})
	if err != nil {
		return nil, err
	}
	out, err := e.answer(ctx, input)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.command[0], err)
	}
	doc, err := transcript.Read(bytes.NewReader(out), &transcript.ReadOptions{Format: externalFormat})
	if err != nil {
		return nil, fmt.Errorf("%s: its output: %w", e.command[0], err)
	}
	view := doc.Journal.View()
	if len(view) == 0 && len(req.Messages) > 0 {
		return nil, fmt.Errorf("%s: %w", e.command[0], errNoMessages)
	}
	for i := range view {
		view[i].ID, view[i].Source = "", nil // new messages: their originals are unknown
	}
	core.Measure(req.Counter, view)
	return &core.Result{Messages: view}, nil
}

// answer returns the program's output for an input.
func (e external) answer(ctx context.Context, input []byte) ([]byte, error) {
	if e.stays != nil {
		return e.stays.answer(ctx, e, input)
	}
	var out, failed bytes.Buffer
	cmd := exec.CommandContext(ctx, e.command[0], e.command[1:]...) //nolint:gosec // the user names it on the command line
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = e.dir, bytes.NewReader(input), &out, &failed
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, because(err, failed.String())
	}
	return out.Bytes(), nil
}

func because(err error, said string) error {
	if said = clip(said); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// A staying is a program that answers line by line. It is started when it is first needed, and again after a failure.
type staying struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	failed *bytes.Buffer
}

// answer sends a line to the program and returns its next line.
func (s *staying) answer(ctx context.Context, e external, input []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		if err := s.start(e); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = s.cmd.Process.Kill() })
	defer stop()
	sent := make(chan error, 1) // the program may answer before it has read all
	go func() {
		_, err := s.in.Write(append(input, '\n'))
		sent <- err
	}()
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = <-sent
	}
	if err != nil {
		err = errors.Join(err, ctx.Err(), s.end())
		return nil, because(err, s.failed.String())
	}
	var refused struct{ Error string }
	if json.Unmarshal(line, &refused) == nil && refused.Error != "" {
		return nil, errors.New(clip(refused.Error))
	}
	return line, nil
}

func (s *staying) start(e external) error {
	cmd := exec.Command(e.command[0], e.command[1:]...) //nolint:gosec,noctx // the user names it; it outlives one condensation
	s.failed = &bytes.Buffer{}
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = e.dir, s.failed, time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.in, s.out = cmd, in, bufio.NewReader(out)
	return nil
}

// stayingEnds is the time in which a program must end when its input does. It may have processes of its own to end.
const stayingEnds = 2 * time.Second

// end ends the program if it runs.
func (s *staying) end() error {
	if s.cmd == nil {
		return nil
	}
	_ = s.in.Close() // it may have ended
	kill := time.AfterFunc(stayingEnds, func() { _ = s.cmd.Process.Kill() })
	err := s.cmd.Wait()
	kill.Stop()
	s.cmd = nil
	return err
}

// close ends the program.
func (e external) close() error {
	if e.stays == nil {
		return nil
	}
	e.stays.mu.Lock()
	defer e.stays.mu.Unlock()
	return e.stays.end()
}

func clip(s string) string {
	const most = 400
	if s = strings.TrimSpace(s); len(s) > most {
		s = s[len(s)-most:]
	}
	return s
}
