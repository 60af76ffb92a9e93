package vendor_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/internal/vendor"
)

type object = map[string]any

// A fake is a vendor that can do nothing but compact, and enforces what is published of that.
type fake struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	asked  []object
	header []http.Header
	stop   string // the stop reason of Anthropic; "" is compaction
	keep   int    // messages of the user that OpenAI returns
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, keep: 100}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", f.messages)
	mux.HandleFunc("POST /v1/responses/compact", f.compact)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// sign is the signature of a summary.
func sign(content string) string {
	sum := sha256.Sum256([]byte("vendor " + content))
	return hex.EncodeToString(sum[:])
}

func (f *fake) read(r *http.Request) (object, string) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err.Error()
	}
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.header = append(f.asked, o), append(f.header, r.Header)
	return o, ""
}

func (f *fake) last() (object, http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[len(f.asked)-1], f.header[len(f.header)-1]
}

func list(v any) []object {
	var out []object
	all, _ := v.([]any)
	for _, e := range all {
		o, _ := e.(object)
		out = append(out, o)
	}
	return out
}

// fault is what Anthropic refuses in a request to compact, or in one that has a block; "" for nothing.
func fault(o object, h http.Header) string {
	messages := list(o["messages"])
	if !strings.Contains(h.Get("Anthropic-Beta"), "compact-2026-09-04") {
		return "compaction: requires anthropic-beta: compact-2026-09-04"
	}
	for _, name := range []string{"context_management", "stop_sequences"} {
		if o[name] != nil {
			return name + " cannot be combined with compaction"
		}
	}
	if choice, _ := o["tool_choice"].(object); choice["type"] == "any" || choice["type"] == "tool" {
		return "tool_choice cannot be combined with compaction"
	}
	if c, _ := o["compaction"].(object); c != nil {
		text, _ := c["instructions"].(string)
		if c["type"] != "summarize" || utf8.RuneCountInString(text) > 16_384 {
			return "compaction: invalid"
		}
	}
	blocks, open := 0, map[any]bool{}
	for i, m := range messages {
		for k, b := range list(m["content"]) {
			switch b["type"] {
			case "compaction":
				content, _ := b["content"].(string)
				switch blocks++; {
				case i+k > 0:
					return "compaction_block_misplaced"
				case b["signature"] != sign(content) || len(b) != 3:
					return "compaction_signature_invalid"
				}
			case "tool_use":
				open[b["id"]] = true
			case "tool_result":
				delete(open, b["tool_use_id"])
			}
		}
	}
	switch {
	case blocks > 1:
		return "more than one compaction block"
	case len(open) > 0:
		return "the last assistant turn ends in a tool call with no result yet"
	case len(messages) == 0:
		return "compaction_nothing_to_summarize"
	}
	return ""
}

func (f *fake) messages(w http.ResponseWriter, r *http.Request) {
	o, wrong := f.read(r)
	if wrong == "" {
		wrong = fault(o, r.Header)
	}
	w.Header().Set("Content-Type", "application/json")
	if wrong != "" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": "invalid_request_error", "message": wrong}})
		return
	}
	summary := fmt.Sprintf("Summary of %d messages <kept & exact>.", len(list(o["messages"])))
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v object) {
		data, err := json.Marshal(v)
		if err != nil {
			f.t.Error(err)
		}
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", v["type"], data)
	}
	send(object{"type": "message_start", "message": object{"id": "msg_1", "content": []any{}, "usage": object{"input_tokens": 0, "output_tokens": 0}}})
	send(object{"type": "ping"})
	reason := f.stop
	if reason == "" {
		reason = "compaction"
		send(object{"type": "content_block_start", "index": 0, "content_block": object{"type": "compaction", "content": summary, "signature": sign(summary)}})
		send(object{"type": "content_block_stop", "index": 0})
	}
	send(object{"type": "message_delta", "delta": object{"stop_reason": reason}, "usage": object{
		"input_tokens": 0, "output_tokens": 0, "iterations": []any{object{"type": "compaction", "input_tokens": 1440, "output_tokens": 276}},
	}})
	send(object{"type": "message_stop"})
}

func (f *fake) compact(w http.ResponseWriter, r *http.Request) {
	o, wrong := f.read(r)
	var out []any
	calls := map[any]bool{}
	for _, it := range list(o["input"]) {
		switch it["type"] {
		case "message":
			if it["role"] == "user" && len(out) < f.keep {
				out = append(out, it)
			}
		case "function_call":
			calls[it["call_id"]] = true
		case "function_call_output":
			if !calls[it["call_id"]] {
				wrong = "No tool call found for function call output"
			}
			delete(calls, it["call_id"])
		case "reasoning", "compaction":
		default:
			wrong = fmt.Sprint("Invalid value: ", it["type"])
		}
	}
	if len(calls) > 0 {
		wrong = "No tool output found for function call"
	}
	for name := range o {
		if !slices.Contains([]string{"model", "input", "instructions"}, name) {
			wrong = "Unknown parameter: " + name
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if wrong != "" {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(object{"error": object{"type": "invalid_request_error", "message": wrong}})
		return
	}
	out = append(out, object{"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAencrypted"})
	_ = json.NewEncoder(w).Encode(object{
		"id": "resp_1", "object": "response.compaction", "output": out,
		"usage": object{"input_tokens": 1440, "output_tokens": 276, "input_tokens_details": object{"cached_tokens": 40}},
	})
}

// provider asks the fake. The API of the conversation is that of the vendor, as hosts set it.
func (f *fake) provider(api string) core.CondensationProvider {
	f.t.Helper()
	o := remote.Options{
		ID: "the-model", BaseURL: f.URL + "/v1", Window: 200_000, Price: model.Price{Input: 10, Output: 50},
		Retry: remote.Retry{Attempts: 1, First: time.Millisecond},
	}
	open := map[string]func(remote.Options) (*remote.Client, error){"anthropic": anthropic.New, "responses": openai.New}[api]
	c, err := open(o)
	if err != nil {
		f.t.Fatal(err)
	}
	p, err := vendor.New(vendor.DefaultConfig(), c)
	if err != nil {
		f.t.Fatal(err)
	}
	return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		with := *req
		with.API = api
		return p.Condense(ctx, &with)
	})
}

// session is a loop of calls with signed thinking, the way agents work.
func session() *core.Request {
	m := []core.Message{coretest.User(core.Text("Never push to main. Make the tests of package parser pass."))}
	for i := range 30 {
		id := fmt.Sprintf("call_%d", i)
		m = append(m,
			coretest.Assistant(core.Reasoning{Text: "hm", Signature: "sig" + id, Encrypted: ""}, core.Text("Looking."), core.ToolCall{ID: id, Name: "run", Args: `{"command":"make"}`}),
			coretest.User(coretest.Result(id, fmt.Sprintf("parser/lexer_%d.go:41: unexpected token\n", i)+strings.Repeat("line of output\n", 60))))
	}
	req := coretest.HalfRequest(coretest.Conversation(append(m, coretest.Assistant(core.Text("All pass.")), coretest.User(core.Text("And now the linter.")))...))
	req.System, req.Tools = "You are an agent.", `[{"name":"run","input_schema":{"type":"object"}}]`
	return req
}

func TestAnthropic(t *testing.T) {
	f := newFake(t)
	req := session()
	res, err := f.provider("anthropic").Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	want := core.Usage{Calls: 1, InputTokens: 1440, OutputTokens: 276, USD: (1440*10 + 276*50) / 1e6}
	if diff := cmp.Diff(want, res.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	first := res.Messages[0]
	block, _ := first.Parts[0].(core.Opaque)
	var o object
	if err := json.Unmarshal([]byte(block.JSON), &o); err != nil || first.Kind != core.KindSummary || first.Role != core.RoleUser || o["signature"] != sign(fmt.Sprint(o["content"])) {
		t.Errorf("%v: got %+v", err, first)
	}
	tail := res.Messages[1:]
	if diff := cmp.Diff(req.Messages[len(req.Messages)-len(tail):], tail); diff != "" || tail[0].Role != core.RoleAssistant || len(tail) < 4 {
		t.Errorf("%d messages follow, with changes:\n%s", len(tail), diff)
	}
	asked, header := f.last()
	instructions, _ := asked["compaction"].(object)["instructions"].(string)
	if !strings.Contains(instructions, "Never push to main") || !strings.Contains(instructions, "unexpected token") {
		t.Errorf("the instructions have nothing of the conversation:\n%s", instructions)
	}
	if asked["system"] != req.System || len(list(asked["tools"])) != 1 || asked["tool_choice"] != nil || header.Get("Anthropic-Version") == "" {
		t.Errorf("got %v, %v", asked["system"], asked["tools"])
	}
	if data, _ := json.Marshal(asked["messages"]); !strings.Contains(string(data), `"signature":"sigcall_0"`) || strings.Contains(string(data), "linter") {
		t.Error("the request is not the older part of the conversation with its thinking")
	}

	// Again: the newest block replaces the one before.
	again := *req
	again.Messages = append(slices.Clone(res.Messages), session().Messages[1:]...)
	for i := range again.Messages {
		again.Messages[i].ID = fmt.Sprint("again", i)
		for k, part := range again.Messages[i].Parts {
			if r, ok := part.(core.ToolResult); ok && i > len(res.Messages)-1 {
				r.CallID += "b"
				again.Messages[i].Parts[k] = r
			} else if c, ok := part.(core.ToolCall); ok && i > len(res.Messages)-1 {
				c.ID += "b"
				again.Messages[i].Parts[k] = c
			}
		}
	}
	again.Messages[0].Tokens = core.MessageTokens(req.Counter, again.Messages[0])
	second, err := f.provider("anthropic").Condense(t.Context(), &again)
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, m := range second.Messages {
		for _, p := range m.Parts {
			if o, ok := p.(core.Opaque); ok && o.Kind == "compaction" {
				blocks++
			}
		}
	}
	if err := core.Verify(&again, second); err != nil || blocks != 1 {
		t.Errorf("%d blocks: %v", blocks, err)
	}
}

// What must stay comes between the block and the newest messages, whose thinking would be refused then.
func TestAnthropicWithAProtectedMessage(t *testing.T) {
	f := newFake(t)
	req := session()
	req.Messages[0].Protected = true
	res, err := f.provider("anthropic").Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	if !res.Messages[1].Equal(req.Messages[0]) {
		t.Errorf("got %+v", res.Messages[1])
	}
	for _, m := range res.Messages {
		for _, p := range m.Parts {
			if _, ok := p.(core.Reasoning); ok {
				t.Error("thinking does not follow the block")
			}
		}
	}
}

func TestOpenAI(t *testing.T) {
	f := newFake(t)
	req := session()
	for i := range req.Messages {
		for k, p := range req.Messages[i].Parts {
			if r, ok := p.(core.Reasoning); ok {
				req.Messages[i].Parts[k] = core.Reasoning{Encrypted: "gAAAA" + r.Signature}
			}
		}
	}
	p := f.provider("responses")
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	if !res.Messages[0].Equal(req.Messages[0]) || !cmp.Equal(res.Messages[1].Parts, []core.Part{core.Opaque{Kind: "compaction", JSON: `{"encrypted_content":"gAAAAencrypted","id":"cmp_1","type":"compaction"}`}}) {
		t.Errorf("got %+v", res.Messages[:2])
	}
	if res.Usage.InputTokens != 1440 || res.Usage.CachedTokens != 40 || res.Usage.USD == 0 {
		t.Errorf("usage: %+v", res.Usage)
	}
	asked, _ := f.last()
	if asked["instructions"] != req.System {
		t.Errorf("instructions: %v", asked["instructions"])
	}
	f.keep = 0 // the vendor keeps no message of the user
	if res, err = p.Condense(t.Context(), req); err != nil || len(res.Messages[0].Parts) != 1 || res.Messages[0].Kind != core.KindSummary {
		t.Errorf("%v: %+v", err, res)
	}
}

// In every other form of conversation, and whenever the vendor gives no summary, the next provider of the chain is
// asked.
func TestDeclines(t *testing.T) {
	f := newFake(t)
	for _, api := range []string{"", "openai", "responses", "claudecode"} {
		c, err := anthropic.New(remote.Options{ID: "m", BaseURL: f.URL})
		if err != nil {
			t.Fatal(err)
		}
		p, err := vendor.New(vendor.DefaultConfig(), c)
		if err != nil {
			t.Fatal(err)
		}
		req := session()
		req.API = api
		if _, err := p.Condense(t.Context(), req); !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "form") {
			t.Errorf("%q: %v", api, err)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("the vendor was asked %d times", len(f.asked))
	}
	for _, reason := range []string{"max_tokens", "refusal", "tool_use", "end_turn", "model_context_window_exceeded"} {
		f.stop = reason
		res, err := f.provider("anthropic").Condense(t.Context(), session())
		if !errors.Is(err, model.ErrNoText) || !strings.Contains(err.Error(), reason) || res.Usage.InputTokens != 1440 {
			t.Errorf("%s: %v, %+v", reason, err, res)
		}
	}
	if _, err := vendor.New(vendor.DefaultConfig(), extractive.New()); err == nil || !strings.Contains(err.Error(), "no model of a vendor") {
		t.Errorf("a model without a vendor: %v", err)
	}
}

// The contract of providers holds, whatever the conversation.
func TestContract(t *testing.T) {
	for _, api := range []string{"anthropic", "responses"} {
		t.Run(api, func(t *testing.T) {
			if err := coretest.TestProvider(t.Context(), newFake(t).provider(api)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEstimate(t *testing.T) {
	f := newFake(t)
	c, err := anthropic.New(remote.Options{ID: "m", BaseURL: f.URL, Price: model.Price{Input: 10, Output: 50}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := vendor.New(vendor.DefaultConfig(), c)
	if err != nil {
		t.Fatal(err)
	}
	req := session()
	req.API = "anthropic"
	got, err := p.EstimateCost(t.Context(), req)
	if err != nil || got.Calls != 1 || got.InputTokens < req.Tokens()/2 || got.OutputTokens != 8192 || got.USD == 0 || len(f.asked) > 0 {
		t.Errorf("%v: %+v, asked %d times", err, got, len(f.asked))
	}
}
