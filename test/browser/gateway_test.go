package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/testkit/peers"
)

// press presses Enter on an element.
func press(t *testing.T, tb *tab, selector string) {
	t.Helper()
	until[bool](t, tb, fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	tb.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).focus(); void 0`, selector)), chromedp.KeyEvent("\r"))
}

// said waits for an answer of the page.
func said(t *testing.T, tb *tab, begins string) {
	t.Helper()
	until[bool](t, tb, fmt.Sprintf(`document.getElementById("said").textContent.startsWith(%q)`, begins))
}

// TestGateway opens the pages of a gateway while a conversation goes on, and directs it with the keyboard.
func TestGateway(t *testing.T) {
	g := newGateway(t)
	tb := openTab(t)
	tb.own = g.admin.URL + "/condense/"
	home := g.admin.URL + "/condense/"

	// The page is open before the first request, and follows what happens.
	tb.do(t, chromedp.Navigate(home))
	until[bool](t, tb, `document.querySelector(".empty") !== null`)
	client := g.client("shop", "")
	client.History = append(client.History, say("Fix the checkout. Keep its \"cart\". "+hostile))
	g.play(t, client, func(*control.Conversation) bool { return true })
	until[bool](t, tb, `document.querySelector(".card") !== null`)
	tb.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector(".card .title a").focus(); window.same = true; void 0`))
	g.play(t, client, func(c *control.Conversation) bool { return c.Epochs == 1 })
	until[bool](t, tb, `document.querySelector("svg.curve a") !== null`)
	if !evaluate[bool](t, tb, `window.same && document.activeElement.matches(".card .title a")`) {
		t.Error("the page was loaded again, or lost the focus, instead of being brought up to date")
	}

	// Without the key of its user the page has no title and no text, and what it asks for is refused. With it, it has.
	if got := evaluate[string](t, tb, `document.querySelector(".card .title").textContent`); got != "claude-code, claude-opus-5-5" {
		t.Errorf("a stranger reads the title %q", got)
	}
	key := func(secret string) {
		tb.do(t, chromedp.SetValue(chromedp.CSS(`form.key input`), secret), chromedp.Focus(chromedp.CSS(`form.key input`)), chromedp.KeyEvent("\r"))
	}
	key("a guess")
	said(t, tb, "That is not the key")
	key(orders)
	until[bool](t, tb, `document.querySelector(".card .title")?.textContent.startsWith("shop · Fix the checkout.") && document.querySelector("form.key") === null`)

	// The search finds it by a word, and forgets the word with Escape; Enter leads to what was found.
	tb.do(t, chromedp.Focus(chromedp.CSS(`#query`)), chromedp.KeyEvent("imprint"))
	until[bool](t, tb, `document.querySelector(".card") === null && document.getElementById("found").textContent === "0 of 1 conversation"`)
	tb.do(t, chromedp.KeyEvent("\u001b"))
	until[bool](t, tb, `document.querySelector(".card") !== null && document.getElementById("query").value === ""`)
	tb.do(t, chromedp.KeyEvent("checkout\r"))
	until[bool](t, tb, `document.activeElement.matches(".card .title a")`)

	// A mark of the curve leads to its epoch, with what went and what stands for it; text is text.
	press(t, tb, "svg.curve a")
	until[bool](t, tb, `location.hash === "#epoch-1" && document.querySelector("#epoch-1 .diff") !== null && document.activeElement.closest("#epoch-1") !== null`)
	press(t, tb, `#epoch-1 .diff .said summary`)
	if got := until[string](t, tb, `document.querySelector("#epoch-1 .diff pre")?.textContent`); !strings.Contains(got, "</script><script>window.broken = 1</script>") || !strings.Contains(got, "⟦U+202E⟧") {
		t.Errorf("the first message that went is shown as %.300q", got)
	}
	one := evaluate[string](t, tb, `location.origin + location.pathname`)

	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{home, one + "?#epoch-1"} {
		for _, scheme := range []string{"light", "dark"} {
			tb.media(t, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
			tb.do(t, chromedp.Navigate(page))
			until[bool](t, tb, `document.querySelector("svg.curve") !== null`)
			violations(t, tb, string(axe), `{}`, scheme+" "+page)
		}
	}
	tb.media(t)

	// The buttons direct the conversation, each only where it does something.
	conversation := func() *control.Conversation { return g.listed(t)[0] }
	tb.do(t, chromedp.Navigate(one))
	press(t, tb, `button[data-do="pause"]`)
	if said(t, tb, "It is condensed only where"); !conversation().Paused {
		t.Error("the button pauses nothing")
	}
	press(t, tb, `button[data-do="resume"]`)
	if said(t, tb, "It is condensed as ever"); conversation().Paused {
		t.Error("the button resumes nothing")
	}
	tb.do(t, chromedp.Focus(chromedp.CSS(`form.protect input`)), chromedp.KeyEvent(`Keep its "cart"`+"\r"))
	if said(t, tb, "It is kept verbatim"); len(conversation().Protections) != 1 || conversation().Protections[0].Text != `Keep its "cart"` {
		t.Errorf("protected are %+v", conversation().Protections)
	}
	until[bool](t, tb, `document.querySelector(".note.warn li")?.textContent.includes("occurs nowhere") || document.querySelector("#said").textContent !== ""`)
	press(t, tb, `button[data-do="unprotect"]`)
	if said(t, tb, "It is no longer"); len(conversation().Protections) != 0 {
		t.Errorf("still protected are %+v", conversation().Protections)
	}
	press(t, tb, `button[data-do="now"]`)
	said(t, tb, "It is condensed before its next request")
	until[bool](t, tb, `document.querySelector(".next").textContent === "Next epoch: with the next request" && document.querySelector("button[data-do=now]") === null`)
	if _, _, err := client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o := conversation().LastOrder; o == nil || o.Do != session.OrderNow {
		t.Errorf("the button condenses nothing: %+v", o)
	}
	// An undo says what it costs. Escape leaves everything as it is.
	press(t, tb, `button[data-do="undo"]`)
	until[bool](t, tb, `document.getElementById("ask").open && document.getElementById("ask-text").textContent.startsWith("The next request sends about")`)
	tb.do(t, chromedp.KeyEvent("\u001b"))
	until[bool](t, tb, `!document.getElementById("ask").open`)
	if o := conversation().Order; o != nil {
		t.Errorf("Escape orders %+v", o)
	}
	press(t, tb, `button[data-do="undo"]`)
	until[bool](t, tb, `document.getElementById("ask").open`)
	tb.do(t, chromedp.Focus(chromedp.CSS(`#ask button[value="yes"]`)), chromedp.KeyEvent("\r"))
	said(t, tb, "Its last condensation is undone")
	if o := conversation().Order; o == nil || o.Do != session.OrderUndo {
		t.Errorf("the button undoes nothing: %+v", o)
	}
	until[bool](t, tb, `document.querySelector("button[data-do=undo]") === null`)
	if _, _, err := client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	until[bool](t, tb, `document.querySelector(".epoch .tag.warn")?.textContent === "undone"`)

	// A second page of the same gateway has its own key, and both go on.
	second := openTab(t)
	second.own = home
	second.do(t, chromedp.Navigate(home+"#key="+strings.ReplaceAll(orders, " ", "%20")))
	until[bool](t, second, `location.hash === "" && document.querySelector(".card .title")?.textContent.startsWith("shop · Fix")`)
	before := evaluate[string](t, second, `document.querySelector(".card svg").getAttribute("aria-label")`)
	if _, _, err := client.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	until[bool](t, second, fmt.Sprintf(`document.querySelector(".card svg").getAttribute("aria-label") !== %q`, before))
	until[bool](t, tb, fmt.Sprintf(`document.querySelector("svg.curve").getAttribute("aria-label") !== %q`, before))

	if !evaluate[bool](t, tb, `window.broken === undefined`) {
		t.Error("a text of the conversation ran as a script")
	}
	tb.mu.Lock()
	tb.faults = slices.DeleteFunc(tb.faults, func(f string) bool { return strings.HasSuffix(f, "status of 403 (Forbidden)") }) // the texts of epochs before the key
	tb.mu.Unlock()
}
