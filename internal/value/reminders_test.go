package value_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestShortenedRemindersKeepTheirTags: what is left of a program's text in a user message stays between its tags, and no later
// condensation takes it for the user's.
func TestShortenedRemindersKeepTheirTags(t *testing.T) {
	reminder := func(i, lines int) core.Part {
		var b strings.Builder
		fmt.Fprintf(&b, "<system-reminder>\n# Notes %d\n\nNever ask before deleting branches %d.\n", i, i)
		for k := range lines {
			fmt.Fprintf(&b, "- guideline %d.%d: prefer the house style for module %d\n", i, k, 7*k+i)
		}
		return core.Text(b.String() + "</system-reminder>")
	}
	first := coretest.User(reminder(0, 10), reminder(1, 1), reminder(2, 20), reminder(3, 20), reminder(4, 12), reminder(5, 40), core.Text("Check the warehouse. Never delete stock."))
	messages := []core.Message{first}
	for k := range 14 {
		var b strings.Builder
		for i := range 110 {
			fmt.Fprintf(&b, "%5d→def stock_%d_%d(x): return lookup(x, %d)\n", i+1, k, i, i*k)
		}
		id := fmt.Sprint("c", k)
		messages = append(messages, coretest.Assistant(core.ToolCall{ID: id, Name: "Read", Args: fmt.Sprintf(`{"file_path":"/src/w%d.py"}`, k)}), coretest.User(coretest.Result(id, b.String())))
	}
	messages = coretest.Conversation(messages...)
	tagged := regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
	for share := 2; share <= 12; share++ {
		left := shorten(t, messages, tokensOf(messages)*share/14).Messages
		for i := range left {
			if left[i].ID == "" {
				left[i].ID = fmt.Sprint("extract", i)
			}
		}
		for round := range 2 {
			for i := range left {
				for _, p := range left[i].Parts {
					text, ok := p.(core.Text)
					if !ok || left[i].Role != core.RoleUser {
						continue
					}
					under := ""
					for line := range strings.Lines(tagged.ReplaceAllString(string(text), "")) {
						if strings.HasPrefix(line, "¶") {
							under = line
						}
						program := strings.Contains(line, "Never ask before") || strings.Contains(line, "guideline")
						if program && (left[i].Kind == core.KindOriginal || strings.HasPrefix(under, "¶ user")) {
							t.Errorf("share %d/14, round %d: %q is the user's", share, round, line)
						}
					}
				}
			}
			left = shorten(t, left, tokensOf(left)*2/3).Messages
		}
	}
}
