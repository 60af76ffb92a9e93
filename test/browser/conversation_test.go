package browser_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// TestConversation opens the page of one conversation that was condensed once.
func TestConversation(t *testing.T) {
	tb := openTab(t)
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	j := history.New()
	var hide []string
	for i := range 40 {
		m := core.Message{ID: fmt.Sprintf("m%d", i), Role: core.RoleUser, Parts: []core.Part{core.Text(fmt.Sprintf("number %d %s", i, hostile))}}
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		if err := j.Append(m); err != nil {
			t.Fatal(err)
		}
		if i > 0 && i < 30 {
			hide = append(hide, m.ID)
		}
	}
	summary := core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("so far: " + hostile)}}
	edit := core.Edit{
		Hide: hide, Insert: []core.Insert{{After: "m0", Message: summary}},
		Rewrite: []core.Rewrite{{ID: "m30", Parts: []core.Part{core.Text("shorter")}}},
	}
	if err := j.Condense(history.Condensation{ID: "c", Provider: "<b>x</b>", TokensBefore: 100, TokensAfter: 50, Edit: edit}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteConversation(&b, &transcript.Document{Format: "condense", Journal: j}, tokens.NewCounter(encoding), &report.ConversationOptions{Name: hostile}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "conversation.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.navigate(t, file, "")
	for state, want := range map[string]int{"kept": 10, "hidden": 29, "new": 1, "rewritten": 1} {
		if got := evaluate[int](t, tb, fmt.Sprintf(`document.querySelectorAll(".messages > li.%s").length`, state)); got != want {
			t.Errorf("%d messages are %s, want %d", got, state, want)
		}
	}
	// What went and what stands for it are beside each other, when a stretch is opened.
	tb.do(t, chromedp.Focus(chromedp.CSS(".stretches details summary")), chromedp.KeyEvent("\r"))
	until[bool](t, tb, `document.querySelectorAll(".stretches .messages").length === 2`)
	if got := evaluate[[]int](t, tb, `[...document.querySelectorAll(".stretches .messages")].map((l) => l.children.length)`); got[0] != 29 || got[1] != 2 {
		t.Errorf("%d messages went and %d stand for them, want 29 and 2", got[0], got[1])
	}
	tb.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector(".stretches details").open = false; document.querySelector(".stretches .versions").replaceChildren(); void 0`))
	until[bool](t, tb, `document.querySelector("#timeline-figure svg") !== null`)
	tb.do(t, chromedp.Focus(chromedp.CSS(".messages > li.rewritten summary")), chromedp.KeyEvent("\r"))
	text := until[string](t, tb, `[...document.querySelectorAll(".messages > li.rewritten pre")].map((p) => p.textContent).join("|")`)
	if before, after, ok := strings.Cut(text, "|"); !ok || !strings.Contains(before, "number 30") || after != "shorter" {
		t.Errorf("a rewritten message reads %q, want both versions", text)
	}
	if evaluate[bool](t, tb, `"broken" in window`) {
		t.Error("text of the conversation ran as a script")
	}
	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	violations(t, tb, string(axe), "{}", "conversation")
}
