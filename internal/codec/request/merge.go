// Package request reads and writes the files that hold messages as the vendors' APIs take
// them: an array of messages, or a request with one.
package request

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// none is no index.
const none = -1

// Write writes messages into the envelope of f. A message that has a Source is written
// verbatim; for the others, encode returns the bytes: made from was, the Source that the
// message was read with, or new if was is nil. If merge is true, messages that a condensation
// made adjacent become one: see mergeRows and [codec.File.Apart].
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
		rows = rows || i > 0 && makesRow(f, messages[i-1].Role, m.Role)
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

// A record is a message in its written form.
type record struct {
	raw     []byte
	gap     []byte // before it
	message *core.Message
}

// makesRow reports whether APIs refuse two adjacent messages with these roles: two of the
// user, unless they are to be kept apart, and for Anthropic two of the system.
func makesRow(f *codec.File, first, second core.Role) bool {
	return first == second && (first == core.RoleUser && !f.Apart || first == core.RoleSystem && f.Vendor == codec.Anthropic)
}

// mergeRows merges adjacent messages of the user or of the system that became adjacent by a condensation: one was
// inserted, or the messages between them are hidden. Anthropic's API would join them; others, and many chat
// templates, refuse them. The content becomes an array with the elements of all, byte for byte; nothing is lost.
// Messages that were adjacent when they were read are kept apart, and so are messages whose other fields differ. The
// cost is linear.
func mergeRows(f *codec.File, records []record) []record {
	place := map[string]int{}
	for i, m := range f.Journal.Messages() {
		place[m.ID] = i + 1 // inserted messages have none
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
			if makesRow(f, before.Role, r.message.Role) && (a == 0 || b != a+1) && merged.add(r.raw, r.message.Role == core.RoleSystem) {
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

// hiddenMarker matches the stub that truncation inserts: see the marker of package
// providers/slidingwindow.
var hiddenMarker = plain.Pattern(`^\[(?:… )?(\d+) earlier messages?(?:, with (\d+) tool calls?,)?( and what an earlier note like this stood for)? left out here to fit the context window(: [^\]]+)?\]$`)

// joinMarkers merges the truncation stubs in raw into the last of them. The file no longer shows that the older ones
// were inserted, so no provider can replace them, and every round would add one. The new stub has the sum of all
// counts, and the newest names of media.
func joinMarkers(raw []byte) []byte {
	var kept [][]byte
	messages, calls, again, last, n, names := 0, 0, false, none, 0, ""
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		m := hiddenMarker().FindStringSubmatch(rawjson.Text(rawjson.Field(block, "text")))
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
		names = cmp.Or(m[4], names)
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
	words += " left out here to fit the context window" + names + "]"
	kept[last] = rawjson.SetField(kept[last], "text", rawjson.AppendQuote(nil, words))
	return rawjson.SetField(raw, "content", rawjson.Array(kept))
}

// A merged is a message that takes up the content of others.
type merged struct {
	base    []byte // the message whose other fields it has
	content []byte // an array without its end; nil if nothing was added
	plain   bool   // base has no other fields; known when something was added
	marked  bool   // it contains a stub that a condensation inserted
}

// raw returns the message.
func (m *merged) raw() []byte {
	if m.content == nil {
		return m.base
	}
	return rawjson.SetField(m.base, "content", append(m.content, ']'))
}

// add adds the content of the message b. It returns false, and adds nothing, if both messages have fields other than
// role and content, or if b holds results: they answer the message before, and nothing may be between. Settings in a
// message of the system, such as the effort, hold from there on: the fields of b win.
func (m *merged) add(b []byte, system bool) bool {
	if m.content == nil {
		m.plain = plainMessage(m.base)
		if !mergeable(m.base) || !m.plain && rawjson.Field(m.base, "name") != nil { // a name identifies the speaker
			return false
		}
	}
	plain := plainMessage(b)
	if !mergeable(b) || !plain && (!m.plain && !system || rawjson.Field(b, "name") != nil) {
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
	switch {
	case plain:
	case m.plain:
		m.base, m.plain = b, false
	default:
		for k, v := range rawjson.Fields(b) {
			if name := string(k); name != "role" && name != "content" {
				m.base = rawjson.SetField(m.base, name, v)
			}
		}
	}
	return true
}

// mergeable reports whether raw is one message whose content is a string or an array: in some formats results become
// several messages.
func mergeable(raw []byte) bool {
	if !json.Valid(raw) {
		return false
	}
	content := rawjson.Field(raw, "content")
	return rawjson.IsString(content) || rawjson.IsArray(content)
}

// appendContent appends the elements of the content of raw to the unfinished array to.
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

// plainMessage reports whether a message has no fields but role and content.
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

// A decoder returns the message that raw is: its role, its parts, and in ID the ID that it has
// in the file, if any. The offset in an error counts from the start of raw.
type decoder func(raw []byte) (core.Message, *syntax.Error)

// ReadArray fills f with the messages of a JSON file: the file itself if it is an array,
// otherwise its member with the given name.
func ReadArray(f *codec.File, data []byte, member string, decode decoder) error {
	if err := syntax.Validate(data); err != nil {
		return err
	}
	start := rawjson.SkipSpace(data, 0)
	array := data[start:rawjson.SkipValue(data, start)]
	if rawjson.IsObject(array) {
		array = rawjson.Field(data, member)
		if !rawjson.IsArray(array) {
			return syntax.NoMessages(data, member, array)
		}
	} else if !rawjson.IsArray(array) {
		return &syntax.Error{Offset: start, Found: syntax.Describe(array), Want: "an array of messages, or an object with " + member}
	}
	e := &f.Envelope
	base := rawjson.Offset(data, array)
	first := rawjson.SkipSpace(array, 1)
	e.Sep = append([]byte{','}, array[1:first]...)
	var messages []core.Message
	taken := codec.IDs{}
	end := base + 1 // of the text in the envelope
	for raw := range rawjson.Elements(array) {
		n := len(messages) + 1
		at := rawjson.Offset(data, raw)
		m, err := decode(raw)
		if err != nil {
			err.Offset += at
			err.Message = n
			return err
		}
		m.ID = taken.Next(n, m.ID)
		m.Source = slices.Clip(raw)
		switch n {
		case 1:
			e.Head = data[:at:at]
		case 2:
			e.Sep = data[end:at:at]
		default:
			e.SetGap(m.ID, data[end:at:at])
		}
		messages = append(messages, m)
		end = at + len(raw)
	}
	if len(messages) == 0 {
		e.Head = data[:end:end]
	}
	e.Tail = data[end:]
	return f.Add(messages...)
}

// ReadAnthropic reads an array of messages, or a request with one.
func ReadAnthropic(data []byte, f *codec.File) error {
	if err := ReadArray(f, data, "messages", blocks.DecodeMessage); err != nil {
		return err
	}
	var system, tools, model, most []byte
	rawjson.Pick(data, []string{"system", "tools", "model", "max_tokens"}, &system, &tools, &model, &most)
	if system != nil {
		parts, err := blocks.Decode(system)
		if err != nil {
			err.Offset += rawjson.Offset(data, system)
			err.Found += ` in "system"`
			return err
		}
		f.System = blocks.Join(parts)
	}
	if tools != nil && !rawjson.IsNull(tools) {
		f.Tools = slices.Clip(tools)
	}
	f.Model, f.MaxOutput = rawjson.Text(model), rawjson.Int(most)
	return nil
}
