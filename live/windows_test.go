package live_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A modelServer answers questions about its models, by path, and records them.
type modelServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
	wait  chan struct{} // not nil: questions are not answered before it is closed
}

func newModelServer(t *testing.T, talk http.Handler, tells map[string]string) *modelServer {
	t.Helper()
	s := &modelServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/completions") || strings.HasSuffix(r.URL.Path, "/messages") {
			talk.ServeHTTP(w, r)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, r)
		wait := s.wait
		s.mu.Unlock()
		if wait != nil {
			select {
			case <-wait:
			case <-r.Context().Done():
			}
		}
		text, ok := tells[r.Method+" "+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

// A server of models tells its window, in the words of each kind, and the conversation is condensed for it: without that the server
// would cut it, or refuse it.
func TestLocalModelsAreCondensedForTheirWindow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for name, tells := range map[string]map[string]string{
		"llama.cpp":          {"GET /props": fmt.Sprintf(`{"default_generation_settings":{"n_ctx":%d}}`, window)},
		"Ollama, loaded":     {"POST /api/show": `{"model_info":{"qwen3.context_length":40960}}`, "GET /api/ps": fmt.Sprintf(`{"models":[{"name":"other:1b","context_length":1},{"name":"qwen3:32b","context_length":%d}]}`, window)},
		"Ollama, configured": {"POST /api/show": fmt.Sprintf(`{"parameters":"stop x\nnum_ctx    %d","model_info":{"qwen3.context_length":40960}}`, window)},
		"LM Studio":          {"GET /api/v0/models": fmt.Sprintf(`{"data":[{"id":"qwen3:32b","max_context_length":99999,"loaded_context_length":%d}]}`, window)},
		"vLLM":               {"GET /v1/models": fmt.Sprintf(`{"data":[{"id":"qwen3:32b","max_model_len":%d}]}`, window)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := upstream.New(upstream.Options{Window: window, Script: agentLoop})
			server := newModelServer(t, v, tells)
			g, s := serveWith(t, server.URL, nil, func(o *live.Options) { o.Upstreams.URLs = map[string]string{"openai": server.URL + "/v1"} })
			c := upstream.Client{API: upstream.Chat, Model: "qwen3:32b", Session: "s", URL: s.URL, Stream: true, Header: http.Header{"Authorization": {"Bearer secret"}}}
			c.History = []object{first(upstream.Chat, task)}
			for calls := true; calls; {
				var err error
				if _, calls, err = c.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				testkit.Eventually(t, "the server has told its window", func() bool { return len(g.Stats().Windows) > 0 })
			}
			st := g.Stats()
			if want := (live.Window{Upstream: "openai", Model: "qwen3:32b", Tokens: window, From: live.WindowServer}); len(st.Windows) != 1 || st.Windows[0] != want || st.EpochCount == 0 {
				t.Errorf("%d epochs, %+v", st.EpochCount, st.Windows)
			}
			for _, r := range v.Refusals() {
				t.Errorf("refused: %s: %s", r.Rule, r.Error)
			}
			server.mu.Lock()
			defer server.mu.Unlock()
			for _, r := range server.asked {
				if r.Header.Get("Authorization")+r.Header.Get("X-Api-Key") != "" {
					t.Errorf("%s got credentials", r.URL)
				}
			}
			if n := len(server.asked); n == 0 || n > 12 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// turn is a request of a conversation in the Chat API with a long history.
func turn(t *testing.T, model string, rounds int) []byte {
	t.Helper()
	all := []object{{"role": "user", "content": task}}
	for i := range rounds {
		id := fmt.Sprint("call_", i)
		all = append(all, object{"role": "assistant", "tool_calls": []object{{"id": id, "type": "function", "function": object{"name": "read", "arguments": "{}"}}}},
			object{"role": "tool", "tool_call_id": id, "content": strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 400)})
	}
	body, err := json.Marshal(object{"model": model, "messages": all, "tools": []object{{"type": "function", "function": object{"name": "read", "parameters": object{"type": "object"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// inFront serves a gateway in front of a server of models, with its log.
func inFront(t *testing.T, server *modelServer, host *condense.Options, change func(*live.Options)) (g *live.Gateway, ask func(body []byte), log *lockedBuffer) {
	t.Helper()
	log = &lockedBuffer{}
	g, s := serveWith(t, server.URL, host, func(o *live.Options) {
		o.Reports.Logger = slog.New(slog.NewTextHandler(log, nil))
		if change != nil {
			change(o)
		}
	})
	return g, func(body []byte) {
		t.Helper()
		if res, text := send(t, http.MethodPost, s.URL+"/v1/chat/completions", nil, body); res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s", res.Status, text)
		}
	}, log
}

// A window that nothing tells is said once, with what to do; and a server that cuts prompts without a word is reported, once for each
// conversation.
func TestCutPromptsAreReported(t *testing.T) {
	talk := jsonAnswer(`{"id":"c","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":4096,"completion_tokens":1}}`)
	server := newModelServer(t, talk, nil)
	var m *meter
	g, ask, log := inFront(t, server, nil, func(o *live.Options) { m = newMeter(t, o) })
	for rounds := range 4 {
		ask(turn(t, "my-local", 12+rounds))
		testkit.Eventually(t, "the answer is counted", func() bool { return g.Stats().Tokens.Output == rounds+1 })
	}
	testkit.Eventually(t, "the server was asked", func() bool { return strings.Contains(log.String(), "the window of a model is not known") })
	got := log.String()
	if strings.Count(got, "the window of a model is not known") != 1 || strings.Count(got, "the server has cut a prompt") != 1 || !strings.Contains(got, `models: {\"my-local\": {window: `) {
		t.Errorf("log:\n%s", got)
	}
	all := g.Stats().Windows
	if len(all) != 1 || all[0].From != live.WindowNotKnown || all[0].Truncated != 4 || all[0].Taken != 4096 || all[0].Counted < 20_000 || all[0].Remedy() != `models: {"my-local": {window: 4096}} in condense.yaml` {
		t.Errorf("%+v", all)
	}
	if n := sum(m.families(t)["condense_requests_truncated_total"], "", ""); n != 4 {
		t.Errorf("the metric counts %v", n)
	}
}

// A count of one answer, of a request with a photo, or below any window is no window: whoever followed the advice would have
// it for good. Nor is one that the server has already exceeded.
func TestAMiscountRecommendsNoWindow(t *testing.T) {
	for name, c := range map[string]struct {
		taken []int // by answer
		put   string
	}{
		"once":          {taken: []int{4096}},
		"too small":     {taken: []int{1900, 1900, 1900}},
		"a photo":       {taken: []int{4096, 4096, 4096}, put: `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("gIGC", 1000) + `"}}]},`},
		"it takes more": {taken: []int{4096, 20_000, 5000}},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			talk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				jsonAnswer(fmt.Sprintf(`{"id":"c","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":%d,"completion_tokens":1}}`, c.taken[n]))(w, r)
				n++
			})
			g, ask, log := inFront(t, newModelServer(t, talk, nil), nil, nil)
			for rounds := range c.taken {
				body := turn(t, "my-local", 12+rounds)
				ask([]byte(strings.Replace(string(body), `"messages":[`, `"messages":[`+c.put, 1)))
				testkit.Eventually(t, "the answer is counted", func() bool { return g.Stats().Tokens.Output == rounds+1 })
			}
			all := g.Stats().Windows
			if len(all) != 1 || all[0].Truncated == 0 || all[0].Remedy() != "" {
				t.Errorf("%+v: %s", all, all[0].Remedy())
			}
			if regexp.MustCompile(`window: \d`).MatchString(log.String()) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// What the remedy says is a configuration, and it works: nothing is asked, said or assumed any more.
func TestTheRemedyForAWindowWorks(t *testing.T) {
	var values config.Values
	if err := json.Unmarshal([]byte(`{"models": {"my-local": {"window": 9000}}}`), &values); err != nil {
		t.Fatal(err)
	}
	talk := jsonAnswer(`{"id":"c","choices":[],"usage":{"prompt_tokens":5000,"completion_tokens":1}}`)
	server := newModelServer(t, talk, nil)
	g, ask, log := inFront(t, server, &condense.Options{Values: &values}, nil)
	ask(turn(t, "my-local", 12))
	if s := g.Stats(); s.EpochCount != 1 || len(s.Windows) != 0 || strings.Contains(log.String(), "window of a model") || len(server.asked) != 0 {
		t.Errorf("%d epochs, %+v\n%s", s.EpochCount, s.Windows, log)
	}
}

// A server that does not answer delays no request, and of one that says nothing about what it uses the usual is taken, once it has had
// the time to load the model.
func TestQuestionsAboutWindowsDelayNothing(t *testing.T) {
	talk := jsonAnswer(`{"id":"c","choices":[],"usage":{"prompt_tokens":700,"completion_tokens":1}}`)
	server := newModelServer(t, talk, map[string]string{"POST /api/show": `{"model_info":{"llama.context_length":131072},"parameters":""}`})
	server.wait = make(chan struct{})
	c := &clock{now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}
	g, ask, _ := inFront(t, server, nil, func(o *live.Options) { o.Now = c.Now })
	ask(turn(t, "llama3", 1)) // while the server answers no question
	if all := g.Stats().Windows; len(all) != 0 {
		t.Errorf("%+v", all)
	}
	close(server.wait)
	for range 2 {
		testkit.Eventually(t, "the server has answered", func() bool { return len(g.Stats().Windows) > 0 })
		c.add(time.Hour)
		ask(turn(t, "llama3", 1))
	}
	if w := g.Stats().Windows[0]; w.From != live.WindowUsual || w.Tokens != 4096 || w.Remedy() != "" {
		t.Errorf("%+v", w)
	}
}

// Vendors, addresses of the internet and models that only their vendor runs are not asked about.
func TestOnlyServersInReachAreAsked(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:1/v1": true, "http://[::1]:1": true, "http://192.168.1.7:11434/v1": true, "http://10.0.0.1": true, "http://ollama:11434": true,
		"https://api.openai.com/v1": false, "https://api.anthropic.com": false, "https://openrouter.ai/api/v1": false, "http://8.8.8.8/v1": false, "http://100.64.0.1": false,
	} {
		if got := live.Nearby(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	server := newModelServer(t, jsonAnswer(`{"usage":{"prompt_tokens":7,"completion_tokens":1}}`), nil)
	_, ask, _ := inFront(t, server, nil, nil)
	ask(turn(t, "gpt-4.1", 2))
	if len(server.asked) != 0 {
		t.Errorf("asked about a vendor's own model: %v", server.asked[0].URL)
	}
}

// TestAgentsLimits: where an agent takes a model's window to be smaller than it is, or condenses by itself before it is full,
// the gateway condenses before it does that; other clients of the model have the whole window.
func TestAgentsLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		agent, model  string
		api           upstream.API
		own           func(string, int) live.AgentLimit // what wrap has read
		window, dueAt int
	}{
		{"codex_cli_rs/0.171.0", "gpt-5.6-sol", upstream.Responses, nil, 272_000, 217_600},
		{"codex_cli_rs/0.171.0", "gpt-6.2-sol", upstream.Responses, nil, 500_000, 400_000}, // in no table of vendors
		{"other/1", "gpt-5.6-sol", upstream.Responses, nil, 1_050_000, 840_000},
		{"GeminiCLI/0.61.0", "gemini-2.5-pro", upstream.Gemini, nil, 1_048_576, 471_859},
		{"claude-cli/2.1.332", "claude-sonnet-4-5", upstream.Messages, nil, 200_000, 150_300},
		{"claude-cli/2.1.332", "claude-opus-5-5", upstream.Messages, nil, 1_000_000, 800_000},
		{"claude-cli/2.1.332", "claude-opus-5-5", upstream.Messages, func(string, int) live.AgentLimit {
			return live.AgentLimit{Window: 500_000, Compacts: 300_000}
		}, 500_000, 270_000},
	} {
		v := upstream.New(upstream.Options{Script: agentLoop})
		server := httptest.NewServer(v)
		t.Cleanup(server.Close)
		g, s := serveWith(t, server.URL, nil, func(o *live.Options) {
			o.Agent, o.Upstreams.URLs["gemini"] = test.own, server.URL
		})
		c := upstream.Client{API: test.api, Model: test.model, Session: "s", URL: s.URL, Header: http.Header{"User-Agent": {test.agent}}}
		c.History = []object{first(test.api, task)}
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatalf("%s, %s: %v", test.agent, test.model, err)
		}
		all, err := g.Controller().Conversations(t.Context(), time.Time{})
		if err != nil || len(all) != 1 {
			t.Fatalf("%s, %s: %d conversations, %v", test.agent, test.model, len(all), err)
		}
		if all[0].Window != test.window || all[0].DueAt != test.dueAt {
			t.Errorf("%s, %s: window %d, due at %d; want %d, %d", test.agent, test.model, all[0].Window, all[0].DueAt, test.window, test.dueAt)
		}
	}
}

// TestListedWindows: a list of models that a client asks its vendor for arrives as it is, and tells the windows of the models in it; absurd ones
// and none in what is no list. A window of the configuration remains.
func TestListedWindows(t *testing.T) {
	t.Parallel()
	const usual = 200_000
	for name, test := range map[string]struct {
		api        upstream.API
		path, list string
		want       int
	}{
		"OpenRouter":    {upstream.Chat, "/v1/models", `{"data": [{"id": "other", "context_length": 5000}, {"id": "mystery-1", "context_length": 70000}]}`, 70_000},
		"vLLM":          {upstream.Chat, "/v1/models", `{"data": [{"id": "mystery-1", "max_model_len": 70000}]}`, 70_000},
		"Anthropic":     {upstream.Messages, "/v1/models?limit=1000", `{"data": [{"id": "mystery-1", "max_input_tokens": 70000}]}`, 70_000},
		"Gemini":        {upstream.Gemini, "/v1beta/models", `{"models": [{"name": "models/mystery-1", "inputTokenLimit": 70000}]}`, 70_000},
		"an odd entry":  {upstream.Chat, "/v1/models", `{"data": [5, {"id": "mystery-1", "context_length": 70000}, {"id": "other", "context_length": "32k"}]}`, 70_000},
		"a bomb":        {upstream.Chat, "/v1/models", `{"data": [` + strings.Repeat("0,", 2_000_000) + `{"id": "mystery-1", "context_length": 70000}]}`, usual},
		"one too small": {upstream.Chat, "/v1/models", `{"data": [{"id": "mystery-1", "context_length": 9}]}`, usual},
		"one too large": {upstream.Chat, "/v1/models", `{"data": [{"id": "mystery-1", "context_length": 1000000000}]}`, usual},
		"below zero":    {upstream.Chat, "/v1/models", `{"data": [{"id": "mystery-1", "context_length": -70000}]}`, usual},
		"no number":     {upstream.Chat, "/v1/models", `{"data": [{"id": "mystery-1", "context_length": 1e300}]}`, usual},
		"no list":       {upstream.Chat, "/v1/models", `[[[[`, usual},
		"too long":      {upstream.Chat, "/v1/models", strings.Repeat(" ", 5<<20) + `{"data": [{"id": "mystery-1", "context_length": 70000}]}`, usual},
		"other models":  {upstream.Chat, "/v1/models", `{"data": [` + strings.Repeat(`{"id": "other", "context_length": 5000},`, 3000) + `{}]}`, usual},
		"of a turn":     {upstream.Chat, "/v1/files", `{"data": [{"id": "mystery-1", "context_length": 70000}]}`, usual},
	} {
		for _, packed := range []bool{false, true} {
			v := upstream.New(upstream.Options{Script: agentLoop})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					v.ServeHTTP(w, r)
				} else if r.Header.Get("Accept-Encoding") == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					_, _ = io.WriteString(z, test.list)
					_ = z.Close()
				} else {
					_, _ = io.WriteString(w, test.list)
				}
			}))
			t.Cleanup(server.Close)
			g, s := serveWith(t, server.URL, nil, func(o *live.Options) { o.Upstreams.URLs["gemini"] = server.URL })
			header := map[string]string{"Accept-Encoding": "identity", "Anthropic-Version": "2023-06-01"}
			if test.api != upstream.Messages {
				delete(header, "Anthropic-Version")
			}
			if packed {
				header["Accept-Encoding"] = "gzip"
			}
			if res, text := send(t, http.MethodGet, s.URL+test.path, header, nil); res.StatusCode != http.StatusOK || !packed && string(text) != test.list {
				t.Errorf("%s: the client gets %s, %d bytes of %d", name, res.Status, len(text), len(test.list))
			}
			if test.want != usual { // the next page
				whole := test.list
				test.list = `{"data": [{"id": "older", "context_length": 5000}]}`
				send(t, http.MethodGet, s.URL+test.path, header, nil)
				test.list = whole
			}
			c := upstream.Client{API: test.api, Model: "mystery-1", Session: "s", URL: s.URL}
			c.History = []object{first(test.api, task)}
			if _, _, err := c.Step(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all, err := g.Controller().Conversations(t.Context(), time.Time{})
			if err != nil || len(all) != 1 || all[0].Window != test.want {
				t.Errorf("%s, packed %t: %v, %+v", name, packed, err, all)
			}
		}
	}
}

// TestListedWindowsOfATenant: what a vendor lists for one tenant's account says nothing about another's.
func TestListedWindowsOfATenant(t *testing.T) {
	t.Parallel()
	v := upstream.New(upstream.Options{Script: agentLoop})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			v.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"data": [{"id": "acme-1", "context_length": 70000}, {"id": "other-1", "context_length": 70000}]}`)
	}))
	t.Cleanup(server.Close)
	tokens := tokensFile(t, "acme", "other")
	g, s := serveWith(t, server.URL, nil, func(o *live.Options) { o.Access.Tokens = tokens.path })
	send(t, http.MethodGet, s.URL+"/v1/models", map[string]string{"X-Condense-Token": tokens.of["acme"]}, nil)
	for name, want := range map[string]int{"acme": 70_000, "other": 200_000} {
		c := upstream.Client{API: upstream.Chat, Model: name + "-1", Session: name, URL: s.URL, Header: http.Header{"X-Condense-Token": {tokens.of[name]}}}
		c.History = []object{first(c.API, "I am "+name)}
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := g.Controller().Conversations(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			if one.Model == c.Model && one.Window != want {
				t.Errorf("%s: a window of %d", name, one.Window)
			}
		}
	}
}

// TestRefusalNamesTheWindow: the window of a model that nobody knows is in the vendor's first refusal, so that there is no second one.
func TestRefusalNamesTheWindow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, api := range []upstream.API{upstream.Messages, upstream.Chat, upstream.Gemini} {
		v := upstream.New(upstream.Options{Window: 60_000, Script: upstream.Loop(60, 8000, nil)})
		server := httptest.NewServer(v)
		t.Cleanup(server.Close)
		g, s := serveWith(t, server.URL, nil, func(o *live.Options) { o.Upstreams.URLs["gemini"] = server.URL })
		c := upstream.Client{API: api, Model: "mystery-1", Session: "s", URL: s.URL}
		c.History = []object{first(api, task)}
		for calls := true; calls; {
			var err error
			if _, calls, err = c.Step(t.Context()); err != nil {
				t.Fatalf("%s: %v", api, err)
			}
			live.Settle(g)
		}
		refused := 0
		for _, r := range v.Records() {
			if r.Rule == "window" {
				refused++
			}
		}
		known := g.Stats().Windows
		if epochs := g.Stats().EpochCount; refused != 1 || epochs < 3 || len(known) != 1 || known[0].Tokens != 60_000 || known[0].Remedy() != "" {
			t.Errorf("%s: %d refusals, %d epochs, %+v", api, refused, epochs, known)
		}
	}
}

// TestAnAbsurdRefusalCondensesNothing: a vendor that calls a small conversation too long, against our count of it or for a window that no
// model has, is not believed: the client gets its words, and the next request goes out as it would without them. It is said once.
func TestAnAbsurdRefusalCondensesNothing(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"above our count": "prompt is too long: 250000 tokens > 200000 maximum", "no window": "prompt is too long: 250000 tokens > 0 maximum", "below any window": "prompt is too long: 3000 tokens > 10 maximum",
		"escaped": `prompt is too long: 250000 tokens \u003e 0 maximum`, "in the stream": "prompt is too long: 250000 tokens > 900000000000 maximum",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusal, status := `{"type":"error","error":{"type":"invalid_request_error","message":"`+says+`"}}`, http.StatusBadRequest
			if name == "in the stream" {
				refusal, status = "event: error\ndata: "+refusal+"\n\n", http.StatusOK
			}
			var sent [][]byte
			var well bool
			server := newModelServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = append(sent, body)
				if well {
					jsonAnswer(`{"type":"message","content":[],"usage":{"input_tokens":3000,"output_tokens":1}}`)(w, r)
					return
				}
				if w.Header().Set("Content-Type", "application/json"); status == http.StatusOK {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, refusal)
			}), nil)
			log := &lockedBuffer{}
			g, s := serveWith(t, server.URL, nil, func(o *live.Options) {
				o.Reports.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			body := []byte(strings.ReplaceAll(string(loop(1, 14_000)), "claude-opus-5-5", "mystery-1"))
			var bodies [][]byte
			for i := range 4 {
				well = i == 3
				res, text := send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
				if !well && (res.StatusCode != status || string(text) != refusal) {
					t.Errorf("the client gets %s %s", res.Status, text)
				}
				live.Settle(g)
				bodies, body = append(bodies, body), longer(body)
			}
			if len(sent) != len(bodies) {
				t.Fatalf("%d requests, for %d of the client", len(sent), len(bodies))
			}
			for i := range sent {
				if string(sent[i]) != string(bodies[i]) {
					t.Errorf("request %d: %d bytes of %d were sent", i, len(sent[i]), len(bodies[i]))
				}
			}
			st := g.Stats()
			for _, w := range st.Windows {
				if w.Tokens != 200_000 || w.From != live.WindowNotKnown {
					t.Errorf("%+v", w)
				}
			}
			if n := strings.Count(log.String(), "a vendor refuses prompts as too long"); st.EpochCount > 0 || n != 1 {
				t.Errorf("%d epochs, said %d times:\n%s", st.EpochCount, n, log)
			}
		})
	}
}
