package smart_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
)

// bareMark is a result of which nothing is left but the mark.
var bareMark = regexp.MustCompile(`^\[… (\d+ lines? )?h:[0-9a-f]{10}\]$`)

// TestNewestResultsCanBeRead: of the ten newest results of recorded sessions at a quarter of
// their size, few are marks alone, and none that the model has not read yet.
func TestNewestResultsCanBeRead(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	c := counter(t)
	all, bare := 0, 0
	for name, messages := range sessions(t) {
		for len(messages) > 0 && messages[len(messages)-1].Role == core.RoleAssistant {
			messages = messages[:len(messages)-1]
		}
		r := *request(messages, c, 1)
		r.Budget.Target = total(messages) / 4
		left := condense(t, open(t, `{}`), &r).Messages
		unread := true
		for i, n := len(left)-1, 0; i >= 0 && n < 10; i-- {
			unread = unread && left[i].Role != core.RoleAssistant
			for _, p := range left[i].Parts {
				res, ok := p.(core.ToolResult)
				if !ok || len(res.Content) != 1 {
					continue
				}
				n++
				all++
				text, _ := res.Content[0].(core.Text)
				if bareMark.MatchString(string(text)) {
					bare++
					if unread {
						t.Errorf("%s: %s was not read and is gone: %s", name, left[i].ID, text)
					}
				}
			}
		}
	}
	t.Logf("%d of %d are marks", bare, all)
	if 20*bare > all {
		t.Errorf("%d of %d of the newest results are marks, want less than 5 %%", bare, all)
	}
}

// TestLargeLastMessageOfASession condenses a recorded session that ends in a large paste, for
// windows of several sizes and again for smaller ones: the paste stays the last message, in pieces,
// and the turns before it stay.
func TestLargeLastMessageOfASession(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	messages := sessions(t)["pi-mono--before-compaction"]
	if messages == nil {
		t.Skip("that session is not there")
	}
	last := messages[len(messages)-1]
	req := request(messages, counter(t), 1)
	for _, step := range []struct{ target, least int }{{80_000, 100}, {40_000, 50}, {25_000, 40}, {11_500, 20}, {4_000, 4}} {
		r := *req
		r.Budget.Target = step.target
		var res *core.Result
		for _, req := range []*core.Request{&r, req} { // at once, and step by step
			req.Budget.Target = step.target
			res = condense(t, open(t, `{}`), req)
			n := len(res.Messages)
			if got := &res.Messages[n-1]; n < step.least || got.ID != last.ID || !strings.HasPrefix(textOf(*got), "<bash-input>find .</bash-input>\n") {
				t.Errorf("%d tokens: %d messages stay, want %d; the last one is %.80q", step.target, n, step.least, textOf(*got))
			}
		}
		req = again(req, res)
	}
}

// TestLargeLastCallLeavesTheTail: a call that writes a large file and was not answered yet by the
// model stays with its result, its argument shortened, and so do the turns before it.
func TestLargeLastCallLeavesTheTail(t *testing.T) {
	t.Parallel()
	var messages []core.Message
	for i := range 40 {
		messages = join(messages, say(fmt.Sprintf("Look at okapi%d.", i)), tool(fmt.Sprint("r", i), "Read", fmt.Sprintf(`{"file_path":"okapi%d.go"}`, i), words(i, 300, 8)))
	}
	messages = coretest.Conversation(join(messages, tool("w", "Write", `{"file_path":"zebra.go","content":`+strconv.Quote(words(7, 9000, 8))+`}`, "The file zebra.go has been updated successfully."))...)
	req := coretest.Request(messages, total(messages)/5)
	res := condense(t, open(t, `{}`), req)
	n := len(res.Messages)
	if n < 8 || total(again(req, res).Messages) > req.Budget.Target {
		t.Fatalf("%d messages stay in %d tokens of %d", n, total(again(req, res).Messages), req.Budget.Target)
	}
	call, _ := res.Messages[n-2].Parts[len(res.Messages[n-2].Parts)-1].(core.ToolCall)
	if !strings.HasPrefix(call.Args, `{"file_path":"zebra.go","content":"`) || !stubForm.MatchString(call.Args) || !json.Valid([]byte(call.Args)) {
		t.Errorf("the call is %.200q", call.Args)
	}
	if got := results(res.Messages[n-1:]); len(got) != 1 || got[0] != "The file zebra.go has been updated successfully." {
		t.Errorf("the result is %q", got)
	}
}

// TestProjectRulesOfASession: AGENTS.md, which Codex puts before the first request, is whole where it takes at most 15 % of the room;
// else its headline and most of the lines that forbid or require something stay, in their order, and no more than that share; by every
// preset that chooses lines, however often the conversation is condensed.
func TestProjectRulesOfASession(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	found := false
	for name, messages := range sessions(t) {
		_, rules, ok := strings.Cut(textOf(messages[0]), "# AGENTS.md instructions for ")
		rules, _, ends := strings.Cut(rules, "</INSTRUCTIONS>")
		if !ok || !ends {
			continue
		}
		found = true
		size := counter(t).Count(core.Text(rules))
		for _, preset := range []string{"balanced", "aggressive"} {
			req := request(messages, counter(t), 1)
			for _, target := range []int{16_000, 11_000, 7_000} {
				req.Budget.Target = target
				res := condense(t, open(t, `{"preset": "`+preset+`"}`), req)
				view := textOf(res.Messages...)
				room := total(res.Messages)
				switch n := strings.Count(view, rules); {
				case n > 1:
					t.Errorf("%s, %s to %d tokens: the rules are there %d times", name, preset, target, n)
				case n == 0 && float64(size) < 0.12*float64(room):
					t.Errorf("%s, %s to %d tokens: rules of %d tokens are not whole in a view of %d", name, preset, target, size, room)
				case n == 0:
					kept, at := 0, 0
					var must, stay int
					for line := range strings.SplitSeq(rules, "\n") {
						orders := strings.Contains(line, "Do not ") || strings.Contains(line, "must not") || strings.Contains(line, "never ")
						if orders {
							must++
						}
						i := strings.Index(view[at:], "\n"+line+"\n")
						if strings.TrimSpace(line) == "" || i < 0 {
							continue
						}
						at += i + len(line)
						kept += counter(t).Count(core.Text(line + "\n"))
						if orders {
							stay++
						}
					}
					if 10*stay < 7*must || float64(kept) > 0.17*float64(target)+100 {
						t.Errorf("%s, %s to %d tokens: %d of %d prohibitions stay, in %d tokens of rules", name, preset, target, stay, must, kept)
					}
				}
				req = again(req, res)
			}
		}
	}
	if !found {
		t.Skip("no session with rules is there")
	}
}
