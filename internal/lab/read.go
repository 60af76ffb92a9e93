package lab

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/transcript"
)

// maxSession is the maximum size of a session in bytes, uncompressed: far above any recorded session, and small
// enough that a hostile file does not exhaust the memory.
const maxSession = 256 << 20

// ReadSession reads a conversation in any format of package transcript from r. Name is the file's name. Messages are
// measured with c.
//
// A file in the format "trace" records the author of every text, the mode, and the compactions. For other formats,
// text of the user counts as typed unless it looks like text that an agent injected, the source is the folder of the
// file, and the compactions are the journal's. The mode is the one that the messages name (Roo Code, Cline) or the
// file records (Claude Code and Codex: plan or code; OpenCode: the agent), else empty.
func ReadSession(r io.Reader, name string, c core.Counter) (*score.Session, error) {
	data, err := transcript.ReadAll(r, maxSession)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Name: name})
	if err != nil {
		return nil, err
	}
	s := SessionOf(d, c)
	s.ID, s.Source = called(name)
	if d.Format == "trace" {
		if err := readTrace(data, s); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.Mode == "" {
		s.Mode = cmp.Or(announcedMode(s.Messages), recordedMode(d.Format, data))
	}
	return s, nil
}

// SessionOf converts a conversation to a session without a name and a mode. Its messages are measured with c.
func SessionOf(d *transcript.Document, c core.Counter) *score.Session {
	s := &score.Session{Format: d.Format, System: d.System, Tools: toolNames(d.Tools)}
	readJournal(d, s)
	for i := range s.Messages {
		s.Messages[i].Source, s.Messages[i].Number = nil, i+1
	}
	core.Measure(c, s.Messages)
	return s
}

// dropReasoning takes the model's reasoning out of a session. Other programs are not given it, so nobody is measured by it.
func dropReasoning(s *score.Session, c core.Counter) {
	was := *s
	s.Messages, s.Origins, s.Usage = nil, nil, map[int]score.Usage{}
	moved := make([]int, len(was.Messages)+1) // the new index of the message, or of the next one that stays
	for i, m := range was.Messages {
		var of []score.Origin
		for k, p := range m.Parts {
			if _, ok := p.(core.Reasoning); !ok {
				of = append(of, was.Origin(i, k))
			}
		}
		if left := withoutReasoning([]core.Message{m}, c); len(left) > 0 {
			if u, ok := was.Usage[i]; ok {
				s.Usage[len(s.Messages)] = u
			}
			s.Messages, s.Origins = append(s.Messages, left[0]), append(s.Origins, of)
		}
		moved[i+1] = len(s.Messages)
	}
	for i, k := range s.Compactions {
		s.Compactions[i].At, s.Compactions[i].KeptFrom = moved[k.At], moved[k.KeptFrom]
	}
}

// Read reads the session. Its messages are measured with c.
func (it Item) Read(c core.Counter) (*score.Session, error) {
	f, err := it.Open()
	if err != nil {
		return nil, err
	}
	s, err := ReadSession(f, it.Name, c)
	return s, errors.Join(err, f.Close())
}

// rename gives messages and calls IDs as they have in use, which do not say that the session is a recorded one.
func rename(messages []core.Message, salt string) {
	id := func(was string) string { return core.Handle(core.Text(salt + was)) }
	for i := range messages {
		m := &messages[i]
		m.ID = id(m.ID)
		for k, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				p.ID = id(p.ID)
				m.Parts[k] = p
			case core.ToolResult:
				p.CallID = id(p.CallID)
				m.Parts[k] = p
			default:
			}
		}
	}
}

// Joined returns a session of items one after the other, and of the sessions of the program, until it has that many messages.
func Joined(items []Item, least int, c core.Counter) *score.Session {
	all, had := &score.Session{}, map[string]bool{}
	for _, it := range append(slices.Clip(items), Demo()...) {
		if had[it.Name] || len(all.Messages) >= least {
			continue
		}
		had[it.Name] = true
		if s, err := it.Read(c); err == nil { // whoever measures them says which cannot be read
			rename(s.Messages, it.Name)
			all.Messages, all.Origins = append(all.Messages, s.Messages...), append(all.Origins, s.Origins...)
		}
	}
	return all
}

// alike are names of files that are the same for every session of a tool. Each session has a folder
// of its own.
var alike = []string{"api_conversation_history", "conversation", "messages", "session", "transcript"}

// called returns the name and the source of a session in the file name.
func called(name string) (id, source string) {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	dir, base := filepath.Split(strings.TrimSuffix(name, ".gz"))
	id = strings.TrimSuffix(base, filepath.Ext(base))
	if slices.Contains(alike, id) {
		if up, folder := filepath.Split(filepath.Clean(dir)); folder != "" {
			dir, id = up, folder
		}
	}
	return id, filepath.Base(dir)
}

// readJournal adds to s the original messages of d, hidden or not, and the compactions.
func readJournal(d *transcript.Document, s *score.Session) {
	compactions := map[string]*score.Compaction{}
	var talk dialog.AuthorReader
	for _, e := range d.Journal.Timeline() {
		if e.InsertedBy != "" {
			if e.Message.Kind == core.KindSummary && compactions[e.InsertedBy] == nil {
				compactions[e.InsertedBy] = &score.Compaction{Summary: textOf(e.Message.Parts)}
			}
			continue
		}
		if e.Original.Role == core.RoleAssistant {
			if u, ok := transcript.ReadUsage(e.Original.Source); ok {
				if s.Usage == nil {
					s.Usage = map[int]score.Usage{}
				}
				s.Usage[len(s.Messages)] = score.Usage(u)
			}
		}
		s.Messages = append(s.Messages, e.Original)
		o := origins(&talk, &e.Original)
		if d.Origin == "claudecode" && e.Original.Program && !slices.ContainsFunc(e.Original.Parts, func(p core.Part) bool { _, ok := p.(core.Text); return !ok }) {
			o = slices.Repeat([]score.Origin{score.OriginInjected}, len(e.Original.Parts))
		}
		s.Origins = append(s.Origins, o)
	}
	at := plain.Index(s.Messages, func(x core.Message) string { return x.ID })
	done := map[string]bool{}
	for _, c := range d.Journal.Condensations() {
		done[c.ID] = true
		k := compactions[c.ID]
		if k == nil {
			continue
		}
		last := -1
		for _, id := range c.Edit.Hide {
			if i, ok := at[id]; ok {
				last = max(last, i)
			}
		}
		if last < 0 {
			continue
		}
		k.At, k.KeptFrom = last+1, last+1
		for i := last + 1; i < len(s.Messages); i++ {
			if c.Time.IsZero() || s.Messages[i].Time.IsZero() || s.Messages[i].Time.After(c.Time) {
				break
			}
			k.At = i + 1
		}
		for _, e := range d.Journal.Timeline() {
			original := e.InsertedBy == ""
			gone := slices.ContainsFunc(e.HiddenBy, func(id string) bool { return done[id] })
			if !gone && (original && at[e.Original.ID] < k.At || done[e.InsertedBy]) {
				k.View = append(k.View, e.Original)
			}
		}
		s.Compactions = append(s.Compactions, *k)
	}
}

func textOf(parts []core.Part) string {
	var out []string
	for _, p := range parts {
		if t, ok := p.(core.Text); ok {
			out = append(out, string(t))
		}
	}
	return strings.Join(out, "\n")
}

// readTrace adds the fields of s that only the format "trace" records.
func readTrace(data []byte, s *score.Session) error {
	var t struct {
		ID, Source, Mode string
		Messages         []struct {
			Origin  string
			Content json.RawMessage
		}
		Compactions []struct {
			At       int
			KeptFrom *int `json:"kept_from"`
			Summary  *string
		}
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	s.ID, s.Source, s.Mode = t.ID, t.Source, t.Mode
	s.Origins, s.Compactions = nil, nil
	if len(t.Messages) != len(s.Messages) {
		return fmt.Errorf("%d messages in the file, %d in the conversation", len(t.Messages), len(s.Messages))
	}
	for _, m := range t.Messages {
		var parts []struct{ Origin string }
		if json.Unmarshal(m.Content, &parts) != nil {
			parts = nil
		}
		row := []score.Origin{originNames[m.Origin]}
		if len(parts) > 0 {
			row = row[:0]
		}
		for _, p := range parts {
			row = append(row, originNames[p.Origin])
		}
		s.Origins = append(s.Origins, row)
	}
	for _, c := range t.Compactions {
		k := score.Compaction{At: c.At, KeptFrom: c.At}
		if c.KeptFrom != nil {
			k.KeptFrom = *c.KeptFrom
		}
		if c.Summary != nil {
			k.Summary = *c.Summary
		}
		if k.At < 0 || k.KeptFrom < 0 || k.KeptFrom > k.At || k.At > len(s.Messages) {
			return fmt.Errorf("compaction at message %d, kept from %d, of %d messages", k.At, k.KeptFrom, len(s.Messages))
		}
		s.Compactions = append(s.Compactions, k)
	}
	return nil
}

var originNames = map[string]score.Origin{
	"human": score.OriginUser, "agent": score.OriginAgent, "tool": score.OriginTool, "injected": score.OriginInjected,
}

// toolNames returns the names of tools and parameters in definitions, in the form of either vendor.
func toolNames(definitions json.RawMessage) []string {
	type schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var tools []struct {
		Name     string `json:"name"`
		Input    schema `json:"input_schema"`
		Function struct {
			Name       string `json:"name"`
			Parameters schema `json:"parameters"`
		} `json:"function"`
	}
	if json.Unmarshal(definitions, &tools) != nil {
		return nil
	}
	var out []string
	for _, t := range tools {
		out = append(out, plain.Only([]string{t.Name, t.Function.Name}, func(name string) bool { return name != "" })...)
		for _, s := range []schema{t.Input, t.Function.Parameters} {
			for name := range s.Properties {
				out = append(out, name)
			}
		}
	}
	return out
}

// origins returns the authors of the parts of m, for formats that do not record them.
func origins(talk *dialog.AuthorReader, m *core.Message) []score.Origin {
	if m.Role != core.RoleUser && m.Role != core.RoleAssistant {
		return nil
	}
	out := make([]score.Origin, len(m.Parts))
	found := false
	for i, segments := range talk.Message(m) {
		out[i] = originOf(segments)
		found = found || out[i] != score.OriginUnknown
	}
	if !found {
		return nil
	}
	return out
}

// originOf returns the author of a part that consists of segments; unknown if the user wrote any of it.
func originOf(segments []dialog.Segment) score.Origin {
	o := score.OriginUnknown
	for _, s := range segments {
		switch {
		case strings.TrimSpace(s.Text) == "":
		case s.Kind == dialog.KindUser:
			return score.OriginUnknown
		case s.Kind == dialog.KindInjected || s.Kind == dialog.KindEnvironment || s.Kind == dialog.KindProjectRules:
			if o == score.OriginUnknown {
				o = score.OriginInjected
			}
		default:
			o = score.OriginTool
		}
	}
	return o
}
