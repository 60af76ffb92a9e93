package live_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/transcript"
)

const secret = "secret-0123456789"

// ask calls a tool of /mcp and returns the texts of the result.
func ask(t *testing.T, url string, header map[string]string, tool string, args any) (texts []string, failed bool, status int) {
	t.Helper()
	body, err := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": object{"name": tool, "arguments": args}})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	maps.Copy(all, header)
	res, got := send(t, http.MethodPost, url, all, body)
	var out struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error json.RawMessage
	}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(got, &out); err != nil {
			t.Fatalf("%v in %s", err, got)
		}
	}
	for _, c := range out.Result.Content {
		texts = append(texts, c.Text)
	}
	if out.Error != nil {
		texts = append(texts, string(out.Error))
	}
	return texts, out.Result.IsError || out.Error != nil || res.StatusCode != http.StatusOK, res.StatusCode
}

// recallAll returns what a handle leads to, all pages of it.
func recallAll(t *testing.T, url, handle string) (text string, ok bool) {
	t.Helper()
	return recallWith(t, url, object{"handle": handle})
}

// recallWith returns all pages of what arguments lead to.
func recallWith(t *testing.T, url string, args object) (text string, ok bool) {
	t.Helper()
	for {
		texts, failed, _ := ask(t, url, nil, "recall", args)
		if failed {
			return strings.Join(texts, "\n"), false
		}
		more := 0
		for _, part := range texts {
			if !strings.HasPrefix(part, "[condense recall: ") {
				text += part
			} else if _, after, ok := strings.Cut(part, "next: offset "); ok {
				_, _ = fmt.Sscanf(after, "%d", &more)
			}
		}
		if more == 0 {
			return text, true
		}
		args["offset"] = more
	}
}

var handles = regexp.MustCompile(`\bh:([0-9a-f]{10}(?:\+|\b))`)

// promises returns the handles in the texts of a body, with the + that follows some.
func promises(t *testing.T, body []byte) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, s := range textsOf(t, body) {
		for _, at := range handles.FindAllStringSubmatch(s, -1) {
			all[at[1]] = true
		}
	}
	return all
}

// promised returns the handles in the texts of requests, each with the body of the last one that has it.
func promised(t *testing.T, requests []upstream.Record) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	known := map[string]map[string]bool{} // by the text of an element: most are in many requests
	for _, r := range requests {
		var body map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, value := range body {
			var elements []json.RawMessage
			if json.Unmarshal(value, &elements) != nil { // no array
				elements = []json.RawMessage{value}
			}
			for _, e := range elements {
				found, ok := known[string(e)]
				if !ok {
					found = promises(t, e)
					known[string(e)] = found
				}
				for h := range found {
					all[h] = r.Body
				}
			}
		}
	}
	return all
}

// textsOf returns all strings of a body.
func textsOf(t *testing.T, body []byte) []string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, v := range v {
				walk(v)
			}
		case map[string]any:
			for _, v := range v {
				walk(v)
			}
		}
	}
	walk(v)
	return all
}

// results returns the texts of all tool results that the client has.
func (p *play) results() []string {
	var all []string
	for _, m := range p.client.History {
		switch {
		case m["parts"] != nil:
			parts, _ := m["parts"].([]any)
			for _, part := range parts {
				if f, ok := part.(object)["functionResponse"].(object); ok {
					all = append(all, f["response"].(object)["output"].(string))
				}
			}
		case m["role"] == "tool":
			all = append(all, m["content"].(string))
		case m["type"] == "function_call_output":
			all = append(all, m["output"].(string))
		}
		blocks, _ := m["content"].([]any)
		for _, b := range blocks {
			if b, _ := b.(object); b["type"] == "tool_result" {
				if text, ok := b["content"].(string); ok {
					all = append(all, text)
				} else {
					all = append(all, b["content"].([]any)[0].(object)["text"].(string))
				}
			}
		}
	}
	return all
}

func recalls(c upstream.Client) upstream.Client {
	c.Tools = []string{"mcp__condense__recall", "mcp__condense__search"}
	c.Header = http.Header{"X-Condense-Recall": {secret}}
	return c
}

// keptPromises reports handles in the requests that lead nowhere, and returns how many there are.
func (p *play) keptPromises(t *testing.T) int {
	t.Helper()
	all := promised(t, p.vendor.Records())
	for _, h := range slices.Sorted(maps.Keys(all))[:min(len(all), 60)] {
		text, ok := recallAll(t, p.server.URL+"/recall/"+secret+"/mcp", h)
		if !ok || text == "" {
			t.Errorf("the handle %s leads to %q", h, text)
		}
	}
	return len(all)
}

// messages reads the client's history.
func (p *play) messages(t *testing.T) []core.Message {
	t.Helper()
	history, err := json.Marshal(p.client.History)
	if err != nil {
		t.Fatal(err)
	}
	format := wire.Of(wire.API(p.client.API)).Format
	doc, err := transcript.Read(bytes.NewReader(history), &transcript.ReadOptions{Format: format})
	if err != nil {
		t.Fatal(err)
	}
	return doc.Journal.Messages()
}

// After three epochs every handle that any request had leads to its content, and the first result is found byte for byte: also after a
// restart, after the client has compacted itself, and from another session.
func TestPromisesAreKept(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range everyAPI() {
		t.Run(string(c.API)+"/"+c.Model, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "serve.db")
			stored := func(o *live.Options) { onEveryUpstream(o); o.Store.Path = file }
			p := newPlay(t, upstream.Options{}, recalls(c), stored)
			p.client.Session = "s1"
			p.say(t)
			p.untilEpoch(t, 3)
			mcp := p.server.URL + "/recall/" + secret + "/mcp"
			first := p.results()[0]
			h := core.Handle(core.ToolResult{Content: []core.Part{core.Text(first)}})
			if got, ok := recallAll(t, mcp, h); !ok || got != first {
				t.Errorf("the first result is %.200q, want %.200q", got, first)
			}
			n := p.keptPromises(t)
			if most := p.ranges(t); n == 0 || most < 2 {
				t.Fatalf("%d handles, and the contents lead to %d results", n, most)
			}
			word := strings.Fields(first)[0]
			if texts, failed, _ := ask(t, mcp, nil, "search", object{"query": word}); failed || !strings.Contains(strings.Join(texts, ""), "h:") {
				t.Errorf("search %s: %s", word, texts)
			}
			if texts, failed, _ := ask(t, mcp, nil, "status", object{}); failed || !strings.Contains(texts[0], "left out or shortened: ") {
				t.Errorf("status: %s", texts)
			}
			if e := p.Stats().Errors; len(e) > 0 {
				t.Errorf("faults %v", e)
			}
			t.Logf("%d handles, recalls %d, tokens %d", n, p.Stats().Recalls, p.Stats().Tokens.Recalled)

			// The client forgets: it has only a summary now, in another session, at another process.
			q := newPlay(t, upstream.Options{}, recalls(c), stored)
			q.vendor, q.client.Session = p.vendor, "s2"
			q.say(t)
			if got, ok := recallAll(t, q.server.URL+"/recall/"+secret+"/mcp", h); !ok || got != first {
				t.Errorf("after a restart the first result is %.200q, want %.200q", got, first)
			}
			if left := q.keptPromises(t); left != n {
				t.Errorf("%d handles, want %d", left, n)
			}
			q.client.History = p.client.History
			q.ranges(t)
		})
	}
}

// What the contents of a view lead to is all found also when another conversation is the latest, in another process.
func TestContentsOfAnotherConversation(t *testing.T) {
	testkit.Slow(t)
	file := filepath.Join(t.TempDir(), "serve.db")
	p := newPlay(t, upstream.Options{}, recalls(claude("s1")), func(o *live.Options) { o.Store.Path = file })
	p.begin(t)
	p.untilEpoch(t, 2)
	q := newPlay(t, upstream.Options{}, recalls(claude("s2")), func(o *live.Options) { o.Store.Path = file })
	q.client.Run = func(string) string { return strings.Repeat("of the other ", 3000) }
	q.begin(t)
	q.untilEpoch(t, 1)
	p.server = q.server
	if p.keptPromises(t) == 0 {
		t.Error("no handles")
	}
	if most := p.ranges(t); most < 3 {
		t.Errorf("the contents lead to no more than %d results", most)
	}
}

// Only a client that can call the tool, and says who may read, gets handles; for others nothing is kept.
func TestNoPromisesWithoutRecall(t *testing.T) {
	testkit.Slow(t)
	for name, change := range map[string]func(*upstream.Client, *live.Options){
		"no tool":   func(c *upstream.Client, _ *live.Options) { c.Tools = []string{"recall", "mcp__other__recall"} },
		"no secret": func(c *upstream.Client, _ *live.Options) { c.Header = nil },
		"a guess":   func(c *upstream.Client, _ *live.Options) { c.Header = http.Header{"X-Condense-Recall": {"short"}} },
		"off":       func(_ *upstream.Client, o *live.Options) { o.Recall.Off = true },
		"no MCP":    func(_ *upstream.Client, o *live.Options) { o.Recall.NoMCP, o.Recall.Tool = true, true }, // it has a tool of its own already
		"full":      func(_ *upstream.Client, o *live.Options) { o.Recall.MaxSize = 2000 },
	} {
		t.Run(name, func(t *testing.T) {
			c := recalls(claude("s"))
			p := newPlay(t, upstream.Options{}, c, func(o *live.Options) {
				o.Recall.Own = name == "no tool"
				change(&c, o)
			})
			c.URL = p.client.URL
			p.client = &c
			p.begin(t)
			p.untilEpoch(t, 2)
			if h := promises(t, p.lastBody()); len(h) > 0 {
				t.Errorf("the view promises %v", h)
			}
			off := name == "off" || name == "no MCP"
			if _, _, status := ask(t, p.server.URL+"/recall/"+secret+"/mcp", nil, "status", object{}); (status == http.StatusNotFound) != off {
				t.Errorf("/mcp answers %d", status)
			}
			if e := p.Stats().Errors; (e["recall_full"] > 0) != (name == "full") || e["commit"] > 0 || e["recall"] > 0 {
				t.Errorf("faults %v", e)
			}
			if got := len(p.vendor.Refusals()); got > 0 {
				t.Errorf("%d refusals", got)
			}
		})
	}
}

// What one secret's requests brought is for no other.
func TestForeignRecall(t *testing.T) {
	p := newPlay(t, upstream.Options{}, recalls(claude("s1")), func(o *live.Options) { o.Recall.Own = true })
	p.begin(t)
	p.untilEpoch(t, 1)
	var handle string
	for h := range promises(t, p.lastBody()) {
		if !strings.HasPrefix(h, core.Handle(core.Text(task))) { // the other session begins with this text too
			handle = h
		}
	}
	const other = "another-secret-0123456789"
	d := recalls(claude("s1"))
	d.URL, d.Header = p.server.URL, http.Header{"X-Condense-Recall": {other}}
	q := &play{Gateway: p.Gateway, vendor: p.vendor, server: p.server, client: &d}
	if _, failed, _ := ask(t, p.server.URL+"/recall/"+secret+"/mcp?session=s1", nil, "recall", object{"handle": handle}); !failed {
		q.client.Run = func(string) string { return strings.Repeat("of the other ", 3000) }
		q.begin(t)
		q.untilEpoch(t, 2)
	} else {
		t.Fatal("the owner does not find it")
	}
	for _, tt := range []struct {
		name, path string
		header     map[string]string
		status     int
	}{
		{"another secret", "/recall/" + other + "/mcp", nil, 200},
		{"another secret, the same session", "/recall/" + other + "/mcp?session=s1", nil, 200},
		{"the session in a header", "/mcp", map[string]string{"Authorization": "Bearer " + other, "X-Condense-Session": "s1"}, 200},
		{"the gateway's own secret", "/recall/" + p.RecallSecret() + "/mcp", nil, 200},
		{"no secret, as the vendor's key", "/mcp", map[string]string{"X-Api-Key": "dummy"}, 401},
		{"the vendor's key", "/mcp", map[string]string{"Authorization": "Bearer dummy"}, 401},
		{"an empty secret", "/recall//mcp", nil, 401},
		{"a short secret", "/recall/abc/mcp", nil, 401},
		{"no session", "/recall/" + secret + "/mcp?session=a%27%20OR%201=1", nil, 400},
		{"a page", "/recall/" + secret + "/mcp", map[string]string{"Origin": "https://evil.example"}, 403},
		{"another name", "/recall/" + secret + "/mcp", map[string]string{"Host": "evil.example"}, 403},
	} {
		for _, tool := range []struct {
			name string
			args any
		}{{"recall", object{"handle": handle}}, {"recall", object{"message": 1}}, {"search", object{"query": "Read files", "all": true}}, {"status", object{}}} {
			texts, failed, status := ask(t, p.server.URL+tt.path, tt.header, tool.name, tool.args)
			if status != tt.status {
				t.Errorf("%s: status %d, want %d", tt.name, status, tt.status)
			}
			if text := strings.Join(texts, "\n"); !failed && tool.name == "recall" && tool.args.(object)["handle"] != nil || strings.Contains(text, p.results()[0][:40]) {
				t.Errorf("%s, %s: got %.300s", tt.name, tool.name, text)
			}
		}
	}
}

// Patterns, ranges and sizes are bounded, and the gateway goes on.
func TestRecallAttacks(t *testing.T) {
	p := newPlay(t, upstream.Options{}, recalls(claude("s1")), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	mcp := p.server.URL + "/recall/" + secret + "/mcp"
	h := core.Handle(core.ToolResult{Content: []core.Part{core.Text(p.results()[0])}})
	for _, args := range []object{
		{"handle": h, "grep": "(a+)+$"},
		{"handle": h, "grep": "(.*)*(.*)*(.*)*x{1,1000}"},
		{"handle": h, "grep": strings.Repeat("(a|b)*", 160)},
		{"handle": h, "grep": "("},
		{"handle": h, "lines": "1-999999999999999999999999"},
		{"handle": h, "lines": "999999999-"},
		{"handle": h, "head": 1 << 40, "tail": 1 << 40},
		{"handle": h, "offset": 1 << 50},
		{"handle": h, "offset": -5},
		{"handle": "../../etc/passwd"},
		{"handle": "' OR 1=1 --"},
		{"handle": strings.Repeat("a", 5000)},
		{"message": strings.Repeat("9", 300)},
		{"path": "/etc/passwd"},
		{},
	} {
		texts, _, status := ask(t, mcp, nil, "recall", args)
		if n := len(strings.Join(texts, "")); status != http.StatusOK || n > 22_000 {
			t.Errorf("%.80v: status %d, %d bytes", args, status, n)
		}
	}
	if _, _, status := ask(t, mcp, nil, "search", object{"query": strings.Repeat("word ", 300_000)}); status == http.StatusOK {
		t.Error("a request of a megabyte and a half was read")
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} { // no stream, no session
		if res, _ := send(t, method, mcp, nil, nil); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, res.Status)
		}
	}
	if got, ok := recallAll(t, mcp, h); !ok || !slices.Contains(p.results(), got) {
		t.Errorf("afterwards the first result is %.100q", got)
	}
	if got := len(p.vendor.Records()); got != len(p.vendor.Turns()) {
		t.Errorf("%d requests of %d reached the vendor: a request to /mcp among them?", got, len(p.vendor.Turns()))
	}
}

// A long result that is shortened before it is first sent has a handle where the client can recall, and it leads to the whole result, at
// once and after epochs. Where it cannot, nothing is promised, though the result is cut if the user wants that.
func TestShortenedResultsAreKept(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		for _, can := range []bool{true, false} {
			t.Run(fmt.Sprint(c.API, "/", c.Model, "/recalls=", can), func(t *testing.T) {
				t.Parallel()
				with := c
				if can {
					with = recalls(c)
				}
				file := filepath.Join(t.TempDir(), "serve.db")
				p := newPlay(t, upstream.Options{Script: upstream.Loop(25, 7_000, nil)}, with, func(o *live.Options) {
					o.Store.Path = file
					if o.Recall.MaxResult = 2500; !can {
						o.Ingest.MaxResult = 2500
					}
				})
				p.client.Session = "s1"
				p.say(t)
				if s := p.Stats(); s.Ingested == 0 || s.EpochCount == 0 {
					t.Fatalf("no result was shortened, or no history: %+v", s)
				}
				n := p.keptPromises(t)
				if !can {
					if n > 0 {
						t.Errorf("%d promises to a client that cannot recall", n)
					}
					return
				}
				for i, whole := range p.results()[:min(4, len(p.results()))] {
					h := core.Handle(core.ToolResult{Content: []core.Part{core.Text(whole)}})
					if got, ok := recallAll(t, p.server.URL+"/recall/"+secret+"/mcp", h); !ok || got != whole {
						t.Errorf("result %d is %.100q", i, got)
					}
				}
				if e := p.Stats().Errors; len(e) > 0 {
					t.Errorf("faults %v", e)
				}
				t.Logf("%d handles, %d results shortened", n, p.Stats().Ingested)
			})
		}
	}
}
