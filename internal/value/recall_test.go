package value_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value"
)

var anyHandle = regexp.MustCompile(`h:[0-9a-f]{10}`)

// TestNoHandles: without a way to recall, no text has a handle, also not in place of a picture; later condensations
// read the marks, and take the handles out of those of former ones.
func TestNoHandles(t *testing.T) {
	messages := screenshots()
	room := tokensOf(messages) / 4
	with := shortenWith(t, messages, room, value.Options{})
	for i := range with {
		if with[i].ID == "" {
			with[i].ID = "extract"
		}
	}
	for _, tt := range []struct {
		messages []core.Message
		none     *regexp.Regexp
	}{{messages, anyHandle}, {with, regexp.MustCompile(`(image|document) h:`)}} {
		got := viewText(shortenWith(t, tt.messages, room*2/3, value.Options{NoHandles: true}))
		if h := tt.none.FindString(got); h != "" || !strings.Contains(got, "[… image]") {
			t.Errorf("%q in:\n%s", h, got)
		}
	}
}

// TestRecallsHaveNoHandles: neither calls of recall nor their results get handles of their own.
func TestRecallsHaveNoHandles(t *testing.T) {
	messages := reading(40)
	own := map[string]bool{}
	for i := range messages {
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if i%6 == 1 {
					p.Name, p.Args = "mcp__condense__recall", fmt.Sprintf(`{"handle":"%010x"}`, i)
					messages[i].Parts[j] = p
					own[core.Handle(p)], own[core.Handle(messages[i+1].Parts[0])] = true, true
				}
			default:
			}
		}
	}
	got := viewText(shortenWith(t, messages, tokensOf(messages)/8, value.Options{}))
	all := anyHandle.FindAllString(got, -1)
	if len(own) == 0 || len(all) == 0 {
		t.Fatalf("%d recalls, %d handles in\n%s", len(own), len(all), got)
	}
	for _, h := range all {
		if own[strings.TrimPrefix(h, "h:")] {
			t.Errorf("%s is of a recall", h)
		}
	}
}

// TestSavedOutput: the file in which an agent saved a result that was too large stays, however old it is.
func TestSavedOutput(t *testing.T) {
	for _, form := range []string{
		"<persisted-output>\nOutput too large (88.1KB). Full output saved to: %s\n\nPreview (first 2KB):\n",
		"The tool call succeeded but the output was truncated. Full output saved to: %s\n",
		"[Showing lines 1-20 of 5000. Full output: %s]\n",
	} {
		messages := reading(60)
		result, ok := messages[8].Parts[0].(core.ToolResult)
		if !ok {
			t.Fatal("not a result")
		}
		const path = "/home/me/.claude/projects/x/tool-results/b81.txt"
		result.Content = []core.Part{core.Text(fmt.Sprintf(form, path) + string(result.Content[0].(core.Text)))} //nolint:forcetypeassert // a text
		messages[8].Parts[0] = result
		for _, share := range []int{10, 20} {
			if got := viewText(shortenWith(t, messages, tokensOf(messages)/share, value.Options{NoHandles: true})); !strings.Contains(got, path) {
				t.Errorf("1/%d: the path is missing in\n%.800s", share, got)
			}
		}
	}
}
