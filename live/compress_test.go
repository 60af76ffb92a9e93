package live_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// An answered is what /v1/compress answers.
type answered struct {
	Messages []json.RawMessage
	Before   int      `json:"tokens_before"`
	After    int      `json:"tokens_after"`
	Saved    int      `json:"tokens_saved"`
	Ratio    float64  `json:"compression_ratio"`
	Applied  []string `json:"transforms_applied"`
	Hashes   []string `json:"ccr_hashes"`
	Skipped  bool     `json:"compression_skipped"`
	Why      string   `json:"skip_reason"`
	Session  *struct {
		ID       string
		Frozen   int  `json:"frozen_message_count"`
		Replayed bool `json:"cached_prefix_replayed"`
	}
	Error struct{ Type, Message string }
}

// call sends a body, and returns the status and the answer.
func call(t *testing.T, url string, body any, header ...string) (int, *answered) {
	t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	a := &answered{}
	if err := json.Unmarshal(text, a); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return res.StatusCode, a
}

// talk is a conversation of n calls of tools, in the shape of an API. Each result has about 300 tokens.
func talk(api wire.API, n int) []any {
	all := []any{object{"role": "user", "content": "Find out why the build of module 7 fails."}}
	for i := range n {
		var text strings.Builder
		for k := range 60 {
			fmt.Fprintf(&text, "file%d.go:%d: call of function%d\n", i, k, i*k%91)
		}
		id, input := fmt.Sprint("call_", i), fmt.Sprintf(`{"path":"file%d.go"}`, i)
		if api == wire.Chat {
			all = append(all, object{"role": "assistant", "content": nil, "tool_calls": []any{object{"id": id, "type": "function", "function": object{"name": "read_file", "arguments": input}}}},
				object{"role": "tool", "tool_call_id": id, "content": text.String()})
			continue
		}
		all = append(all, object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": id, "name": "read_file", "input": json.RawMessage(input)}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": text.String()}}})
	}
	return all
}

// valid fails if the vendor would refuse messages.
func valid(t *testing.T, api wire.API, messages []json.RawMessage) {
	t.Helper()
	body, err := json.Marshal(object{"model": "m", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.Parse(api, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	view := make([][]byte, len(r.Messages))
	for i := range view {
		view[i] = r.Messages[i].Raw
	}
	if err := (*wire.Cache)(nil).Check(api, r, view); err != nil {
		t.Errorf("the messages are refused: %v", err)
	}
}

const compressWindow = 8_000

// TestCompressAlone: without a session a call is answered by itself, in the shape that it came in.
func TestCompressAlone(t *testing.T) {
	testkit.Slow(t)
	g, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), nil)
	for _, api := range []wire.API{wire.Chat, wire.Messages} {
		t.Run(string(api), func(t *testing.T) {
			messages := talk(api, 40)
			raw, err := json.Marshal(messages)
			if err != nil {
				t.Fatal(err)
			}
			var own []json.RawMessage
			if err := json.Unmarshal(raw, &own); err != nil {
				t.Fatal(err)
			}
			status, a := call(t, s.URL+"/v1/compress", object{"model": "m", "messages": messages})
			if status != http.StatusOK || a.Skipped || a.Session != nil {
				t.Fatalf("%d %+v", status, a)
			}
			if a.After > compressWindow || a.After >= a.Before || a.Saved != a.Before-a.After || a.Ratio <= 0 || a.Ratio >= 1 || len(a.Applied) == 0 || len(a.Hashes) > 0 {
				t.Errorf("%d of %d tokens left, saved %d, ratio %v, applied %q, hashes %q", a.After, a.Before, a.Saved, a.Ratio, a.Applied, a.Hashes)
			}
			valid(t, api, a.Messages)
			if !bytes.Contains(bytes.Join(rawBytes(a.Messages), nil), []byte("the build of module 7")) {
				t.Error("what the user wrote is gone")
			}
			if again := mustPost(t, s.URL, object{"model": "m", "messages": messages}); !equalMessages(again.Messages, a.Messages) {
				t.Error("the same call had another answer")
			}

			const frozen = 9
			a = mustPost(t, s.URL, object{"model": "m", "messages": messages, "config": object{"frozen_message_count": frozen, "target_ratio": 0.5}})
			valid(t, api, a.Messages)
			if a.After >= a.Before || !equalMessages(a.Messages[:frozen], own[:frozen]) {
				t.Errorf("%d of %d tokens left, or the frozen messages were changed", a.After, a.Before)
			}
			const recent = 6
			a = mustPost(t, s.URL, object{"model": "m", "messages": messages, "config": object{"protect_recent": recent, "target_ratio": 0.4}})
			valid(t, api, a.Messages)
			if a.After >= a.Before || !equalMessages(a.Messages[len(a.Messages)-recent:], own[len(own)-recent:]) {
				t.Errorf("%d of %d tokens left, or the newest messages were changed", a.After, a.Before)
			}

			short := own[:7]
			if a = mustPost(t, s.URL, object{"model": "m", "messages": short}); !equalMessages(a.Messages, short) || a.Saved != 0 || a.Ratio != 1 {
				t.Errorf("a short conversation was changed: %+v", a)
			}
			if a = mustPost(t, s.URL, object{"model": "m", "messages": talk(api, 12), "token_budget": 2500}); a.After > 2500 || a.After < 2000 {
				t.Errorf("a budget of 2500 left %d tokens", a.After)
			}
			if _, a = call(t, s.URL+"/v1/compress", object{"model": "m", "messages": messages}, "X-Headroom-Bypass", "true"); !equalMessages(a.Messages, own) {
				t.Error("bypass changed messages")
			}
		})
	}
	if errs := g.Stats().Errors; len(errs) > 0 {
		t.Errorf("faults: %v", errs)
	}
}

// Many tiny messages cost in proportion to their number: two such calls stopped condensation for everyone for minutes. What is allocated is
// compared, which does not depend on the other work of the machine.
func TestCompressOfManyTinyMessagesIsLinear(t *testing.T) {
	testkit.Slow(t)
	_, s := serveWith(t, "http://127.0.0.1:9", nil, nil)
	allocated := func(message func(i int) string, n int) (bytes float64) {
		var messages []string
		for i := range n {
			messages = append(messages, message(i))
		}
		body := []byte(`{"model":"claude-sonnet-4-5","config":{"target_ratio":0.1},"messages":[` + strings.Join(messages, ",") + `]}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		status, got := call(t, s.URL+"/v1/compress", body)
		runtime.ReadMemStats(&after)
		if status != http.StatusOK || got.Skipped || got.After >= got.Before {
			t.Fatalf("%d messages: status %d, skipped %q, %d of %d tokens left", n, status, got.Why, got.After, got.Before)
		}
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	for name, message := range map[string]func(i int) string{
		"words": func(i int) string {
			return fmt.Sprintf(`{"role":%q,"content":"a 17"}`, []string{"user", "assistant"}[i%2])
		},
		"demands": func(i int) string {
			return fmt.Sprintf(`{"role":%q,"content":"please fix file%d.go"}`, []string{"user", "assistant"}[i%2], i)
		},
		"calls": func(i int) string {
			if i%2 == 1 {
				return fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":"x %d"}`, i-1, i)
			}
			return fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"bash","arguments":"{}"}}]}`, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const few, factor = 500, 8
			allocated(message, few) // what is needed once
			small, large := allocated(message, few), allocated(message, factor*few)
			if large > 2*factor*small {
				t.Errorf("%.1f MB for %d messages, %.1f MB for %d", small/1e6, few, large/1e6, factor*few)
			}
		})
	}
}

// TestCompressWebhook: a guardrail of the type webhook of Portkey's gateway gets its whole request back, with other messages, if there is
// something to change; else only that it may go on.
func TestCompressWebhook(t *testing.T) {
	_, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), nil)
	hook := func(event string, metadata, request object) string {
		raw, err := json.Marshal(object{"eventType": event, "metadata": metadata, "requestType": "chatComplete", "request": object{"json": request, "text": "x"}, "response": object{"json": object{}}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(s.URL+"/v1/compress", "application/json", bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", res.Status, text, err)
		}
		return string(text)
	}
	const goOn = `{"verdict":true}`
	long := talk(wire.Chat, 40)
	for name, got := range map[string]string{
		"an answer": hook("afterRequestHook", nil, object{"model": "m", "messages": long}), "no messages": hook("beforeRequestHook", nil, object{"model": "m", "input": "x"}),
		"a short conversation": hook("beforeRequestHook", object{"session_id": "a"}, object{"model": "m", "messages": long[:5]}),
	} {
		if got != goOn {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, metadata := range []object{nil, {"session_id": "b"}} {
		var first string
		for _, n := range []int{len(long) - 2, len(long)} {
			got := []byte(hook("beforeRequestHook", metadata, object{"model": "m", "temperature": 0.5, "messages": long[:n]}))
			request := rawjson.Field(rawjson.Field(rawjson.Field(got, "transformedData"), "request"), "json")
			if !rawjson.IsTrue(rawjson.Field(got, "verdict")) || string(rawjson.Field(request, "temperature")) != "0.5" || rawjson.Field(request, "session_id") != nil {
				t.Fatalf("%v: %.300s", metadata, got)
			}
			messages := string(rawjson.Field(request, "messages"))
			if metadata != nil && first != "" && !strings.HasPrefix(messages, strings.TrimSuffix(first, "]")) {
				t.Error("in a session the beginning was changed")
			}
			first = messages
		}
	}
}

// TestCompressRows: without a session there is a message by the same author for each that was sent, also if results come without their calls,
// for callers that put them back by place.
func TestCompressRows(t *testing.T) {
	testkit.Slow(t)
	g, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), nil)
	role := func(m any) string {
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return rawjson.Text(rawjson.Field(raw, "role"))
	}
	for _, api := range []wire.API{wire.Chat, wire.Messages} {
		all := talk(api, 40)
		var results []any
		for _, m := range all {
			if api == wire.Chat && role(m) != "assistant" {
				results = append(results, m)
			}
		}
		for name, sent := range map[string][]any{"all": all, "without answers": results} {
			for _, ratio := range []float64{0.6, 0.3, 0.01} {
				if len(sent) == 0 {
					continue
				}
				a := mustPost(t, s.URL, object{"model": "m", "messages": sent, "config": object{"target_ratio": ratio, "frozen_message_count": 3, "protect_recent": 2}})
				if a.After > a.Before*2/3 || a.Skipped {
					t.Errorf("%s, %s, ratio %v: %d of %d tokens left", api, name, ratio, a.After, a.Before)
				}
				if !slices.EqualFunc(a.Messages, sent, func(m json.RawMessage, was any) bool { return role(m) == role(was) }) {
					t.Fatalf("%s, %s, ratio %v: %d messages were sent, %d came back, or by others", api, name, ratio, len(sent), len(a.Messages))
				}
				raw, err := json.Marshal(append(slices.Clone(sent[:3]), sent[len(sent)-2:]...))
				if err != nil {
					t.Fatal(err)
				}
				if own := slices.Collect(rawjson.Elements(raw)); !equalMessages(append(slices.Clone(a.Messages[:3]), a.Messages[len(sent)-2:]...), []json.RawMessage{own[0], own[1], own[2], own[3], own[4]}) {
					t.Errorf("%s, %s, ratio %v: what should stay was changed", api, name, ratio)
				}
			}
		}
	}
	if errs := g.Stats().Errors; len(errs) > 0 {
		t.Errorf("faults: %v", errs)
	}
}

func rawBytes(messages []json.RawMessage) [][]byte {
	all := make([][]byte, len(messages))
	for i := range messages {
		all[i] = messages[i]
	}
	return all
}

func equalMessages(a, b []json.RawMessage) bool {
	return bytes.Equal(bytes.Join(rawBytes(a), []byte("\n")), bytes.Join(rawBytes(b), []byte("\n")))
}

func mustPost(t *testing.T, url string, body object) *answered {
	t.Helper()
	status, a := call(t, url+"/v1/compress", body)
	if status != http.StatusOK {
		t.Fatalf("%d %+v", status, a)
	}
	return a
}

// TestCompressSession: the caller sends everything each time, and gets the bytes that it got before, then new ones.
func TestCompressSession(t *testing.T) {
	testkit.Slow(t)
	for _, api := range []wire.API{wire.Chat, wire.Messages} {
		t.Run(string(api), func(t *testing.T) {
			g, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), nil)
			all := talk(api, 80)
			var last []json.RawMessage
			epochs := 0
			for n := 3; n <= len(all); n += 2 {
				body := object{"model": "claude-sonnet-4-5", "messages": all[:n], "config": object{"session_id": "conversation 1/ä"}}
				a := mustPost(t, s.URL, body)
				valid(t, api, a.Messages)
				if a.Session == nil || a.Session.ID != "conversation 1/ä" || a.Skipped || a.After > compressWindow {
					t.Fatalf("%d messages: %+v", n, a)
				}
				if now := g.Stats().EpochCount; now > epochs {
					epochs = now
					if a.Session.Replayed {
						t.Errorf("%d messages: an epoch replays", n)
					}
				} else if len(a.Messages) < len(last) || !equalMessages(a.Messages[:len(last)], last) || a.Session.Frozen != len(last) {
					t.Fatalf("%d messages: the first %d were changed, or %d are said to be as before", n, len(last), a.Session.Frozen)
				}
				last = a.Messages
			}
			stats := g.Stats()
			if epochs < 2 {
				t.Errorf("%d epochs", epochs)
			}
			for name, header := range map[string][]string{"another session": nil, "another key": {"Authorization", "Bearer other"}} {
				id := "conversation 1/ä"
				if header == nil {
					id = "conversation 2"
				}
				if _, a := call(t, s.URL+"/v1/compress", object{"model": "m", "messages": all[:9], "config": object{"session_id": id}}, header...); a.Session.Replayed {
					t.Errorf("%s: it is known", name)
				}
			}
			if len(stats.Errors) > 0 {
				t.Errorf("faults: %v", stats.Errors)
			}
		})
	}
}

// TestCompressRetrieve: there are handles if the caller asks for them and can recall, and they lead somewhere.
func TestCompressRetrieve(t *testing.T) {
	testkit.Slow(t)
	_, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), nil)
	found := func(session string, config object, header ...string) []string {
		all := talk(wire.Messages, 60)
		config["session_id"] = session
		var hashes []string
		for n := 1; n <= len(all); n += 20 {
			_, a := call(t, s.URL+"/v1/compress", object{"model": "m", "messages": all[:n], "config": config}, header...)
			for _, h := range a.Hashes {
				if !bytes.Contains(bytes.Join(rawBytes(a.Messages), nil), []byte(h)) {
					t.Errorf("%s: %s is not in the messages", session, h)
				}
			}
			if handle := []byte(" h:"); len(a.Hashes) == 0 && bytes.Contains(bytes.Join(rawBytes(a.Messages), nil), handle) {
				t.Errorf("%s: messages with handles that are not named", session)
			}
			hashes = a.Hashes
		}
		return hashes
	}
	if got := found("a", object{}, "X-Condense-Recall", secret); len(got) > 0 {
		t.Errorf("handles without asking: %q", got)
	}
	if got := found("b", object{"retrieve": true}); len(got) > 0 {
		t.Errorf("handles that lead nowhere: %q", got)
	}
	for _, config := range []object{{"retrieve": true}, {"mode": "ccr"}} {
		got := found(fmt.Sprint("c", config), config, "X-Condense-Recall", secret)
		if len(got) == 0 {
			t.Fatalf("%v: no handles", config)
		}
		if text, ok := recallAll(t, s.URL+"/recall/"+secret+"/mcp", got[0]); !ok || !strings.Contains(text, "call of function") {
			t.Errorf("%s leads to %q", got[0], text)
		}
	}
}

func TestCompressRefuses(t *testing.T) {
	_, s := serveWith(t, "http://127.0.0.1:9", withWindow(compressWindow), func(o *live.Options) { o.Bounds.MaxBody = 4096 })
	one := []any{object{"role": "user", "content": "hi"}}
	with := func(config object) object { return object{"model": "m", "messages": one, "config": config} }
	for name, c := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"no JSON":          {[]byte("hello"), 400, "not a JSON object"},
		"an array":         {[]byte("[]"), 400, "not a JSON object"},
		"no messages":      {object{"model": "m"}, 400, "messages"},
		"messages no list": {object{"model": "m", "messages": "hi"}, 400, "messages"},
		"no model":         {object{"messages": one}, 400, "model"},
		"long model":       {object{"model": strings.Repeat("m", 300), "messages": one}, 400, "model"},
		"mode":             {with(object{"mode": "fast"}), 400, "config.mode"},
		"frozen":           {with(object{"frozen_message_count": -1}), 400, "frozen_message_count"},
		"frozen type":      {with(object{"frozen_message_count": true}), 400, "frozen_message_count"},
		"ratio":            {with(object{"target_ratio": 1.5}), 400, "target_ratio"},
		"empty session":    {with(object{"session_id": " "}), 400, "session_id"},
		"long session":     {with(object{"session_id": strings.Repeat("x", 300)}), 400, "session_id"},
		"session type":     {with(object{"session_id": 42}), 400, "session_id"},
		"config type":      {object{"model": "m", "messages": one, "config": "x"}, 400, "config"},
		"too large":        {object{"model": "m", "messages": []any{object{"role": "user", "content": strings.Repeat("x", 5000)}}}, 413, "max_body"},
		"not a message":    {object{"model": "m", "messages": []any{"hi"}}, 400, "byte"},
	} {
		t.Run(name, func(t *testing.T) {
			status, a := call(t, s.URL+"/v1/compress", c.body)
			if status != c.status || a.Error.Type != "invalid_request" || !strings.Contains(a.Error.Message, c.says) {
				t.Errorf("%d %+v", status, a.Error)
			}
		})
	}
	if a := mustPost(t, s.URL, object{"model": "m", "messages": []any{}}); a.Messages == nil || len(a.Messages) > 0 || a.Ratio != 1 {
		t.Errorf("no messages: %+v", a)
	}
	res, err := http.Get(s.URL + "/v1/compress")
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d %v", res.StatusCode, err)
	}

	_, locked := serveWith(t, "http://127.0.0.1:9", nil, func(o *live.Options) { o.Access.Token = "sesame" })
	for _, c := range []struct {
		path, header string
		status       int
	}{{"", "", 401}, {"", "Bearer wrong", 401}, {"", "Bearer sesame", 200}, {"/token/sesame", "", 200}} {
		if status, a := call(t, locked.URL+c.path+"/v1/compress", with(nil), "Authorization", c.header); status != c.status {
			t.Errorf("%+v: %d %+v", c, status, a)
		}
	}
}

// TestCompressGrowing sends what generated clients do through /v1/compress in one session, with restarts, to a vendor that refuses what
// the real one refuses, and any change of what was sent before outside of epochs.
func TestCompressGrowing(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	host, err := condense.Open(t.Context(), withWindow(4_000))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	requests, epochs, runs, dir := 0, 0, 0, t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		runs++
		options := &live.Options{Store: live.Store{Path: filepath.Join(dir, fmt.Sprint(runs, ".db"))}, Reports: live.Reports{Logger: slog.New(slog.DiscardHandler)}}
		var g *live.Gateway
		var s *httptest.Server
		stop := func() {
			if errs := g.Stats().Errors; len(errs) > 0 {
				t.Errorf("faults: %v", errs)
			}
			s.Close()
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		start := func() {
			var err error
			if g, err = live.New(host, options); err != nil {
				t.Fatal(err)
			}
			s = httptest.NewServer(g)
		}
		start()
		defer func() { stop() }()
		whole := rapid.Bool().Draw(t, "whole") // or the model and the messages only
		vendor := &growingVendor{}
		runGrowing(t, vendor, growingWorld{
			Words:   120,
			Restart: func() { stop(); start() },
			Send: func(c growingCall) (growingAnswer, bool) {
				r, err := wire.Parse(wire.Messages, c.Body, nil)
				if err != nil {
					t.Fatal(err)
				}
				body := append([]byte(`{"config":{"session_id":"s"},`), c.Body[1:]...)
				if !whole {
					own := make([]json.RawMessage, len(r.Messages))
					for i := range own {
						own[i] = r.Messages[i].Raw
					}
					if body, err = json.Marshal(object{"model": c.Model, "messages": own, "session_id": "s"}); err != nil {
						t.Fatal(err)
					}
				}
				before := g.Stats().EpochCount
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/compress", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(res.Body)
				if err := errors.Join(err, res.Body.Close()); err != nil {
					t.Fatal(err)
				}
				var a answered
				if err := json.Unmarshal(text, &a); err != nil || res.StatusCode != http.StatusOK || a.Skipped {
					t.Fatalf("%d %s", res.StatusCode, text)
				}
				answer, err := vendor.Answer(r.With(rawBytes(a.Messages)))
				if err != nil {
					t.Fatalf("the vendor refuses what was returned: %v", err)
				}
				return answer, g.Stats().EpochCount > before
			},
		}, 40)
		requests, epochs = requests+vendor.Requests, epochs+vendor.Epochs
	})
	t.Logf("%d requests, %d epochs", requests, epochs)
	if requests >= 200 && !t.Failed() && epochs == 0 {
		t.Error("no epoch: the runs test too little")
	}
	http.DefaultClient.CloseIdleConnections()
}
