package pi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

// write writes the session unchanged and after it, if something changed, a new branch with the
// whole view: pi continues the branch that ends with the last line, and the former branch is
// still there for its command /tree.
//
//   - An entry whose message did not change is repeated with an id of its own.
//   - One that was rewritten keeps all but the content.
//   - A new message gets an entry of its own.
//   - The last answer no longer reports its token usage: pi takes that for the size of the
//     conversation.
//   - An incomplete last line is left out, and a file of version 1 becomes one of version 3,
//     as pi would make it.
//
// The session manager of pi 0.74 reads such a file as this package does.
func write(f *codec.File, out *codec.Output) error {
	data, same := f.StartAgain(out)
	if same {
		return nil
	}
	rows, _, err := jsonl.Rows(data)
	if err != nil {
		return err
	}
	lines, at := piLines(rows)
	w := writer{file: f, own: true, out: out, ending: jsonl.LineBreak(data), taken: map[string]bool{}, names: map[string]string{}}
	for id := range at {
		w.taken[id] = true
	}
	switch {
	case len(lines) == 0:
		w.header(f.Journal.ID(), time.Time{})
	case lines[0].kind == "session" && rawjson.Int(rawjson.Field(lines[0].Raw, "version")) < 2:
		w.migrate(lines)
	default:
		last := lines[len(lines)-1]
		out.Add(data[:last.At+len(last.Raw)], w.ending)
	}
	piBranch(lines, at)
	w.like(lines)
	w.branch(f.View())
	return nil
}

// convertFile writes a conversation of another format as a session.
func convertFile(f *codec.File, out *codec.Output) error {
	turns := convert.Session(f, "pi", out)
	out.Warn("", "the directory of the session is not known: cwd is /")
	w := writer{file: f, out: out, ending: []byte("\n"), taken: map[string]bool{}, names: map[string]string{}, model: f.Model}
	switch {
	case strings.Contains(f.Model, "claude"):
		w.api, w.provider = "anthropic-messages", "anthropic"
	case strings.Contains(f.Model, "gemini"):
		w.api, w.provider = "google-generative-ai", "google"
	}
	entries, begin, _ := convert.Entries(f.Journal, turns)
	w.when = begin
	w.header(f.Journal.ID(), w.when)
	w.branch(plain.Each(entries, func(e history.Entry) core.Message { return e.Message }))
	return nil
}

// A writer writes a branch.
type writer struct {
	file   *codec.File
	own    bool // the messages come from a session of pi
	out    *codec.Output
	ending []byte
	taken  map[string]bool   // IDs of entries
	names  map[string]string // of tools, by the ID of the call
	prev   string            // the entry that was written last
	count  int
	when   time.Time // of that entry

	settings             [][]byte // entries with the model and the level of reasoning
	api, provider, model string   // of a new answer
}

func (w *writer) header(id string, when time.Time) {
	w.out.Add(rawjson.Append(nil, `{"type":"session","version":3,"id":?,"timestamp":?,"cwd":"/"}`, id, when), w.ending)
}

// migrate writes the entries of a file of version 1, which have no IDs, as pi would.
func (w *writer) migrate(lines []piLine) {
	ids := make([]string, len(lines))
	for i := range lines {
		if ids[i] = lines[i].id; ids[i] == "" {
			ids[i] = w.newID(lines[i].Raw)
		}
	}
	prev := ""
	for i := range lines {
		l := &lines[i]
		raw := l.Raw
		switch {
		case l.kind == "session":
			raw = rawjson.SetField(raw, "version", []byte("3"))
		case l.id == "":
			raw = rawjson.SetField(rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, ids[i])), "parentId", rawjson.QuoteOrNull(prev))
			if at := rawjson.Field(raw, "firstKeptEntryIndex"); at != nil {
				if k := rawjson.Int(at); k > 0 && k < len(ids) {
					raw = rawjson.SetField(raw, "firstKeptEntryId", rawjson.AppendQuote(nil, ids[k]))
				}
				raw = rawjson.CutField(raw, "firstKeptEntryIndex")
			}
		}
		if l.kind != "session" {
			prev = ids[i]
		}
		w.out.Add(raw, w.ending)
	}
}

// like finds the values that a new branch takes from the previous one.
func (w *writer) like(lines []piLine) {
	last := map[string][]byte{}
	for i := range lines {
		l := &lines[i]
		if t := rawjson.Time(rawjson.Field(l.Raw, "timestamp")); !t.IsZero() {
			w.when = t
		}
		if !l.live {
			continue
		}
		last[l.kind] = l.Raw
		message := rawjson.Field(l.Raw, "message")
		if rawjson.Text(rawjson.Field(message, "role")) == "assistant" {
			w.api = rawjson.Text(rawjson.Field(message, "api"))
			w.provider = rawjson.Text(rawjson.Field(message, "provider"))
			w.model = rawjson.Text(rawjson.Field(message, "model"))
		}
	}
	for _, kind := range []string{"model_change", "thinking_level_change"} {
		if raw := last[kind]; raw != nil {
			w.settings = append(w.settings, raw)
		}
	}
}

// branch writes view as a branch of its own.
func (w *writer) branch(view []core.Message) {
	for _, raw := range w.settings {
		w.entry(raw)
	}
	answer := -1 // the last one
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				w.names[c.ID] = c.Name
			}
		}
		if view[i].Role == core.RoleAssistant {
			answer = i
		}
	}
	for i := range view {
		w.message(&view[i], i == 0, i == answer)
	}
	if len(view) == 0 && w.count == 0 { // without an entry, the branch before would go on
		w.entry(rawjson.Append(nil, `{"type":"custom","id":"","parentId":null,"timestamp":?,"customType":"condense","data":{}}`, w.when))
	}
}

// usage is the usage of an answer without known usage.
const usage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// message writes an entry for m. First says that nothing is before it, answer that it is the last
// answer.
func (w *writer) message(m *core.Message, first, answer bool) {
	source := w.file.SourceOf(m.ID)
	message := rawjson.Field(source, "message")
	kind, role := rawjson.Text(rawjson.Field(source, "type")), rawjson.Text(rawjson.Field(message, "role"))
	own := w.own && source != nil
	switch {
	// A compaction is the first entry that pi sends.
	case own && m.Source != nil && (kind != "compaction" || first):
	case own && kind == "custom_message":
		source = rawjson.SetField(source, "content", patch(rawjson.Field(source, "content"), m.Parts))
	case own && kind == "message" && slices.Contains([]string{"user", "assistant", "custom", "hookMessage"}, role):
		message = rawjson.SetField(message, "content", patch(rawjson.Field(message, "content"), m.Parts))
		source = rawjson.SetField(source, "message", message)
	case own && kind == "message" && role == "toolResult" && len(m.Parts) == 1:
		r, ok := m.Parts[0].(core.ToolResult)
		if !ok {
			w.write(m)
			return
		}
		message = rawjson.SetField(message, "content", patch(rawjson.Field(message, "content"), r.Content))
		message = rawjson.SetField(message, "isError", []byte(strconv.FormatBool(r.IsError)))
		source = rawjson.SetField(source, "message", message)
	default:
		w.write(m)
		return
	}
	source = rawjson.CutField(source, "firstKeptEntryIndex")
	if message = rawjson.Field(source, "message"); answer && rawjson.IsObject(rawjson.Field(message, "usage")) {
		source = rawjson.SetField(source, "message", rawjson.SetField(message, "usage", []byte(usage)))
	}
	w.entry(source)
}

// write writes a new message, and its results as entries of their own.
func (w *writer) write(m *core.Message) {
	if !m.Time.IsZero() {
		w.when = m.Time
	}
	var said, results []core.Part
	for _, p := range m.Parts {
		if _, ok := p.(core.ToolResult); ok {
			results = append(results, p)
		} else {
			said = append(said, p)
		}
	}
	if m.Role == core.RoleAssistant && len(said) > 0 {
		w.answer(said)
	}
	for _, p := range results {
		if r, ok := p.(core.ToolResult); ok {
			w.add(rawjson.Append(nil, `{"role":"toolResult","toolCallId":?,"toolName":?,"content":?,"isError":?,"timestamp":?}`,
				r.CallID, w.names[r.CallID], content(r.Content), []byte(strconv.FormatBool(r.IsError)), w.millis()))
		}
	}
	if m.Role != core.RoleAssistant && len(said) > 0 {
		w.add(rawjson.Append(nil, `{"role":"user","content":?,"timestamp":?}`, content(said), w.millis()))
	}
}

func (w *writer) answer(said []core.Part) {
	stop := "stop"
	api, provider := w.api, w.provider
	for _, p := range said {
		switch p := p.(type) {
		case core.ToolCall:
			stop = "toolUse"
		case core.Reasoning:
			if p.Signature != "" && !strings.HasPrefix(api, "anthropic") {
				api, provider = "anthropic-messages", "anthropic"
			}
		default:
		}
	}
	if api == "" {
		api, provider = "openai-completions", "openai"
	}
	w.add(rawjson.Append(nil, `{"role":"assistant","content":?,"api":?,"provider":?,"model":?,"usage":?,"stopReason":?,"timestamp":?}`,
		content(said), api, provider, cmp.Or(w.model, "unknown"), []byte(usage), stop, w.millis()))
}

func (w *writer) millis() []byte { return strconv.AppendInt(nil, max(0, w.when.UnixMilli()), 10) }

// add writes an entry for message.
func (w *writer) add(message []byte) {
	w.entry(rawjson.Append(nil, `{"type":"message","id":"","parentId":null,"timestamp":?,"message":?}`, w.when, message))
}

// entry writes raw as the next entry.
func (w *writer) entry(raw []byte) {
	id := w.newID(raw)
	raw = rawjson.SetField(rawjson.SetField(raw, "id", rawjson.AppendQuote(nil, id)), "parentId", rawjson.QuoteOrNull(w.prev))
	w.out.Add(jsonl.Line(raw), w.ending)
	w.prev = id
	w.count++
	if t := rawjson.Time(rawjson.Field(raw, "timestamp")); !t.IsZero() {
		w.when = t
	}
}

// newID returns an ID for raw in the shape of pi's. The same file gives the same IDs.
func (w *writer) newID(raw []byte) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", w.prev, w.count, n, raw))
		if id := hex.EncodeToString(sum[:4]); !w.taken[id] {
			w.taken[id] = true
			return id
		}
	}
}

// patch returns the content was changed to parts. Blocks that did not change are kept byte for
// byte.
func patch(was []byte, parts []core.Part) []byte {
	var raw [][]byte
	var old []core.Part
	if rawjson.IsArray(was) {
		for block := range rawjson.Elements(was) {
			p, bad := decodePiBlock(block, false)
			if bad != nil {
				p = nil
			}
			if r, ok := p.(core.Reasoning); ok { // with its signature, if that is one for parts
				for _, q := range parts {
					if s, ok := q.(core.Reasoning); ok && s.Text == r.Text {
						p = s
					}
				}
			}
			raw, old = append(raw, block), append(old, p)
		}
	}
	out := make([][]byte, len(parts))
	match := blocks.Match(old, parts)
	for i, p := range parts {
		j := match[i]
		switch q := p.(type) {
		case core.Text:
			if j >= 0 && old[j] != p {
				out[i] = rawjson.SetField(rawjson.DropField(raw[j], "textSignature"), "text", rawjson.AppendQuote(nil, string(q)))
				continue
			}
		case core.ToolCall:
			if j >= 0 && old[j] != p {
				out[i] = rawjson.SetField(rawjson.SetField(raw[j], "name", rawjson.AppendQuote(nil, q.Name)), "arguments", apimessage.Args(q.Args))
				continue
			}
		default:
		}
		if out[i] = block(p); j >= 0 {
			out[i] = raw[j]
		}
	}
	return rawjson.Array(out)
}

// content returns parts as blocks.
func content(parts []core.Part) []byte { return rawjson.Array(plain.Each(parts, block)) }

func block(p core.Part) []byte {
	switch p := p.(type) {
	case core.Text:
		return rawjson.Append(nil, `{"type":"text","text":?}`, string(p))
	case core.Image:
		if p.Data != "" {
			return rawjson.Append(nil, `{"type":"image","data":?,"mimeType":?}`, p.Data, p.MediaType)
		}
		return rawjson.Append(nil, `{"type":"text","text":?}`, "[image: "+p.URL+"]")
	case core.Reasoning:
		raw := rawjson.Append(nil, `{"type":"thinking","thinking":?}`, p.Text)
		if p.Signature != "" {
			raw = rawjson.SetField(raw, "thinkingSignature", rawjson.AppendQuote(nil, p.Signature))
		}
		return raw
	case core.ToolCall:
		return rawjson.Append(nil, `{"type":"toolCall","id":?,"name":?,"arguments":?}`, p.ID, p.Name, apimessage.Args(p.Args))
	case core.Opaque:
		if raw := []byte(p.JSON); json.Valid(raw) && rawjson.IsObject(raw) && rawjson.Text(rawjson.Field(raw, "type")) == p.Kind {
			return raw
		}
		return rawjson.Append(nil, `{"type":"text","text":?}`, apimessage.Note(p.Kind))
	case core.ToolResult: // an entry of its own
	}
	return rawjson.Append(nil, `{"type":"text","text":?}`, apimessage.Note("unknown"))
}
