package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/anthropic"
	"github.com/condensehq/condense/internal/codec/converse"
	"github.com/condensehq/condense/internal/codec/geminiapi"
	"github.com/condensehq/condense/internal/codec/openai"
	"github.com/condensehq/condense/internal/codec/responses"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/aider"
	"github.com/condensehq/condense/transcript/internal/claudecode"
	"github.com/condensehq/condense/transcript/internal/codex"
	"github.com/condensehq/condense/transcript/internal/condense"
	"github.com/condensehq/condense/transcript/internal/copilot"
	"github.com/condensehq/condense/transcript/internal/exports"
	"github.com/condensehq/condense/transcript/internal/gemini"
	"github.com/condensehq/condense/transcript/internal/opencode"
	"github.com/condensehq/condense/transcript/internal/pi"
	"github.com/condensehq/condense/transcript/internal/roo"
	"github.com/condensehq/condense/transcript/internal/trace"
)

// codecs are all formats, the most specific first: detection takes the first that accepts the file. CONTRIBUTING.md says how to
// add one.
var codecs = slices.Concat([]codec.Codec{
	condense.Codec,
	gemini.Qwen,
	claudecode.Codec,
	claudecode.Array,
	codex.Codec,
	pi.Codec,
	copilot.Codec,
	opencode.Codec,
	gemini.Codec,
	roo.Codec,
	trace.Codec,
	responses.Codec,
	geminiapi.Codec,
	converse.Codec,
	openai.Codec,
	anthropic.Codec,
}, exports.Codecs, []codec.Codec{aider.Codec})

// A Format is a way to store a conversation.
type Format struct {
	Name string // as [Document.Write] and [ReadOptions] take it
	Doc  string // one line
	// ReadOnly reports that conversations are only read from this format: they are written in
	// it only if they came from it and nothing changed.
	ReadOnly bool
}

// Formats returns the formats in the order of detection.
func Formats() []Format {
	return plain.Each(codecs, func(c codec.Codec) Format { return Format{c.Name, c.Doc, c.Write == nil} })
}

// Detect returns the name of the format of data, which may be compressed. The error describes
// the data and lists the formats.
func Detect(data []byte) (string, error) {
	data, err := ReadAll(bytes.NewReader(data), 0)
	if err != nil {
		return "", err
	}
	c, err := choose(bytes.TrimPrefix(data, codec.ByteOrderMark), "")
	if err != nil {
		return "", err
	}
	return c.Name, nil
}

func choose(data []byte, name string) (*codec.Codec, error) {
	if name != "" {
		return byName(name)
	}
	for i := range codecs {
		if codecs[i].Detect(data) {
			return &codecs[i], nil
		}
	}
	if err := syntax.Validate(data); err != nil && err.CutOff {
		return nil, err
	}
	return nil, fmt.Errorf("unknown format: found %s; want one of %s", seen(data), names())
}

func byName(name string) (*codec.Codec, error) {
	for i := range codecs {
		if codecs[i].Name == name {
			return &codecs[i], nil
		}
	}
	return nil, fmt.Errorf("unknown format %q; want one of %s", name, names())
}

func names() string {
	all := plain.Each(codecs, func(c codec.Codec) string { return c.Name })
	return strings.Join(all, ", ")
}

// seen describes data that is in no known format.
func seen(data []byte) string {
	at := rawjson.SkipSpace(data, 0)
	if at == len(data) {
		return "an empty file"
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return "UTF-16 text (convert the file to UTF-8)"
	}
	switch data[at] {
	case '{':
		if keys := keysOf(data[at:]); keys != "no fields" || json.Valid(data[at:]) {
			return "an object with " + keys
		}
		return "an object that is no JSON, or breaks off"
	case '[':
		for first := range rawjson.Elements(data[at:]) {
			if rawjson.IsObject(first) {
				return "an array of objects with " + keysOf(first)
			}
			return "an array of " + syntax.Describe(first)
		}
		return "an array that does not end"
	}
	line, _, _ := bytes.Cut(data[at:min(len(data), at+200)], []byte("\n"))
	if r := []rune(strings.ToValidUTF8(string(line), "\ufffd")); len(r) > 40 {
		return fmt.Sprintf("text that begins %q", string(r[:40])+"…")
	}
	return fmt.Sprintf("text that begins %q", line)
}

// keysOf lists the first few keys of the object raw.
func keysOf(raw []byte) string {
	var keys []string
	for k := range rawjson.Fields(raw) {
		if len(keys) == 8 {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, string(k))
	}
	if len(keys) == 0 {
		return "no fields"
	}
	return "the fields " + strings.Join(keys, ", ")
}

// A TooLargeError reports a file that is larger than allowed.
type TooLargeError struct {
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	if e.Limit >= 1<<20 && e.Limit%(1<<20) == 0 {
		return fmt.Sprintf("larger than %d MiB", e.Limit>>20)
	}
	return fmt.Sprintf("larger than %d bytes", e.Limit)
}

// A SyntaxError reports where a file is not valid in its format.
type SyntaxError struct {
	Name    string // of the file; empty if unknown
	Line    int    // the first is 1; zero if unknown
	Message int    // number of the message concerned, the first is 1; zero if none
	Offset  int    // bytes before it
	Found   string // the content there
	Want    string // the expected content
}

// Error returns the file, the line, the message, the found and the expected content.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Name != "" {
		b.WriteString(e.Name + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Message > 0 {
		fmt.Fprintf(&b, "message %d: ", e.Message)
	}
	b.WriteString("found " + e.Found)
	if e.Want != "" {
		b.WriteString("; want " + e.Want)
	}
	return b.String()
}

// locate returns e with the name of the file and the line of its offset in data.
func locate(e *syntax.Error, name string, data []byte) *SyntaxError {
	line := 1 + bytes.Count(data[:min(e.Offset, len(data))], []byte("\n"))
	return &SyntaxError{Name: name, Line: line, Message: e.Message, Offset: e.Offset, Found: e.Found, Want: e.Want}
}

// A Warning is something that was repaired, ignored or lost. The rest is usable.
type Warning struct {
	Message string // ID of the message concerned; empty if none
	Text    string
}

// String returns the message's ID and the text.
func (w Warning) String() string {
	if w.Message == "" {
		return w.Text
	}
	return "message " + w.Message + ": " + w.Text
}

// Usage is what an agent recorded of the vendor's count of one request, in tokens.
type Usage struct {
	ID, Model string
	Input     int // the whole prompt
	Read      int // of it, that a cache served
	Write     int // of it, written to a cache
	Hour      int // of these, that live an hour
}

// ReadUsage returns the usage that a message of a session file, its Source, records for its request, in the forms of Claude Code,
// pi, OpenCode, Gemini CLI and Qwen Code.
func ReadUsage(source json.RawMessage) (Usage, bool) {
	type usage struct {
		Input      int `json:"input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		Creation   struct {
			Hour int `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
		PiInput int `json:"input"`
		PiRead  int `json:"cacheRead"`
		PiWrite int `json:"cacheWrite"`
	}
	type tokens struct {
		Input  int `json:"input"`
		Cached int `json:"cached"` // of Input
		Cache  struct {
			Read  int `json:"read"`
			Write int `json:"write"`
		} `json:"cache"`
	}
	type message struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		ModelID string `json:"modelID"`
		Usage   usage  `json:"usage"`
		Tokens  tokens `json:"tokens"`
		Meta    struct {
			Prompt int `json:"promptTokenCount"`
			Cached int `json:"cachedContentTokenCount"` // of Prompt
		} `json:"usageMetadata"`
	}
	var line struct {
		message
		Message message `json:"message"`
		Info    message `json:"info"`
	}
	if json.Unmarshal(source, &line) != nil {
		return Usage{}, false
	}
	for _, m := range []message{line.Message, line.Info, line.message} {
		u, t := m.Usage, m.Tokens
		out := Usage{
			ID: m.ID, Model: m.Model + m.ModelID, Hour: u.Creation.Hour,
			Read: u.CacheRead + u.PiRead + t.Cache.Read + t.Cached + m.Meta.Cached, Write: u.CacheWrite + u.PiWrite + t.Cache.Write,
		}
		out.Input = u.Input + u.PiInput + t.Input - t.Cached + m.Meta.Prompt - m.Meta.Cached + out.Read + out.Write
		if out.Input > 0 {
			return out, true
		}
	}
	return Usage{}, false
}

// Recorded is what a vendor counted of a request, as the agent recorded it.
type Recorded struct {
	Messages int // of the view, from the first, that were in the request
	Tokens   int // of these, and of what the agent sent besides them
}

// Recorded returns the vendor's counts of requests since the last condensation, in order. It is empty for formats without them.
func (d *Document) Recorded() []Recorded {
	if d.Format != d.Origin {
		return nil
	}
	var since time.Time
	if all := d.Journal.Condensations(); len(all) > 0 {
		since = all[len(all)-1].Time
	}
	at := map[string]int{}
	for _, n := range d.counts {
		at[n.Message] = n.Tokens
	}
	var out []Recorded
	add := func(messages, n int) {
		if n > 0 && (len(out) == 0 || out[len(out)-1].Tokens != n) { // the records of one answer repeat it
			out = append(out, Recorded{messages, n})
		}
	}
	view := d.Journal.View()
	for i := range view {
		switch m := &view[i]; {
		case m.Time.Before(since):
		case at[m.ID] > 0:
			add(i+1, at[m.ID])
		case m.Role == core.RoleAssistant:
			u, _ := ReadUsage(m.Source)
			add(i, u.Input)
		}
	}
	return out
}
