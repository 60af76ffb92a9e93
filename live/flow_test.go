package live_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// claude is an agent on a model that binds its thinking.
func claude(session string) upstream.Client {
	return upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Stream: true, Session: session}
}

const task = "Read all the files, one after the other."

// begin sends the first message of the user.
func (p *play) begin(t *testing.T) {
	t.Helper()
	p.client.History = append(p.client.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": task}}})
	p.step(t)
}

func (p *play) step(t *testing.T) {
	t.Helper()
	if _, _, err := p.client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// untilEpoch plays until the gateway has made n epochs.
func (p *play) untilEpoch(t *testing.T, n int) {
	t.Helper()
	for range 60 {
		if p.Stats().EpochCount >= n {
			return
		}
		p.step(t)
	}
	t.Fatalf("no epoch %d: %+v", n, p.Stats())
}

func (p *play) lastBody() []byte {
	r := p.vendor.Records()
	return r[len(r)-1].Body
}

func messagesOf(t *testing.T, body []byte) []json.RawMessage {
	t.Helper()
	var r struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	return r.Messages
}

// What the gateway did is on disk before it is sent: another process goes on with the same bytes.
func TestRestart(t *testing.T) {
	testkit.Slow(t)
	file := filepath.Join(t.TempDir(), "live.db")
	p := newPlay(t, upstream.Options{}, claude("s"), func(o *live.Options) { o.Store.Path = file })
	p.begin(t)
	p.untilEpoch(t, 1)
	epochs := p.Stats().EpochCount
	p.server.Close()
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	for calls := true; calls; {
		g, s := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { o.Store.Path = file }) // a restart before every request
		p.client.URL = s.URL
		var err error
		if _, calls, err = p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		epochs += g.Stats().EpochCount
	}
	if got := p.vendor.Refusals(); len(got) > 0 {
		t.Errorf("refused: %+v", got)
	}
	if got := p.vendor.Breaks(); len(got) > epochs {
		t.Errorf("%d breaks of the prefix in %d epochs", len(got), epochs)
	}
	if epochs < 2 {
		t.Errorf("only %d epochs", epochs)
	}
}

// together lets n sub-agents work at the same time, in one session if it has a name.
func (p *play) together(t *testing.T, n int, session string) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		c := claude(session)
		c.URL = p.server.URL
		if session != "" {
			c.Agent = fmt.Sprint("agent-", i)
		}
		all.Go(func() {
			if _, err := c.Say(t.Context(), fmt.Sprintf("Task %d: read your files.", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Sub-agents share the session, and in older versions there is nothing else to tell them apart.
func TestParallelSubAgents(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, session := range []string{"shared", ""} { // Without a session all of the tenant's conversations have the same key.
		t.Run("session="+session, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, upstream.Options{Script: upstream.Loop(14, 5_000, nil)}, claude(""), nil)
			p.together(t, 20, session)
			p.check(t, 20)
		})
	}
}

// Another tenant with the same conversation gets nothing of ours.
func TestTenantsNeverMeet(t *testing.T) {
	p := newPlay(t, upstream.Options{Window: 200_000}, claude("s"), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	p.step(t)
	if bytes.Equal(p.lastBody(), p.client.Body) {
		t.Fatal("the view is the client's own history")
	}
	for name, header := range map[string]string{"X-Api-Key": "another", "Authorization": "Bearer another"} {
		res, body := send(t, http.MethodPost, p.server.URL+"/v1/messages", map[string]string{name: header, "X-Claude-Code-Session-Id": "s"}, smaller(t, p.client.Body))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", res.Status, body)
		}
		if got := p.lastBody(); !bytes.Equal(got, smaller(t, p.client.Body)) {
			t.Errorf("another tenant (%s) got a view that was made for the first", name)
		}
	}
}

// The token of a plan changes every few hours, in the middle of a conversation; the account is the same.
func TestTokensOfPlansChange(t *testing.T) {
	c := claude("s")
	c.Header = http.Header{"X-Api-Key": {""}, "Anthropic-Beta": {"oauth-2025-04-20"}, "Authorization": {"Bearer sk-ant-oat-1"}, "Chatgpt-Account-Id": {"account"}}
	p := newPlay(t, upstream.Options{}, c, nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	p.client.Header.Set("Authorization", "Bearer sk-ant-oat-2")
	for range 3 {
		p.step(t)
	}
	if bytes.Equal(p.lastBody(), p.client.Body) {
		t.Error("with a new token the history is sent in full again")
	}
	p.client.Header.Set("Chatgpt-Account-Id", "another")
	_, _, _ = p.client.Step(t.Context()) // refused: the newer thinking was written after the view
	if !bytes.Equal(p.lastBody(), p.client.Body) {
		t.Error("another account got a view that was made for the first")
	}
}

// The subject of a plan's token tells accounts apart that name the same ID, and stays when the token changes.
func TestLoginsOfPlansAreToldApart(t *testing.T) {
	token := func(subject, rest string) string {
		return "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+subject+`","exp":`+rest+`}`)) + ".c2ln"
	}
	c := claude("s")
	c.Header = http.Header{"X-Api-Key": {""}, "Authorization": {token("me", "1")}, "Chatgpt-Account-Id": {"account"}}
	p := newPlay(t, upstream.Options{}, c, nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	p.client.Header.Set("Authorization", token("me", "2"))
	p.step(t)
	if bytes.Equal(p.lastBody(), p.client.Body) {
		t.Error("with a new token of the same login the history is sent in full again")
	}
	p.client.Header.Set("Authorization", token("somebody", "2"))
	_, _, _ = p.client.Step(t.Context()) // refused: the newer thinking was written after the view
	if !bytes.Equal(p.lastBody(), p.client.Body) {
		t.Error("another login that names the account got its view")
	}
}

// smaller is a request with the first messages of another one.
func smaller(t *testing.T, body []byte) []byte {
	t.Helper()
	var r map[string]json.RawMessage
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	messages := messagesOf(t, body)
	raw, err := json.Marshal(messages[:9])
	if err != nil {
		t.Fatal(err)
	}
	r["messages"] = raw
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A client that goes back to before the epoch gets its own messages again; one that goes back less keeps
// the epoch.
func TestRewind(t *testing.T) {
	p := newPlay(t, upstream.Options{}, claude("s"), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	for range 3 {
		p.step(t)
	}
	block := messagesOf(t, p.lastBody())[0]
	full := slices.Clone(p.client.History)
	p.client.History = full[:len(full)-4]
	p.step(t)
	if got := messagesOf(t, p.lastBody()); !bytes.Equal(got[0], block) {
		t.Errorf("the epoch is lost after a short rewind: %.200s", got[0])
	}
	p.client.History = slices.Clone(full[:5])
	p.step(t)
	if got := p.lastBody(); !bytes.Equal(got, p.client.Body) {
		t.Errorf("after a rewind to before the epoch the vendor got something else than the client sent")
	}
	p.client.History = full
	p.step(t)
	if got := messagesOf(t, p.lastBody()); !bytes.Equal(got[0], block) {
		t.Errorf("the epoch is lost after the client came back: %.200s", got[0])
	}
	for _, r := range p.vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
}

// The agent's own summary is made of its originals if they fit, else of the view; after it everything
// begins again.
func TestOwnCompaction(t *testing.T) {
	p := newPlay(t, upstream.Options{}, claude("s"), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	summarize := map[string]any{"type": "text", "text": "Your task is to create a detailed summary of the conversation so far."}
	history := p.client.History
	ask := func(more ...map[string]any) {
		last, ok := history[len(history)-1]["content"].([]any)
		if !ok {
			t.Fatal("the last message has no blocks")
		}
		p.client.History = slices.Concat(history[:len(history)-1], []map[string]any{{"role": "user", "content": append(slices.Clone(last), summarize)}})
		p.client.History = append(p.client.History, more...)
		p.step(t)
	}
	reminder := map[string]any{"role": "system", "content": []any{map[string]any{"type": "text", "text": "The user has not heard from you for a while."}}}
	for _, more := range [][]map[string]any{nil, {reminder}} { // Claude Code adds some after the user's message
		ask(more...)
		if got, all := len(p.lastBody()), len(p.client.Body); got < all*9/10 {
			t.Errorf("the originals fit, but the summary is made of %d bytes of %d", got, all)
		}
	}
	p.client.History = history
	p.untilEpoch(t, 3) // by now the originals are too long
	history = p.client.History
	ask()
	if got := messagesOf(t, p.lastBody()); len(got) == len(history) {
		t.Error("the originals were sent although they do not fit")
	}
	p.client.History = []map[string]any{{"role": "user", "content": []any{map[string]any{"type": "text", "text": "This session is being continued. Summary: all is well."}}}}
	p.step(t)
	if got := p.lastBody(); !bytes.Equal(got, p.client.Body) {
		t.Error("after its own compaction the client's messages were replaced")
	}
	for _, r := range p.vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
}

func TestCountTokensCountsTheView(t *testing.T) {
	p := newPlay(t, upstream.Options{}, claude("s"), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	p.step(t)
	epochs := p.Stats().EpochCount
	sent := messagesOf(t, p.lastBody())
	send(t, http.MethodPost, p.server.URL+"/v1/messages/count_tokens", map[string]string{"X-Api-Key": "dummy", "X-Claude-Code-Session-Id": "s"}, p.client.Body)
	counted := messagesOf(t, p.lastBody())
	if len(counted) != len(sent) || !bytes.Equal(counted[0], sent[0]) {
		t.Errorf("counted %d messages, sent %d", len(counted), len(sent))
	}
	if got := p.Stats().EpochCount; got != epochs {
		t.Errorf("counting made %d epochs", got-epochs)
	}
}

// Observing changes nothing and says what would have been.
func TestObserve(t *testing.T) {
	p := newPlay(t, upstream.Options{Window: 200_000}, claude("s"), func(o *live.Options) { o.Observe = true })
	p.begin(t)
	for range 40 {
		p.step(t)
		if !bytes.Equal(p.lastBody(), p.client.Body) {
			t.Fatal("a request was changed")
		}
	}
	s := p.Stats()
	if s.Observed == nil || s.Observed.Epochs == 0 || s.Observed.Saved <= 0 || !s.Observe || s.Passed != s.Requests {
		t.Errorf("got %+v", s)
	}
}

// A result loses what carries no information before it is sent for the first time, and is the same ever
// after, also in another process.
func TestIngest(t *testing.T) {
	testkit.Slow(t)
	file := filepath.Join(t.TempDir(), "live.db")
	for _, api := range []upstream.API{upstream.Messages, upstream.Chat, upstream.Responses} {
		t.Run(string(api), func(t *testing.T) {
			noisy := func(command string) string {
				return "\x1b[32mok\x1b[0m   \n\n\n\n" + strings.ReplaceAll(upstream.Output(command), "\n", "  \t \n")
			}
			c := upstream.Client{API: api, Model: "claude-opus-5-5", Session: "s", Run: noisy}
			if api != upstream.Messages {
				c.Model = "gpt-5.6"
			}
			p := newPlay(t, upstream.Options{}, c, func(o *live.Options) { o.Store.Path = file })
			if _, err := p.client.Say(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			p.check(t, 1)
			if s := p.Stats(); s.Ingested < 20 {
				t.Errorf("%d results were shortened", s.Ingested)
			}
			if got := p.vendor.Records()[5].Body; bytes.Contains(got, []byte(`\u001b`)) || !bytes.Contains(got, []byte("ok")) {
				t.Errorf("escape sequences were sent: %.600s", got)
			}
		})
	}
}

func TestLongResultsAreCutOnce(t *testing.T) {
	p := newPlay(t, upstream.Options{Script: upstream.Loop(10, 30_000, nil)}, claude("s"), func(o *live.Options) { o.Ingest.MaxResult = 2000 })
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	p.check(t, 0)
	records := p.vendor.Turns()
	if last := records[len(records)-1]; last.Tokens > 40_000 {
		t.Errorf("%d tokens were sent", last.Tokens)
	}
}

// The vendor's window is smaller than we think: one epoch, one retry, and the client sees no error.
func TestOverflowIsRepaired(t *testing.T) {
	testkit.Slow(t)
	for _, api := range []upstream.API{upstream.Messages, upstream.Chat, upstream.Responses} {
		t.Run(string(api), func(t *testing.T) {
			vendor := upstream.New(upstream.Options{Script: agentLoop, Window: window / 2})
			v := httptest.NewServer(vendor)
			defer v.Close()
			g, s := serveWith(t, v.URL, withWindow(200_000), nil)
			c := upstream.Client{API: api, Model: "claude-opus-5-5", Thinking: "adaptive", Session: "s", URL: s.URL, Stream: true}
			if api != upstream.Messages {
				c.Model = "gpt-5.6"
			}
			if _, err := c.Say(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			st := g.Stats()
			n := 0
			for _, r := range vendor.Records() {
				if r.Rule == "window" {
					n++
				} else if r.Rule != "" {
					t.Errorf("refused: %s: %s", r.Rule, r.Error)
				}
			}
			if n == 0 || n != st.Errors["retry_overflow"] || n != st.EpochCount {
				t.Errorf("%d refusals, %d retries, %d epochs", n, st.Errors["retry_overflow"], st.EpochCount)
			}
		})
	}
}

// OpenAI's Responses API reports it in the stream, after a status of 200: no more of that reaches the client.
func TestOverflowInStreamIsRepaired(t *testing.T) {
	testkit.Slow(t)
	vendor := upstream.New(upstream.Options{Window: 30_000, StreamOverflow: true})
	v := httptest.NewServer(vendor)
	defer v.Close()
	g, s := serveWith(t, v.URL, withWindow(100_000), nil)
	c := upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Session: "s", URL: s.URL, Stream: true}
	if _, err := c.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range vendor.Records() {
		if r.Rule == "window" {
			n++
		} else if r.Rule != "" {
			t.Errorf("refused: %s: %s", r.Rule, r.Error)
		}
	}
	if st := g.Stats(); n == 0 || n != st.Errors["retry_overflow"] {
		t.Errorf("%d refusals, %d retries, %d epochs", n, st.Errors["retry_overflow"], st.EpochCount)
	}
}

// A model binds its thinking and we did not know: one retry without the old thinking, and never again.
func TestRefusedThinkingIsRepaired(t *testing.T) {
	testkit.Slow(t)
	p := newPlay(t, upstream.Options{Model: func(string) upstream.Model { return upstream.Model{Bound: true, Minimum: 1024} }},
		upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Thinking: "adaptive", Session: "s"}, nil)
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	s := p.Stats()
	n := 0
	for _, r := range p.vendor.Records() {
		if r.Rule != "" {
			n++
		}
	}
	if n == 0 || n != s.Errors["retry_thinking"] || n > s.EpochCount {
		t.Errorf("%d refusals, %+v", n, s)
	}
	// The next conversation on this model needs none: its requests are sent as those of a model that binds.
	c := *p.client
	c.Session, c.History = "another", nil
	if _, err := c.Say(t.Context(), task+" Once more."); err != nil {
		t.Fatal(err)
	}
	if got := p.Stats(); got.Errors["retry_thinking"] != n || got.EpochCount == s.EpochCount {
		t.Errorf("refused again: %+v", got.Errors)
	}
}

// The vendor refuses what we made of a request for a reason of its own: the client's own messages are sent, and its conversation goes on.
func TestRefusedViewIsRepaired(t *testing.T) {
	testkit.Slow(t)
	for _, tt := range []struct {
		api             upstream.API
		model, thinking string
	}{{upstream.Messages, "claude-opus-5-5", "adaptive"}, {upstream.Messages, "claude-sonnet-4-5", "enabled"}, {upstream.Chat, "gpt-5.1", ""}, {upstream.Responses, "gpt-5.6", "medium"}} {
		t.Run(tt.model, func(t *testing.T) {
			n := 0
			p := newPlay(t, upstream.Options{Script: upstream.Loop(33, 2200, nil), Fault: func(r upstream.Record) *upstream.Fault {
				if !bytes.Contains(r.Body, []byte("[Extract of the conversation")) || n == 2 {
					return nil
				}
				n++
				return &upstream.Fault{Status: http.StatusBadRequest}
			}}, upstream.Client{API: tt.api, Model: tt.model, Thinking: tt.thinking, Session: "s"}, nil)
			if _, err := p.client.Say(t.Context(), task); err != nil {
				t.Fatal(err)
			}
			for _, r := range p.vendor.Records() {
				if r.Rule != "" && r.Rule != "fault" {
					t.Errorf("refused: %s: %s", r.Rule, r.Error)
				}
			}
			if s := p.Stats(); n == 0 || n != s.Errors["retry_refused"] {
				t.Errorf("%d refusals, %+v", n, s)
			}
		})
	}
}

// What the client itself does wrong is refused in the vendor's words, and what we made of the conversation stays.
func TestClientsFaultIsRefused(t *testing.T) {
	wrong := false
	p := newPlay(t, upstream.Options{Script: upstream.Loop(40, 2200, nil), Fault: func(upstream.Record) *upstream.Fault {
		if wrong {
			return &upstream.Fault{Status: http.StatusBadRequest}
		}
		return nil
	}}, upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Session: "s"}, nil)
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	epochs, sent := p.Stats().EpochCount, len(p.vendor.Turns())
	wrong = true
	if _, err := p.client.Say(t.Context(), "more"); !errors.Is(err, upstream.ErrRefused) || epochs == 0 {
		t.Fatalf("got %v after %d epochs", err, epochs)
	}
	wrong = false
	if _, _, err := p.client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	turns := p.vendor.Turns()
	if last, before := turns[len(turns)-1], turns[sent-1]; last.Tokens > before.Tokens+1000 || p.Stats().EpochCount != epochs {
		t.Errorf("%d tokens were sent, before %d; %d epochs, before %d", last.Tokens, before.Tokens, p.Stats().EpochCount, epochs)
	}
}

// faulty is a strategy that does what a test wants.
func faulty(do core.ProviderFunc) *condense.Options {
	o := withWindow(window)
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return do, nil })}
	o.Values.Chain = []string{"faulty"}
	return o
}

// Whatever the chain does, the agent's loop goes on: when the window forces it, the built-in chain
// does the work.
func TestFaultsOfTheChain(t *testing.T) {
	testkit.Slow(t)
	for name, do := range map[string]core.ProviderFunc{
		"panics":  func(context.Context, *core.Request) (*core.Result, error) { panic("a fault") },
		"fails":   func(context.Context, *core.Request) (*core.Result, error) { return nil, errors.New("a fault") },
		"is slow": func(ctx context.Context, _ *core.Request) (*core.Result, error) { <-ctx.Done(); return nil, ctx.Err() },
		"breaks pairs": func(_ context.Context, r *core.Request) (*core.Result, error) {
			return &core.Result{Messages: r.Messages[2:]}, nil
		},
		"grows": func(_ context.Context, r *core.Request) (*core.Result, error) {
			return &core.Result{Messages: append(slices.Clone(r.Messages), core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Repeat("more ", 1000))}})}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			vendor := upstream.New(upstream.Options{Window: window, Script: agentLoop})
			v := httptest.NewServer(vendor)
			defer v.Close()
			g, s := serveWith(t, v.URL, faulty(do), func(o *live.Options) { o.Bounds.Deadline = 50 * time.Millisecond })
			c := claude("s")
			c.URL = s.URL
			if _, err := c.Say(t.Context(), task); err != nil {
				t.Fatalf("%v; %+v", err, g.Stats())
			}
			for _, r := range vendor.Refusals() {
				t.Errorf("refused: %s: %s", r.Rule, r.Error)
			}
			if got := g.Stats(); len(vendor.Breaks()) > got.EpochCount || got.EpochCount == 0 {
				t.Errorf("%d breaks, %+v", len(vendor.Breaks()), got)
			}
		})
	}
}

// A store that cannot write: nothing is sent that would be forgotten. The vendor's window is
// larger than the configured one, so that the conversation can go on.
func TestStoreThatCannotWrite(t *testing.T) {
	testkit.Slow(t)
	vendor := upstream.New(upstream.Options{Window: 500_000, Script: upstream.Loop(90, 2200, nil)})
	v := httptest.NewServer(vendor)
	t.Cleanup(v.Close)
	h, err := condense.Open(t.Context(), withWindow(window))
	if err != nil {
		t.Fatal(err)
	}
	broken := &brokenStore{Store: inMemory(t)}
	g, err := live.NewWith(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}}}, broken)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g)
	t.Cleanup(func() { s.Close(); _ = g.Close(); _ = h.Close() })
	p := &play{Gateway: g, vendor: vendor, server: s}
	c := claude("s")
	c.URL = s.URL
	p.client = &c
	p.begin(t)
	p.untilEpoch(t, 1)
	broken.full.Store(true)
	epochs := p.Stats().EpochCount
	for range 25 {
		p.step(t)
	}
	if got := p.Stats(); got.EpochCount != epochs || got.Errors["commit"] == 0 {
		t.Errorf("got %+v", got)
	}
	broken.full.Store(false)
	p.untilEpoch(t, epochs+1)
	if got := vendor.Breaks(); len(got) > p.Stats().EpochCount {
		t.Errorf("%d breaks in %d epochs", len(got), p.Stats().EpochCount)
	}
}

// inMemory returns a store that stays open when a gateway closes it, for the next one.
func inMemory(tb testing.TB) store.Store {
	tb.Helper()
	s, err := store.Memory(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return lasting{s}
}

type lasting struct{ store.Store }

func (lasting) Close() error { return nil }

type brokenStore struct {
	store.Store
	full atomic.Bool
}

func (s *brokenStore) Save(ctx context.Context, r *store.Record) error {
	if s.full.Load() {
		return fmt.Errorf("%w: no space left on device", store.ErrFile)
	}
	return s.Store.Save(ctx, r)
}

func (s *brokenStore) Keep(ctx context.Context, r *store.Record, k *store.Kept, maxBytes int64) error {
	if s.full.Load() {
		return fmt.Errorf("%w: no space left on device", store.ErrFile)
	}
	return s.Store.Keep(ctx, r, k, maxBytes)
}

// A chain that asks a model works next to the requests: none of them waits for it. It begins at the share of the size that is set.
func TestModelsWorkInTheBackground(t *testing.T) {
	usual, soon := modelAt(t, 0), modelAt(t, 30)
	if soon > usual/2 || soon < 3*usual/10 {
		t.Errorf("the model was asked with %d tokens at 30 percent, with %d at the usual 85", soon, usual)
	}
}

// modelAt plays until an epoch that a model has made begins, and returns the size at which it was asked.
func modelAt(t *testing.T, prepare float64) (size int) {
	t.Helper()
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(200, 1500, nil)})
	v := httptest.NewServer(vendor)
	defer v.Close()
	hold := make(chan struct{})
	asked := make(chan int, 100)
	o := withWindow(window)
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return &asking{func(ctx context.Context, r *core.Request) (*core.Result, error) {
				asked <- r.Tokens()
				select {
				case <-hold:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				n := len(r.Messages)
				return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
			}}, nil
		})}
	o.Values.Chain = []string{"faulty"}
	g, s := serveWith(t, v.URL, o, func(o *live.Options) { o.Epoch.IgnorePayback, o.Epoch.Prepare = true, prepare })
	c := claude("s")
	c.URL = s.URL
	p := &play{Gateway: g, vendor: vendor, server: s, client: &c}
	p.begin(t)
	for len(asked) == 0 {
		p.step(t)
		testkit.Eventually(t, "the model is asked, or nothing is prepared", func() bool { return len(asked) > 0 || !live.Preparing(g) })
	}
	p.step(t) // goes on while the model thinks
	if n := g.Stats().EpochCount; n != 0 {
		t.Errorf("%d epochs before the model has answered", n)
	}
	close(hold)
	testkit.Eventually(t, "the epoch that was prepared is used", func() bool {
		p.step(t)
		return g.Stats().EpochCount == 1
	})
	if got := vendor.Breaks(); len(got) > 1 {
		t.Errorf("%d breaks", len(got))
	}
	for _, r := range vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
	return <-asked
}

// When the vendor would refuse the request, it waits for the model that is at work, and what that has made is sent.
func TestForcedEpochWaitsForTheModel(t *testing.T) {
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(60, 1500, nil)})
	v := httptest.NewServer(vendor)
	defer v.Close()
	hold, asked := make(chan struct{}), make(chan struct{}, 100)
	o := withWindow(window)
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return &asking{func(_ context.Context, r *core.Request) (*core.Result, error) {
				asked <- struct{}{}
				<-hold
				n := len(r.Messages)
				kept := core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })
				said := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("by the model")}}
				return &core.Result{Messages: slices.Insert(kept, 1, said)}, nil
			}}, nil
		})}
	o.Values.Chain = []string{"faulty"}
	g, s := serveWith(t, v.URL, o, func(o *live.Options) { o.Epoch.IgnorePayback = true })
	c := claude("s")
	c.URL = s.URL
	steps := make(chan error)
	go func() {
		defer close(steps)
		c.History = []object{first(upstream.Messages, task)}
		for g.Stats().EpochCount == 0 {
			_, _, err := c.Step(t.Context())
			steps <- err
		}
	}()
	for held := true; held; {
		select {
		case err, more := <-steps:
			if err != nil || !more {
				t.Fatalf("an epoch without the model, %v", err)
			}
		case <-time.After(200 * time.Millisecond): // the agent waits
			held = len(asked) == 0
		}
	}
	close(hold)
	for err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := vendor.Turns(); !bytes.Contains(got[len(got)-1].Body, []byte("by the model")) {
		t.Error("what the model made is not sent")
	}
	if errs := g.Stats().Errors; len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
}

type asking struct{ core.ProviderFunc }

func (*asking) EstimateCost(context.Context, *core.Request) (core.Usage, error) {
	return core.Usage{Calls: 1, InputTokens: 1000}, nil
}
