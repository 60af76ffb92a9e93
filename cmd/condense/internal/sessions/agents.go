package sessions

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/internal/rawjson"
)

// An Agent is a program that records its sessions and can resume them.
type Agent struct {
	Name   string // of its command
	Title  string // for people
	Format string // of its files: a format of package transcript
	// ReadOnly says that no sessions are made for it: its format is not written.
	ReadOnly bool
	resume   string // the command to go on, before the ID

	home     [2]string // the environment variable that names its folder, and the folder below the user's
	files    string    // pattern of its sessions below that, with * for the text before the ID
	describe func(line []byte, s *Session)
	above    bool // the variable names the parent folder
	// inside says that the ID is in the file and not in its name, and that describe takes the beginning of the file.
	inside bool
	// store is where the sessions are if they are not in files; then nothing above is set.
	store *opencodeStore
	id    func() *regexp.Regexp // form of its IDs; nil for UUIDs
	// adapt converts changed lines of one session to lines of another. Original are the lines before the change.
	adapt   func(lines, original [][]byte, from, to string) [][]byte
	path    func(s *Session, id string, now time.Time) string // of a copy
	version func() (uuid.UUID, error)                         // of its IDs
}

// Agents returns the agents, in order of name.
func Agents() []*Agent { return []*Agent{claude, codex, copilot, gemini, opencode, pi, qwen} }

// InFiles reports whether the agent's sessions are files that can be read while it writes them.
func (a *Agent) InFiles() bool { return a.store == nil }

// Claude Code looks for a session in the folder of the project, by the name of its file. Its lines have the ID.
var claude = &Agent{
	Name: "claude", Title: "Claude Code", resume: "claude --resume ", Format: "claudecode",
	home: [2]string{"CLAUDE_CONFIG_DIR", ".claude"}, files: "projects/*/*.jsonl",
	describe: func(line []byte, s *Session) { s.Dir = cmp.Or(s.Dir, rawjson.Text(rawjson.Field(line, "cwd"))) },
	adapt: func(lines, original [][]byte, from, to string) [][]byte {
		for _, all := range [][][]byte{lines, original} {
			for i, line := range all {
				all[i] = renamed(line, from, to, "sessionId")
			}
		}
		return withNotes(withoutThinking(lines, "uuid", "parentUuid", "logicalParentUuid", "leafUuid"), original)
	},
	path: func(s *Session, id string, _ time.Time) string {
		return filepath.Join(filepath.Dir(s.Path), id+".jsonl")
	},
	version: uuid.NewRandom,
}

// pi looks for a session by the ID in its first line, in the folder of the project. Its lines are a tree.
var pi = &Agent{
	Name: "pi", Title: "pi", resume: "pi --session ", Format: "pi",
	home: [2]string{"PI_CODING_AGENT_DIR", ".pi/agent"}, files: "sessions/*/*.jsonl",
	describe: func(line []byte, s *Session) {
		if rawjson.Text(rawjson.Field(line, "type")) == "session" {
			s.Dir = rawjson.Text(rawjson.Field(line, "cwd"))
		}
	},
	adapt: func(lines, _ [][]byte, from, to string) [][]byte {
		if len(lines) > 0 {
			lines[0] = renamed(lines[0], from, to, "id")
		}
		return withoutThinking(lines, "id", "parentId")
	},
	path: func(s *Session, id string, now time.Time) string {
		return filepath.Join(filepath.Dir(s.Path), strings.ReplaceAll(now.UTC().Format("2006-01-02T15-04-05.000Z"), ".", "-")+"_"+id+".jsonl")
	},
	version: uuid.NewV7,
}

// Gemini CLI looks for a session by the ID in its file, in the folder of the project, which the file names by a hash.
// The name of the file has the beginning of the ID only.
var gemini = &Agent{
	Name: "gemini", Title: "Gemini CLI", resume: "gemini --resume ", Format: "gemini",
	home: [2]string{"GEMINI_CLI_HOME", ".gemini"}, files: "tmp/*/chats/session-*.json*", above: true, inside: true,
	describe: func(head []byte, s *Session) {
		s.ID = rawjson.Text(rawjson.Field(head, "sessionId"))
		s.project = rawjson.Text(rawjson.Field(head, "projectHash"))
		s.part = rawjson.Text(rawjson.Field(head, "kind")) == "subagent"
		if root, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(s.Path)), ".project_root")); err == nil {
			s.Dir = strings.TrimSpace(string(root))
		}
	},
	adapt: func(lines, _ [][]byte, from, to string) [][]byte {
		return [][]byte{renamed(bytes.Join(lines, []byte("\n")), from, to, "sessionId")}
	},
	path: func(s *Session, id string, now time.Time) string {
		return filepath.Join(filepath.Dir(s.Path), "session-"+now.UTC().Format("2006-01-02T15-04")+"-"+id[:8]+filepath.Ext(s.Path))
	},
	version: uuid.NewRandom,
}

// Codex looks for a rollout by the end of its name, in folders by date. The first line describes it; lines are
// numbered.
var codex = &Agent{
	Name: "codex", Title: "Codex", resume: "codex resume ", Format: "codex",
	home: [2]string{"CODEX_HOME", ".codex"}, files: "sessions/*/*/*/rollout-*.jsonl",
	describe: func(line []byte, s *Session) {
		if rawjson.Text(rawjson.Field(line, "type")) != "session_meta" {
			return
		}
		meta := rawjson.Field(line, "payload")
		source := rawjson.Field(meta, "source")
		s.Dir = cmp.Or(s.Dir, rawjson.Text(rawjson.Field(meta, "cwd")))
		s.Exec = rawjson.Text(source) == "exec"
		s.part = rawjson.IsObject(source)
	},
	adapt: func(lines, _ [][]byte, from, to string) [][]byte {
		numbered := len(lines) > 0 && rawjson.Field(lines[0], "ordinal") != nil
		for i, line := range lines {
			if !rawjson.IsObject(line) {
				continue
			}
			if payload := rawjson.Field(line, "payload"); rawjson.IsObject(payload) {
				names := []string{"session_id", "thread_id"}
				if rawjson.Text(rawjson.Field(line, "type")) == "session_meta" {
					names = append(names, "id")
				}
				line = rawjson.ReplaceValue(line, payload, renamed(payload, from, to, names...))
			}
			if numbered { // lines may have been left out or added
				line = rawjson.SetField(line, "ordinal", fmt.Append(nil, i))
			}
			lines[i] = line
		}
		return lines
	},
	path: func(s *Session, id string, now time.Time) string {
		root := filepath.Join(filepath.Dir(s.Path), "..", "..", "..")
		return filepath.Join(root, now.Format("2006"), now.Format("01"), now.Format("02"), "rollout-"+now.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
	},
	version: uuid.NewV7,
}

// Copilot CLI looks for a session in the folder with its ID. The first line describes it.
var copilot = &Agent{
	Name: "copilot", Title: "GitHub Copilot CLI", resume: "copilot --resume=", Format: "copilot",
	home: [2]string{"COPILOT_HOME", ".copilot"}, files: "session-state/*/events.jsonl", inside: true,
	describe: func(head []byte, s *Session) {
		start := rawjson.Field(head, "data")
		s.ID = rawjson.Text(rawjson.Field(start, "sessionId"))
		s.Dir = rawjson.Text(rawjson.Field(rawjson.Field(start, "context"), "cwd"))
	},
	adapt: func(lines, _ [][]byte, from, to string) [][]byte {
		for i, line := range lines {
			data := rawjson.Field(line, "data")
			if !rawjson.IsObject(data) {
				continue
			}
			next := data
			if i == 0 {
				next = renamed(next, from, to, "sessionId")
			}
			for _, name := range []string{"reasoningOpaque", "reasoningBlocks", "encryptedContent"} {
				next = rawjson.CutField(next, name)
			}
			lines[i] = rawjson.ReplaceValue(line, data, next)
		}
		return lines
	},
	path: func(s *Session, id string, _ time.Time) string {
		return filepath.Join(filepath.Dir(filepath.Dir(s.Path)), id, "events.jsonl")
	},
	version: uuid.NewRandom,
}

// Qwen Code looks for a session in the folder of the project, by the name of its file.
var qwen = &Agent{
	Name: "qwen", Title: "Qwen Code", Format: "qwen", ReadOnly: true,
	home: [2]string{"QWEN_HOME", ".qwen"}, files: "projects/*/chats/*.jsonl",
	describe: claude.describe, path: claude.path, version: claude.version,
}

// renamed returns an object in which the members that are the string from are to.
func renamed(raw []byte, from, to string, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(raw, name); v != nil && rawjson.Text(v) == from {
			raw = rawjson.ReplaceValue(raw, v, rawjson.AppendQuote(nil, to))
		}
	}
	return raw
}

// withoutThinking leaves out the assistant's thinking, which newer models of Anthropic accept only after the exact
// history before it. Claude Code writes a line for each block, so lines without another block are left out, too, and
// lines with them as parent get their parent. Id, parent and others are the names of the members with the ID of a
// line, and with another line's.
func withoutThinking(lines [][]byte, id, parent string, others ...string) [][]byte {
	parents := map[string][]byte{} // of the lines that are left out
	out := lines[:0]
	for _, line := range lines {
		for _, name := range append(others, parent) {
			v := rawjson.Field(line, name)
			if to, ok := parents[rawjson.Text(v)]; v != nil && ok {
				line = rawjson.ReplaceValue(line, v, to)
			}
		}
		if message := rawjson.Field(line, "message"); rawjson.Text(rawjson.Field(message, "role")) == "assistant" || rawjson.Text(rawjson.Field(line, "type")) == "assistant" {
			content := rawjson.Field(message, "content")
			var kept [][]byte
			all := 0
			for block := range rawjson.Elements(content) {
				all++
				if kind := rawjson.Text(rawjson.Field(block, "type")); kind != "thinking" && kind != "redacted_thinking" {
					kept = append(kept, block)
				}
			}
			if all > 0 && len(kept) == 0 {
				if id := rawjson.Text(rawjson.Field(line, id)); id != "" {
					parents[id] = []byte("null")
					if v := rawjson.Field(line, parent); v != nil {
						parents[id] = v
					}
				}
				continue
			}
			if len(kept) < all {
				line = rawjson.ReplaceValue(line, message, rawjson.ReplaceValue(message, content, rawjson.Array(kept)))
			}
		}
		out = append(out, line)
	}
	return out
}

// withNotes restores the notes that Claude Code adds to the first message (of type attachment: the environment,
// tools, skills) if they were left out with that message. Without them it sends an empty message, which is refused.
func withNotes(lines, original [][]byte) [][]byte {
	kind := func(line []byte) string { return rawjson.Text(rawjson.Field(line, "type")) }
	said := func(line []byte) bool { return kind(line) == "user" || kind(line) == "assistant" }
	first := slices.IndexFunc(lines, said)
	if first < 0 || rawjson.Field(lines[first], "uuid") == nil {
		return lines
	}
	for _, line := range lines[first+1:] {
		if kind(line) == "attachment" {
			return lines // they are there
		}
		if kind(line) == "assistant" {
			break
		}
	}
	root := rawjson.Field(lines[first], "uuid")
	var notes [][]byte
	last := root
	for _, line := range original {
		if kind(line) == "assistant" {
			break
		}
		if id := rawjson.Field(line, "uuid"); kind(line) == "attachment" && id != nil {
			notes = append(notes, rawjson.SetField(line, "parentUuid", last))
			last = id
		}
	}
	for i := first + 1; i < len(lines); i++ {
		for _, name := range []string{"parentUuid", "leafUuid"} {
			if v := rawjson.Field(lines[i], name); v != nil && bytes.Equal(v, root) {
				lines[i] = rawjson.ReplaceValue(lines[i], v, last)
			}
		}
	}
	return slices.Insert(lines, first+1, notes...)
}
