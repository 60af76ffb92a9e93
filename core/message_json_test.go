package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
)

// anyString draws text as tools write it: plain, empty, with everything that JSON
// escapes, and bytes that are not UTF-8.
func anyString() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringN(0, 20, -1),
		rapid.SampledFrom([]string{"", "<a href=\"x\">&</a>", "\x00\u2028\u2029\ufffd", `{"a": 1}`, "\xff\xfe", "caf\xe9"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
	)
}

func anyPart(depth int) *rapid.Generator[core.Part] {
	s := anyString()
	return rapid.Custom(func(t *rapid.T) core.Part {
		switch rapid.IntRange(0, 4+depth).Draw(t, "part") {
		case 0:
			return core.Text(s.Draw(t, "text"))
		case 1:
			return core.Image{MediaType: s.Draw(t, "type"), Data: s.Draw(t, "data"), URL: s.Draw(t, "url")}
		case 2:
			return core.Opaque{Kind: s.Draw(t, "kind"), JSON: s.Draw(t, "json")}
		case 3:
			return core.Reasoning{Text: s.Draw(t, "text"), Signature: s.Draw(t, "signature"), Encrypted: s.Draw(t, "encrypted")}
		case 4:
			return core.ToolCall{ID: s.Draw(t, "id"), Name: s.Draw(t, "name"), Args: s.Draw(t, "args")}
		default:
			return core.ToolResult{
				CallID:  s.Draw(t, "call"),
				Content: rapid.SliceOfN(anyPart(0), 0, 3).Draw(t, "content"),
				IsError: rapid.Bool().Draw(t, "error"),
			}
		}
	})
}

func anyMessage() *rapid.Generator[core.Message] {
	return rapid.Custom(func(t *rapid.T) core.Message {
		m := core.Message{
			ID:        rapid.String().Draw(t, "id"),
			Role:      rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem}).Draw(t, "role"),
			Kind:      rapid.SampledFrom([]core.Kind{core.KindOriginal, core.KindSummary, core.KindMarker}).Draw(t, "kind"),
			Parts:     rapid.SliceOfN(anyPart(1), 0, 4).Draw(t, "parts"),
			Protected: rapid.Bool().Draw(t, "protected"),
			Tokens:    rapid.IntRange(0, 1000).Draw(t, "tokens"),
		}
		if rapid.Bool().Draw(t, "timed") {
			m.Time = time.Unix(rapid.Int64Range(0, 1<<34).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
		}
		if source := rapid.OneOf(anyString(), rapid.Just(`null`), rapid.Just(`{"a":"<&>\u2028"}`), rapid.Just(`{"a": 1.0e2}`)).Draw(t, "source"); source != "" {
			m.Source = json.RawMessage(source)
		}
		return m
	})
}

func TestMessageJSONKeepsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyMessage().Draw(t, "message")
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(want); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1 {
			t.Fatalf("got %d lines, want 1: %s", n, b.Bytes())
		}
		var got core.Message
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%v: %s", err, b.Bytes())
		}
		if !got.Equal(want) || !bytes.Equal(got.Source, want.Source) || !got.Time.Equal(want.Time) ||
			got.Protected != want.Protected || got.Tokens != want.Tokens {
			t.Fatalf("got %+v\nwant %+v\nfrom %s", got, want, b.Bytes())
		}
	})
}

func TestMessageJSONSurvivesAnyDepthOfSource(t *testing.T) {
	for _, source := range []string{
		strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999),
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		strings.Repeat("[", 9_000),
		"[" + strings.Repeat("[],", 9_000) + "1]",
		"1],[2",
	} {
		want := core.Message{ID: "m", Role: core.RoleUser, Source: json.RawMessage(source)}
		data, err := json.Marshal(map[string][]core.Message{"messages": {want}})
		if err != nil {
			t.Errorf("source of %d bytes: %v", len(source), err)
			continue
		}
		var got map[string][]core.Message
		if err := json.Unmarshal(data, &got); err != nil {
			t.Errorf("source of %d bytes: %v", len(source), err)
			continue
		}
		if string(got["messages"][0].Source) != source {
			t.Errorf("source of %d bytes came back as %d others", len(source), len(got["messages"][0].Source))
		}
	}
}

func TestMessageJSONRefusesWhatIsNoPart(t *testing.T) {
	text := core.Text("pointed at")
	for _, tt := range []struct {
		parts []core.Part
		want  string
	}{
		{[]core.Part{core.Text("a"), nil}, "part 1: <nil> is not a part"},
		{[]core.Part{&text}, "part 0: *core.Text is not a part"},
		{[]core.Part{core.ToolResult{Content: []core.Part{nil}}}, "part 0: <nil> is not a part"},
	} {
		_, err := core.Message{ID: "m", Parts: tt.parts}.MarshalJSON()
		if err == nil || err.Error() != tt.want {
			t.Errorf("message: got error %v, want %s", err, tt.want)
		}
		_, err = core.Rewrite{ID: "m", Parts: tt.parts}.MarshalJSON()
		if want := `rewrite of "m": ` + tt.want; err == nil || err.Error() != want {
			t.Errorf("rewrite: got error %v, want %s", err, want)
		}
	}
}

func TestMessageJSONRefusesUnknownParts(t *testing.T) {
	for _, tt := range []struct{ json, want string }{
		{`{"id":"m","parts":[{"type":"text"},{"type":"video"}]}`, `part 1: unknown type "video"; want text, tool_call, tool_result, image, reasoning or opaque`},
		{`{"id":"m","parts":[{"type":"text","base64":true,"text":"?"}]}`, "part 0: illegal base64 data at input byte 0"},
	} {
		var m core.Message
		if err := json.Unmarshal([]byte(tt.json), &m); err == nil || err.Error() != tt.want {
			t.Errorf("got error %v, want %s", err, tt.want)
		}
	}
}

func TestEditJSONKeepsEveryByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := core.Edit{
			Hide: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "hide"),
			Rewrite: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Rewrite {
				return core.Rewrite{ID: rapid.String().Draw(t, "id"), Parts: rapid.SliceOfN(anyPart(1), 0, 3).Draw(t, "parts")}
			}), 0, 3).Draw(t, "rewrite"),
			Insert: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Insert {
				return core.Insert{After: rapid.String().Draw(t, "after"), Message: anyMessage().Draw(t, "message")}
			}), 0, 3).Draw(t, "insert"),
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got core.Edit
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if fault := editsDiffer(got, want); fault != "" {
			t.Fatalf("%s: got %+v, want %+v", fault, got, want)
		}
	})
}

func editsDiffer(a, b core.Edit) string {
	if fmt.Sprint(a.Hide) != fmt.Sprint(b.Hide) || len(a.Rewrite) != len(b.Rewrite) || len(a.Insert) != len(b.Insert) {
		return "shape"
	}
	for i := range a.Rewrite {
		if a.Rewrite[i].ID != b.Rewrite[i].ID || !core.EqualParts(a.Rewrite[i].Parts, b.Rewrite[i].Parts) {
			return fmt.Sprintf("rewrite %d", i)
		}
	}
	for i := range a.Insert {
		if a.Insert[i].After != b.Insert[i].After || !a.Insert[i].Message.Equal(b.Insert[i].Message) {
			return fmt.Sprintf("insert %d", i)
		}
	}
	return ""
}
