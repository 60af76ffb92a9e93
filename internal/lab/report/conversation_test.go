package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// newDocument returns a conversation of n messages, the second of which is hidden.
func newDocument(t *testing.T, n int, text string) (*transcript.Document, *tokens.Counter) {
	t.Helper()
	j := history.New()
	for i := range n {
		m := core.Message{ID: strconv.Itoa(i), Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
		if err := j.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	edit := core.Edit{Hide: []string{"1"}, Rewrite: []core.Rewrite{{ID: "2", Parts: []core.Part{core.Text("shorter")}}}}
	if err := j.Condense(history.Condensation{ID: "c", Provider: "some" + hostile, Edit: edit}); err != nil {
		t.Fatal(err)
	}
	encoding, err := tokens.Open("chars4")
	if err != nil {
		t.Fatal(err)
	}
	return &transcript.Document{Format: "condense", System: "be brief", Journal: j}, tokens.NewCounter(encoding)
}

func TestWriteConversation(t *testing.T) {
	d, counter := newDocument(t, 500, hostile)
	var b bytes.Buffer
	tables := []report.Table{{Title: "By tool", Columns: []report.Column{{Name: "tool"}, {Name: "calls", Number: true}}, Rows: [][]any{{hostile, 12345}}}}
	if err := report.WriteConversation(&b, d, counter, &report.ConversationOptions{Name: hostile, Tables: tables}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Count(page, "<script>") != 1 || strings.Contains(page, "<img") {
		t.Error("text of the conversation is in the page as it was")
	}
	for _, s := range []string{`<td data-v="12345">12,345</td>`, "500 messages", "499 messages"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %s", s)
		}
	}
	var data struct {
		Series []struct {
			At     int
			Tokens map[tokens.Kind]int
		}
		Items []struct{ State string }
	}
	if err := json.Unmarshal([]byte(blocks(t, page)["data"]), &data); err != nil {
		t.Fatal(err)
	}
	if n := len(data.Series); n != 400 {
		t.Errorf("the figure has %d points, want 400", n)
	}
	first, last := data.Series[0], data.Series[len(data.Series)-1]
	each := core.MessageTokens(counter, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(hostile)}})
	if got, want := last.Tokens[tokens.KindUser], 500*each; first.At != 0 || last.At != 500 || got != want {
		t.Errorf("the figure goes from %d to %d messages and ends at %d tokens, want 0, 500, %d", first.At, last.At, got, want)
	}
	if got := data.Items[0].State + data.Items[1].State + data.Items[2].State; got != "kepthiddenrewritten" {
		t.Errorf("the first messages are %s", got)
	}
}

// A page that would be too large shortens long texts, and says so.
func TestWriteConversationBound(t *testing.T) {
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprint(&text, i*i, " ")
	}
	d, counter := newDocument(t, 5, text.String())
	var b bytes.Buffer
	if err := report.WriteConversation(&b, d, counter, &report.ConversationOptions{MaxText: 100}); err != nil {
		t.Fatal(err)
	}
	if page := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(page, "of 5 texts longer than 250 bytes") {
		t.Error("the page does not say what it leaves out")
	}
}

// A conversation without messages is a page too.
func TestWriteConversationEmpty(t *testing.T) {
	encoding, err := tokens.Open("chars4")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.WriteConversation(&b, &transcript.Document{Journal: history.New()}, tokens.NewCounter(encoding), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "0 messages, 0 tokens") {
		t.Error("the page does not say that there is nothing")
	}
}
