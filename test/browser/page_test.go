package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// The secrets of the user, and of the agent's tool.
const (
	orders = "the user's secret"
	recall = "secret-0123456789"
)

// A gateway with a window of 60,000 tokens, its pages, and the vendor behind it.
type gateway struct {
	*live.Gateway

	server, admin *httptest.Server
	broken        atomic.Bool // the vendor refuses the key
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	window := 60_000
	host, err := condense.Open(t.Context(), &condense.Options{Values: &config.Values{DefaultProfile: "small", Profiles: map[string]config.ProfileValues{
		"small": {Window: &window},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	watch, err := online.New(t.Context(), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watch.Close() })
	g := &gateway{}
	vendor := httptest.NewServer(upstream.New(upstream.Options{
		Window: window, Script: upstream.Loop(120, 6000, map[int]string{3: hostile}), SubAgents: upstream.Loop(9, 5000, nil),
		Fault: func(upstream.Record) *upstream.Fault {
			if g.broken.Load() {
				return &upstream.Fault{Status: http.StatusUnauthorized}
			}
			return nil
		},
	}))
	t.Cleanup(vendor.Close)
	g.Gateway, err = live.New(host, &live.Options{
		Access:    live.Access{Orders: orders},
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor.URL}}, Epoch: live.EpochOptions{Risk: 100},
		Reports: live.Reports{Watch: watch, Pages: watch.Pages("", func() live.Stats { return g.Stats() })},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	g.server, g.admin = httptest.NewServer(g.Gateway), httptest.NewServer(g.Admin())
	t.Cleanup(g.server.Close)
	t.Cleanup(g.admin.Close)
	return g
}

// client is an agent of a session, or a sub-agent.
func (g *gateway) client(session, agent string) *upstream.Client {
	return &upstream.Client{
		API: upstream.Messages, Model: "claude-opus-5-5", Stream: true, Session: session, Agent: agent, URL: g.server.URL,
		System: "You are an agent. Use the tool.\nWorking directory: /home/me/" + session,
		Tools:  []string{"mcp__condense__recall", "mcp__condense__search"},
		Header: http.Header{"X-Condense-Recall": {recall}, "User-Agent": {"claude-cli/2.1.332 (external, cli)"}},
	}
}

// say is a message of the person.
func say(text string) map[string]any {
	return map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}}
}

// listed are the conversations as the page asks for them.
func (g *gateway) listed(t *testing.T) []*control.Conversation {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, g.admin.URL+"/condense/live", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Condense-Token", orders)
	w := httptest.NewRecorder()
	g.Admin().ServeHTTP(w, r)
	var got struct{ Conversations []*control.Conversation }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return got.Conversations
}

var handle = regexp.MustCompile(`\bh:([0-9a-f]{10})\b`)

// recallOne has the agent's tool give back what the last request of a client names.
func (g *gateway) recallOne(t *testing.T, c *control.Conversation) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, g.admin.URL+"/condense/live/"+c.ID, nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Condense-Token", orders)
	w := httptest.NewRecorder()
	g.Admin().ServeHTTP(w, r)
	var v control.View
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	for _, m := range v.Messages {
		found := handle.FindStringSubmatch(m.Text)
		if m.Hidden || found == nil {
			continue
		}
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"handle":%q}}}`, found[1])
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.server.URL+"/recall/"+recall+"/mcp", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return
	}
	t.Fatalf("no handle in %d messages", len(v.Messages))
}

// play goes on until the main conversation has n epochs.
func (g *gateway) play(t *testing.T, c *upstream.Client, done func(*control.Conversation) bool) *control.Conversation {
	t.Helper()
	for range 150 {
		if _, _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, o := range g.listed(t) {
			if o.Session == c.Session && (o.SubAgent == "") == (c.Agent == "") && done(o) {
				return o
			}
		}
	}
	t.Fatal("it did not happen in 150 requests")
	return nil
}

// looked checks what must hold of the page at every moment, in both widths and schemes, and takes pictures.
func looked(t *testing.T, tb *tab, page, name string) {
	t.Helper()
	for _, width := range []int64{1280, 390} {
		height := int64(844)
		if width > 1000 {
			height = 900
		}
		tb.do(t, chromedp.EmulateViewport(width, height))
		for _, scheme := range []string{"light", "dark"} {
			tb.media(t, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
			tb.do(t, chromedp.Navigate(page))
			until[bool](t, tb, `document.querySelector("h1") !== null`)
			if got := evaluate[int](t, tb, `document.scrollingElement.scrollWidth`); got > int(width) {
				wide := evaluate[[]string](t, tb, fmt.Sprintf(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > %d && !e.closest(".scroll")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`, width+1))
				t.Errorf("%s: %d pixels wide on a screen of %d: %q", name, got, width, wide)
			}
			dark := evaluate[bool](t, tb, `(() => { const [r, g, b] = getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number); return r + g + b < 200; })()`)
			if dark != (scheme == "dark") {
				t.Errorf("%s: dark is %t in the %s scheme", name, dark, scheme)
			}
			if evaluate[bool](t, tb, `"broken" in window`) {
				t.Errorf("%s: a text ran as a script", name)
			}
			if strings.Contains(page, "#epoch") {
				until[bool](t, tb, `document.querySelector(".diff details") !== null`)
			}
			tb.do(t, chromedp.EmulateViewport(width, max(height, evaluate[int64](t, tb, `document.scrollingElement.scrollHeight`))))
			shot(t, tb, fmt.Sprintf("page-%s-%d-%s", name, width, scheme))
			tb.do(t, chromedp.EmulateViewport(width, height))
		}
	}
	tb.media(t)
	tb.do(t, chromedp.EmulateViewport(1400, 1000))
}

// TestPage looks at the page of a gateway at six moments of its conversations.
func TestPage(t *testing.T) {
	g := newGateway(t)
	tb := openTab(t)
	tb.own = g.admin.URL + "/condense/"
	home := g.admin.URL + "/condense/"
	tb.do(t, chromedp.Navigate(home+"#key="+url.QueryEscape(orders)))
	tb.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`sessionStorage.setItem("condense-orders", %q)`, orders)))

	looked(t, tb, home, "1-empty")
	if got := evaluate[string](t, tb, `document.querySelector(".empty").textContent`); !strings.HasPrefix(got, "Nothing has come through yet") {
		t.Errorf("without a request the page says %q", got)
	}

	main := g.client("shop", "")
	main.History = append(main.History, say("Fix the checkout. "+hostile))
	g.play(t, main, func(*control.Conversation) bool { return true })
	looked(t, tb, home, "2-first")
	title := evaluate[string](t, tb, `document.querySelector(".card .title a").textContent`)
	if !strings.HasPrefix(title, "shop · Fix the checkout. </script><script>") {
		t.Errorf("the title is %q", title)
	}
	// The threshold and the window are in the picture before anything is condensed.
	for _, level := range []string{"window", "due"} {
		if !evaluate[bool](t, tb, fmt.Sprintf(`(() => { const svg = document.querySelector("svg.curve"), l = svg.querySelector("line.%s"); return l && l.getBoundingClientRect().top >= svg.getBoundingClientRect().top; })()`, level)) {
			t.Errorf("no line of the %s in the first picture", level)
		}
	}

	c := g.play(t, main, func(c *control.Conversation) bool { return c.DueIn == 1 })
	looked(t, tb, home, "3-near")
	one := home + "conversations/" + c.Branches[0]
	looked(t, tb, one, "3-near-one")
	if evaluate[bool](t, tb, `document.querySelector("button[data-do=undo]") !== null`) {
		t.Error("there is a button to undo, and nothing to undo")
	}

	c = g.play(t, main, func(c *control.Conversation) bool { return c.Epochs == 1 })
	g.recallOne(t, c)
	looked(t, tb, home, "4-one")
	looked(t, tb, one+"?#epoch-1", "4-one-epoch")

	sub := g.client("shop", "sub-1")
	sub.History = append(sub.History, say("Look for the tests of the checkout."))
	g.play(t, sub, func(c *control.Conversation) bool { return c.Messages > 8 })
	c = g.play(t, main, func(c *control.Conversation) bool { return c.Epochs == 2 })
	g.recallOne(t, c)
	g.recallOne(t, c)
	g.play(t, main, func(c *control.Conversation) bool { return c.Epochs == 3 })
	other := g.client("site", "")
	other.History = append(other.History, say("Write the imprint."))
	g.play(t, other, func(c *control.Conversation) bool { return c.Messages > 12 })
	looked(t, tb, home, "5-three")
	looked(t, tb, one+"?#epoch-2", "5-three-epoch")

	g.broken.Store(true)
	for range 3 {
		if _, _, err := main.Step(t.Context()); err == nil {
			t.Fatal("a refused request has an answer")
		}
	}
	looked(t, tb, home, "6-errors")
	looked(t, tb, one, "6-errors-one")
}

// TestPageNamesWhatFailed: what fails is at the top, since when, and what to do; what is over is folded away, and an epoch says who made it
// in whose place.
func TestPageNamesWhatFailed(t *testing.T) {
	watch, err := online.New(t.Context(), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Close() }()
	now := time.Now()
	watch.Turn(&live.Turn{Time: now, Conversation: "C1", Agent: "claude", Model: hostile, Messages: 1, Tokens: 300, History: 1000, Window: 2000, Epoch: &live.Epoch{
		Time: now, Reason: "window", Before: 1000, After: 300, Provider: "truncation", Fallback: true, Cause: "y failed: " + hostile, WordsLost: 1240,
	}})
	watch.Later("C1", now, live.Finding{Truth: &live.Truth{Sentences: 1200, SentencesGone: 2}})
	watch.Later("C1", now, live.Finding{Recalled: 50, Pieces: []live.Recalled{{What: "result of " + hostile, Handle: "0123456789", Count: 1, Tokens: 50}}})
	old := now.Add(-24 * time.Hour)
	all := http.NewServeMux()
	all.Handle("/", watch.Pages("", func() live.Stats {
		return live.Stats{
			Requests: 8, Since: old, Pending: "condense.yaml:1: " + hostile,
			Attempts:    []live.Attempt{{Provider: "y", Outcome: "failed", Mode: "main", Count: 3, Reason: "exit status 7", Last: now}},
			Unreachable: []live.Unreachable{{Upstream: "anthropic", Address: "http://127.0.0.1:9", Count: 8, Reason: "connection refused", Last: old}},
			Failures:    []live.Failure{{Kind: "vendor_4xx", Count: 7, Reason: "401 invalid x-api-key", Status: 401, Since: old, Last: now}},
			Windows:     []live.Window{{Model: "own", From: live.WindowNotKnown, Tokens: 200_000}},
		}
	}))
	all.HandleFunc("GET /condense/live", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"conversations":[],"known":true}`))
	})
	pages := httptest.NewServer(all)
	defer pages.Close()
	tb := openTab(t)
	tb.own = pages.URL + "/condense/"
	looked(t, tb, tb.own, "7-failures")
	text := until[string](t, tb, `document.querySelector(".note.warn")?.textContent`)
	for _, has := range []string{"What fails", "The vendor refused, 7 times since", "401 invalid x-api-key → check the key", "y failed, 3 times", "exit status 7", "The window of own is not known, and 200,000 tokens are assumed. → ", "condense.yaml:1: </script>"} {
		if !strings.Contains(text, has) {
			t.Errorf("no %q in %q", has, text)
		}
	}
	if got := evaluate[string](t, tb, `document.querySelector("#earlier").textContent`); !strings.Contains(got, "What failed earlier: 1") || !strings.Contains(got, "anthropic could not be reached, 8 times") {
		t.Errorf("what is over is told as %q", got)
	}
	tb.do(t, chromedp.Navigate(tb.own+"conversations/C1#epoch-1"))
	text = until[string](t, tb, `document.querySelector("#epoch-1[open] .recalled")?.closest("details").textContent`)
	for _, has := range []string{"in place of another", "Condensed by truncation in place of another provider: y failed: </script>", "1,240 tokens of the user’s words were left out", "2 of 1,200 sentences of the user are gone", "result of </script>", "h:0123456789", "once"} {
		if !strings.Contains(text, has) {
			t.Errorf("no %q in %q", has, text)
		}
	}
	if evaluate[bool](t, tb, `"broken" in window`) {
		t.Error("a name ran as a script")
	}
}
