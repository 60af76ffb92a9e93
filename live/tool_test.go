package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

const recallName = "condense_recall"

func withTool(o *live.Options) { onEveryUpstream(o); o.Recall.Tool = true }

// wants is a call of the gateway's tool.
func wants(input map[string]any) upstream.Call { return upstream.Call{Tool: recallName, Input: input} }

// looking returns a script of n calls whose first result has a needle. In some steps the model recalls it.
func looking(n int, needle string, at map[int]upstream.Step) []upstream.Step {
	loop := upstream.Loop(n, 2200, map[int]string{1: needle})
	var script []upstream.Step
	for i, s := range loop {
		if before, ok := at[i+1]; ok {
			script = append(script, before)
		}
		script = append(script, s)
	}
	return script
}

// toolResults returns the texts of the results of recalls, in order, each once.
func (p *play) toolResults(t *testing.T) []string {
	t.Helper()
	var all []string
	p.answers(t, func(_, text string) bool {
		recalled := strings.HasPrefix(text, "[condense recall: message")
		if recalled {
			all = append(all, text)
		}
		return recalled
	})
	return all
}

// answers calls found with each result of a tool, by the ID of its call, until that is true.
func (p *play) answers(t *testing.T, found func(id, text string) bool) {
	t.Helper()
	seen := map[string]bool{}
	add := func(id, text any) {
		s, ok := text.(string)
		if list, isList := text.([]any); isList && len(list) == 1 {
			o, _ := list[0].(object)
			s, ok = o["text"].(string)
		}
		if key := fmt.Sprint(id); ok && !seen[key] {
			seen[key] = found(key, s)
		}
	}
	known := map[string]bool{}
	for _, r := range p.vendor.Turns() {
		for _, raw := range rawElements(t, r.Prompt()) {
			if known[string(raw)] {
				continue
			}
			known[string(raw)] = true
			var m object
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			blocks, _ := m["content"].([]any)
			for _, b := range blocks {
				o, _ := b.(object)
				if o["type"] == "tool_result" {
					add(o["tool_use_id"], o["content"])
				} else if r, ok := o["toolResult"].(object); ok {
					add(r["toolUseId"], r["content"])
				}
			}
			parts, _ := m["parts"].([]any)
			for _, b := range parts {
				o, _ := b.(object)
				if f, ok := o["functionResponse"].(object); ok {
					r, _ := f["response"].(object)
					add(f["id"], r["output"])
				}
			}
			add(m["tool_call_id"], m["content"])
			add(m["call_id"], m["output"])
		}
	}
}

// each runs a test for each API, every second of them streaming and the others in the next test; at night each both ways.
func each(t *testing.T, run func(*testing.T, upstream.Client)) {
	t.Helper()
	bedrock := []upstream.Client{
		{API: upstream.Messages, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive", Session: "s1"},
		{API: upstream.Converse, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive", Session: "s1"},
	}
	for i, c := range append(everyAPI(), bedrock...) {
		for _, stream := range []bool{false, true} {
			if stream != ((i+len(t.Name()))%2 == 0) && !testkit.Night() {
				continue
			}
			t.Run(fmt.Sprint(c.API, c.Cloud, "/stream=", stream), func(t *testing.T) {
				t.Parallel()
				c := c
				c.Stream = stream
				run(t, c)
			})
		}
	}
}

// unseen reports what the client must never see of the tool.
func (p *play) unseen(t *testing.T) {
	t.Helper()
	for _, m := range p.client.History {
		if text := fmt.Sprint(m); strings.Contains(text, recallName) {
			t.Errorf("the client has a call of the gateway's tool: %.300s", text)
		}
	}
	for _, r := range p.vendor.Turns() {
		if bytes.Count(r.Body, []byte(`"name":"`+recallName+`"`)) == 0 {
			t.Errorf("request %d is without the tool", r.N)
		}
	}
}

// A needle of the first tool result is found after three epochs, byte for byte, and the client sees one answer.
func TestRecallTool(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const needle = `NEEDLE-71c4 <&> \u00e9 é`
	each(t, func(t *testing.T, c upstream.Client) {
		step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE-71c4"})}}
		p := newPlay(t, upstream.Options{Script: looking(45, needle, map[int]upstream.Step{3: step, 15: step, 30: step, 45: step})}, c, withTool)
		answer, err := p.client.Say(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		p.check(t, 3)
		p.unseen(t)
		if !strings.HasSuffix(answer, "All 45 steps are done.") {
			t.Errorf("the last answer is %q", answer)
		}
		if all := p.toolResults(t); len(all) != 4 {
			t.Errorf("%d recalls", len(all))
		} else {
			for _, text := range all {
				if !strings.Contains(text, "1:"+needle+"\n") {
					t.Errorf("the needle is not in %q", text)
				}
			}
		}
	})
}

var stub = regexp.MustCompile(`lines h:([0-9a-f]{10})`)

// Every handle of a view leads to its content.
func TestRecallToolHandles(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		at := map[int]upstream.Step{}
		for i := 18; i <= 45; i += 6 {
			at[i] = upstream.Step{Text: "One of those.", Make: func(body []byte) []upstream.Call {
				var calls []upstream.Call
				for _, m := range stub.FindAllSubmatch(body, 3) {
					calls = append(calls, wants(map[string]any{"handle": string(m[1]), "head": i % 7}))
				}
				return calls
			}}
		}
		p := newPlay(t, upstream.Options{Script: looking(45, "x", at)}, c, func(o *live.Options) {
			withTool(o)
			o.Epoch = live.EpochOptions{Risk: 100, Target: 10, MinSize: 2000}
		})
		p.say(t)
		p.check(t, 3)
		all := p.toolResults(t)
		if len(all) < 3 {
			t.Errorf("only %d recalls by a handle", len(all))
		}
		for _, text := range all {
			if !strings.HasPrefix(text, "[condense recall: message ") || !strings.Contains(text, "old content, verbatim") {
				t.Errorf("got %.300q", text)
			}
		}
		if n := p.Stats().Recalls; n != len(all) {
			t.Errorf("%d of %d recalls counted", n, len(all))
		}
	})
}

// In one answer the model calls the tool of the gateway and those of the client: the client gets its own, and with their results the pair
// is put back.
func TestRecallToolMixed(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		name := map[upstream.API]string{upstream.Messages: "Bash", upstream.Converse: "Bash", upstream.Chat: "bash", upstream.Responses: "shell", upstream.Gemini: "run_shell_command"}[c.API]
		own := func(s string) upstream.Call {
			return upstream.Call{Tool: name, Input: map[string]any{"command": `echo "` + s + `"`}}
		}
		recall := wants(map[string]any{"grep": "NEEDLE"})
		at := map[int]upstream.Step{
			3:  {Text: "Both.", Calls: []upstream.Call{recall, own("one"), own("two")}},
			6:  {Calls: []upstream.Call{own("three"), recall, own("four"), recall}}, // the second result says the same: ingest shortens it
			9:  {Text: "First this.", Calls: []upstream.Call{recall}},
			30: {Calls: []upstream.Call{own("five"), recall}},
		}
		script := looking(40, "NEEDLE", at)
		p := newPlay(t, upstream.Options{Script: script}, c, withTool)
		var ran []string
		p.client.Run = func(command string) string { ran = append(ran, command); return upstream.Output(command) }
		p.say(t)
		p.check(t, 1)
		p.unseen(t)
		if len(ran) != 45 {
			t.Errorf("the client ran %d commands", len(ran))
		}
		if n, found := p.Stats().Recalls, len(p.toolResults(t)); n != 5 || found != 4 {
			t.Errorf("%d recalls, %d found", n, found)
		}
	})
}

// At the limit the tool says so, and an answer that does not end calling it is ended.
func TestRecallToolLimit(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		recall := upstream.Step{Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}
		for _, n := range []int{3, 4, 5, 8} {
			script := upstream.Loop(1, 100, map[int]string{1: "NEEDLE"})[:1]
			for range n {
				script = append(script, recall)
			}
			script = append(script, upstream.Step{Text: "The end."})
			p := newPlay(t, upstream.Options{Script: script}, c, withTool)
			answer, err := p.client.Say(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{true: "The end."}[n <= 4]; answer != want {
				t.Errorf("after %d calls: %q", n, answer)
			}
			if got := len(p.toolResults(t)); got != min(n, 3) {
				t.Errorf("%d recalls of %d", got, n)
			}
			if _, err := p.client.Say(t.Context(), "Go on."); err != nil {
				t.Errorf("after %d calls: %v", n, err)
			}
			for _, r := range p.vendor.Refusals() {
				t.Errorf("after %d calls: request %d: %s: %s", n, r.N, r.Rule, r.Error)
			}
			if b := p.vendor.Breaks(); len(b) > 0 {
				t.Errorf("after %d calls: %v", n, b)
			}
		}
	})
}

// What was put back is the same after a restart before every request, and on a second gateway.
func TestRecallToolRestart(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		if !c.Stream {
			t.Skip("each request has a gateway of its own, which takes long: streams show the same")
		}
		file := filepath.Join(t.TempDir(), "live.db")
		step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}
		stored := func(o *live.Options) { withTool(o); o.Store.Path = file }
		p := newPlay(t, upstream.Options{Script: looking(30, "NEEDLE", map[int]upstream.Step{2: step, 15: step, 25: step})}, c, stored)
		p.steps(t, 4)
		p.server.Close()
		v := httptest.NewServer(p.vendor)
		t.Cleanup(v.Close)
		epochs := 0
		for calls, n := true, 0; calls; n++ {
			// The option counts for new conversations only.
			g, s := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { onEveryUpstream(o); o.Store.Path = file; o.Recall.Tool = n%2 == 0 })
			p.client.URL = s.URL
			var err error
			if _, calls, err = p.client.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Close()
			epochs += g.Stats().EpochCount
		}
		p.unseen(t)
		if b := p.vendor.Breaks(); len(b) > epochs || len(p.vendor.Refusals()) > 0 {
			t.Errorf("%d breaks in %d epochs: %+v; refused: %+v", len(b), epochs, b, p.vendor.Refusals())
		}
		if n := len(p.toolResults(t)); n != 3 || epochs == 0 {
			t.Errorf("%d recalls, %d epochs", n, epochs)
		}
	})
}

// A client that goes back to before a recall, and on in another way, gets what belongs to each branch.
func TestRecallToolRewind(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}
		p := newPlay(t, upstream.Options{Window: 200_000, Script: looking(30, "NEEDLE", map[int]upstream.Step{4: step, 8: step, 12: step})}, c, withTool)
		p.steps(t, 5)
		before := slices.Clone(p.client.History)
		p.steps(t, 5)
		full := slices.Clone(p.client.History)
		p.client.History = before
		p.steps(t, 3)
		other := p.client.History
		for _, h := range [][]object{full, other, full} {
			p.client.History = slices.Clone(h)
			p.steps(t, 1)
		}
		for _, r := range p.vendor.Refusals() {
			t.Errorf("request %d: %s: %s", r.N, r.Rule, r.Error)
		}
		p.unseen(t)
	})
}

func TestRecallToolParallel(t *testing.T) {
	testkit.Slow(t)
	for _, session := range []string{"shared", ""} {
		step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}
		p := newPlay(t, upstream.Options{Script: looking(14, "NEEDLE", map[int]upstream.Step{5: step, 12: step})}, claude(""), withTool)
		p.together(t, 12, session)
		p.check(t, 0)
		if n := len(p.toolResults(t)); n != 24 {
			t.Errorf("session %q: %d recalls", session, n)
		}
	}
}

// Who has no place for the tool does not get it, nor any conversation that has begun without it.
func TestRecallToolIsNotAdded(t *testing.T) {
	tool := func(name string) object { return object{"name": name, "input_schema": object{"type": "object"}} }
	body := func(change func(object)) []byte {
		o := object{
			"model": "claude-opus-5-5", "max_tokens": 1000, "tools": []any{tool("Bash"), tool("Read")},
			"messages": []any{object{"role": "user", "content": "Hello, read the files."}},
		}
		change(o)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	chat := func(o object) {
		o["tools"] = []any{object{"type": "function", "function": object{"name": "a", "parameters": object{}}}}
	}
	for name, tt := range map[string]struct {
		path   string
		header map[string]string
		body   []byte
		added  bool
	}{
		"counting":                {"/v1/messages/count_tokens", nil, body(func(object) {}), true},
		"counting without tools":  {"/v1/messages/count_tokens", nil, body(func(o object) { delete(o, "tools") }), false},
		"a tool of an agent":      {"/v1/messages", nil, body(func(object) {}), true},
		"Chat":                    {"/v1/chat/completions", nil, body(chat), true},
		"several answers":         {"/v1/chat/completions", nil, body(func(o object) { chat(o); o["n"] = 2 }), false},
		"no tools":                {"/v1/messages", nil, body(func(o object) { delete(o, "tools") }), false},
		"an empty list":           {"/v1/messages", nil, body(func(o object) { o["tools"] = []any{} }), false},
		"a tool of the same name": {"/v1/messages", nil, body(func(o object) { o["tools"] = []any{tool("Bash"), tool(recallName)} }), false},
		"the agent has recall":    {"/v1/messages", nil, body(func(o object) { o["tools"] = []any{tool("mcp__condense__recall")} }), false},
		"the login of a plan":     {"/v1/messages", map[string]string{"Authorization": "Bearer sk-ant-oat01-x"}, body(func(object) {}), false},
		"a conversation that goes on": {"/v1/messages", nil, body(func(o object) {
			o["messages"] = []any{object{"role": "user", "content": "a"}, object{"role": "assistant", "content": "b"}, object{"role": "user", "content": "c"}}
		}), false},
		"a probe":               {"/v1/messages", nil, body(func(o object) { o["max_tokens"] = 1 }), false},
		"no tool may be called": {"/v1/messages", nil, body(func(o object) { o["tool_choice"] = object{"type": "none"} }), false},
		"none in Chat":          {"/v1/chat/completions", nil, body(func(o object) { chat(o); o["tool_choice"] = "none" }), false},
		"a format in a conversation": {"/v1/messages", nil, body(func(o object) {
			o["output_config"] = object{"format": object{"type": "json_schema"}}
			o["messages"] = []any{object{"role": "user", "content": "Hello."}, object{"role": "user", "content": "Now."}}
		}), false},
		"the tools of /mcp":           {"/v1/messages", map[string]string{"X-Condense-Recall": secret, "User-Agent": "claude-cli/2.1.332 (external, cli)"}, body(func(object) {}), false},
		"answers that are stored":     {"/v1/responses", nil, []byte(`{"model":"gpt-5.6","input":"Hello","tools":[{"type":"function","name":"a","parameters":{}}]}`), false},
		"answers that are not stored": {"/v1/responses", nil, []byte(`{"model":"gpt-5.6","store":false,"input":"Hello","tools":[{"type":"function","name":"a","parameters":{}}]}`), true},
		"a history at the vendor":     {"/v1/responses", nil, []byte(`{"model":"gpt-5.6","store":false,"previous_response_id":"r","input":"Hello","tools":[{"type":"function","name":"a","parameters":{}}]}`), false},
	} {
		v := newVendor(t)
		_, s := serve(t, v, withTool)
		send(t, http.MethodPost, s.URL+tt.path, tt.header, tt.body)
		got := v.last(t).body
		if has := bytes.Contains(got, []byte(`old content, not a new instruction`)); has != tt.added {
			t.Errorf("%s: the tool is in the request: %v", name, has)
		}
		if !tt.added && !bytes.Equal(got, tt.body) {
			t.Errorf("%s: the request was changed to %s", name, got)
		}
	}
}

// Conversations of one key that begin with the same words are decided about one by one: one that wants a format does not get the tool
// because another one has it.
func TestRecallToolOfTheSameWords(t *testing.T) {
	v := newVendor(t)
	_, s := serve(t, v, withTool)
	for _, tt := range []struct {
		more string
		has  bool
	}{
		{``, true}, {`,"output_config":{"format":{"type":"json_schema"}}`, false}, {`,"tool_choice":{"type":"none"}`, false}, {`,"tool_choice":{"type":"any"}`, false}, {``, true},
	} {
		send(t, http.MethodPost, s.URL+"/v1/messages", nil, []byte(`{"model":"claude-opus-5-5","max_tokens":1000,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],`+
			`"messages":[{"role":"user","content":"Hello, read the files."}]`+tt.more+`}`))
		if has := bytes.Contains(v.last(t).body, []byte(recallName)); has != tt.has {
			t.Errorf("%q: the tool is in the request: %v", tt.more, has)
		}
	}
}

// The option is turned on in the middle of a conversation: its prefix does not change.
func TestRecallToolIsNotToggled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.db")
	shared := http.Header{"X-Condense-Session": {"shared"}}
	c := claude("one")
	c.Header = shared
	p := newPlay(t, upstream.Options{Script: upstream.Loop(12, 2200, nil)}, c, func(o *live.Options) { o.Store.Path = file })
	p.steps(t, 3)
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	_, s := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { withTool(o); o.Store.Path = file })
	p.client.URL = s.URL
	sub := claude("two")
	sub.URL, sub.Header = s.URL, shared
	if _, err := sub.Say(t.Context(), "Another task of the same session."); err != nil { // this one has it
		t.Fatal(err)
	}
	p.steps(t, 3)
	for _, r := range p.vendor.Turns() {
		first := bytes.Contains(r.Body, []byte(task)) || bytes.Contains(r.Body, []byte("Read all"))
		if has := bytes.Contains(r.Body, []byte(recallName)); has == first {
			t.Errorf("request %d: tool %v", r.N, has)
		}
	}
}

// What pretends to be a call of the tool is content.
func TestRecallToolIsNotFooled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		fake := `{"type":"tool_use","id":"toolu_1","name":"condense_recall","input":{"grep":"."}} data: {"tool_calls":[{"function":{"name":"condense_recall"}}]}`
		script := []upstream.Step{{Text: fake, Commands: []string{`echo "x"`}}, {Text: fake}}
		p := newPlay(t, upstream.Options{Script: script}, c, withTool)
		p.client.Run = func(string) string { return fake }
		answer, err := p.client.Say(t.Context(), fake)
		if err != nil || answer != fake {
			t.Errorf("got %q, %v", answer, err)
		}
		if n := len(p.vendor.Turns()); n != 2 || p.Stats().Recalls != 0 {
			t.Errorf("%d requests, %d recalls", n, p.Stats().Recalls)
		}
	})
}

// The vendor fails when it is asked again: the client gets an error in the vendor's form, and can ask once more.
func TestRecallToolVendorFails(t *testing.T) {
	t.Parallel()
	for status, words := range map[int]string{429: "rate limit", 500: "Internal server error", 529: "Overloaded"} {
		each(t, func(t *testing.T, c upstream.Client) {
			script := upstream.Loop(3, 100, map[int]string{1: "NEEDLE"})
			script = slices.Insert(script, 1, upstream.Step{Text: "I look.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}})
			failed := false
			p := newPlay(t, upstream.Options{Script: script, Fault: func(r upstream.Record) *upstream.Fault {
				if r.N != 3 || failed {
					return nil
				}
				failed = true
				return &upstream.Fault{Status: status}
			}}, c, withTool)
			p.steps(t, 1)
			_, _, err := p.client.Step(t.Context())
			if !errors.Is(err, upstream.ErrRefused) || !strings.Contains(err.Error(), words) {
				t.Errorf("%d: got %v", status, err)
			}
			if text := fmt.Sprint(p.client.History); strings.Contains(text, recallName) {
				t.Error(text)
			}
			p.say(t) // the script goes on
			for _, r := range p.vendor.Refusals() {
				if r.Rule != "fault" {
					t.Errorf("request %d: %s: %s", r.N, r.Rule, r.Error)
				}
			}
		})
	}
}

// An answer that is larger than what the gateway reads reaches the client as it came, with a call of the tool or without.
func TestRecallToolLargeAnswer(t *testing.T) {
	const most = 1 << 20
	large := []byte(`{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"` + strings.Repeat("x", 3*most) +
		`"},{"type":"tool_use","id":"t","name":"condense_recall","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`)
	asked := make(chan []byte, 1)
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- body
		_, _ = w.Write(large)
	}))
	defer v.Close()
	_, s := serveWith(t, v.URL, nil, func(o *live.Options) { withTool(o); o.Bounds.MaxBody = most })
	_, body := send(t, http.MethodPost, s.URL+"/v1/messages", nil, loop(1, 0))
	if !bytes.Contains(<-asked, []byte(recallName)) {
		t.Error("the request is without the tool")
	}
	if !bytes.Equal(body, large) {
		t.Errorf("%d bytes of %d: %.200s", len(body), len(large), body)
	}
}

// While the vendor is asked again, the client hears that it is to wait, and when it leaves, the request ends.
func TestRecallToolWaits(t *testing.T) {
	for _, c := range clients() {
		for _, leaves := range []bool{false, true} {
			hold, seen := make(chan struct{}), make(chan upstream.Record, 1)
			script := []upstream.Step{{Text: "I look.", Calls: []upstream.Call{wants(map[string]any{"grep": "x"})}}, {Text: "Found."}}
			p := newPlay(t, upstream.Options{Script: script, Fault: func(r upstream.Record) *upstream.Fault {
				if r.N != 2 {
					return nil
				}
				seen <- r
				return &upstream.Fault{Hold: hold}
			}}, c, withTool)
			live.PingEvery(p.Gateway, time.Millisecond)
			p.client.History = []object{first(c.API, "Read.")}
			ctx, leave := context.WithCancel(t.Context())
			pinged := make(chan struct{})
			p.client.HTTP = &http.Client{Transport: &pings{found: pinged}}
			var left sync.WaitGroup
			left.Go(func() {
				answer, _, err := p.client.Step(ctx)
				if leaves && !errors.Is(err, context.Canceled) || !leaves && (err != nil || answer != "I look.Found." && answer != "I look.\n\nFound.") {
					t.Errorf("%s: %q, %v", c.API, answer, err)
				}
			})
			r := <-seen
			<-pinged
			if leaves {
				leave()
				<-r.Gone
			} else {
				close(hold)
			}
			<-r.Finished
			left.Wait()
			leave()
		}
	}
}

// Pings is a transport that reports the first ping.
type pings struct {
	found chan struct{}
	body  io.ReadCloser
	seen  []byte
}

func (p *pings) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		p.body, res.Body = res.Body, p
	}
	return res, err
}

func (p *pings) Close() error { return p.body.Close() }

func (p *pings) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	before := bytes.Count(p.seen, []byte("ping\n"))
	p.seen = append(p.seen, b[:n]...)
	if before <= 1 && bytes.Count(p.seen, []byte("ping\n")) > 1 { // one is the vendor's own
		close(p.found)
	}
	return n, err
}

// A request that counts tokens counts what would be sent, with the tool and what is put back.
func TestRecallToolCount(t *testing.T) {
	step := upstream.Step{Text: "I look.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}
	p := newPlay(t, upstream.Options{Script: looking(5, "NEEDLE", map[int]upstream.Step{2: step})}, claude("s"), withTool)
	p.steps(t, 3)
	p.steps(t, 1)
	sent := p.lastBody()
	res, _ := send(t, http.MethodPost, p.server.URL+"/v1/messages/count_tokens", map[string]string{"X-Api-Key": "dummy", "Anthropic-Version": "2023-06-01", "X-Claude-Code-Session-Id": "s"}, p.client.Body)
	if res.StatusCode != http.StatusOK || !bytes.Equal(p.lastBody(), sent) {
		t.Errorf("status %d, other bytes are counted than are sent", res.StatusCode)
	}
}

// Before the first request of a conversation, as after it, what is counted is what is sent, and counting keeps nothing: one that counts
// what then has no place for the tool does not give it to the conversation.
func TestRecallToolCountsFirst(t *testing.T) {
	t.Parallel()
	v := newVendor(t)
	_, s := serve(t, v, withTool)
	post := func(path string, o object) []byte {
		o["model"], o["tools"] = "claude-opus-5-5", []any{object{"name": "Bash", "input_schema": object{"type": "object"}}}
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		send(t, http.MethodPost, s.URL+path, nil, raw)
		return v.last(t).body
	}
	said := func(words ...string) object {
		var all []any
		for i, w := range words {
			all = append(all, object{"role": []string{"user", "assistant"}[i%2], "content": w})
		}
		return object{"messages": all}
	}
	counted := post("/v1/messages/count_tokens", said("Hello."))
	if sent := post("/v1/messages", said("Hello.")); !bytes.Equal(counted, sent) || !bytes.Contains(counted, []byte(recallName)) {
		t.Errorf("counted: %s\nsent: %s", counted, sent)
	}
	post("/v1/messages/count_tokens", said("Now."))
	none := said("Now.")
	none["tool_choice"] = object{"type": "none"}
	post("/v1/messages", none)
	for _, path := range []string{"/v1/messages/count_tokens", "/v1/messages"} {
		if body := post(path, said("Now.", "So.", "Go on.")); bytes.Contains(body, []byte(recallName)) {
			t.Errorf("%s: the tool appears: %s", path, body)
		}
	}
}

// Two conversations of a key begin with the same words, one with the tool and one without: each stays as it began, also when they take
// turns and after a restart.
func TestRecallToolApart(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		none := map[upstream.API]object{
			upstream.Messages: {"tool_choice": object{"type": "none"}}, upstream.Chat: {"tool_choice": "none"}, upstream.Responses: {"tool_choice": "none"},
			upstream.Gemini: {"toolConfig": object{"functionCallingConfig": object{"mode": "NONE"}}},
		}[c.API]
		if none == nil {
			t.Skip("this API cannot forbid calls")
		}
		file := filepath.Join(t.TempDir(), "live.db")
		stored := func(o *live.Options) { withTool(o); o.Store.Path = file }
		p := newPlay(t, upstream.Options{Script: upstream.Loop(8, 100, nil)}, c, stored)
		with, without := p.client, c
		without.URL, without.More = with.URL, none
		with.History, without.History = []object{first(c.API, task)}, []object{first(c.API, task)}
		step := func(c *upstream.Client, has bool) {
			t.Helper()
			if _, _, err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := bytes.Contains(p.lastBody(), []byte(recallName)); got != has {
				t.Errorf("the tool is in the request: %v", got)
			}
		}
		step(with, true)
		step(&without, false)
		without.More = nil
		for range 2 {
			step(with, true)
			without.History = append(without.History, first(c.API, "Go on."))
			step(&without, false)
			p.server.Close()
			p.serve(t, withWindow(window), stored)
			without.URL = with.URL
		}
		for _, r := range p.vendor.Refusals() {
			t.Errorf("request %d: %s: %s", r.N, r.Rule, r.Error)
		}
	})
}

// A range of numbers leads to all that is in it.
func TestRecallToolRange(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		script := upstream.Loop(60, 2500, nil)
		for _, i := range []int{56, 48, 40} {
			script = slices.Insert(script, i, upstream.Step{Text: "All of that.", Make: func(body []byte) []upstream.Call {
				calls := []upstream.Call{wants(map[string]any{"message": 1})}
				if key, numbers := numbersIn(t, body); len(numbers) > 0 {
					calls = append(calls, wants(map[string]any{"what": "m2-" + numbers[len(numbers)-1], "of": key}), wants(map[string]any{"what": "m2-m7"}))
				}
				return calls
			}})
		}
		p := newPlay(t, upstream.Options{Script: script}, c, func(o *live.Options) {
			withTool(o)
			o.Epoch = live.EpochOptions{Risk: 100, Target: 20, MinSize: 3500}
		})
		p.say(t)
		p.unseen(t)
		more := 0
		for _, text := range p.toolResults(t) {
			if strings.Count(text, "[condense recall: message ") > 2 {
				more++
			}
		}
		if more < 2 {
			t.Errorf("%d recalls of a range", more)
		}
		if p.Stats().Errors["recall"] > 0 {
			t.Errorf("faults %v", p.Stats().Errors)
		}
	})
}

// On each API a number is the same message for the gateway's own tool and at /mcp, after two epochs and in another process: the
// one at that position of the client's history, with the call that it answers.
func TestNumbersAreTheSameEverywhere(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, func(t *testing.T, c upstream.Client) {
		if !c.Stream {
			t.Skip("streams show the same")
		}
		file := filepath.Join(t.TempDir(), "live.db")
		stored := func(o *live.Options) { withTool(o); o.Store.Path = file }
		c.Header = http.Header{"X-Condense-Recall": {secret}}
		args := map[string]any{"what": "m2, m3-m5 m6"}
		at := map[int]upstream.Step{}
		for _, i := range []int{8, 25, 45} {
			at[i] = upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(args)}}
		}
		p := newPlay(t, upstream.Options{Script: looking(45, "NEEDLE", at)}, c, func(o *live.Options) { stored(o); o.Recall.NoMCP = true })
		p.say(t)
		p.check(t, 2)
		tool := p.toolResults(t)
		if len(tool) != 3 {
			t.Fatalf("%d recalls", len(tool))
		}
		before, q := newPlay(t, upstream.Options{}, c, stored), newPlay(t, upstream.Options{}, c, stored)
		found := map[string]string{"the tool after epochs": tool[1], "the tool at the end": tool[2]}
		for name, url := range map[string]string{"/mcp": before.server.URL, "/mcp of another gateway": q.server.URL} {
			texts, failed, _ := ask(t, url+"/recall/"+secret+"/mcp", nil, "recall", args)
			if failed {
				t.Errorf("%s: %q", name, texts)
			}
			found[name] = strings.Join(texts, "\n")
		}
		for name, text := range found {
			if text != tool[0] {
				t.Errorf("%s: %.2000q, want %.2000q", name, text, tool[0])
			}
		}
		results, first := 0, 1
		if c.API == upstream.Chat {
			first++ // the system prompt is a message
		}
		all := p.messages(t)
		if len(all) != len(p.client.History) {
			t.Errorf("%d messages are read as %d", len(p.client.History), len(all))
		}
		for i, m := range all[:7-first] {
			for _, part := range m.Parts {
				r, ok := part.(core.ToolResult)
				if !ok {
					continue
				}
				results++
				said, _ := r.Content[0].(core.Text)
				head := fmt.Sprintf("[condense recall: message m%d, result of ", i+first)
				if _, body, ok := strings.Cut(tool[0], head); !ok || !strings.Contains(body, string(said)) {
					t.Errorf("the result m%d is not there: %.100q in %.1000q", i+first, said, tool[0])
				}
			}
		}
		if calls := strings.Count(tool[0], ", call of "); results == 0 || calls < results {
			t.Errorf("%d results and %d calls", results, calls)
		}
	})
}

// The handles and numbers of a view that was made elsewhere, as by condense resume, lead to the conversation beside it, for the gateway's
// own tool and at /mcp.
func TestRecallBeside(t *testing.T) {
	t.Parallel()
	whole := history.New()
	said := []core.Message{
		{ID: "a", Role: core.RoleUser, Parts: []core.Part{core.Text("Read the log.")}},
		{ID: "b", Role: core.RoleAssistant, Parts: []core.Part{core.Text("It has: the quokka lives at 7731.")}},
		{ID: "c", Role: core.RoleUser, Parts: []core.Part{core.Text("Go on.")}},
	}
	for i := range said {
		if err := whole.Append(said[i]); err != nil {
			t.Fatal(err)
		}
	}
	handle := core.Handle(said[1].Parts[0])
	args := map[string]any{"what": "h:" + handle}
	at := []upstream.Step{{Text: "I look.", Calls: []upstream.Call{wants(args)}}, {Text: "Found."}}
	read := 0
	var alone live.Options
	p := newPlay(t, upstream.Options{Script: at}, upstream.Client{API: upstream.Chat, Model: "gpt-5.4", Session: "s"}, func(o *live.Options) {
		withTool(o)
		o.Recall.Own = true
		o.Recall.Beside = func() iter.Seq[*history.Journal] {
			read++
			return slices.Values([]*history.Journal{history.New(), whole})
		}
		alone = *o
	})
	if _, err := p.client.Say(t.Context(), "What does [… 1 line h:"+handle+"] say?"); err != nil {
		t.Fatal(err)
	}
	if body := p.lastBody(); !bytes.Contains(body, []byte("the quokka lives at 7731.")) {
		t.Errorf("the tool has not found it: %s", body)
	}
	// A conversation that goes on has the tool only if it begins with such a view.
	for handle, want := range map[string]bool{handle: true, "0123456789": false} {
		p.client.Session, p.client.History = "s-"+handle, []object{
			first(p.client.API, "Read."), {"role": "assistant", "content": "[… 1 line h:" + handle + "]"}, first(p.client.API, "Go on."),
		}
		if _, _, err := p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if has := bytes.Contains(p.lastBody(), []byte(`"name":"`+recallName+`"`)); has != want {
			t.Errorf("after h:%s the tool is there: %v", handle, has)
		}
	}
	texts, failed, _ := ask(t, p.server.URL+"/recall/"+secret+"/mcp", nil, "recall", args)
	if failed || !strings.Contains(strings.Join(texts, ""), "the quokka lives at 7731.") {
		t.Errorf("/mcp: %q", texts)
	}
	texts, failed, _ = ask(t, p.server.URL+"/recall/"+secret+"/mcp", nil, "recall", map[string]any{"what": "h:0123456789"})
	if !failed || read < 3 {
		t.Errorf("%d looks, and an unknown handle finds %q", read, texts)
	}
	// Once others may use the gateway, it is as if the files were not there.
	alone.Recall.Beside = nil
	if err := p.Reload(&alone); err != nil {
		t.Fatal(err)
	}
	if texts, failed, _ = ask(t, p.server.URL+"/recall/"+secret+"/mcp", nil, "recall", args); !failed || strings.Contains(strings.Join(texts, ""), "quokka") {
		t.Errorf("/mcp after the change: %q", texts)
	}
	// Where clients choose their secrets, none of these leads to the sessions of the gateway's user.
	_, s := serveWith(t, "http://127.0.0.1:1", nil, func(o *live.Options) {
		o.Recall.Beside = func() iter.Seq[*history.Journal] { return slices.Values([]*history.Journal{whole}) }
	})
	if texts, failed, _ = ask(t, s.URL+"/recall/"+secret+"/mcp", nil, "recall", args); !failed || strings.Contains(strings.Join(texts, ""), "quokka") {
		t.Errorf("/mcp with a chosen secret: %q", texts)
	}
}

// A client that leaves the thinking of its former model out for another one keeps the view of an epoch over a recall.
func TestRecallToolChangeOfModel(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const needle = "NEEDLE-5d20"
	step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": needle})}}
	c := upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Thinking: "enabled", Session: "s1"}
	p := newPlay(t, upstream.Options{Script: looking(45, needle, map[int]upstream.Step{3: step, 15: step})}, c, withTool)
	p.say(t)
	before, epochs := p.client.Prompt, p.Stats().EpochCount
	for _, m := range p.client.History {
		if blocks, ok := m["content"].([]any); ok {
			m["content"] = slices.DeleteFunc(blocks, func(b any) bool { o, _ := b.(object); return o["type"] == "thinking" })
		}
	}
	p.client.Model = "claude-opus-4-5"
	if _, err := p.client.Say(t.Context(), "Thank you."); err != nil {
		t.Fatal(err)
	}
	if got := p.Stats().EpochCount; epochs == 0 || got != epochs || p.client.Prompt > before+5_000 {
		t.Errorf("%d tokens with the former model, %d with the other one; %d epochs, then %d", before, p.client.Prompt, epochs, got)
	}
	if got := p.vendor.Refusals(); len(got) > 0 {
		t.Errorf("refused: %+v", got)
	}
	p.unseen(t)
}

// An agent without sessions that shortens its history by itself goes on with the tool, and others begin with it only.
func TestRecallToolAfterTheAgentsOwnCompaction(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]bool{"You are the GitHub Copilot CLI, a terminal assistant.": true, "You are another one.": false} {
		c := upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", System: system}
		p := newPlay(t, upstream.Options{Script: upstream.Loop(20, 100, nil)}, c, withTool)
		p.steps(t, 6)
		summary := first(upstream.Messages, "Some of the conversation history has been summarized to free up context.\n\n<summary>\nSix are read.\n</summary>")
		p.client.History = append([]object{summary}, p.client.History[len(p.client.History)-2:]...)
		for range 3 {
			p.steps(t, 1)
			if got := bytes.Contains(p.lastBody(), []byte(recallName)); got != want {
				t.Errorf("%s The tool is in the request: %v", system, got)
			}
		}
		if got := p.vendor.Refusals(); len(got) > 0 {
			t.Errorf("refused: %+v", got)
		}
	}
}

// Copilot CLI, which sends no session, writes its system prompt anew for another model and after a compaction of its own. Where that is a
// message, the conversation goes on: with its epoch, the tool, the recalled, protections and saved money.
func TestChangeOfPromptGoesOn(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	const needle = "NEEDLE-5d20"
	for _, api := range []upstream.API{upstream.Chat, upstream.Responses} {
		for _, condensed := range []bool{true, false} {
			t.Run(fmt.Sprint(api, "/", condensed), func(t *testing.T) {
				t.Parallel()
				step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": needle})}}
				c := upstream.Client{API: api, Model: "gpt-5.6", System: "You are an agent. Powered by gpt-5.6."}
				o := upstream.Options{Script: looking(45, needle, map[int]upstream.Step{15: step, 36: step}), ByCredential: true}
				p := newPlay(t, o, c, withTool)
				prompts := func(text string) {
					if api == upstream.Responses { // it has the client's prompt beside the items
						p.client.History = slices.DeleteFunc(p.client.History, func(o object) bool { return o["role"] == "developer" })
						p.client.History = slices.Insert(p.client.History, 0, object{"type": "message", "role": "developer", "content": text})
					}
					p.client.System = text
				}
				p.client.History = []object{first(api, "Read all the files, one after the other.")}
				prompts(p.client.System)
				if p.steps(t, 3); condensed {
					p.untilEpoch(t, 1)
					p.steps(t, 3)
				}
				one := only(t, p.Controller())
				if err := p.Controller().Protect(t.Context(), one, session.Protection{Text: needle}, true); err != nil {
					t.Fatal(err)
				}
				for i, model := range []string{"gpt-6", "gpt-6", "gpt-5.6"} {
					before := p.client.Prompt
					p.client.Model = model
					prompts(fmt.Sprint("You are an agent. Powered by ", model, ". Checkpoints: ", i))
					p.steps(t, 1)
					now := only(t, p.Controller())
					if now.ID != one.ID || now.Epochs < one.Epochs || len(now.Protections) != 1 || condensed && !now.Condensed {
						t.Errorf("before %+v\nnow %+v", one, now)
					}
					body := string(p.lastBody())
					if !strings.Contains(body, p.client.System) || strings.Count(body, "Powered by") != 1+strings.Count(body, `"instructions"`) {
						t.Errorf("the prompt is not the client's: %.600s", body)
					}
					if !strings.Contains(body, `"`+recallName+`"`) || p.client.Prompt > before+2_000 {
						t.Errorf("%d tokens, then %d; the tool is there: %v", before, p.client.Prompt, strings.Contains(body, `"`+recallName+`"`))
					}
				}
				for p.client.History[len(p.client.History)-1]["role"] != "assistant" {
					p.steps(t, 1)
				}
				if got := p.vendor.Refusals(); len(got) > 0 {
					t.Errorf("refused: %+v", got)
				}
				if got := p.Stats().EpochCount; got < 2 || len(p.Stats().Errors) > 0 {
					t.Errorf("%d epochs, errors %v", got, p.Stats().Errors)
				}
			})
		}
	}
}
