package lineage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// withMarkers returns a conversation with a cache marker on the last block of some messages.
func withMarkers(marker string, at ...int) []string {
	messages := conversation(9)
	for _, i := range at {
		messages[i] = strings.TrimSuffix(messages[i], "}]}") + `,"cache_control":` + marker + `}]}`
	}
	return messages
}

func TestMarkersAfterAnEpoch(t *testing.T) {
	const short, hour = `{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"1h"}`
	system := func(markers ...string) string {
		blocks := make([]string, len(markers))
		for i, m := range markers {
			blocks[i] = fmt.Sprintf(`{"type":"text","text":"Part %d.","cache_control":%s}`, i, m)
		}
		return `"system":[` + strings.Join(blocks, ",") + `]`
	}
	tests := []struct {
		name     string
		messages []string
		system   string
		block    string // the marker of the block
		all      int    // markers in the messages of the view
	}{
		{"none", conversation(9), system(), "", 0},
		{"the newest message has one", withMarkers(short, 8), system(), short, 2},
		{"those of replaced messages are gone", withMarkers(short, 2, 4, 8), system(), short, 2},
		{"two and two: none is free", withMarkers(short, 6, 8), system(short, short), "", 2},
		{"two and one", withMarkers(short, 8), system(short, short), short, 2},
		{"an hour", withMarkers(hour, 8), system(hour, hour), hour, 2},
		{"an hour in the system prompt only", withMarkers(short, 8), system(hour), short, 2},
		{"an hour on a replaced message", withMarkers(hour, 2), system(hour), hour, 1},
		{"in the system prompt only", conversation(9), system(short), short, 1},
	}
	for _, tt := range tests {
		s := frozen(t, 5, true)
		r, rolling := parse(t, tt.messages, tt.system)
		s, kind := lineage.Follow([]*lineage.State{s}, r, rolling)
		if kind != lineage.Continue {
			t.Errorf("%s: got kind %v", tt.name, kind)
		}
		view := s.View(r, rolling)
		want := `{"role":"user","content":[{"type":"text","text":"Summary."}]}`
		if tt.block != "" {
			want = strings.TrimSuffix(want, "}]}") + `,"cache_control":` + tt.block + `}]}`
		}
		if string(view[0]) != want {
			t.Errorf("%s: got block %s, want %s", tt.name, view[0], want)
		}
		if n := strings.Count(texts(view), "cache_control"); n != tt.all {
			t.Errorf("%s: got %d markers in messages, want %d", tt.name, n, tt.all)
		}
	}
}

// The two APIs of OpenAI know no markers of this kind and bind no thinking: kept messages are the client's bytes.
func TestViewOfOtherAPIs(t *testing.T) {
	tests := []struct {
		api     wire.API
		body    string
		summary string
		before  []string
		kept    []string
	}{
		{wire.Chat, `{"model":"gpt-5","messages":[%s]}`, `{"role":"user","content":"Summary."}`, []string{
			`{"role":"user","content":"Fix it."}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"run","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"run","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"a","content":"one"}`, `{"role":"tool","tool_call_id":"b","content":"two"}`,
		}, []string{
			`{"role":"assistant","reasoning_content":"Hm.","tool_calls":[{"id":"c","type":"function","function":{"name":"run","arguments":"{}"}}]}`,
			`{ "role": "tool", "tool_call_id": "c", "content": "three" }`,
		}},
		{wire.Responses, `{"model":"gpt-5","input":[%s]}`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary."}]}`, []string{
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."}]}`,
			`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`, `{"type":"function_call","call_id":"a","name":"run","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"a","output":"one"}`,
		}, []string{
			`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"y"}`, `{"type":"function_call","call_id":"b","name":"run","arguments":"{}"}`,
			`{"type":"function_call_output","call_id":"b","output":"two"}`,
		}},
	}
	for _, tt := range tests {
		read := func(messages ...string) (*wire.Request, []wire.Hash) {
			r, err := wire.Parse(tt.api, fmt.Appendf(nil, tt.body, strings.Join(messages, ",")), nil)
			if err != nil {
				t.Fatal(err)
			}
			return r, lineage.Roll(r.Messages)
		}
		r, rolling := read(append(append([]string{}, tt.before...), tt.kept...)...)
		s, _ := lineage.Follow(nil, r, rolling)
		after, _ := read(append([]string{tt.summary}, tt.kept...)...)
		s, err := s.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
		if err != nil {
			t.Fatalf("%s: %v", tt.api, err)
		}
		s.Sent(r, rolling, begin)
		if got, want := texts(s.View(r, rolling)), strings.Join(append([]string{tt.summary}, tt.kept...), "\n"); got != want || s.Epoch.Cut != len(tt.before) {
			t.Errorf("%s: cut %d, got\n%s\nwant\n%s", tt.api, s.Epoch.Cut, got, want)
		}
		if again, kind := lineage.Follow([]*lineage.State{s}, r, rolling); kind != lineage.Continue || len(again.View(r, rolling)) != 1+len(tt.kept) {
			t.Errorf("%s: a retry: got kind %v", tt.api, kind)
		}
	}
}
