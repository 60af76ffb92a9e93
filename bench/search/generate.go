package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// A session is a file that was made.
type session struct {
	Path    string // below the home folder
	Size    int64
	Queries [5]query // that find it, one of each kind

	draw  func(bytes int) *maker // makes it again, longer
	bytes int
}

// agents have the formats and folders of the files.
var agents = []struct{ format, path string }{
	{"claudecode", ".claude/projects/-work-%[1]d/%[2]s.jsonl"},
	{"codex", ".codex/sessions/%[3]s/rollout-%[4]s-%[2]s.jsonl"},
	{"pi", ".pi/agent/sessions/--work-%[1]d--/%[4]s_%[2]s.jsonl"},
	{"gemini", ".gemini/tmp/work-%[1]d/chats/session-%[4]s-%[2]s.json"},
}

// Sizes of files are spread evenly over the logarithm; sessions of a project share names.
const smallest, largest, perProject = 60_000, 4_000_000, 20

// A step is a message of the user, or one of the assistant with its results.
type step []core.Message

// steps returns the steps of recorded sessions.
func steps(folder string) ([]step, error) {
	var all []step
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json.gz") {
			return err
		}
		f, err := os.Open(path) //nolint:gosec // the user names the folder
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		doc, err := transcript.Read(f, &transcript.ReadOptions{Name: path})
		if err != nil {
			return err
		}
		for _, m := range doc.Journal.Messages() {
			if len(all) > 0 && slices.ContainsFunc(m.Parts, isResult) {
				all[len(all)-1] = append(all[len(all)-1], m)
			} else if m.Role == core.RoleUser || m.Role == core.RoleAssistant {
				all = append(all, step{m})
			}
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New(folder + " has no sessions")
	}
	return all, err
}

func isResult(p core.Part) bool { _, ok := p.(core.ToolResult); return ok }

// generate makes sessions of a total size. The same arguments give the same sessions.
func generate(ctx context.Context, from, home string, total int64) ([]session, error) {
	all, err := steps(from)
	if err != nil {
		return nil, err
	}
	words := vocabulary(all)
	sizes := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // repeatable
	var sessions []session
	for total > 0 {
		n := int(smallest * math.Pow(float64(largest)/smallest, sizes.Float64()))
		number := len(sessions)
		total -= int64(n)
		sessions = append(sessions, session{bytes: n, draw: func(bytes int) *maker {
			m := &maker{number: number, words: words, rng: rand.New(rand.NewPCG(2, uint64(number)))} //nolint:gosec // repeatable
			m.make(all, bytes)
			return m
		}})
	}
	if len(sessions) < 6 {
		return nil, errors.New("want a size for at least six sessions")
	}
	list := filepath.Join(home, "sessions.json")
	if data, err := os.ReadFile(list); err == nil {
		return sessions, json.Unmarshal(data, &sessions)
	}
	var workers sync.WaitGroup
	faults := make([]error, len(sessions)+1)
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				faults[i] = sessions[i].write(home, sessions[i].bytes)
			}
		})
	}
	for i := range sessions {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	faults[len(sessions)] = ctx.Err()
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	data, err := json.Marshal(sessions)
	if err != nil {
		return nil, err
	}
	return sessions, os.WriteFile(list, data, 0o600)
}

// grow adds the lines of another session to one of Codex, whose files are lists of lines with one at their head.
func (s *session) grow(home string, by *session) error {
	_, data, err := by.draw(20_000).file()
	if err != nil {
		return err
	}
	_, lines, _ := bytes.Cut(data, []byte("\n"))
	f, err := os.OpenFile(filepath.Join(home, s.Path), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Close())
}

func (s *session) write(home string, bytes int) error {
	m := s.draw(bytes)
	name, data, err := m.file()
	if err != nil {
		return err
	}
	s.Path, s.Size, s.Queries = name, int64(len(data)), m.queries
	path := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(path, m.now, m.now)
}

// A maker makes one session.
type maker struct {
	number   int
	words    []string
	rng      *rand.Rand
	names    map[string]string // substitutes, by word
	messages []core.Message
	queries  [5]query
	now      time.Time
	begin    time.Time
}

func (m *maker) make(all []step, bytes int) {
	m.names = map[string]string{}
	m.begin = time.Date(2025, 1, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(m.number) * 97 * time.Minute)
	m.now = m.begin
	asked, wanted := 0, 1+m.rng.IntN(20)
	for size, turn := 0, 0; size < bytes; {
		s := all[m.rng.IntN(len(all))]
		if turn == 0 && s[0].Role != core.RoleUser {
			continue
		}
		turn++
		for _, message := range m.step(s, turn) {
			m.messages = append(m.messages, message)
			for _, p := range message.Parts {
				text := textOf(p)
				size += len(text) + len(text)/16 + 230 // with JSON around it
				if asked++; asked >= wanted && asked < wanted+100 {
					m.ask(p, text)
				}
			}
		}
	}
}

// step returns the messages of a step with IDs of their own and other words.
func (m *maker) step(s step, turn int) []core.Message {
	ids := map[string]string{}
	var out []core.Message
	for k := range s {
		m.now = m.now.Add(time.Duration(1+m.rng.IntN(30)) * time.Second)
		message := core.Message{ID: fmt.Sprintf("m%d-%d", turn, k), Role: s[k].Role, Time: m.now}
		for _, p := range s[k].Parts {
			switch p := p.(type) {
			case core.Text:
				message.Parts = append(message.Parts, core.Text(m.replace(string(p))))
			case core.Reasoning:
				if p.Text != "" {
					message.Parts = append(message.Parts, core.Reasoning{Text: m.replace(p.Text)})
				}
			case core.ToolCall:
				ids[p.ID] = fmt.Sprintf("call_%d_%d", turn, len(ids))
				message.Parts = append(message.Parts, core.ToolCall{ID: ids[p.ID], Name: p.Name, Args: m.args(p.Args)})
			case core.ToolResult:
				if id := ids[p.CallID]; id != "" {
					delete(ids, p.CallID)
					message.Parts = append(message.Parts, core.ToolResult{CallID: id, IsError: p.IsError, Content: []core.Part{core.Text(m.replace(textOf(p)))}})
				}
			default: // the index has no words of images
			}
		}
		if len(message.Parts) > 0 {
			out = append(out, message)
		}
	}
	return out
}

func textOf(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		return string(p)
	case core.Reasoning:
		return p.Text
	case core.ToolCall:
		return p.Args
	case core.ToolResult:
		var b strings.Builder
		for _, c := range p.Content {
			if t, ok := c.(core.Text); ok {
				b.WriteString(string(t))
			}
		}
		return b.String()
	default:
		return ""
	}
}

// args returns arguments with other words in their texts.
func (m *maker) args(args string) string {
	var v any
	if json.Unmarshal([]byte(args), &v) != nil {
		return m.replace(args)
	}
	var other func(v any) any
	other = func(v any) any {
		switch v := v.(type) {
		case string:
			return m.replace(v)
		case []any:
			for i := range v {
				v[i] = other(v[i])
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) { // numbers are drawn in this order
				v[name] = other(v[name])
			}
		}
		return v
	}
	data, err := json.Marshal(other(v))
	if err != nil {
		return args
	}
	return string(data)
}

// file returns the session as a file of an agent.
func (m *maker) file() (path string, data []byte, err error) {
	agent := agents[m.number%len(agents)]
	id := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, m.number)).String()
	path = fmt.Sprintf(agent.path, m.number/perProject, id, m.begin.Format("2006/01/02"), m.begin.Format("2006-01-02T15-04-05"))
	doc := transcript.Document{Journal: history.New(), Model: "model"}
	if err := doc.Journal.Append(m.messages...); err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	if _, err := doc.Write(&b, agent.format); err != nil {
		return "", nil, err
	}
	// The ID comes from the journal, which is random.
	return path, bytes.ReplaceAll(b.Bytes(), []byte(doc.Journal.ID()), []byte(id)), nil
}
