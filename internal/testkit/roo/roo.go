// Package roo treats messages of Roo-Code exactly as Roo-Code v3.52.1 does. Tests use it as an oracle, independent of
// package transcript, and to continue files as Roo would. It is checked against vectors that were recorded from Roo's
// own code.
package roo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// The tags: members that name a summary or a truncation marker.
const (
	condenseID       = "condenseId"       // the name of this summary
	CondenseParent   = "condenseParent"   // the summary that covers this message
	truncationID     = "truncationId"     // the name of this marker
	TruncationParent = "truncationParent" // the marker that hides this message
)

// A Message is one element of api_conversation_history.json. It is immutable.
type Message struct{ raw json.RawMessage }

// Parse reads api_conversation_history.json: an array of objects.
func Parse(data []byte) ([]*Message, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("conversation history: %w", err)
	}
	messages := make([]*Message, len(all))
	for i, raw := range all {
		m, err := ParseMessage(raw)
		if err != nil {
			return nil, err
		}
		messages[i] = m
	}
	return messages, nil
}

// ParseMessage reads one message.
func ParseMessage(data []byte) (*Message, error) {
	raw := bytes.TrimSpace(data)
	if !json.Valid(raw) || !rawjson.IsObject(raw) {
		return nil, fmt.Errorf("message: got %s, want an object", data)
	}
	return &Message{bytes.Clone(raw)}, nil
}

// Encode writes messages as Roo does: without space between them.
func Encode(messages []*Message) []byte {
	raw := plain.Each(messages, func(m *Message) []byte { return m.raw })
	return rawjson.Array(raw)
}

// MarshalJSON returns the original JSON of the message.
func (m *Message) MarshalJSON() ([]byte, error) { return m.raw, nil }

func (m *Message) field(name string) []byte { return rawjson.Field(m.raw, name) }

// Role returns the role; empty if it is not a string.
func (m *Message) Role() string { return rawjson.Text(m.field("role")) }

// Content returns the content as JSON; nil if there is none.
func (m *Message) Content() json.RawMessage { return bytes.Clone(m.field("content")) }

// IsSummary reports whether isSummary is truthy.
func (m *Message) IsSummary() bool { return truthy(m.field("isSummary")) }

// IsTruncationMarker reports whether isTruncationMarker is truthy.
func (m *Message) IsTruncationMarker() bool { return truthy(m.field("isTruncationMarker")) }

// TS returns when the message was written in milliseconds; false if it has no such number.
func (m *Message) TS() (ms float64, ok bool) {
	err := json.Unmarshal(m.field("ts"), &ms)
	return ms, err == nil && !rawjson.IsNull(m.field("ts"))
}

// Tag returns the name in a tag; empty if it names nothing.
func (m *Message) Tag(tag string) string { return nameOf(m.field(tag)) }

// With returns m with a tag set to a name.
func (m *Message) With(tag, name string) *Message {
	return &Message{rawjson.SetField(m.raw, tag, rawjson.AppendQuote(nil, name))}
}

// truthy reports whether JavaScript takes raw for true.
func truthy(raw []byte) bool {
	switch {
	case len(raw) == 0, raw[0] == 'f', raw[0] == 'n', string(raw) == `""`:
		return false
	case raw[0] == '-', '0' <= raw[0] && raw[0] <= '9':
		n, err := strconv.ParseFloat(string(raw), 64)
		return err != nil || n != 0
	}
	return true
}

// nameOf spells a name such that two that are equal to JavaScript's Set are spelled alike.
// A list or an object equals nothing.
func nameOf(raw []byte) string {
	if !truthy(raw) || raw[0] == '[' || raw[0] == '{' {
		return ""
	}
	if rawjson.IsString(raw) {
		return rawjson.Unquote(raw)
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return "\x00" + string(raw)
	}
	return "\x00" + strconv.FormatFloat(n, 'g', -1, 64)
}

// names returns the names in a tag of the messages that is picks.
func names(messages []*Message, is func(*Message) bool, tag string) map[string]bool {
	set := map[string]bool{}
	for _, m := range messages {
		if name := m.Tag(tag); is(m) && name != "" {
			set[name] = true
		}
	}
	return set
}

// Effective returns the messages that Roo sends: getEffectiveApiHistory.
func Effective(messages []*Message) []*Message {
	summaries := map[string]bool{}
	visible := messages
	for i, m := range slices.Backward(messages) {
		if string(m.field("isSummary")) == "true" {
			visible = withoutOrphans(messages[i:])
			break
		}
		if i == 0 {
			summaries = names(messages, (*Message).IsSummary, condenseID)
		}
	}
	markers := names(visible, (*Message).IsTruncationMarker, truncationID)
	return slices.DeleteFunc(slices.Clone(visible), func(m *Message) bool {
		return summaries[m.Tag(CondenseParent)] || markers[m.Tag(TruncationParent)]
	})
}

// withoutOrphans returns messages without the tool results whose call is in none of them, and without the user
// messages that hold nothing else.
func withoutOrphans(messages []*Message) []*Message {
	calls := map[string]bool{}
	for _, m := range messages {
		for b := range rawjson.Elements(m.field("content")) {
			if m.Role() == "assistant" && rawjson.Text(rawjson.Field(b, "type")) == "tool_use" {
				calls[nameOf(rawjson.Field(b, "id"))] = true
			}
		}
	}
	delete(calls, "")
	var out []*Message
	for _, m := range messages {
		content := m.field("content")
		if m.Role() != "user" || !rawjson.IsArray(content) {
			out = append(out, m)
			continue
		}
		var kept [][]byte
		all := 0
		for b := range rawjson.Elements(content) {
			all++
			if rawjson.Text(rawjson.Field(b, "type")) != "tool_result" || calls[nameOf(rawjson.Field(b, "tool_use_id"))] {
				kept = append(kept, b)
			}
		}
		switch {
		case len(kept) == 0:
		case len(kept) == all:
			out = append(out, m)
		default:
			out = append(out, &Message{rawjson.SetField(m.raw, "content", rawjson.Array(kept))})
		}
	}
	return out
}

// Cleanup returns messages without tags that name a summary or a marker that is not among
// them: cleanupAfterTruncation.
func Cleanup(messages []*Message) []*Message {
	summaries := names(messages, (*Message).IsSummary, condenseID)
	markers := names(messages, (*Message).IsTruncationMarker, truncationID)
	out := slices.Clone(messages)
	for i, m := range messages {
		condensed, truncated := m.Tag(CondenseParent), m.Tag(TruncationParent)
		if (condensed == "" || summaries[condensed]) && (truncated == "" || markers[truncated]) {
			continue
		}
		raw := m.raw
		if !summaries[condensed] {
			raw = rawjson.CutField(raw, CondenseParent)
		}
		if !markers[truncated] {
			raw = rawjson.CutField(raw, TruncationParent)
		}
		out[i] = &Message{raw}
	}
	return out
}

// A Truncation is the result of [Truncate].
type Truncation struct {
	Messages []*Message
	ID       string // of the marker
	Removed  int    // messages that Roo reports as hidden
}

// Truncate hides a fraction of the visible messages, the oldest but the first, rounded down
// to an even number, and puts a marker before the first one that is kept:
// truncateConversation.
func Truncate(messages []*Message, fraction float64, newID func() string, now func() time.Time) Truncation {
	t := Truncation{Messages: messages, ID: newID()}
	var visible []int
	for i, m := range messages {
		if m.Tag(TruncationParent) == "" && !m.IsTruncationMarker() {
			visible = append(visible, i)
		}
	}
	n := half(len(visible), fraction)
	if n <= 0 {
		return t
	}
	t.Removed = n
	t.Messages = slices.Clone(messages)
	boundary := len(messages)
	if n+1 < len(visible) {
		boundary = visible[n+1]
	}
	for _, i := range visible[1:min(n+1, len(visible))] {
		t.Messages[i] = t.Messages[i].With(TruncationParent, t.ID)
	}
	ts := float64(now().UnixMilli())
	if boundary < len(messages) {
		if at, ok := messages[boundary].TS(); ok {
			ts = at
		}
	}
	marker := fmt.Sprintf(`{"role":"user","content":"[Sliding window truncation: %d messages hidden to reduce context]","ts":%s,"isTruncationMarker":true,"truncationId":%q}`,
		n, strconv.FormatFloat(ts-1, 'f', -1, 64), t.ID)
	t.Messages = slices.Insert(t.Messages, boundary, &Message{json.RawMessage(marker)})
	return t
}

// half returns a fraction of n messages but the first, rounded down to an even number.
func half(n int, fraction float64) int {
	f := math.Floor(float64(n-1) * fraction)
	return int(f - math.Mod(f, 2))
}

// LegacyTruncate returns the messages that v3.28 keeps: the first one, and the others without a fraction of them, the
// oldest.
func LegacyTruncate(messages []*Message, fraction float64) []*Message {
	n := half(len(messages), fraction)
	return append([]*Message{messages[0]}, messages[min(n+1, len(messages)):]...)
}
