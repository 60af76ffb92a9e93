package request

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/codec"
)

// none is no index.
const none = -1

// Write writes messages into the envelope of f. One that has a Source is written
// verbatim; for the others, encode makes the bytes: from was, the Source that the
// message had when it was read, or from nothing if was is nil. Merge says that rows of
// messages that a condensation made become one: see mergeRows.
func Write(f *codec.File, out *codec.Output, messages []core.Message, merge bool, encode func(m *core.Message, was []byte) []byte) {
	e := &f.Envelope
	records := make([]record, len(messages))
	size := len(e.Head) + len(e.Tail)
	rows := false
	for i := range messages {
		m := &messages[i]
		raw := []byte(m.Source)
		if raw == nil {
			raw = encode(m, f.SourceOf(m.ID))
		}
		records[i] = record{raw: raw, gap: e.Gap(m.ID), message: m}
		size += len(raw) + len(records[i].gap)
		rows = rows || i > 0 && makesRow(f.Vendor, messages[i-1].Role, m.Role)
	}
	if merge && rows {
		records = mergeRows(f, records)
	}
	out.Grow(size)
	out.Add(e.Head)
	for i := range records {
		if i > 0 {
			out.Add(records[i].gap)
		}
		out.Add(records[i].raw)
	}
	out.Add(e.Tail)
}

// A record is a message as it is written.
type record struct {
	raw     []byte
	gap     []byte // before it
	message *core.Message
}

// makesRow reports whether two messages with these roles, one after the other, are a row that
// an API refuses: the user's, and for Anthropic's the system's.
func makesRow(v codec.Vendor, first, second core.Role) bool {
	return first == second && (first == core.RoleUser || first == core.RoleSystem && v == codec.Anthropic)
}

// mergeRows makes one of records in a row that are the user's or the system's, where that they
// follow each other is the work of a condensation: one was inserted, or what was between two
// is hidden. Anthropic's API would take them as one; others, and many chat templates, refuse
// such a row. The content becomes an array with the elements of all, byte for byte; nothing
// is lost. Messages that followed each other when they were read stay apart, as do those
// whose fields besides the content say something that the other's do not. The cost is linear.
func mergeRows(f *codec.File, records []record) []record {
	place := map[string]int{}
	for i, m := range f.Journal.Messages() {
		place[m.ID] = i + 1 // those that were inserted have none
	}
	var (
		out    []record
		merged merged // the last of out
	)
	finish := func() {
		last := &out[len(out)-1]
		if last.raw = merged.raw(); merged.marked {
			last.raw = joinMarkers(last.raw)
		}
	}
	for i, r := range records {
		if i > 0 {
			before := records[i-1].message
			a, b := place[before.ID], place[r.message.ID]
			if makesRow(f.Vendor, before.Role, r.message.Role) && (a == 0 || b != a+1) && merged.add(r.raw) {
				merged.marked = merged.marked || r.message.Kind == core.KindMarker
				continue
			}
			finish()
		}
		out = append(out, r)
		merged.base, merged.content, merged.marked = r.raw, nil, r.message.Kind == core.KindMarker
	}
	if len(out) > 0 {
		finish()
	}
	return out
}

// hiddenMarker is what truncation puts where messages are hidden: see the marker of package
// providers/slidingwindow.
var hiddenMarker = regexp.MustCompile(`^\[(?:… )?(\d+) earlier messages?(?:, with (\d+) tool calls?,)?( and what an earlier note like this stood for)? left out here to fit the context window\]$`)

// joinMarkers makes one of the markers of hidden messages in raw, the last: the file says no
// longer that the older ones were inserted, so no provider can replace them, and every round
// would add one. The new one counts what all of them counted.
func joinMarkers(raw []byte) []byte {
	var kept [][]byte
	messages, calls, again, last, n := 0, 0, false, none, 0
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		m := hiddenMarker.FindStringSubmatch(rawjson.Text(rawjson.Field(block, "text")))
		if m == nil {
			kept = append(kept, block)
			continue
		}
		if n++; last != none {
			kept = slices.Delete(kept, last, last+1)
		}
		last = len(kept)
		kept = append(kept, block)
		messages, calls, again = messages+rawjson.Int([]byte(m[1])), calls+rawjson.Int([]byte(m[2])), again || m[3] != ""
	}
	if n < 2 {
		return raw
	}
	words := "[… " + codec.Count(messages, "earlier message")
	if calls > 0 {
		words += ", with " + codec.Count(calls, "tool call") + ","
	}
	if again {
		words += " and what an earlier note like this stood for"
	}
	words += " left out here to fit the context window]"
	kept[last] = rawjson.SetField(kept[last], "text", rawjson.AppendQuote(nil, words))
	return rawjson.SetField(raw, "content", rawjson.Array(kept))
}

// A merged is a message that takes up what others hold.
type merged struct {
	base    []byte // the message whose other fields it has
	content []byte // an array without its end; nil if nothing was added
	plain   bool   // base has no other fields; known when something was added
	marked  bool   // a marker that a condensation inserted is among it
}

// raw returns the message.
func (m *merged) raw() []byte {
	if m.content == nil {
		return m.base
	}
	return rawjson.SetField(m.base, "content", append(m.content, ']'))
}

// add adds what the message b holds. It reports false, and adds nothing, if there is more to
// one of the two than a role and content, unless the other has just these, and if b holds
// results: they answer the message before, and nothing may stand between.
func (m *merged) add(b []byte) bool {
	if m.content == nil {
		m.plain = plainMessage(m.base)
		if !mergeable(m.base) || !m.plain && rawjson.Field(m.base, "name") != nil { // it says who speaks
			return false
		}
	}
	plain := plainMessage(b)
	if !mergeable(b) || !plain && (!m.plain || rawjson.Field(b, "name") != nil) {
		return false
	}
	for e := range rawjson.Elements(rawjson.Field(b, "content")) {
		if rawjson.Text(rawjson.Field(e, "type")) == "tool_result" {
			return false
		}
	}
	if m.content == nil {
		m.content = appendContent([]byte{'['}, m.base)
	}
	m.content = appendContent(m.content, b)
	if !plain {
		m.base, m.plain = b, false
	}
	return true
}

// mergeable reports whether raw is one message with content that has elements, or can have:
// results become messages of their own in some formats, and those are several.
func mergeable(raw []byte) bool {
	if !json.Valid(raw) {
		return false
	}
	content := rawjson.Field(raw, "content")
	return rawjson.IsString(content) || rawjson.IsArray(content)
}

// appendContent appends the elements of the content of raw to the array to, which has no end.
func appendContent(to, raw []byte) []byte {
	content := rawjson.Field(raw, "content")
	if string(content) == `""` {
		return to // no vendor takes an empty block
	}
	if rawjson.IsString(content) {
		content = slices.Concat([]byte(`[{"type":"text","text":`), content, []byte("}]"))
	}
	for e := range rawjson.Elements(content) {
		if len(to) > 1 {
			to = append(to, ',')
		}
		to = append(to, e...)
	}
	return to
}

// plainMessage reports whether a message has no fields but those that every one has.
func plainMessage(raw []byte) bool {
	n := 0
	for k := range rawjson.Fields(raw) {
		if string(k) != "role" && string(k) != "content" {
			return false
		}
		n++
	}
	return n == 2 && rawjson.IsObject(raw)
}
