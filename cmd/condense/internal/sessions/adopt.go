package sessions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A newcomer is how an agent takes a session that another agent recorded.
type newcomer struct {
	folder func(dir string) string                         // of sessions that are started in dir, below the agent's folder
	line   func(line []byte, i int, id, dir string) []byte // line i of the session with its ID and folder; nil to leave it out
}

var notName = plain.Pattern(`[^A-Za-z0-9]`)

var newcomers = map[*Agent]newcomer{
	claude: {
		folder: func(dir string) string { return notName().ReplaceAllString(dir, "-") },
		line: func(line []byte, _ int, id, dir string) []byte {
			return placed(placed(line, "sessionId", id), "cwd", dir)
		},
	},
	codex: {
		folder: func(string) string { return "0/0/0" }, // the name of a file has the date
		line: func(line []byte, _ int, id, dir string) []byte {
			payload := rawjson.Field(line, "payload")
			switch {
			case rawjson.Text(rawjson.Field(line, "type")) == "session_meta":
				return rawjson.ReplaceValue(line, payload, placed(placed(payload, "id", id), "cwd", dir))
			case rawjson.Text(rawjson.Field(payload, "type")) == "reasoning": // sealed by another vendor
				return nil
			}
			return line
		},
	},
	copilot: {
		folder: func(string) string { return "new" }, // each session has one of its own
		line: func(line []byte, i int, id, dir string) []byte {
			if data := rawjson.Field(line, "data"); i == 0 && data != nil {
				next := rawjson.CutField(placed(data, "sessionId", id), "selectedModel") // it would go on with that one
				if where := rawjson.Field(next, "context"); where != nil {
					next = rawjson.ReplaceValue(next, where, placed(where, "cwd", dir))
				}
				return rawjson.ReplaceValue(line, data, next)
			}
			return line
		},
	},
	gemini: {
		folder: func(dir string) string { return hashed(dir) + "/chats" },
		line: func(line []byte, i int, id, dir string) []byte {
			if i == 0 {
				return placed(placed(line, "sessionId", id), "projectHash", hashed(dir))
			}
			return line
		},
	},
	pi: {
		folder: func(dir string) string {
			return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimLeft(dir, `/\`)) + "--"
		},
		line: func(line []byte, i int, id, dir string) []byte {
			if i == 0 {
				return placed(placed(line, "id", id), "cwd", dir)
			}
			return line
		},
	},
}

func hashed(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])
}

// placed returns an object in which a member that it has is text.
func placed(raw []byte, name, text string) []byte {
	if v := rawjson.Field(raw, name); v != nil {
		return rawjson.ReplaceValue(raw, v, rawjson.AppendQuote(nil, text))
	}
	return raw
}

// New returns a session, not yet written, in which this agent is to go on with one of another agent in a folder.
func (a *Agent) New(dir string, now time.Time) (*Session, error) {
	like := &Session{Agent: a, Dir: dir}
	if a.store != nil {
		return like.Copy(now)
	}
	as, ok := newcomers[a]
	if !ok {
		return nil, errors.New(a.Title + " takes no sessions of other agents")
	}
	all, folder, err := a.list()
	if folder == "" {
		return nil, err
	}
	like.Path = filepath.Join(folder, filepath.FromSlash(as.folder(dir)), "new.jsonl")
	for _, s := range all { // the agent may have named the folder in another way
		if a != codex && s.read() == nil && s.Dir == dir {
			like.Path = s.Path
			break
		}
	}
	return like.Copy(now)
}

// Adopt writes a new session. Data is one that another agent recorded, in the format of this one. Sealed items of other vendors, thinking
// and encrypted reasoning, are left out.
func (s *Session) Adopt(ctx context.Context, data []byte) error {
	if s.Agent.store != nil {
		return s.Agent.store.adopt(ctx, s.Dir, s.ID, data)
	}
	var lines [][]byte
	for i, line := range bytes.Split(bytes.TrimRight(data, "\r\n"), []byte("\n")) {
		if line = newcomers[s.Agent].line(line, i, s.ID, s.Dir); line != nil {
			lines = append(lines, line)
		}
	}
	return create(s.Path, s.Agent.adapt(lines, nil, s.ID, s.ID))
}
