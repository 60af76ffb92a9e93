package live_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A feature is a service of the gateway that does not depend on the API. Each is tried on each wire; none is missing on any.
type feature struct {
	name string
	try  func(*testing.T, *house)
}

// A house is a gateway with tenants, tokens for recall and numbers, after some work of a client.
type house struct {
	*play
	meter  *meter
	tokens *tokenFile
}

// as returns a client of another tenant, at the beginning of a conversation that has the same first message and session.
func (h *house) as(tenant string) *upstream.Client {
	c := upstream.Client{
		URL: h.client.URL, API: h.client.API, Cloud: h.client.Cloud, Model: h.client.Model, Session: h.client.Session, Thinking: h.client.Thinking,
		Stream: h.client.Stream, Header: http.Header{"X-Condense-Token": {h.tokens.of[tenant]}},
	}
	c.History = []object{first(c.API, task)}
	return &c
}

// refusals are the beginnings of the wires' answers of status 429.
var refusals = map[upstream.API]string{
	upstream.Messages: `{"type":"error","error":{"type":"rate_limit_error","message":"condense: tenant small `, upstream.Chat: `{"error":{"message":"condense: tenant small `,
	upstream.Responses: `{"error":{"message":"condense: tenant small `, upstream.Gemini: `{"error":{"code":429,"message":"condense: tenant small `,
	upstream.Converse: `{"message":"condense: tenant small `,
}

func refusalOf(c *upstream.Client) string {
	if c.Cloud == upstream.Bedrock {
		return refusals[upstream.Converse]
	}
	return refusals[c.API]
}

var features = []feature{
	{"rewind and fork", func(t *testing.T, h *house) {
		h.step(t)
		opening := slices.Clone(h.client.History)
		h.untilEpoch(t, 1)
		early := slices.Clone(h.client.History)
		h.steps(t, 2)
		block := rawElements(t, h.lastBody())[:3]
		full := slices.Clone(h.client.History)
		same := func() bool {
			return slices.EqualFunc(rawElements(t, h.lastBody())[:3], block, func(a, b json.RawMessage) bool { return unmarked.Replace(string(a)) == unmarked.Replace(string(b)) })
		}
		h.client.History = early
		h.step(t)
		if !same() {
			t.Error("the epoch is lost after a short rewind")
		}
		h.client.History = opening
		h.step(t)
		if same() {
			t.Error("the epoch is still there after a rewind to before it")
		}
		h.client.History = full
		h.step(t)
		if !same() {
			t.Error("the epoch is lost after the client came back")
		}
	}},
	{"tenants", func(t *testing.T, h *house) {
		c := h.as("other")
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if body := h.lastBody(); len(rawElements(t, body)) > 3 || bytes.Contains(body, []byte("NEEDLE")) {
			t.Errorf("another tenant's request has more than it sent: %.300s", body)
		}
	}},
	{"limits", func(t *testing.T, h *house) {
		c := h.as("small")
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "refused: 429 ") || !strings.HasPrefix(string(c.Answer), refusalOf(c)) {
			t.Errorf("the second request in a minute: %v", err)
		}
	}},
	{"the gateway's tool", func(t *testing.T, h *house) {
		h.unseen(t)
		if all := h.toolResults(t); len(all) != 1 || !strings.Contains(all[0], "NEEDLE-1") || h.Stats().Recalls != 1 {
			t.Errorf("recalled %d times: %q", h.Stats().Recalls, all)
		}
	}},
	{"telemetry", func(t *testing.T, h *house) {
		s, all := h.Stats(), h.meter.families(t)
		for _, tt := range []struct {
			name, label, value string
			want               float64
		}{
			{"condense_requests_total", "condense_tenant", "acme", float64(s.Requests - 2)}, // without those of two other tenants
			{"condense_tokens_total", "condense_token_type", "sent", float64(s.Tokens.Sent)},
			{"condense_tokens_total", "condense_token_type", "cache_read", float64(s.Tokens.CacheRead)},
			{"gen_ai_client_token_usage", "gen_ai_token_type", "input", float64(s.Tokens.Sent)},
			{"condense_epochs_total", "condense_tenant", "acme", float64(s.EpochCount)},
		} {
			if got := sum(all[tt.name], tt.label, tt.value); got != tt.want {
				t.Errorf("%s{%s=%s} is %v, want %v", tt.name, tt.label, tt.value, got, tt.want)
			}
		}
		if s.Tokens.Sent == 0 || len(s.Errors) > 0 {
			t.Errorf("tokens %+v, faults %v", s.Tokens, s.Errors)
		}
	}},
	{"page and status", func(t *testing.T, h *house) {
		conversations, err := h.Controller().Conversations(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range conversations {
			found = found || c.Title == task && c.Model == h.client.Model && c.Condensed && c.Window > 0
		}
		if !found {
			t.Errorf("none of %d conversations is the client's", len(conversations))
		}
		if res, body := send(t, http.MethodGet, adminOf(t, h.Gateway)+"/condense/status", map[string]string{"X-Condense-Token": h.tokens.of["admin"]}, nil); res.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"epoch`)) {
			t.Errorf("%s %.300s", res.Status, body)
		}
	}},
}

// Clients of Gemini that do not ask for events get a stream that is an array: it is condensed too, and calls of the gateway's tool are
// answered.
func TestStreamThatIsAnArray(t *testing.T) {
	t.Parallel()
	script := looking(30, "NEEDLE-1", map[int]upstream.Step{3: {Text: "I look.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}})
	p := newPlay(t, upstream.Options{Script: script}, upstream.Client{API: upstream.Gemini, Model: "gemini-3-pro-preview", Session: "s1", Stream: true, Array: true}, withTool)
	p.client.History = []object{first(p.client.API, task)}
	p.steps(t, 1)
	if !bytes.HasPrefix(p.client.Answer, []byte("[")) {
		t.Errorf("no array: %.100s", p.client.Answer)
	}
	p.say(t)
	p.check(t, 1)
	p.unseen(t)
	if all := p.toolResults(t); len(all) != 1 {
		t.Errorf("%d recalls", len(all))
	}
}

// Every service on every wire: see [features].
func TestEveryFeatureOnEveryWire(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for i, c := range wires {
		c.Stream, c.Session = i%2 == 0, "s1"
		t.Run(nameOf(&c), func(t *testing.T) {
			t.Parallel()
			h := &house{tokens: tokensFile(t, "acme", "other", "small")}
			h.tokens.add(t, &access.Token{Tenant: "admin", Admin: true, Created: time.Now()})
			c.Header = http.Header{"X-Condense-Token": {h.tokens.of["acme"]}, "X-Condense-Recall": {secret}}
			script := looking(40, "NEEDLE-1", map[int]upstream.Step{3: {Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE"})}}})
			h.play = newPlay(t, upstream.Options{Script: script}, c, func(o *live.Options) {
				withTool(o)
				o.Access.Tokens, o.Access.Tenants = h.tokens.path, map[string]live.Limits{"small": {Requests: 1}}
				h.meter = newMeter(t, o)
			})
			h.client.History = []object{first(c.API, task)}
			for _, f := range features {
				t.Run(f.name, func(t *testing.T) { f.try(t, h) })
			}
			for _, r := range h.vendor.Refusals() {
				t.Errorf("request %d was refused: %s: %s", r.N, r.Rule, r.Error)
			}
		})
	}
}

// A request for a compaction by the upstream passes as it came. One that the upstream answers only when a prompt is too long never comes to
// that, because the gateway condenses before; with one that it answers earlier, the history is the upstream's, and the gateway leaves
// it alone.
func TestCompactionsByTheUpstream(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	edit := func(kind string) map[string]any {
		return map[string]any{"context_management": object{"edits": []any{object{"type": kind}}}}
	}
	for _, tt := range []struct {
		api       upstream.API
		more      map[string]any
		condensed bool
	}{
		{upstream.Chat, map[string]any{"transforms": []any{"middle-out"}}, true},
		{upstream.Chat, map[string]any{"plugins": []any{object{"id": "context-compression", "engine": "middle-out"}}}, true},
		{upstream.Responses, map[string]any{"truncation": "auto"}, true},
		{upstream.Responses, map[string]any{"context_management": []any{object{"type": "compaction", "compact_threshold": 150_000}}}, false},
		{upstream.Messages, edit("clear_thinking_20251015"), true},
		{upstream.Messages, edit("clear_tool_uses_20250919"), false},
		{upstream.Messages, edit("compact_20260112"), false},
	} {
		field, err := json.Marshal(tt.more)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(string(tt.api)+"/"+string(field), func(t *testing.T) {
			t.Parallel()
			c := upstream.Client{
				API: tt.api, Model: "claude-sonnet-4-5", Session: "s", More: tt.more, Stream: true,
				Header: http.Header{"Anthropic-Beta": {"context-management-2025-06-27,compact-2026-01-12"}},
			}
			if tt.api != upstream.Messages {
				c.Model = "gpt-5.1"
			}
			p := newPlay(t, upstream.Options{Window: 400_000, Script: upstream.Loop(30, 2200, nil)}, c, nil)
			p.say(t)
			if n := p.Stats().EpochCount; n > 0 != tt.condensed {
				t.Errorf("%d epochs", n)
			}
			for _, r := range p.vendor.Records() {
				if !bytes.Contains(r.Body, bytes.Trim(field, "{}")) {
					t.Fatalf("request %d is without the client's own field: %.300s", r.N, r.Body)
				}
			}
			if !tt.condensed && !bytes.Equal(p.lastBody(), p.client.Body) {
				t.Error("the last request was changed")
			}
		})
	}
}
