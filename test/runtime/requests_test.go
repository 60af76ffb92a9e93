package runtime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/apilint"
	"github.com/condensehq/condense/transcript"
)

// A requestWriter writes a request of an agent: long loops of tools, with all that a vendor allows
// between, and white space where no vendor minds it.
type requestWriter struct {
	*rand.Rand

	messages []string
	calls    int
}

func (w *requestWriter) say(format string, args ...any) {
	space := []string{"", " ", "\n\t"}[w.IntN(3)]
	w.messages = append(w.messages, strings.Replace(fmt.Sprintf(format, args...), `":`, `"`+space+`:`+space, 1))
}

func (w *requestWriter) chance(percent int) bool { return w.IntN(100) < percent }

// text returns n lines of a log, as JSON without quotes.
func (w *requestWriter) text(n int) string {
	words := strings.Fields("server gamma buffer delta socket thread queue request alpha response token handler index window beta")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `%03d %s.%s \"%s\" %d\n`, i, words[w.IntN(15)], words[w.IntN(15)], words[w.IntN(15)], w.IntN(1e6))
	}
	return b.String()
}

func (w *requestWriter) anthropic(tail func() string) {
	w.say(`{"role":"user","content":[{"type":"text","text":"task: %s"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}`, w.text(2))
	if w.chance(50) {
		w.say(`{"role":"system","content":"rule %d","output_config":{"effort":"medium"}}`, w.IntN(99))
	}
	var thinking string
	if w.chance(80) {
		thinking = fmt.Sprintf(`{"type":"thinking","thinking":"","signature":"%x"},`, w.Uint64())
	}
	for range w.IntN(12) {
		w.calls++
		server := ""
		if w.chance(10) {
			server = fmt.Sprintf(`{"type":"server_tool_use","id":"s%d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s%d","content":[]},`, w.calls, w.calls)
		}
		w.say(`{"role":"assistant","content":[%s%s{"type":"text","text":"step %d"},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"cat f/%d"}}]}`, thinking, server, w.calls, w.calls, w.calls)
		w.say(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":[{"type":"text","text":"%s"}]%s}]}`, w.calls, w.text(w.IntN(30)), tail())
		if w.chance(8) {
			w.say(`{"role":"system","content":[{"type":"text","text":"note %d"}]}`, w.IntN(99))
		}
	}
	w.say(`{"role":"assistant","content":[%s{"type":"text","text":"done %d","citations":[]}]}`, thinking, w.IntN(99))
}

func (w *requestWriter) openai(func() string) {
	w.say(`{"role":"user","content":[{"type":"text","text":"task: %s"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}`, w.text(2))
	for range w.IntN(12) {
		w.calls++
		w.say(`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c%d","type":"function","function":{"name":"bash","arguments":"{\"command\": \"cat f/%d\"}"}}]}`, w.calls, w.calls)
		w.say(`{"role":"tool","tool_call_id":"c%d","content":"%s"}`, w.calls, w.text(w.IntN(30)))
	}
	w.say(`{"role":"assistant","content":"done %d"}`, w.IntN(99))
}

func (w *requestWriter) responses(func() string) {
	w.say(`{"type":"message","id":"msg_%d","role":"user","content":[{"type":"input_text","text":"task: %s"},{"type":"input_file","file_id":"f"}]}`, w.Uint32(), w.text(2))
	for range w.IntN(12) {
		w.calls++
		w.say(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"%x"}`, w.calls, w.Uint64())
		w.say(`{"type":"function_call","id":"fc_%d","name":"exec_command","arguments":"{\"cmd\":\"cat f/%d\"}","call_id":"c%d"}`, w.calls, w.calls, w.calls)
		w.say(`{"type":"function_call_output","call_id":"c%d","output":"%s"}`, w.calls, w.text(w.IntN(30)))
		if w.chance(8) {
			w.say(`{"type":"web_search_call","id":"ws_%d","status":"completed","action":{"type":"search","query":"q"}}`, w.calls)
		}
	}
	w.say(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done %d","annotations":[]}]}`, w.IntN(99))
}

// What a gateway does with the request of an agent: read it, condense it, write it. The vendor
// accepts the result; a message that no strategy touched has exactly its bytes; results still follow
// their calls.
func TestCondensedRequestsAreAccepted(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	apis := map[string]struct {
		member string
		turn   func(*requestWriter, func() string)
		lint   func([]byte) []apilint.Fault
		extra  string
	}{
		"anthropic": {"messages", (*requestWriter).anthropic, apilint.Anthropic, `"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],"max_tokens":9000`},
		"openai":    {"messages", (*requestWriter).openai, apilint.OpenAI, `"max_completion_tokens":9000`},
		"responses": {"input", (*requestWriter).responses, apilint.Responses, `"instructions":"be kind","store":false,"prompt_cache_key":"k"`},
	}
	for strategy, settings := range map[string]string{"smart": `{}`, "slidingwindow": `{"mode":"budget"}`} {
		h := open(t, config.Values{}, config.Override{
			Chain: []config.Provider{{Name: "it", Strategy: strategy, Settings: json.RawMessage(settings)}},
		})
		for api, of := range apis {
			t.Run(strategy+"/"+api, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(20) {
					w := &requestWriter{Rand: rand.New(rand.NewPCG(seed, 14))}
					markers := 0
					for range 4 + w.IntN(4) {
						of.turn(w, func() string {
							if markers++; markers == 9 {
								return `,"cache_control":{"type":"ephemeral"}`
							}
							return ""
						})
					}
					of.turn(w, func() string { return "" })
					if w.chance(50) { // in the middle of a loop
						w.messages = w.messages[:len(w.messages)-1]
					}
					body := fmt.Sprintf("{%s,\n%q : [ %s ]}\n", of.extra, of.member, strings.Join(w.messages, " ,\n"))
					d := readAs(t, []byte(body), api)
					before := of.lint([]byte(body))
					report, err := h.Manage(t.Context(), condense.ResumeConversation(d.Journal), condense.Turn{
						System: d.System, Trigger: core.TriggerManual, Window: 40_000,
					})
					if err != nil || !report.Acted {
						t.Fatalf("seed %d: %v, %+v", seed, err, report)
					}
					var out bytes.Buffer
					if _, err := d.WriteWith(&out, &transcript.WriteOptions{Apart: true}); err != nil {
						t.Fatal(err)
					}
					added := slices.DeleteFunc(apilint.Added(before, of.lint(out.Bytes())), func(f apilint.Fault) bool {
						return f.Rule == "alternation" // vendors accept rows of one role
					})
					if len(added) > 0 {
						t.Fatalf("seed %d: refused: %v", seed, added)
					}
					untouched(t, seed, d, rawjson.Field(out.Bytes(), of.member))
				}
			})
		}
	}
}

// untouched fails unless written holds the bytes of every message that d left alone, in its order.
// Messages of the system may move, and an item of the Responses API that lost its reasoning loses
// its ID.
func untouched(t *testing.T, seed uint64, d *transcript.Document, written []byte) {
	t.Helper()
	var got []string
	for raw := range rawjson.Elements(written) {
		got = append(got, string(raw))
	}
	for _, m := range d.Journal.View() {
		kind := rawjson.Text(rawjson.Field(m.Source, "type"))
		if m.Source == nil || m.Role == core.RoleSystem || kind == "reasoning" || kind == "function_call" {
			continue
		}
		at := slices.Index(got, string(m.Source))
		if at < 0 {
			t.Fatalf("seed %d: message %s is changed, moved or lost: %s", seed, m.ID, m.Source)
		}
		got = got[at+1:]
	}
}

func readAs(t *testing.T, data []byte, format string) *transcript.Document {
	t.Helper()
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	if detected, err := transcript.Detect(data); detected != format {
		t.Fatalf("detected as %s (%v), want %s", detected, err, format)
	}
	return d
}
