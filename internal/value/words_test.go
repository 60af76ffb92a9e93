package value_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// TestRequestBeforeRules: where the system prompt leaves little, the requests of the user are kept before the rules of the
// project, and the newest one is a message.
func TestRequestBeforeRules(t *testing.T) {
	system := core.Message{Role: core.RoleSystem, Parts: []core.Part{core.Text(strings.Repeat("Be kind. ", 2000))}}
	messages := uniqueCalls(slices.Concat([]core.Message{
		system, coretest.User(core.Text(withRules["Codex"](rules("now", 300)))),
		coretest.User(core.Text("Move the importer, but do not touch the public API.")),
	}, session(30)[1:], []core.Message{coretest.User(core.Text("Merge it if there is no problem."))}))
	for _, left := range []int{80, 120, 200, 400, 800} {
		got := shorten(t, messages, tokensOf(messages[:1])+left).Messages
		if !strings.Contains(text(got), "do not touch the public API.") || !strings.HasSuffix(strings.TrimSpace(text(got)), "Merge it if there is no problem.") {
			t.Errorf("with room for %d tokens the requests are gone:\n%.1500s", left, text(got[1:]))
		}
	}
}

// TestPastedTextKeepsItsBeginning: of a text that the user pasted no line is kept without the first one, and what is
// missing has a mark, also after another condensation.
func TestPastedTextKeepsItsBeginning(t *testing.T) {
	var b strings.Builder
	b.WriteString("Replace every raw code in these rows.\n")
	for i := range 400 {
		b.WriteString("- row: the heron of walrus" + strings.Repeat("x", i%7) + " counts parseHeader again and again\n")
	}
	b.WriteString("No underscore may appear in screen 1.")
	messages := said("Ok.", b.String(), "Go on.", "And on.")
	for _, share := range []int{40, 20, 10} {
		got := messages
		for range 2 {
			got = coretest.Conversation(slices.Clone(shorten(t, got, tokensOf(messages)/share).Messages)...)
			all := text(got)
			first := strings.Index(all, "Replace every raw code")
			for _, part := range []string{"- row: the heron", "No underscore may appear"} {
				if at := strings.Index(all, part); at >= 0 && (first < 0 || at < first) {
					t.Errorf("1/%d: %q is there without the beginning:\n%.1500s", share, part, all)
				}
			}
			if first >= 0 && strings.Count(all, "- row: ") < 400 && !strings.Contains(all[first:], value.GapMark) {
				t.Errorf("1/%d: no mark:\n%.1500s", share, all)
			}
		}
	}
}

// TestSaid: the words of the user are counted in messages and in quotes, once for each time that they were said.
func TestSaid(t *testing.T) {
	messages := said("Never delete table 12.", "不要改动这个目录下的文件。", "go on", "go on", "Look at this. And then at that.")
	res := shorten(t, messages, tokensOf(messages)/6)
	if was, left := value.Said(messages, res.Messages, coretest.Counter{}); was == 0 || left != was {
		t.Errorf("%d of %d tokens are left, want all", left, was)
	}
	once := slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return strings.Contains(text([]core.Message{m}), "table 12") })
	was, left := value.Said(messages, once, coretest.Counter{})
	if gone := (coretest.Counter{}).Count(core.Text("Never delete table 12.")); was-left < gone-2 || was-left > gone+2 {
		t.Errorf("%d tokens are gone, want %d", was-left, gone)
	}
}
