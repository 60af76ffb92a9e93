package browser_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// TestGateway opens the pages of a gateway while a conversation goes on.
func TestGateway(t *testing.T) {
	window := 60_000
	host, err := condense.Open(t.Context(), &condense.Options{Values: &config.Values{DefaultProfile: "small", Profiles: map[string]config.ProfileValues{
		"small": {Window: &window},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	watch, err := online.New(t.Context(), "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := watch.Close(); err != nil {
			t.Error(err)
		}
	}()
	vendor := httptest.NewServer(upstream.New(upstream.Options{Window: window, Script: upstream.Loop(40, 6000, map[int]string{3: hostile})}))
	defer vendor.Close()
	var g *live.Gateway
	g, err = live.New(host, &live.Options{
		Access:    live.Access{Orders: "the user's secret"},
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor.URL}}, Epoch: live.EpochOptions{Risk: 100},
		Reports: live.Reports{
			Watch: watch,
			Pages: watch.Pages("", func() live.Stats { return g.Stats() }),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	server, admin := httptest.NewServer(g), httptest.NewServer(g.Admin())
	defer server.Close()
	defer admin.Close()

	// The page is open before the first request, and follows what happens.
	tb := openTab(t)
	tb.own = admin.URL + "/condense/"
	tb.do(t, chromedp.Navigate(admin.URL+"/condense/"))
	until[bool](t, tb, `document.querySelector("#conversations") !== null`)
	tb.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector('a[href="#epochs"]').focus(); window.same = true; void 0`))
	client := upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Stream: true, Session: "s", URL: server.URL}
	if _, err := client.Say(t.Context(), "Read all the files. "+hostile); err != nil {
		t.Fatal(err)
	}
	until[bool](t, tb, `document.querySelector('section[aria-labelledby="epochs"] td:not(.none)') !== null`)
	if !evaluate[bool](t, tb, `window.same && document.activeElement.getAttribute("href") === "#epochs"`) {
		t.Error("the page was loaded again, or lost the focus, instead of being brought up to date")
	}

	// The first screen: a sentence, six numbers, and the curve of the conversation with its epoch and the button that undoes it.
	tb.do(t, chromedp.Navigate(admin.URL+"/condense/"))
	if got := evaluate[string](t, tb, `document.querySelector(".verdict").textContent`); !strings.HasPrefix(got, "1 epoch in 1 conversation ") {
		t.Errorf("the sentence is %q", got)
	}
	if got := evaluate[int](t, tb, `[...document.querySelectorAll("main dd")].filter((e) => e.checkVisibility()).length`); got != 6 {
		t.Errorf("%d numbers are shown, want 6", got)
	}
	if !evaluate[bool](t, tb, `(() => { const b = document.querySelector("button[data-do=undo]").getBoundingClientRect(); return b.height > 0 && b.bottom < innerHeight })()`) {
		t.Error("the button that undoes is not on the first screen")
	}
	shot(t, tb, "overview")
	tb.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector(".curve a").focus(); void 0`), chromedp.KeyEvent("\r"))
	until[bool](t, tb, `location.hash === "#epoch-1" && document.querySelector(".curve polyline.sent")?.getBoundingClientRect().width > 100`)
	shot(t, tb, "conversation")

	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	overview := admin.URL + "/condense/"
	one := evaluate[string](t, tb, `location.origin + location.pathname`)
	for _, page := range []string{overview, one} {
		for _, scheme := range []string{"light", "dark"} {
			tb.media(t, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
			tb.do(t, chromedp.Navigate(page))
			violations(t, tb, string(axe), `{}`, scheme+" "+page)
		}
		tb.do(t, chromedp.EmulateViewport(390, 844), chromedp.Navigate(page))
		if got := evaluate[int](t, tb, `document.scrollingElement.scrollWidth`); got > 390 {
			t.Errorf("%s is %d pixels wide on a screen of 390", page, got)
		}
		tb.do(t, chromedp.EmulateViewport(1400, 1000))
	}
	// The buttons direct the conversation, also with the keyboard: it is paused and resumed, and its last condensation undone with its
	// next request.
	tb.do(t, chromedp.Navigate(one))
	press := func(button, said string) {
		t.Helper()
		tb.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`window.confirm = (text) => { window.asked = text; return true; }; window.prompt = () => "the user's secret"; document.querySelector('button[data-do=%q]').focus(); void 0`, button)), chromedp.KeyEvent("\r"))
		until[bool](t, tb, fmt.Sprintf(`document.getElementById("said").textContent.startsWith(%q)`, said))
	}
	conversation := func() *control.Conversation {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, admin.URL+"/condense/live", nil)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		g.Admin().ServeHTTP(w, r)
		var got struct{ Conversations []*control.Conversation }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Conversations) != 1 {
			t.Fatalf("%d conversations, %v: %s", len(got.Conversations), err, w.Body)
		}
		return got.Conversations[0]
	}
	if press("pause", "It is condensed only where"); !conversation().Paused {
		t.Error("the button pauses nothing")
	}
	// The first order of a page has no secret, and is refused: the browser says so, once.
	tb.mu.Lock()
	said := len(tb.faults)
	tb.faults = slices.DeleteFunc(tb.faults, func(f string) bool { return strings.HasSuffix(f, "status of 403 (Forbidden)") })
	if said != len(tb.faults)+1 {
		t.Errorf("%d faults before and %d after an order without the secret", said, len(tb.faults))
	}
	tb.mu.Unlock()
	if press("resume", "It is condensed as ever"); conversation().Paused {
		t.Error("the button resumes nothing")
	}
	press("now", "It is condensed before its next request")
	until[bool](t, tb, `document.querySelector(".next").textContent === "Next epoch: with the next request"`)
	if _, err := client.Say(t.Context(), "Go on."); err != nil {
		t.Fatal(err)
	}
	if o := conversation().LastOrder; o == nil || !o.Changed {
		t.Errorf("the button condenses nothing: %+v", o)
	}
	press("undo", "Its last condensation is undone")
	if !evaluate[bool](t, tb, `window.asked.startsWith("The next request sends about")`) {
		t.Error("an undo does not say what it costs")
	}
	if o := conversation().Order; o == nil || o.Do != session.OrderUndo {
		t.Errorf("the button undoes nothing: %+v", o)
	}

	if !evaluate[bool](t, tb, `window.broken === undefined`) {
		t.Error("a text of the conversation ran as a script")
	}
}
