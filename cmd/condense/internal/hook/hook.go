// Package hook answers the hooks of agents: it shortens a tool result before the model sees it for the first time,
// and after a compaction gives a digest of the conversation before it. Originals of cut results are kept in a
// [Store].
//
// An agent's input holds text from anywhere and is not trusted: no file is opened by a name in it, other than the
// transcript that the agent itself names, and no path is made of it unchecked.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/tokens"
)

// maxInput is the most that an agent may pass, in bytes.
const maxInput = 64 << 20

// The agents.
const (
	Claude   = "claude"
	OpenCode = "opencode"
	Pi       = "pi"
)

// Agents are the agents whose hooks are answered.
func Agents() []string { return []string{Claude, OpenCode, Pi} }

// Options adjust the answers.
type Options struct {
	Lossless bool // only shortening without loss
	// MaxResult is the most tokens of a result; longer ones are cut. 0 means no limit. It is for agents whose model
	// can recall, since a cut result has a handle.
	MaxResult int
	Own       *condense.Host // has providers of the user that shorten before; nil if there are none
	Store     *Store         // keeps the originals of cut results
	Logger    *slog.Logger
	// Recall answers a call of the tool recall in the extension of an agent without MCP. An error is for the model.
	Recall func(ctx context.Context, session, project string, arguments []byte) ([]string, error)
}

// An event is the input of a hook: Claude Code's members, which the extensions of the others use, too.
type event struct {
	Name       string          `json:"hook_event_name"` // PostToolUse, SessionStart, PreCompact or Recall
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"`
	Dir        string          `json:"cwd"`
	Source     string          `json:"source"` // of SessionStart
	Tool       string          `json:"tool_name"`
	Input      json.RawMessage `json:"tool_input"`
	Output     json.RawMessage `json:"tool_response"`
	Call       string          `json:"tool_use_id"`
	Messages   json.RawMessage `json:"conversation"` // instead of a transcript, as the agent exports it; perhaps the end only
}

// Answer returns the answer to one call of a hook; nil if there is none, so that the agent proceeds as without the
// hook.
func Answer(ctx context.Context, agent string, in io.Reader, o *Options) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("the input has more than %d MiB", maxInput>>20)
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("the input is no event of a hook: %w", err)
	}
	switch e.Name {
	case "PostToolUse":
		return o.result(ctx, agent, &e)
	case "SessionStart", "PreCompact":
		if e.Name == "SessionStart" && e.Source != "compact" {
			return nil, nil
		}
		text, err := digest(ctx, agent, &e)
		if text == "" || err != nil {
			return nil, err
		}
		return encode(e.Name, "additionalContext", text)
	case "Recall":
		if o.Recall == nil {
			return nil, nil
		}
		texts, err := o.Recall(ctx, e.Session, e.Dir, e.Input)
		if err != nil {
			texts = []string{err.Error()}
		}
		return encode(e.Name, "texts", texts)
	case "":
		return nil, errors.New("the input has no hook_event_name")
	}
	return nil, nil
}

// encode writes a value in the form of Claude Code's answers.
func encode(event, name string, value any) ([]byte, error) {
	return rawjson.Encode(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": event, name: value}})
}

// result shortens the result of a tool.
func (o *Options) result(ctx context.Context, agent string, e *event) ([]byte, error) {
	fields, whole, err := texts(e.Tool, e.Output)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	s := &shortener{Options: o, agent: agent, event: e, asked: sync.OnceValue(func() []core.Part { return request(agent, e) })}
	changed := false
	for _, f := range fields {
		text, err := s.shorten(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(text) < len(f.text) {
			f.set(text)
			changed = true
		}
	}
	if !changed {
		return nil, nil
	}
	return encode(e.Name, "updatedToolOutput", whole())
}

// A shortener shortens the texts of one result.
type shortener struct {
	*Options
	agent string
	event *event

	asked func() []core.Part // the user's newest message, if that is known
}

// ownPatience is how long a result waits for the user's own providers, as by default in a gateway.
const ownPatience = 5 * time.Second

// least is the size in bytes of texts in which there is nothing to gain.
const least = 200

// shorten returns a text as the model should see it.
func (s *shortener) shorten(ctx context.Context, f *field) (string, error) {
	if len(f.text) < least {
		return f.text, nil
	}
	whole, limit := f.text, 0
	if s.Own != nil && !f.numbered {
		limited, cancel := context.WithTimeout(ctx, ownPatience)
		text, err := s.through(limited, s.Own, whole, s.MaxResult == 0)
		if cancel(); err != nil {
			s.Logger.WarnContext(ctx, "no provider of the configuration shortens the result", "error", secret.Safe(err.Error()))
		} else if s.MaxResult == 0 || s.kept(ctx, whole, text) {
			whole = text
		}
	}
	if s.MaxResult > 0 && len(whole) > s.MaxResult { // a token has a byte or more
		limit = s.MaxResult
	}
	if f.numbered {
		if limit == 0 {
			return whole, nil
		}
		return s.head(ctx, f, limit)
	}
	text, err := s.run(ctx, whole, limit)
	if err != nil || limit == 0 || s.kept(ctx, whole, text) {
		return text, err
	}
	return s.run(ctx, whole, 0)
}

const requestID, answerID, callID, resultID = "request", "answer", "call", "result"

// messages are a call and its result with the text.
func (s *shortener) messages(text string) []core.Message {
	id := cmp.Or(s.event.Call, callID)
	return []core.Message{
		{ID: callID, Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: s.event.Tool, Args: string(s.event.Input)}}},
		{ID: resultID, Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}}},
	}
}

// run runs the passes over a text.
func (s *shortener) run(ctx context.Context, text string, limit int) (string, error) {
	if !s.Lossless && limit == 0 {
		return text, nil
	}
	how := ingest.Options{Lossless: s.Lossless, MaxResult: limit}
	if limit == 0 {
		how.Tokenizer = tokens.Chars4 // loading another one takes longer than all the rest
	}
	host, err := ingest.Open(ctx, how)
	if err != nil {
		return "", err
	}
	short, err := s.through(ctx, host, text, limit == 0)
	return short, errors.Join(err, host.Close())
}

// through returns a text as a host shortens it.
func (s *shortener) through(ctx context.Context, host *condense.Host, text string, noRecall bool) (string, error) {
	c := condense.NewConversation()
	messages := append(s.messages(text), core.Message{ID: answerID, Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}})
	if (host == s.Own || !noRecall) && len(s.asked()) > 0 { // otherwise nothing is chosen by relevance
		messages = slices.Insert(messages, 0, core.Message{ID: requestID, Role: core.RoleUser, Parts: s.asked()})
	}
	if err := c.Append(messages...); err != nil {
		return "", err
	}
	turn := ingest.Turn()
	turn.NoRecall = noRecall
	report, err := host.Manage(ctx, c, turn)
	if err != nil {
		return "", err
	}
	for _, a := range report.Attempts {
		if a.Err != nil {
			s.Logger.WarnContext(ctx, "a provider did not shorten the result", "provider", a.Provider, "outcome", a.Outcome,
				"reason", secret.Safe(a.Reason))
		}
	}
	view := c.View()
	if r, ok := view[len(view)-2].Parts[0].(core.ToolResult); ok && len(r.Content) == 1 { // only contents of results may change
		if t, ok := r.Content[0].(core.Text); ok {
			return string(t), nil
		}
	}
	return text, nil
}

// kept keeps the original of a text. It reports false if the shorter form has no handle of it, or it cannot be kept.
func (s *shortener) kept(ctx context.Context, text, short string) bool {
	messages := s.messages(text)
	handle := core.Handle(messages[1].Parts[0])
	if !strings.Contains(short, "recall h:"+handle) {
		return false // nothing was cut
	}
	if err := s.Store.keep(s.agent, s.event.Session, s.project(), handle, messages); err != nil {
		s.Logger.WarnContext(ctx, "the result is not cut, because its original cannot be kept", "error", err)
		return false
	}
	return true
}

// project is the folder that the agent works in.
func (s *shortener) project() string {
	if dir := os.Getenv("CLAUDE_PROJECT_DIR"); s.agent == Claude && dir != "" {
		return dir // the other one follows the agent's cd
	}
	return s.event.Dir
}

// head cuts a text to its beginning: the agent numbers its lines, so that lines after a gap would get wrong numbers.
func (s *shortener) head(ctx context.Context, f *field, limit int) (string, error) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return "", err
	}
	all := encoding.CountText(f.text)
	if all <= limit {
		return f.text, nil
	}
	at := bytes.LastIndexByte([]byte(f.text[:int(int64(len(f.text))*int64(limit)/int64(all))]), '\n') + 1
	if at == 0 {
		return f.text, nil // one long line: there is no line to read on from
	}
	lines := bytes.Count([]byte(f.text[:at]), []byte("\n"))
	rest := bytes.Count([]byte(f.text[at:]), []byte("\n"))
	if f.text[len(f.text)-1] != '\n' {
		rest++
	}
	handle := core.Handle(s.messages(f.text)[1].Parts[0])
	short := f.text[:at] + fmt.Sprintf("[… %d lines of %s left out: read on with offset %d; recall h:%s]",
		rest, s.event.Tool, f.first+lines, handle)
	if len(short) >= len(f.text) || !s.kept(ctx, f.text, short) {
		return f.text, nil
	}
	f.lines = lines + 1
	return short, nil
}
