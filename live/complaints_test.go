package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// These tests are complaints of users of other proxies. Each is a promise here.

type object = map[string]any

// claudeCode is a client that sends what Claude Code does.
func claudeCode() upstream.Client {
	return upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Stream: true, Session: "s1", Header: http.Header{"User-Agent": {"claude-cli/2.1.330 (external, cli)"}}}
}

// clients are one for each API.
func clients() []upstream.Client {
	return []upstream.Client{
		claudeCode(),
		{API: upstream.Chat, Model: "gpt-5.4", Stream: true, Session: "s1"},
		{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: true, Session: "s1"},
	}
}

// everyAPI are clients of all APIs.
func everyAPI() []upstream.Client {
	return append(clients(), upstream.Client{API: upstream.Gemini, Model: "gemini-3-pro-preview", Session: "s1"})
}

// say plays to the end.
func (p *play) say(t *testing.T) {
	t.Helper()
	if _, err := p.client.Say(t.Context(), "Read all the files, one after the other."); err != nil {
		t.Fatal(err)
	}
}

// steps sends n requests of a conversation that has begun.
func (p *play) steps(t *testing.T, n int) {
	t.Helper()
	if len(p.client.History) == 0 {
		p.client.History = []object{first(p.client.API, "Read all the files, one after the other.")}
	}
	for range n {
		if _, _, err := p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func first(api upstream.API, text string) object {
	switch api {
	case upstream.Messages:
		return object{"role": "user", "content": []any{object{"type": "text", "text": text}}}
	case upstream.Gemini:
		return object{"role": "user", "parts": []any{object{"text": text}}}
	case upstream.Converse:
		return object{"role": "user", "content": []any{object{"text": text}}}
	case upstream.Chat, upstream.Responses:
	}
	return object{"role": "user", "content": text}
}

var unmarked = strings.NewReplacer(`"cache_control":{"type":"ephemeral"},`, "", `,"cache_control":{"type":"ephemeral"}`, "",
	`,{"cachePoint":{"type":"default"}}`, "")

// elements are the messages of a body, without cache markers.
func elements(t *testing.T, body []byte) []string {
	t.Helper()
	var out []string
	for _, m := range rawElements(t, body) {
		out = append(out, unmarked.Replace(string(m)))
	}
	return out
}

// rawElements are the messages or items of a body.
func rawElements(t *testing.T, body []byte) []json.RawMessage {
	t.Helper()
	var o struct{ Messages, Input, Contents []json.RawMessage }
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(o.Messages, o.Input, o.Contents)
}

// epochs are the numbers of the turns at which the history became another one.
func (p *play) epochs(t *testing.T) (turns []upstream.Record, at map[int]bool) {
	t.Helper()
	at = map[int]bool{}
	turns = p.vendor.Turns()
	var before []string
	for i := range turns {
		after := elements(t, turns[i].Body)
		for k := range before {
			if k >= len(after) || before[k] != after[k] {
				at[i] = true
			}
		}
		before = after
	}
	return turns, at
}

// 1: the proxy turns cache reads into writes: costs are a multiple, 0 % is saved.
func TestComplaint01CacheReads(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	cost := func(v *upstream.Vendor) (sum float64) {
		for _, r := range v.Turns() {
			u := r.Usage
			sum += 0.1*float64(u.CacheRead) + 1.25*float64(u.CacheWrite) + float64(u.Prompt-u.CacheRead-u.CacheWrite)
		}
		return sum
	}
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			alone := upstream.New(upstream.Options{Window: 1_000_000, Script: agentLoop})
			s := httptest.NewServer(alone)
			defer s.Close()
			direct := c
			direct.URL = s.URL
			if _, err := direct.Say(t.Context(), "Read all the files, one after the other."); err != nil {
				t.Fatal(err)
			}
			p := newPlay(t, upstream.Options{}, c, nil)
			p.say(t)
			p.check(t, 1)
			if with, without := cost(p.vendor), cost(alone); with >= without {
				t.Errorf("costs %.0f, without condense %.0f", with, without)
			}
		})
	}
}

// 2: recompression in the background changes bytes that were already sent: the same conversation leaves as the same bytes, whenever
// it is sent.
func TestComplaint02SameBytes(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			p := newPlay(t, upstream.Options{}, c, func(o *live.Options) { o.Now = func() time.Time { return now } })
			p.steps(t, 40)
			for range 3 {
				now = now.Add(time.Second)
				history := append([]object(nil), p.client.History...)
				p.steps(t, 1)
				p.client.History = history
			}
			if p.Stats().EpochCount == 0 {
				t.Fatal("no epoch")
			}
			all := p.vendor.Records()
			last := all[len(all)-1]
			for _, r := range all[len(all)-3:] {
				if r.Sum != last.Sum {
					t.Errorf("request %d differs from %d", r.N, last.N)
				}
			}
		})
	}
}

// 3: enabled, but nothing is condensed: a cache marker on the newest block, or a system prompt with a text that always changes.
func TestComplaint03SomethingIsCondensed(t *testing.T) {
	c := claudeCode()
	c.Thinking, c.Model = "", "claude-opus-5"
	p := newPlay(t, upstream.Options{}, c, nil)
	for i := range 46 {
		p.client.System = fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.330.%03x; cch=%05x;\nYou are an agent.", i, 7*i)
		p.steps(t, 1)
	}
	if n := p.Stats().EpochCount; n == 0 || n > 5 {
		t.Errorf("%d epochs", n)
	}
	for _, r := range p.vendor.Refusals() {
		t.Errorf("%s: %s", r.Rule, r.Error)
	}
	if n := len(p.vendor.Turns()); n != 46 {
		t.Errorf("%d turns", n)
	}
}

// 4: older messages are squeezed harder as the conversation grows, so the prefix drifts: between epochs a request begins with the
// bytes of the one before it.
func TestComplaint04NoDrift(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, upstream.Options{Script: upstream.Loop(60, 2200, nil)}, c, nil)
			p.say(t)
			if _, at := p.epochs(t); len(at) != p.Stats().EpochCount || len(at) < 2 {
				t.Errorf("the bytes changed %d times in %d epochs", len(at), p.Stats().EpochCount)
			}
		})
	}
}

// 5: two levers together break the freeze: shortening new results and condensing the history.
func TestComplaint05TwoLevers(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, upstream.Options{}, c, func(o *live.Options) { o.Ingest.MaxResult = 350 })
			p.say(t)
			p.check(t, 0)
			if p.Stats().Ingested == 0 {
				t.Error("no result was shortened")
			}
			if _, at := p.epochs(t); len(at) != p.Stats().EpochCount {
				t.Errorf("the bytes changed %d times in %d epochs", len(at), p.Stats().EpochCount)
			}
		})
	}
}

// 6: a restart makes the cache cold, because what was sent is only in the memory of the process.
func TestComplaint06Restart(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "live.db")
			p := newPlay(t, upstream.Options{}, c, func(o *live.Options) { o.Store.Path = file })
			v := httptest.NewServer(p.vendor)
			defer v.Close()
			p.steps(t, 30)
			epochs := p.Stats().EpochCount
			if epochs == 0 {
				t.Fatal("no epoch before the restart")
			}
			before := len(p.vendor.Breaks())
			p.server.Close()
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			_, again := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { o.Store.Path = file })
			p.client.URL = again.URL
			p.steps(t, 1)
			if n := len(p.vendor.Breaks()) - before; n != 0 {
				t.Errorf("%d breaks of the prefix by a restart", n)
			}
			turns := p.vendor.Turns()
			last := turns[len(turns)-1]
			if last.Usage.CacheRead*10 < last.Ideal*9 || last.Tokens > window {
				t.Errorf("after the restart: %+v, ideal %d", last.Usage, last.Ideal)
			}
		})
	}
}

// 7: sub-agents share the session's identifier, and their conversations get mixed up.
func TestComplaint07SubAgents(t *testing.T) {
	testkit.Slow(t)
	const agents = 8
	p := newPlay(t, upstream.Options{Script: upstream.Loop(25, 2200, nil)}, claudeCode(), nil)
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() {
			c := claudeCode()
			c.URL, c.Agent = p.server.URL, fmt.Sprintf("agent-%d", i)
			if i == 0 {
				c.Agent = "" // the main one
			}
			if _, err := c.Say(t.Context(), fmt.Sprintf("Your name is unit<%d>. Read all the files.", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	p.check(t, agents)
	for _, r := range p.vendor.Turns() {
		own := strings.TrimPrefix(r.Agent, "agent-")
		if own == "" {
			own = "0"
		}
		for i := range agents {
			if has := bytes.Contains(r.Body, fmt.Appendf(nil, "unit<%d>", i)); has != (strconv.Itoa(i) == own) {
				t.Errorf("agent %s: request %d names %d: %v", own, r.N, i, has)
			}
		}
	}
}

// 8: a text promises a tool for what was left out, which the agent cannot call.
func TestComplaint08NoPromises(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		p := newPlay(t, upstream.Options{}, c, nil)
		p.say(t)
		p.check(t, 1)
		for _, r := range p.vendor.Turns() {
			if bytes.Contains(r.Body, []byte("recall")) {
				t.Fatalf("%s: request %d promises recall: %.200s", c.API, r.N, r.Body[bytes.Index(r.Body, []byte("recall"))-80:])
			}
		}
	}
}

// 9: pairs of calls and results are corrupted, those of the vendor's own tools too.
func TestComplaint09Pairs(t *testing.T) {
	testkit.Slow(t)
	c := claudeCode()
	c.Thinking, c.Model = "", "claude-opus-5"
	p := newPlay(t, upstream.Options{}, c, nil)
	for i := range 46 {
		if i%5 == 2 { // the model searched by itself
			id := fmt.Sprintf("srvtoolu_%02d", i)
			p.client.History = append(p.client.History,
				object{"role": "assistant", "content": []any{
					object{"type": "server_tool_use", "id": id, "name": "web_search", "input": object{"query": "x"}},
					object{"type": "web_search_tool_result", "tool_use_id": id, "content": []any{object{"type": "web_search_result", "url": "https://example.com", "title": "Example", "encrypted_content": "c2VhbGVk"}}},
					object{"type": "text", "text": "I have looked it up."},
				}}, first(c.API, "Go on."))
		}
		p.steps(t, 1)
	}
	p.check(t, 1)
}

// 10: thinking no longer fits its prefix, and the agent's recovery is not reached: after an epoch thinking goes on, and what the
// vendor says about the client's own edit reaches the client.
func TestComplaint10Thinking(t *testing.T) {
	testkit.Slow(t)
	for _, thinking := range []string{"adaptive", "enabled"} {
		c := claudeCode()
		if c.Thinking = thinking; thinking == "enabled" {
			c.Model = "claude-sonnet-4-5"
		}
		p := newPlay(t, upstream.Options{}, c, nil)
		p.say(t)
		p.check(t, 1)
		turns, at := p.epochs(t)
		for i := range turns {
			if n := bytes.Count(turns[i].Body, []byte(`"type":"thinking"`)); i > 0 && n == 0 && !at[i] {
				t.Errorf("%s: request %d, no epoch, has no thinking", thinking, turns[i].N)
			}
		}
	}
	p := newPlay(t, upstream.Options{}, claudeCode(), nil)
	p.steps(t, 4)
	p.client.History[0] = first(upstream.Messages, "Another beginning.")
	_, _, err := p.client.Step(t.Context())
	if err == nil || !strings.Contains(err.Error(), "The block is bound to a different conversation. Remove the block, or set") {
		t.Errorf("got %v", err)
	}
	if r := p.vendor.Records(); r[len(r)-1].N != 5 {
		t.Errorf("%d requests: the client's own fault was tried again", len(r))
	}
}

// 11: Codex's compaction dies: its request reaches the vendor as it is, the item comes back, and the session goes on with it.
func TestComplaint11Compaction(t *testing.T) {
	p := newPlay(t, upstream.Options{}, clients()[2], nil)
	p.steps(t, 40)
	if p.Stats().EpochCount == 0 {
		t.Fatal("no epoch")
	}
	history := p.client.History
	p.client.History = append(slices.Clip(history), object{"type": "compaction_trigger"})
	p.steps(t, 1)
	records := p.vendor.Records()
	if last := records[len(records)-1]; last.Side != "compaction" || last.Tokens > window {
		t.Errorf("side call %q, %d tokens", last.Side, last.Tokens)
	}
	item := p.client.History[len(p.client.History)-1]
	if item["type"] != "compaction" {
		t.Fatalf("got %v", item)
	}
	p.client.History = []object{item, first(upstream.Responses, "Go on.")}
	p.steps(t, 3)
	for _, r := range p.vendor.Refusals() {
		t.Errorf("%s: %s", r.Rule, r.Error)
	}
}

// 12: condensing takes half a minute, times out, and then the original is sent after all: a slow strategy delays nothing for
// longer than its deadline.
func TestComplaint12SlowStrategy(t *testing.T) {
	testkit.Slow(t) // the deadline also limits the chain that helps, on a busy machine too
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	slow := registry.Define("slow", "Does not end.", func() struct{} { return struct{}{} }, func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
			<-ended
			return nil, errors.New("the test is over")
		}), nil
	})
	host := withWindow(window)
	host.Strategies = []registry.Strategy{slow}
	host.Values.Providers = map[string]config.ProviderValues{"slow": {Strategy: "slow"}}
	small := host.Values.Profiles["small"]
	small.Chain = []string{"slow"}
	host.Values.Profiles["small"] = small
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(9, 15_000, nil)}) // few requests, of which some wait
	v := httptest.NewServer(vendor)
	defer v.Close()
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline = 3 * time.Second })
	c := claudeCode()
	c.URL = s.URL
	p := &play{g, vendor, &c, s}
	p.say(t)
	for _, r := range vendor.Refusals() {
		t.Errorf("%s: %s", r.Rule, r.Error)
	}
	if p.Stats().EpochCount == 0 {
		t.Error("the built-in chain did not help")
	}
}

// 13: answers are collected before they are passed on: what the vendor has sent is there during its silence.
func TestComplaint13NothingIsCollected(t *testing.T) {
	for _, c := range clients() {
		stall := make(chan struct{})
		p := newPlay(t, upstream.Options{Fault: func(upstream.Record) *upstream.Fault { return &upstream.Fault{At: 300, Stall: stall} }}, c, nil)
		c = *p.client
		c.History = []object{first(c.API, "Read.")}
		arrived := make(chan int, 1)
		c.HTTP = &http.Client{Transport: &eager{at: 300, reached: arrived}}
		done := make(chan error, 1)
		go func() { _, _, err := c.Step(t.Context()); done <- err }()
		select {
		case <-arrived:
		case <-time.After(testkit.Patience(t)):
			t.Fatal("nothing arrived before the silence")
		}
		close(stall)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// An eager transport reports when so many bytes of the answer have arrived.
type eager struct {
	at      int
	reached chan int
}

func (e *eager) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		res.Body = &counted{res.Body, e, 0}
	}
	return res, err
}

type counted struct {
	body interface {
		Read([]byte) (int, error)
		Close() error
	}
	e *eager
	n int
}

func (c *counted) Close() error { return c.body.Close() }

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.body.Read(b)
	if c.n += n; c.n >= c.e.at && c.n-n < c.e.at {
		c.e.reached <- c.n
	}
	return n, err
}

// 14: what the agent reads is cut silently, it reads again, and the ledger calls the loss a saving: a result is whole when the model
// sees it first, and what is reported as saved was not sent.
func TestComplaint14ResultsAreWhole(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			var last string
			c.Run = func(command string) string {
				last = upstream.Output(command)
				return last
			}
			p := newPlay(t, upstream.Options{}, c, nil)
			for i := range 45 {
				want := last
				p.steps(t, 1)
				records := p.vendor.Records()
				whole, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				if want != "" && !bytes.Contains(records[len(records)-1].Body, whole) {
					t.Fatalf("request %d: the newest result is not whole", i+1)
				}
			}
			s, sent := p.Stats(), 0
			for _, r := range p.vendor.Turns() {
				sent += r.Usage.Prompt
			}
			if s.Tokens.Sent != sent || s.Tokens.Saved != s.Tokens.Received-s.Tokens.Sent {
				t.Errorf("sent %d: %+v", sent, s.Tokens)
			}
		})
	}
}

// 15: the user's own words are rewritten, a fifth cache marker is added, identifiers of the client are removed.
func TestComplaint15LeftAlone(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const words = "Fix this bug in the library source – it is only  a “one-liner”, and don't touch tests."
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			t.Parallel()
			c.Agent = "agent-7"
			c.Header = http.Header{"X-Client-Request-Id": {"request-1"}, "X-Codex-Window-Id": {"s1:0"}, "Anthropic-Beta": {"b, a", "c"}, "User-Agent": {"claude-cli/2.1.330"}}
			p := newPlay(t, upstream.Options{}, c, nil)
			p.client.System = "Be careful."
			if _, err := p.client.Say(t.Context(), words); err != nil {
				t.Fatal(err)
			}
			p.check(t, 1)
			for _, r := range p.vendor.Records() {
				if !bytes.Contains(r.Body, []byte(words)) {
					t.Fatalf("request %d does not have the user's words: %s", r.N, strings.Join(elements(t, r.Body), "\n"))
				}
				for name, values := range c.Header {
					if strings.Join(r.Header.Values(name), "|") != strings.Join(values, "|") {
						t.Errorf("%s: got %q, want %q", name, r.Header.Values(name), values)
					}
				}
				if r.Agent != c.Agent || r.Session != "s1" {
					t.Errorf("session %q, agent %q", r.Session, r.Agent)
				}
			}
		})
	}
}
