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
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// A sessionLine is the relevant part of a line of a session.
type sessionLine struct {
	jsonl.Row
	kind      string // the field type
	uuid      string
	parent    string // uuid; empty if null or absent
	linked    bool   // it has a parentUuid, possibly null
	turn      string // message.id
	model     string
	role      string
	boundary  bool
	logical   string // uuid of the line before a boundary
	sidechain bool
	summary   bool // it is the summary of a compaction
	meta      bool // Claude Code wrote it: a hook, a scheduled task, the text of a skill
	error     bool // it reports an error of the API and is never sent
	time      time.Time
	message   []byte
	metadata  []byte // compactMetadata

	up      int  // index of the parent line, or none
	live    bool // it is on the branch
	earlier int  // index of the line before with the same uuid, or none
}

// none is not an index.
const none = -1

// A sessionFile is a parsed session.
type sessionFile struct {
	lines    []sessionLine
	last     map[string]int  // uuid to the last line that has it
	warnings []codec.Warning // repairs
	kept     keptLines
	// The file is the transcript of a subagent: all of its messages have isSidechain, so they are the conversation.
	subagent bool
}

// said reports whether l holds a message, which is sent if l is on the branch.
func (l *sessionLine) said() bool {
	return (l.kind == "user" || l.kind == "assistant") && !l.sidechain && !l.error
}

// inTree reports whether l is a part of the main conversation, on a branch or other.
func (l *sessionLine) inTree() bool { return !l.sidechain && (l.uuid != "" || l.said()) }

// superseded reports whether a later line has the uuid of line i and is used instead.
func (s *sessionFile) superseded(i int) bool {
	uuid := s.lines[i].uuid
	return uuid != "" && s.last[uuid] != i
}

func parseSession(data []byte) (*sessionFile, error) {
	rows := jsonl.Rows
	if isArray(data) {
		rows = jsonl.Array
	}
	all, warnings, err := rows(data)
	if err != nil {
		return nil, err
	}
	s := &sessionFile{lines: make([]sessionLine, len(all)), last: make(map[string]int, len(all)), warnings: warnings, kept: keptLines{boundary: none, tail: none}}
	for i, r := range all {
		l := &s.lines[i]
		l.parse(r)
		l.up, l.earlier = none, none
		if l.uuid == "" {
			continue
		}
		if before, ok := s.last[l.uuid]; ok {
			l.earlier = before
		}
		s.last[l.uuid] = i
	}
	messages := func(l sessionLine) bool { return l.said() }
	if !slices.ContainsFunc(s.lines, messages) {
		for i := range s.lines {
			s.lines[i].sidechain = false
		}
		s.subagent = slices.ContainsFunc(s.lines, messages)
	}
	return s, nil
}

var lineFields = []string{
	"type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "isSidechain", "parent_tool_use_id", // the last in what claude -p prints
	"isCompactSummary", "isMeta", "isApiErrorMessage", "timestamp", "compactMetadata", "message",
}

func (l *sessionLine) parse(r jsonl.Row) {
	l.Row = r
	var kind, subtype, uuid, parent, logical, side, tool, summary, meta, fault, when, turn, model, role []byte
	rawjson.Pick(r.Raw, lineFields, &kind, &subtype, &uuid, &parent, &logical, &side, &tool,
		&summary, &meta, &fault, &when, &l.metadata, &l.message)
	l.kind, l.uuid, l.parent, l.linked = rawjson.Text(kind), rawjson.Text(uuid), rawjson.Text(parent), parent != nil
	l.logical, l.sidechain = rawjson.Text(logical), rawjson.IsTrue(side) || rawjson.IsString(tool)
	l.summary, l.meta, l.error, l.time = rawjson.IsTrue(summary), rawjson.IsTrue(meta), rawjson.IsTrue(fault), rawjson.Time(when)
	l.boundary = l.kind == "system" && rawjson.Text(subtype) == "compact_boundary"
	rawjson.Pick(l.message, []string{"id", "model", "role"}, &turn, &model, &role)
	l.turn, l.model, l.role = rawjson.Text(turn), rawjson.Text(model), rawjson.Text(role)
}

// resolve returns the last line before limit that has the uuid, or none.
func (s *sessionFile) resolve(uuid string, limit int) int {
	i, ok := s.last[uuid]
	if !ok || uuid == "" {
		return none
	}
	for i != none && i >= limit {
		i = s.lines[i].earlier
	}
	return i
}

// before returns the last line before i that is part of the tree, or none.
func (s *sessionFile) before(i int) int {
	for i--; i >= 0; i-- {
		if s.lines[i].inTree() {
			return i
		}
	}
	return none
}

// messages returns the messages of the branch, in the order of the file.
func (s *sessionFile) messages(data []byte) ([]session.Message, error) {
	var all []session.Message
	taken := codec.IDs{}
	for i := range s.lines {
		l := &s.lines[i]
		if !l.live || !l.said() || s.superseded(i) {
			continue
		}
		n := len(all) + 1
		m, bad := l.decode()
		if bad != nil {
			return nil, bad.In(data, l.Raw, n)
		}
		m.ID = taken.Next(n, l.uuid)
		all = append(all, session.Message{Message: m, Line: i})
	}
	return all, nil
}

func (l *sessionLine) decode() (core.Message, *syntax.Error) {
	m := core.Message{Role: core.Role(l.kind), Program: l.meta, Time: l.time, Source: slices.Clip(l.Raw)}
	if !rawjson.IsObject(l.message) {
		e := &syntax.Error{Found: syntax.Article(l.kind) + ` line without "message"`, Want: `an object as "message"`}
		if l.message != nil {
			e.Offset = rawjson.Offset(l.Raw, l.message)
			e.Found = syntax.Describe(l.message) + ` as "message"`
		}
		return m, e
	}
	if l.role == "user" || l.role == "assistant" {
		m.Role = core.Role(l.role)
	}
	if l.summary {
		m.Kind = core.KindSummary
	}
	content := rawjson.Field(l.message, "content")
	parts, err := blocks.Decode(content)
	if err != nil {
		err.Offset += rawjson.Offset(l.Raw, content)
		return m, err
	}
	m.Parts = parts
	return m, nil
}

// compactionID returns the ID of the condensation that the boundary l is imported as.
func (l *sessionLine) compactionID() string {
	return cmp.Or(l.uuid, "compaction-"+strconv.Itoa(l.Line))
}

// A compaction is the description in a boundary.
type compaction struct {
	id         string
	at         int // index of the boundary
	line       int // its number
	begin, end int // the summary: messages with these indices
	// keep are the earlier messages that were kept; keptFirst says that they are before the
	// summary.
	keep          map[string]bool
	keptFirst     bool
	trigger       core.Trigger
	time          time.Time
	before, after int // tokens
}

// compactions returns the compactions on the branch.
func (s *sessionFile) compactions(messages []session.Message) []compaction {
	var all []compaction
	next := 0
	var boundaries []int
	for i := range s.lines {
		if l := &s.lines[i]; l.boundary && l.live && !s.superseded(i) {
			boundaries = append(boundaries, i)
		}
	}
	for k, i := range boundaries {
		l := &s.lines[i]
		until := len(s.lines)
		if k+1 < len(boundaries) {
			until = boundaries[k+1]
		}
		for next < len(messages) && messages[next].Line < i {
			next++
		}
		c := compaction{id: l.compactionID(), at: i, line: l.Line, begin: next, end: next, time: l.time}
		for c.end < len(messages) && messages[c.end].Line < until {
			line := messages[c.end].Line
			if !s.lines[line].summary && (i != s.kept.boundary || line > s.kept.anchor) {
				break
			}
			c.end++
		}
		var trigger, before, after []byte
		rawjson.Pick(l.metadata, []string{"trigger", "preTokens", "postTokens"}, &trigger, &before, &after)
		c.trigger = map[string]core.Trigger{"auto": core.TriggerAutomatic, "manual": core.TriggerManual}[rawjson.Text(trigger)]
		c.before, c.after = rawjson.Int(before), rawjson.Int(after)
		if i == s.kept.boundary {
			c.keep = map[string]bool{}
			for at := range s.kept.set {
				c.keep[s.lines[at].uuid] = true
			}
			c.keptFirst = s.kept.anchor == i
		}
		all = append(all, c)
	}
	return all
}

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
	w.out.Add(jsonl.Line(appendSessionLine(out, id, m, w.lastModel(), when)), w.ending)
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
	turns := convert.Session(f, "Claude Code", out)
	out.Warn("", "the directory of the session is not known: cwd is /")
	session := lineID(f.Journal.ID())
	model := cmp.Or(f.Model, synthetic)
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
		out.Add(jsonl.Line(appendSessionLine(line, id, &m, model, when)), []byte("\n"))
		prev = id
	}
	out.Add(appendLastPrompt(nil, prompt, prev, session), []byte("\n"))
	return nil
}

// appendLastPrompt appends the line in which newer versions look for the last line of the
// conversation. A session without messages has only this line.
func appendLastPrompt(out []byte, prompt, leaf, session string) []byte {
	return rawjson.Append(out, `{"type":"last-prompt","lastPrompt":?,"leafUuid":?,"sessionId":?}`, prompt, rawjson.QuoteOrNull(leaf), session)
}
