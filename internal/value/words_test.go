package value_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
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
	if was, left := value.Said(new(dialog.Reader), messages, res.Messages, coretest.Counter{}); was == 0 || left != was {
		t.Errorf("%d of %d tokens are left, want all", left, was)
	}
	once := slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return strings.Contains(text([]core.Message{m}), "table 12") })
	was, left := value.Said(new(dialog.Reader), messages, once, coretest.Counter{})
	if gone := (coretest.Counter{}).Count(core.Text("Never delete table 12.")); was-left < gone-2 || was-left > gone+2 {
		t.Errorf("%d tokens are gone, want %d", was-left, gone)
	}
}

var numberedForm = regexp.MustCompile(`m(\d+)s(\d+)`)

// TestNoRequestIsBeheaded: whatever the room, of a message of the user no sentence is kept without the first, and a mark stands where
// sentences are missing.
func TestNoRequestIsBeheaded(t *testing.T) {
	testkit.Slow(t)
	first := rapid.SampledFrom([]string{"good morning m%ds%d.", "Hello: the file m%ds%d is wrong.", "Do it now, m%ds%d!", "m%ds%d ok"})
	next := rapid.SampledFrom([]string{" Please look at m%ds%d once more.", "\nNever touch the file m%ds%d again.", "\n- item m%ds%d: a_b", " and then m%ds%d of them,", "\n\nIt said m%ds%d, error: none; what now?"})
	rapid.Check(t, func(rt *rapid.T) {
		old := reading(30)
		var view []core.Message
		n := rapid.IntRange(1, 9).Draw(rt, "messages")
		for i := range n {
			text := fmt.Sprintf(first.Draw(rt, "first"), i, 0)
			for s := range rapid.IntRange(1, 30).Draw(rt, "sentences") {
				text += fmt.Sprintf(next.Draw(rt, "next"), i, s+1)
			}
			view = append(append(view, coretest.User(core.Text(text))), old[1+3*i:4+3*i]...)
		}
		view = measured(append(view, old[1+3*n:]...))
		room := max(100, tokensOf(view)/rapid.IntRange(3, 200).Draw(rt, "share"))
		for round := range 2 {
			view = shortenWith(t, view, room, value.Options{})
			for _, block := range strings.Split(viewText(view), "¶ user")[1:] {
				block, _, _ = strings.Cut(block, "¶ ")
				last, end := []string{"", "", "-1"}, 0
				for _, at := range numberedForm.FindAllStringIndex(block, -1) {
					now := numberedForm.FindStringSubmatch(block[at[0]:])
					was, _ := strconv.Atoi(last[2])
					is, _ := strconv.Atoi(now[2])
					if now[1] != last[1] && is != 0 || is != 0 && is != was+1 && !strings.Contains(block[end:at[0]], value.GapMark) {
						rt.Errorf("round %d: %s after %q:\n%s", round, now[0], last[0], block)
					}
					last, end = now, at[1]
				}
			}
			view = measured(append(view, reading(20)[1:]...))
		}
	})
}
