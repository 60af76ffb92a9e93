package smart_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/providers/smart"
)

// TestShortenedKeepsItsTags: a program's element in a message of the user that is cut, or goes for a newer copy, keeps both of its tags,
// in the next condensation, too: without them its text, or its mark, is the person's for a model.
func TestShortenedKeepsItsTags(t *testing.T) {
	t.Parallel()
	var tools strings.Builder
	for i := range 60 {
		fmt.Fprintf(&tools, "mcp__server%d__tool_%d\n", i%7, i)
	}
	list := tools.String()
	for name, element := range map[string]string{
		"list":              "<system-reminder>\nThese deferred tools are available:\n" + list + "</system-reminder>",
		"on one line":       "<system-reminder>" + strings.ReplaceAll(list, "\n", ", ") + "</system-reminder>",
		"with attributes":   "<task-notification id=\"3\">\n" + list + "</task-notification>",
		"beside its tags":   "<local-command-stdout>" + strings.Repeat("something was printed here\n", 50) + "</local-command-stdout>",
		"that nobody knows": "<DEFERRED_TOOLS>\n" + list + "</DEFERRED_TOOLS>",
	} {
		for _, joined := range []bool{false, true} {
			said := func(i int) core.Message {
				words := fmt.Sprintf("Now go on with part %d.", i)
				if joined {
					return coretest.User(core.Text(element + "\n" + words))
				}
				return coretest.User(core.Text(element), core.Text(words))
			}
			m := []core.Message{said(0)}
			for i := range 10 {
				id := fmt.Sprint("c", i)
				m = append(m, coretest.Assistant(core.ToolCall{ID: id, Name: "Bash", Args: fmt.Sprintf(`{"command":"go test ./p%d"}`, i)}),
					coretest.User(coretest.Result(id, strings.Repeat(fmt.Sprintf("line of package %d says something long\n", i), 30))))
				if i%2 == 1 {
					m = append(m, coretest.Assistant(core.Text("Done so far.")), said(i))
				}
			}
			messages := coretest.Conversation(m...)
			for _, share := range []int{10, 20, 70} {
				checkTags(t, name, messages, share)
			}
		}
	}
}

func checkTags(t *testing.T, name string, view []core.Message, share int) {
	t.Helper()
	p, err := smart.New(smart.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		req := coretest.Request(view, 0)
		req = coretest.Request(view, req.Tokens()*share/100)
		req.Typed = dialog.Typed
		res, err := p.Condense(t.Context(), req)
		if err != nil {
			return
		}
		view = res.Messages
		for i := range view {
			if view[i].ID == "" {
				view[i].ID = fmt.Sprint("new", round, i)
			}
			if view[i].Role != core.RoleUser || view[i].Kind != core.KindOriginal {
				continue
			}
			for _, part := range view[i].Parts {
				text, _ := part.(core.Text)
				opens, closes := strings.Count(string(text), "<"), strings.Count(string(text), "</")
				if opens != 2*closes || strings.Contains(string(text), "…") && closes == 0 {
					t.Errorf("%s, at %d %%, round %d: %.200q", name, share, round, text)
				}
			}
		}
		core.Measure(req.Counter, view)
	}
}
