package claudecode

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
)

// copied are the fields that a new line takes from its neighbor.
var copied = []string{"userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId"}

// writeNew writes a line for each new message at an index of order.
func (w *sessionWriter) writeNew(at int) {
	like := min(at, len(w.order)-1)
	for like > 0 && !w.lines[w.order[like]].said() {
		like--
	}
	for i := range w.add[at] {
		if like < 0 {
			w.writeLike(&sessionLine{}, &w.add[at][i])
		} else {
			w.writeLike(&w.lines[w.order[like]], &w.add[at][i])
		}
	}
}

// writeLike writes a line for m with the fields of another line.
func (w *sessionWriter) writeLike(like *sessionLine, m *core.Message) {
	id := lineID(m.ID)
	out := []byte{'{'}
	if !w.unnamed {
		out = rawjson.Append(out, `"parentUuid":?,`, rawjson.QuoteOrNull(w.prev))
	}
	out = strconv.AppendBool(append(out, `"isSidechain":`...), w.subagent)
	for _, name := range copied {
		if v := rawjson.Field(like.Raw, name); v != nil {
			out = append(rawjson.AppendQuote(append(out, ','), name), ':')
			out = append(out, v...)
		}
	}
	when := m.Time
	if when.IsZero() {
		when = like.time
	}
	w.out.Add(jsonl.Line(appendSessionLine(out, id, m, w.lastModel(), when)))
	w.out.AddString(w.ending)
	w.prev, w.unnamed, w.barrier = id, false, w.count
	w.count++
}

// lastModel returns the model that answered last.
func (w *sessionWriter) lastModel() string {
	for _, l := range slices.Backward(w.lines) {
		if l.model != "" {
			return l.model
		}
	}
	return synthetic
}

// namespace is the namespace of the UUIDs that are made from other IDs.
var namespace = uuid.MustParse("6f0d3f0e-9c8e-4d1f-8d55-7a1f6a1c3c53")

// lineID returns the uuid for a message with the given ID.
func lineID(id string) string {
	if u, err := uuid.Parse(id); err == nil && u.String() == id {
		return id
	}
	return uuid.NewSHA1(namespace, []byte(id)).String()
}

// appendSessionLine appends the rest of a line, from its type on.
func appendSessionLine(out []byte, id string, m *core.Message, model string, when time.Time) []byte {
	content := apimessage.BlockContent(m.Parts)
	if m.Role == core.RoleAssistant {
		if content[0] != '[' {
			content = append(apimessage.AppendBlock([]byte{'['}, m.Parts[0]), ']')
		}
		out = rawjson.Append(out, `,"type":"assistant","message":{"id":?,"type":"message","role":"assistant","model":?,"content":?,`+
			`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0,`+
			`"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}`, "msg_"+strings.ReplaceAll(id, "-", ""), model, content)
	} else {
		out = rawjson.Append(out, `,"type":"user","message":{"role":"user","content":?}`, content)
		switch m.Kind {
		case core.KindSummary:
			out = append(out, `,"isCompactSummary":true,"isVisibleInTranscriptOnly":true`...)
		case core.KindMarker:
			out = append(out, `,"isMeta":true`...)
		case core.KindOriginal:
		}
	}
	return rawjson.Append(out, `,"uuid":?,"timestamp":?}`, id, when)
}

// convertFile writes a conversation of another format as a session.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	if system != "" {
		out.Warn("", "the system prompt was left out: Claude Code has its own")
	}
	out.Warn("", "the directory of the session is not known: cwd is /")
	session := lineID(f.Journal.ID())
	model := f.Model
	model = cmp.Or(model, synthetic)
	prev, prompt, when := "", "", time.Time{}
	for i, t := range apimessage.Messages(turns) {
		m := core.Message{ID: session + " " + strconv.Itoa(i), Role: t.Role, Kind: t.Kind, Parts: t.Parts}
		id := lineID(m.ID)
		if source, ok := f.Journal.Message(t.ID); ok && !source.Time.IsZero() {
			when = source.Time
		}
		if s := blocks.Join(t.Parts); t.Role == core.RoleUser && s != "" {
			prompt = s
		}
		line := rawjson.Append(nil, `{"parentUuid":?,"isSidechain":false,"userType":"external","cwd":"/","sessionId":?`, rawjson.QuoteOrNull(prev), session)
		out.Add(jsonl.Line(appendSessionLine(line, id, &m, model, when)))
		out.AddString("\n")
		prev = id
	}
	out.Add(appendLastPrompt(nil, prompt, prev, session))
	out.AddString("\n")
	return nil
}

// appendLastPrompt appends the line in which newer versions look for the last line of the
// conversation. A session without messages has only this line.
func appendLastPrompt(out []byte, prompt, leaf, session string) []byte {
	return rawjson.Append(out, `{"type":"last-prompt","lastPrompt":?,"leafUuid":?,"sessionId":?}`, prompt, rawjson.QuoteOrNull(leaf), session)
}
