package live_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// compact asks for a compaction as Codex does, and makes of the history what Codex makes of it: what the user said, and the item.
func (p *play) compact(t *testing.T) (item object) {
	t.Helper()
	history := slices.Clone(p.client.History)
	p.client.History = append(slices.Clip(history), object{"type": "compaction_trigger"})
	if _, _, err := p.client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := p.client.History[len(history)+1:]
	if len(got) != 1 || got[0]["type"] != "compaction" {
		t.Fatalf("%d items instead of one compaction: %v", len(got), got)
	}
	history = slices.DeleteFunc(history, func(o object) bool { return o["role"] != "user" })
	p.client.History = append(history, got[0])
	return got[0]
}

func codex(stream bool) upstream.Client {
	return upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: stream, Session: "s1"}
}

func sealed(item object) string {
	s, _ := item["encrypted_content"].(string)
	return s
}

// An upstream that refuses to compact, that takes no notice of it, or that is not asked: the client gets exactly one compaction, and
// goes on with it. The vendor never sees it, and its cache serves what follows.
func TestCompactionInPlaceOfTheVendor(t *testing.T) {
	testkit.Slow(t)
	for _, tt := range []struct {
		vendor string
		who    live.Compaction
		asked  int // requests that ask the vendor to compact
	}{{"refuse", "", 2}, {"refuse", live.CompactAuto, 2}, {"ignore", live.CompactAuto, 2}, {"", live.CompactGateway, 0}} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.vendor, "/", tt.who, "/stream=", stream), func(t *testing.T) {
				needle := "the needle 8f31c9 of the first result"
				script := upstream.Loop(45, 2200, nil)
				c := codex(stream)
				c.Run = func(command string) string {
					if command == script[0].Commands[0] {
						return needle + "\n" + upstream.Output(command)
					}
					return upstream.Output(command)
				}
				p := newPlay(t, upstream.Options{Script: script, NoCompaction: tt.vendor}, c, func(o *live.Options) {
					o.Upstreams.Compaction = map[string]live.Compaction{"openai": tt.who}
				})
				p.steps(t, 12)
				before := p.client.Prompt
				for n := range 2 {
					item := p.compact(t)
					p.steps(t, 4)
					last := string(p.lastBody())
					if strings.Contains(last, sealed(item)) || strings.Contains(last, "compaction") {
						t.Fatal("the vendor has seen the item")
					}
					if n == 0 && !strings.Contains(last, needle) {
						t.Error("the condensed history has lost its first lines")
					}
					if got := strings.Count(last, `"Read all the files, one after the other."`); got != 1 {
						t.Errorf("the user's words are there %d times", got)
					}
				}
				if p.client.Prompt >= before {
					t.Errorf("%d tokens before and %d after two compactions", before, p.client.Prompt)
				}
				for _, r := range p.vendor.Refusals() {
					if r.Rule != "compaction" {
						t.Errorf("%s: %s", r.Rule, r.Error)
					}
				}
				asked := 0
				for _, r := range p.vendor.Records() {
					if bytes.Contains(r.Body, []byte("compaction_trigger")) {
						asked++
					}
				}
				if got := p.Stats().Compactions; got != 2 || asked != tt.asked {
					t.Errorf("%d compactions, the vendor was asked %d times", got, asked)
				}
				if got := p.vendor.Breaks(); len(got) > 2 {
					t.Errorf("the prefix broke %d times: %+v", len(got), got)
				}
			})
		}
	}
}

// The other mode: the upstream answers, whatever it says.
func TestCompactionIsTheVendors(t *testing.T) {
	p := newPlay(t, upstream.Options{NoCompaction: "refuse"}, codex(true), func(o *live.Options) {
		o.Upstreams.Compaction = map[string]live.Compaction{"openai": live.CompactUpstream}
	})
	p.steps(t, 4)
	p.client.History = append(p.client.History, object{"type": "compaction_trigger"})
	if _, _, err := p.client.Step(t.Context()); err == nil || !strings.Contains(err.Error(), "Invalid value: 'compaction_trigger'") {
		t.Errorf("got %v", err)
	}
}

// POST /v1/responses/compact of an upstream that does not have it.
func TestCompactEndpoint(t *testing.T) {
	p := newPlay(t, upstream.Options{}, codex(false), nil)
	p.steps(t, 12)
	var request object
	if err := json.Unmarshal(p.client.Body, &request); err != nil {
		t.Fatal(err)
	}
	delete(request, "stream")
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := post(t, p.server.URL+"/v1/responses/compact", "Bearer dummy", body)
	var got struct {
		Object string
		Output []object
	}
	if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusOK || got.Object != "response.compaction" || len(got.Output) != 1 || got.Output[0]["type"] != "compaction" {
		t.Fatalf("%v: %d %.300s", err, status, answer)
	}
	p.client.History = []object{got.Output[0], first(upstream.Responses, "Go on.")}
	p.steps(t, 3)
	for _, r := range p.vendor.Refusals() {
		if r.Rule != "path" {
			t.Errorf("%s: %s", r.Rule, r.Error)
		}
	}
}

func post(t *testing.T, url, key string, body []byte) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", key)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// An item is opened by every gateway with the same store, to the same bytes; not for others, and not for ever.
func TestSealedCompaction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.db")
	with := func(o *live.Options) { o.Store.Path = file }
	p := newPlay(t, upstream.Options{NoCompaction: "refuse"}, codex(true), with)
	p.steps(t, 12)
	item := p.compact(t)
	p.steps(t, 1)
	here := p.lastBody()

	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	_, other := serveWith(t, v.URL, withWindow(window), with)
	if status, answer := post(t, other.URL+"/v1/responses", "Bearer dummy", p.client.Body); status != http.StatusOK {
		t.Fatalf("the second instance: %d %s", status, answer)
	}
	if !bytes.Equal(p.lastBody(), here) {
		t.Error("two instances send other bytes")
	}

	good := sealed(item)
	_, stranger := serveWith(t, v.URL, withWindow(window), nil) // another store
	late := time.Now().Add(366 * 24 * time.Hour)
	_, old := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { with(o); o.Now = func() time.Time { return late } })
	reached := len(p.vendor.Records())
	for name, tt := range map[string]struct{ url, key, content, want string }{
		"of another tenant": {other.URL, "Bearer other", good, "made for another key"},
		"of another store":  {stranger.URL, "Bearer dummy", good, "another store"},
		"changed":           {other.URL, "Bearer dummy", good[:len(good)-8] + "AAAAAAAA", "changed on the way"},
		"cut off":           {other.URL, "Bearer dummy", good[:40], "changed on the way"},
		"no base64":         {other.URL, "Bearer dummy", "condense-1.§", "changed on the way"},
		"of the future":     {other.URL, "Bearer dummy", strings.Replace(good, "condense-1.", "condense-2.", 1), "newer version"},
		"too old":           {old.URL, "Bearer dummy", good, "older than a year"},
	} {
		t.Run(name, func(t *testing.T) {
			body := bytes.Replace(p.client.Body, []byte(good), []byte(tt.content), 1)
			status, answer := post(t, tt.url+"/v1/responses", tt.key, body)
			var e struct {
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal(answer, &e); err != nil || status != http.StatusBadRequest || e.Error.Type != "invalid_request_error" || !strings.Contains(e.Error.Message, tt.want) {
				t.Errorf("%v: %d %s", err, status, answer)
			}
		})
	}
	if n := len(p.vendor.Records()) - reached; n > 0 {
		t.Errorf("the vendor saw %d of these requests", n)
	}
	t.Run("of the vendor", func(t *testing.T) {
		v := newVendor(t)
		_, s := serve(t, v, nil)
		body := []byte(`{"model":"gpt-5.6","input":[{"role":"user","content":"a"},{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAAcondense-1."}]}`)
		if status, answer := post(t, s.URL+"/v1/responses", "Bearer dummy", body); status != http.StatusOK || !bytes.Equal(v.last(t).body, body) {
			t.Errorf("%d %s: %s", status, answer, v.last(t).body)
		}
	})
}

// What is before a sealed item is in it: a client may keep all of it, or nothing.
func TestSealedCompactionAfterAWholeHistory(t *testing.T) {
	p := newPlay(t, upstream.Options{NoCompaction: "refuse"}, codex(true), nil)
	p.steps(t, 12)
	whole := slices.Clone(p.client.History)
	item := p.compact(t)
	p.steps(t, 1)
	want := p.lastBody()
	p.client.History = append(whole, item)
	p.steps(t, 1)
	if !bytes.Equal(p.lastBody(), want) {
		t.Error("what the vendor gets depends on what the client keeps from before the item")
	}
	for _, r := range p.vendor.Refusals() {
		if r.Rule != "compaction" {
			t.Errorf("%s: %s", r.Rule, r.Error)
		}
	}
}

// No one can make a gateway open what it has not sealed, whatever it is sent.
func FuzzUnseal(f *testing.F) {
	g, err := live.NewWith(hostOf(f), nil, inMemory(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close() })
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	message := []byte(`{"role":"user","content":"a"}`)
	good, err := live.Seal(g, "t", [][]byte{message}, now)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{good, good + "A", good[:len(good)-1], "condense-1.", "condense-", "condense-1.AAAA", strings.ToUpper(good)} {
		f.Add(s, "t")
		f.Add(s, "other")
	}
	f.Fuzz(func(t *testing.T, sealed, tenant string) {
		got, err := live.Unseal(g, tenant, sealed, now)
		if (err == nil) != (sealed == good && tenant == "t") {
			t.Errorf("%q of %q: %v", sealed, tenant, err)
		}
		if err == nil && (len(got) != 1 || !bytes.Equal(got[0], message)) {
			t.Errorf("got %q", got)
		}
	})
}

func hostOf(f *testing.F) *condense.Host {
	f.Helper()
	h, err := condense.Open(f.Context(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = h.Close() })
	return h
}

// TestCompactionsDoNotGrow: Codex' newest models send their tools and prompts as items, and again in front of a compaction. The
// gateway's compaction holds none of them and is always shorter than the history, whatever window the gateway takes the model
// to have, so the conversation never grows from one compaction to the next.
func TestCompactionsDoNotGrow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const most = 30_000 // tokens, from which the client asks
	prompts := []object{
		{"type": "additional_tools", "role": "developer", "tools": []any{object{"type": "custom", "name": "exec", "description": strings.Repeat("a tool ", 3000)}}},
		{"type": "message", "role": "developer", "content": strings.Repeat("a prompt ", 2000)},
		{"type": "message", "role": "developer", "content": "another prompt"},
	}
	for _, vendor := range []string{"refuse", "ignore"} {
		for _, window := range []int{60_000, 1_050_000} {
			t.Run(fmt.Sprint(vendor, "/", window), func(t *testing.T) {
				t.Parallel()
				p := playIn(t, window, upstream.Options{Window: 300_000, Script: upstream.Loop(60, 6000, nil), NoCompaction: vendor}, codex(true), nil)
				p.client.History = append(slices.Clone(prompts), first(upstream.Responses, "Read all the files, one after the other."))
				compactions, after := 0, 0
				for range 50 {
					p.steps(t, 1)
					body := p.lastBody()
					if n := bytes.Count(body, []byte(`"additional_tools"`)); n != 1 {
						t.Fatalf("%d copies of the tools", n)
					}
					if n := bytes.Count(body, []byte(`"another prompt"`)); n != 1 {
						t.Fatalf("%d copies of a prompt", n)
					}
					if after == 0 {
						if after = p.client.Prompt; compactions > 0 && after > most*4/5 {
							t.Errorf("compaction %d left %d tokens", compactions, after)
						}
					}
					if p.client.Prompt < most {
						continue
					}
					p.compact(t)
					p.client.History = append(slices.Clone(prompts), p.client.History...)
					compactions, after = compactions+1, 0
				}
				if compactions < 2 || compactions > 8 || p.client.Prompt > most+5_000 {
					t.Errorf("%d compactions, at the end %d tokens", compactions, p.client.Prompt)
				}
			})
		}
	}
}

// What the vendor has compacted stays as it is, and the gateway condenses what the agent does after it: an extract before the item would
// be lost with a vendor that ignores what is there.
func TestEpochAfterTheVendorsCompaction(t *testing.T) {
	testkit.Slow(t)
	p := newPlay(t, upstream.Options{Script: upstream.Loop(60, 2200, nil)}, codex(true), nil)
	p.steps(t, 6)
	item, _ := p.compact(t)["encrypted_content"].(string)
	p.steps(t, 1)
	before, after, _ := bytes.Cut(p.lastBody(), []byte(item))
	p.steps(t, 40)
	got, rest, found := bytes.Cut(p.lastBody(), []byte(item))
	if !found || !bytes.Equal(got, before) || bytes.HasPrefix(rest, after[:len(after)-2]) {
		t.Errorf("before the item: %.300s\nwas: %.300s\nafter it: %.300s", got, before, rest)
	}
	if got := p.Stats().EpochCount; got < 2 {
		t.Errorf("%d epochs", got)
	}
	if got := p.vendor.Refusals(); len(got) > 0 {
		t.Errorf("refused: %+v", got)
	}
	if p.client.Prompt >= window {
		t.Errorf("%d tokens at the end", p.client.Prompt)
	}
}
