package roo_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/roo"
)

func parseMessage(tb testing.TB, text string) *roo.Message {
	tb.Helper()
	m, err := roo.ParseMessage([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, want string }{
		{"empty file", "", "conversation history: the input is empty"},
		{"only space", " \n", "conversation history: the input is empty"},
		{"cut off", "[{\"role\":\"user\"},\n{\"ro", "conversation history: line 2, byte 4: unexpected end of JSON input"},
		{"syntax", "[\n  {\"role\" \"user\"}\n]", `conversation history: line 2, byte 11: invalid character '"' after object key`},
		{"trailing", "[] []", "conversation history: line 1, byte 4: invalid character '[' after top-level value"},
		{"byte order mark", "\xEF\xBB\xBF[]", "conversation history: the input begins with a byte order mark, which JSON does not allow: save it without"},
		{"object", ` {"messages":[]}`, "conversation history: got an object, want an array of messages"},
		{"string", `"x"`, "conversation history: got a string, want an array of messages"},
		{"null element", `[{},null]`, "conversation history: message 1: got null, want an object"},
		{"array element", `[[]]`, "conversation history: message 0: got an array, want an object"},
		{"number element", `[-1]`, "conversation history: message 0: got a number, want an object"},
		{"boolean element", `[{},{},true]`, "conversation history: message 2: got a boolean, want an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			messages, err := roo.Parse([]byte(tt.data))
			if err == nil {
				t.Fatalf("got %d messages, want an error", len(messages))
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if _, err := roo.ParseUI([]byte(tt.data)); err == nil {
				t.Error("ParseUI: got no error, want one")
			}
		})
	}
}

func TestMessageKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	file := `[ {"z":1,  "role" : "user","content":"caf\u00e9 <&> \/","ts":1.70e12, "a":[ {} ]},
	{"content":[{"type":"reasoning","summary":[ ]}],"role":"assistant","role2":"}]\"","ts":1e3} ]`
	messages, err := roo.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"z":1,  "role" : "user","content":"caf\u00e9 <&> \/","ts":1.70e12, "a":[ {} ]}`,
		`{"content":[{"type":"reasoning","summary":[ ]}],"role":"assistant","role2":"}]\"","ts":1e3}`,
	}
	for i, m := range messages {
		if got := string(m.JSON()); got != want[i] {
			t.Errorf("message %d: got %s, want %s", i, got, want[i])
		}
	}
	if got, want := string(roo.Encode(messages)), "["+want[0]+","+want[1]+"]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A caller who writes to what it was given changes no message.
	copy(messages[0].JSON(), "xxxxx")
	copy(messages[0].Content(), "xxxxx")
	if got := string(messages[0].JSON()); got != want[0] {
		t.Errorf("after writing to a copy: got %s, want %s", got, want[0])
	}
}

func TestMessageMembers(t *testing.T) {
	t.Parallel()
	type view struct {
		Role, Content     string
		TS                float64
		HasTS             bool
		Summary, Marker   bool
		CondenseID        string
		CondenseParent    string
		TruncationID      string
		TruncationParent  string
		ContentBlockCount int
	}
	none := view{TS: -1}
	with := func(edit func(*view)) view { v := none; edit(&v); return v }
	tests := []struct {
		name, json string
		want       view
	}{
		{"nothing", `{}`, none},
		{"plain", `{"role":"user","content":"hi","ts":5}`, with(func(v *view) {
			v.Role, v.Content, v.TS, v.HasTS, v.ContentBlockCount = "user", `"hi"`, 5, true, 1
		})},
		{"blocks", `{"content":[{"type":"text"}, 7]}`, with(func(v *view) {
			v.Content, v.ContentBlockCount = `[{"type":"text"}, 7]`, 2
		})},
		{"content null", `{"content":null}`, with(func(v *view) { v.Content = `null` })},
		{"content no text", `{"content":5}`, with(func(v *view) { v.Content, v.ContentBlockCount = `5`, 1 })},
		{"role no string", `{"role":5}`, none},
		{"ts no number", `{"ts":"5"}`, none},
		{"the last of a name counts", `{"role":"user","role":"assistant","content":[{}],"content":"x"}`, with(func(v *view) {
			v.Role, v.Content, v.ContentBlockCount = "assistant", `"x"`, 1
		})},
		{"escaped names", `{"\u0072ole":"us\u0065r","isSumm\u0061ry":true}`, with(func(v *view) {
			v.Role, v.Summary = "user", true
		})},
		{"names differ in case", `{"Role":"user","TS":5,"issummary":true}`, none},
		{"nested members are not the message's", `{"x":{"role":"user","isSummary":true}}`, none},
		{"summary", `{"isSummary":true,"condenseId":"A","condenseParent":"B"}`, with(func(v *view) {
			v.Summary, v.CondenseID, v.CondenseParent = true, "A", "B"
		})},
		{"marker", `{"isTruncationMarker":1,"truncationId":"a\"b","truncationParent":"\u00e9"}`, with(func(v *view) {
			v.Marker, v.TruncationID, v.TruncationParent = true, `a"b`, "é"
		})},
		{"falsy flags", `{"isSummary":0,"isTruncationMarker":""}`, none},
		{"more falsy flags", `{"isSummary":-0.0e5,"isTruncationMarker":null}`, none},
		{"truthy flags", `{"isSummary":"false","isTruncationMarker":[]}`, with(func(v *view) { v.Summary, v.Marker = true, true })},
		{"falsy ids", `{"condenseId":"","condenseParent":null,"truncationId":0,"truncationParent":false}`, none},
		{"ids that are no strings", `{"condenseId":5.0,"condenseParent":true,"truncationId":[1]}`, with(func(v *view) {
			v.CondenseID, v.CondenseParent, v.TruncationID = "5", "true", "[1]"
		})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := parseMessage(t, tt.json)
			ts, ok := m.TS()
			if !ok {
				if !math.IsNaN(ts) {
					t.Errorf("got ts %v without one, want NaN", ts)
				}
				ts = -1
			}
			got := view{
				m.Role(), string(m.Content()), ts, ok, m.IsSummary(), m.IsTruncationMarker(),
				m.Tag(roo.CondenseID), m.Tag(roo.CondenseParent), m.Tag(roo.TruncationID), m.Tag(roo.TruncationParent),
				len(m.Blocks()),
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.json, diff)
			}
		})
	}
}

func TestWithAndWithoutTouchOneMember(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, json string
		tag        roo.Tag
		with       string // the same with the tag "A"
		without    string
	}{
		{
			"compact", `{"role":"user","ts":1}`, roo.CondenseParent,
			`{"role":"user","ts":1,"condenseParent":"A"}`, `{"role":"user","ts":1}`,
		},
		{
			"indented", "{\n  \"role\": \"user\",\n  \"ts\": 1\n}", roo.TruncationParent,
			"{\n  \"role\": \"user\",\n  \"ts\": 1,\n  \"truncationParent\": \"A\"\n}",
			"{\n  \"role\": \"user\",\n  \"ts\": 1\n}",
		},
		{
			"one spaced line", `{ "role": "user", "ts": 1 }`, roo.CondenseID,
			`{ "role": "user", "ts": 1, "condenseId": "A" }`, `{ "role": "user", "ts": 1 }`,
		},
		{"empty", `{}`, roo.TruncationID, `{"truncationId":"A"}`, `{}`},
		{"empty with space", "{ \n}", roo.TruncationID, "{\"truncationId\":\"A\" \n}", "{ \n}"},
		{
			"there, in the middle", `{"a":1 , "condenseParent" : "old" , "b":2}`, roo.CondenseParent,
			`{"a":1 , "condenseParent" : "A" , "b":2}`, `{"a":1 , "b":2}`,
		},
		{
			"there, first", `{ "condenseParent":"old", "b":2}`, roo.CondenseParent,
			`{ "condenseParent":"A", "b":2}`, `{ "b":2}`,
		},
		{
			"there, last", `{"b":[{"condenseParent":1}],"condenseParent":"old"}`, roo.CondenseParent,
			`{"b":[{"condenseParent":1}],"condenseParent":"A"}`, `{"b":[{"condenseParent":1}]}`,
		},
		{"there, alone", `{ "condenseParent":"old" }`, roo.CondenseParent, `{ "condenseParent":"A" }`, `{  }`},
		{"there, falsy", `{"condenseParent":null}`, roo.CondenseParent, `{"condenseParent":"A"}`, `{}`},
		{
			"there twice", `{"condenseParent":"x","b":2,"condense\u0050arent":"y"}`, roo.CondenseParent,
			`{"condenseParent":"x","b":2,"condense\u0050arent":"A"}`, `{"b":2}`,
		},
		{
			"another tag", `{"condenseParent":"x"}`, roo.TruncationParent,
			`{"condenseParent":"x","truncationParent":"A"}`, `{"condenseParent":"x"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := parseMessage(t, tt.json)
			with, without := m.With(tt.tag, "A"), m.Without(tt.tag)
			if got := string(with.JSON()); got != tt.with {
				t.Errorf("With: got %s, want %s", got, tt.with)
			}
			if got := with.Tag(tt.tag); got != "A" {
				t.Errorf("With: got tag %q, want A", got)
			}
			if got := string(without.JSON()); got != tt.without {
				t.Errorf("Without: got %s, want %s", got, tt.without)
			}
			if got := without.Tag(tt.tag); got != "" {
				t.Errorf("Without: got tag %q, want none", got)
			}
			if got := string(m.JSON()); got != tt.json {
				t.Errorf("the message itself: got %s, want %s", got, tt.json)
			}
		})
	}
}

func TestWithQuotesTheName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", `a"b\c`, "<é\u2028\x00>", "\xff"} {
		m := parseMessage(t, `{}`).With(roo.CondenseID, name)
		want := strings.ToValidUTF8(name, "\uFFFD")
		if got := m.Tag(roo.CondenseID); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := parseMessage(t, string(m.JSON())).Tag(roo.CondenseID); got != want {
			t.Errorf("read again: got %q, want %q", got, want)
		}
	}
}

func TestUnknownTagDoesNothing(t *testing.T) {
	t.Parallel()
	m := parseMessage(t, `{"condenseId":"A"}`)
	const unknown = roo.Tag(99)
	if m.With(unknown, "x") != m || m.Without(unknown) != m || m.Tag(unknown) != "" {
		t.Errorf("a tag that does not exist changed or showed something")
	}
	if got, want := unknown.String(), "Tag(99)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONOfMessages(t *testing.T) {
	t.Parallel()
	var in struct{ M *roo.Message }
	if err := json.Unmarshal([]byte(`{"M": {"role":"user", "x":[1.0]}}`), &in); err != nil {
		t.Fatal(err)
	}
	if got, want := in.M.Role(), "user"; got != want {
		t.Errorf("got role %q, want %q", got, want)
	}
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `{"M":{"role":"user","x":[1.0]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := json.Unmarshal([]byte(`{"M": 5}`), &in); err == nil || !strings.Contains(err.Error(), "got a number") {
		t.Errorf("got error %v, want one about a number", err)
	}
}

func TestJSONOfBlocksAndUIMessages(t *testing.T) {
	t.Parallel()
	const text = `[{"a":1.0,"ts":5}]`
	blocks, err := roo.ParseBlocks([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ui, err := roo.ParseUI([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(ui[0].JSON()), `{"a":1.0,"ts":5}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, v := range []any{blocks, ui} {
		if got, err := json.Marshal(v); err != nil || string(got) != text {
			t.Errorf("%T: got %s, %v, want %s", v, got, err, text)
		}
	}
	if got, err := json.Marshal([]any{roo.Block{}, new(roo.UIMessage)}); err != nil || string(got) != `[null,null]` {
		t.Errorf("zero values: got %s, %v, want nulls", got, err)
	}
}

func TestZeroMessageIsUndefined(t *testing.T) {
	t.Parallel()
	m := new(roo.Message)
	if got, want := string(roo.Encode([]*roo.Message{m})), `[null]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := string(m.JSON()), `null`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if m.Role() != "" || m.Content() != nil || m.Blocks() != nil || m.Tag(roo.CondenseID) != "" {
		t.Error("the zero Message has a member")
	}
	if got, want := string(m.With(roo.CondenseID, "A").JSON()), `{"condenseId":"A"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if m.Without(roo.CondenseID) != m {
		t.Error("Without changed the zero Message")
	}
}

func TestParseBlocksRefusesWhatIsNoArray(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{}`: "content blocks: got an object, want an array",
		`[`:  "content blocks: line 1, byte 1: unexpected end of JSON input",
		``:   "content blocks: the input is empty",
	} {
		if _, err := roo.ParseBlocks([]byte(data)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", data, err, want)
		}
	}
	blocks, err := roo.ParseBlocks([]byte(` [ {"type":"text"} , null ] `))
	if err != nil || len(blocks) != 2 || string(blocks[0].JSON()) != `{"type":"text"}` || string(blocks[1].JSON()) != `null` {
		t.Errorf("got %d blocks, %v, want the two", len(blocks), err)
	}
}
