package roo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// seeds are histories with every tag, odd types and odd spelling.
var seeds = []string{
	`[]`,
	` [ ] `,
	`[{"role":"user","content":"hi","ts":1}]`,
	`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}],"isSummary":true,"condenseId":"A"},{"role":"assistant","content":[{"type":"tool_use","id":"a"},null]}]`,
	`[{"ts":1},{"ts":2,"truncationParent":"T"},{"ts":3,"truncationParent":null},{"isTruncationMarker":true,"truncationId":"T"},{"ts":4},{"ts":5},{"ts":6}]`,
	`[{"condenseParent":"A","condenseParent":"B"},{"isSummary":1,"condenseId":"B"},{"role":"user","content":5,"ts":"7"},{"role":"user"}]`,
	"[{\n\t\"a\\u0062\" : [ {\"}\":\"]\\\\\"} ] ,\n\t\"ts\" : 1e999\n} , {}]",
	`[{"role":"user","ts":1},{"role":"user","ts":null},{"role":"user","content":[]},{"role":"user","content":["\ud800\\\""]}]`,
}

// seedUI is what the person saw of a condensation and a truncation.
const seedUI = `[{"ts":1,"type":"say","say":"text"},{"ts":2,"say":"condense_context","contextCondense":{"condenseId":"A"}},` +
	`{"ts":3,"type":"say","say":"sliding_window_truncation","contextTruncation":{"truncationId":"T"}}]`

// checkSelf fails if m holds anything else than what its JSON says.
func checkSelf(t *testing.T, m *Message) {
	t.Helper()
	if m.raw == "" {
		return
	}
	if !json.Valid([]byte(m.raw)) {
		t.Fatalf("invalid JSON: %s", m.raw)
	}
	var again Message
	again.parse(m.raw)
	for _, n := range []*Message{&again, m} {
		if n.tags != nil && *n.tags == (tags{}) {
			n.tags = nil // no tags and nothing in the tags are the same
		}
	}
	if !reflect.DeepEqual(*m, again) {
		t.Fatalf("got a message\n%+v\nwhose JSON says\n%+v", *m, again)
	}
}

// Parse takes exactly the arrays of objects, and Encode writes the bytes of the objects.
func FuzzParseEncode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`[{}]]`))
	f.Add([]byte("\xEF\xBB\xBF[{}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		messages, err := Parse(data)
		var want []json.RawMessage
		valid := json.Unmarshal(data, &want) == nil && want != nil
		for _, raw := range want {
			valid = valid && raw[0] == '{'
		}
		if valid != (err == nil) {
			t.Fatalf("got error %v, want one: %v", err, !valid)
		}
		if err != nil {
			return
		}
		if len(messages) != len(want) {
			t.Fatalf("got %d messages, want %d", len(messages), len(want))
		}
		for i, m := range messages {
			if got := m.JSON(); !bytes.Equal(got, want[i]) {
				t.Fatalf("message %d: got %s, want %s", i, got, want[i])
			}
		}
		encoded := Encode(messages)
		joined := append(append([]byte("["), bytes.Join(asBytes(want), []byte(","))...), ']')
		if !bytes.Equal(encoded, joined) {
			t.Fatalf("got %s, want %s", encoded, joined)
		}
	})
}

func asBytes(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i, raw := range raws {
		out[i] = raw
	}
	return out
}

// An edit changes one member and nothing else, as encoding/json sees it; taking back an
// addition gives the same bytes.
func FuzzEdit(f *testing.F) {
	for _, seed := range seeds {
		for _, object := range strings.SplitAfter(strings.Trim(seed, "[] "), "},") {
			f.Add([]byte(strings.TrimSuffix(object, ",")), uint8(0), "A")
		}
	}
	f.Add([]byte("{ \"condenseParent\" : 1 , \"condense\\u0050arent\":[2] }"), uint8(1), "\xff\"")
	f.Fuzz(func(t *testing.T, data []byte, tag uint8, name string) {
		m, err := ParseMessage(data)
		if err != nil {
			return
		}
		checkSelf(t, m)
		with, without := m.With(Tag(tag), name), m.Without(Tag(tag))
		checkSelf(t, with)
		checkSelf(t, without)
		if tag >= uint8(tagCount) {
			return
		}
		want := decodeObject(t, m.raw)
		member := Tag(tag).String()
		if _, ok := want[member]; !ok {
			if got := with.Without(Tag(tag)).raw; got != m.raw {
				t.Fatalf("adding and removing %s: got %s, want %s", member, got, m.raw)
			}
		}
		delete(want, member)
		if got := decodeObject(t, without.raw); !reflect.DeepEqual(got, want) {
			t.Fatalf("without %s: got %s of %s", member, without.raw, m.raw)
		}
		value, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		want[member] = string(bytes.TrimSpace(value))
		got := decodeObject(t, with.raw)
		var text string
		if err := json.Unmarshal([]byte(got[member]), &text); err != nil || text != strings.ToValidUTF8(name, "\uFFFD") && !strings.Contains(text, "\uFFFD") {
			t.Fatalf("with %s: got %s, want %q", member, got[member], name)
		}
		got[member] = want[member]
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("with %s: got %s of %s", member, with.raw, m.raw)
		}
	})
}

// decodeObject returns the members of an object with their values as they are spelled.
func decodeObject(t *testing.T, object string) map[string]string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	out := make(map[string]string, len(members))
	for name, value := range members {
		out[name] = string(value)
	}
	return out
}

// No rule panics, none changes its input, and what they return is what its JSON says.
func FuzzRules(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed), []byte(seedUI), 0.5, 1)
		f.Add([]byte(seed), []byte(`[]`), 1.5, 0)
		f.Add([]byte(seed), []byte(seed), -1.0, 2)
	}
	f.Fuzz(func(t *testing.T, data, uiData []byte, fraction float64, index int) {
		messages, err := Parse(data)
		if err != nil {
			return
		}
		ui, err := ParseUI(uiData)
		if err != nil {
			ui = nil
		}
		before, beforeUI := Encode(messages), EncodeUI(ui)
		now := func() time.Time { return time.UnixMilli(1_700_000_000_000) }

		cleaned := Cleanup(messages)
		truncation := Truncate(messages, fraction, func() string { return "T\"" }, now)
		results := [][]*Message{
			Effective(messages), SinceLastSummary(messages), cleaned, truncation.Messages,
			Effective(truncation.Messages), LegacyTruncate(messages, fraction),
			MergeConsecutive(messages, nil), MergeConsecutive(messages, []string{"assistant", "user", ""}),
		}
		if again := Cleanup(cleaned); !bytes.Equal(Encode(again), Encode(cleaned)) {
			t.Fatalf("cleaned twice: got %s, want %s", Encode(again), Encode(cleaned))
		}
		if r, err := RewindToIndex(ui, messages, index, now, nil); err == nil {
			results = append(results, r.Messages, r.Removed)
		} else if index >= 0 {
			t.Fatalf("index %d: %v", index, err)
		}
		for _, u := range ui {
			if ts, ok := u.TS(); ok {
				r, err := RewindToTimestamp(ui, messages, ts, &RewindOptions{IncludeTarget: true})
				if err != nil {
					t.Fatalf("timestamp %v: %v", ts, err)
				}
				results = append(results, r.Messages, r.Removed)
			}
		}
		if n := ContextTokens(ui); n != 0 && len(ui) == 0 {
			t.Fatalf("got %v tokens of nothing", n)
		}
		for _, result := range results {
			for _, m := range result {
				checkSelf(t, m)
				if n := CountTokens(m.Blocks(), func(text string) int { return len(text) }); n < 0 {
					t.Fatalf("got %d tokens", n)
				}
			}
		}
		if after := Encode(messages); !bytes.Equal(after, before) {
			t.Fatalf("the input was changed: got %s, want %s", after, before)
		}
		if after := EncodeUI(ui); !bytes.Equal(after, beforeUI) {
			t.Fatalf("the UI input was changed: got %s, want %s", after, beforeUI)
		}
	})
}
