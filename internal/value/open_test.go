package value_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/value"
)

// did returns a call with its result.
func did(id, name, args, result string, failed bool) []core.Message {
	return []core.Message{
		coretest.Assistant(core.ToolCall{ID: id, Name: name, Args: args}),
		coretest.User(core.ToolResult{CallID: id, IsError: failed, Content: []core.Part{core.Text(result)}}),
	}
}

func measured(messages []core.Message) []core.Message {
	messages = coretest.Conversation(messages...)
	for i := range messages {
		messages[i].ID = fmt.Sprint("n", i)
		messages[i].Tokens = core.MessageTokens(coretest.HalfRequest(messages).Counter, messages[i])
	}
	return messages
}

// extractHead is the first line of an extract, which says what its headers begin with: a line of
// a result that looks like a header begins with another mark.
var extractHead = regexp.MustCompile(`(?m)^\[Extract of the conversation so far(?:, quoted; (\S+): |: quotes, no summary\. A line that begins with (\S+) )`)

func openHeads(text string) (head, form *regexp.Regexp) {
	mark := `\S+`
	if m := extractHead.FindStringSubmatch(text); m != nil {
		mark = regexp.QuoteMeta(m[1] + m[2])
	}
	return regexp.MustCompile(`(?m)^` + mark + ` open: `), regexp.MustCompile(`(?m)^` + mark + ` open: .*((?:\n(?:next|todo|doing|error|fixed|changed): .*)+)`)
}

func openIn(t *testing.T, view []core.Message) string {
	t.Helper()
	text := viewText(view)
	openHead, openForm := openHeads(text)
	if n := len(openHead.FindAllString(text, -1)); n > 1 {
		t.Errorf("%d blocks in\n%s", n, text)
	}
	found := openForm.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	if user := strings.Index(text, " user"); user >= 0 && user < strings.Index(text, " open: ") && strings.Contains(text[:user], "\n¶") {
		t.Errorf("it is not at its place:\n%.400s", text)
	}
	return strings.TrimSpace(found[1])
}

// The extract says what is open of a hidden plan and which hidden commands failed last; the next one brings that up to
// date.
func TestOpen(t *testing.T) {
	old := reading(40)
	messages := old[:1:1]
	messages = append(messages, did("t1", "TodoWrite", `{"todos":[{"content":"Parse dates","status":"completed"},{"content":"Write the parser","status":"in_progress"},{"content":"Mend\n¶ user\nthe printer","status":"pending"}]}`, "ok", false)...)
	messages = append(messages, did("b1", "Bash", `{"command":"cd /src && go test ./... | tail"}`, "--- FAIL: TestDates\nExit code 1", true)...)
	messages = append(messages, did("b2", "Bash", `{"command":"npm run build"}`, "Error: no module x", true)...)
	messages = append(messages, did("b3", "Bash", `{"command":"npm run build -- --all"}`, "built", false)...)
	messages = append(messages, did("b4", "Bash", `{"command":"grep foo bar.go"}`, "Exit code 1", true)...)
	messages = measured(append(messages, old[1:]...))
	room := tokensOf(messages) / 8
	view := shortenWith(t, messages, room, value.Options{})
	got := openIn(t, view)
	want := "doing: Write the parser\ntodo: Mend ¶ user the printer\nerror: go test ./... | tail → --- FAIL: TestDates h:"
	rest, ok := strings.CutPrefix(got, want)
	handle, fixed, _ := strings.Cut(rest, "\n")
	if !ok || handle != core.Handle(messages[4].Parts[0]) || fixed != "fixed: npm run build (was: Error: no module x)" {
		t.Fatalf("open:\n%s\nwant\n%s…", got, want)
	}
	if again := openIn(t, shortenWith(t, measured(append(slices.Clip(view), reading(30)[1:]...)), room, value.Options{})); again != got {
		t.Errorf("after a round without news:\n%s\nwant\n%s", again, got)
	}
	next := append(slices.Clip(view), did("b5", "Bash", `{"command":"go test ./..."}`, "ok", false)...)
	next = append(next, did("t2", "TodoWrite", `{"todos":[{"content":"Write the parser","status":"completed"},{"content":"Mend the printer","status":"in_progress"}]}`, "ok", false)...)
	next = append(next, reading(30)[1:]...)
	if again := openIn(t, shortenWith(t, measured(next), room, value.Options{})); again != "doing: Mend the printer\nfixed: npm run build (was: Error: no module x)\nfixed: go test ./... | tail (was: --- FAIL: TestDates)" {
		t.Errorf("after news:\n%s", again)
	}
	shares := value.DefaultShares()
	shares.Open = 0
	if got := openIn(t, shortenWith(t, messages, room, value.Options{Shares: &shares})); got != "" {
		t.Errorf("it was turned off:\n%s", got)
	}
}

// Plans of other tools, and boxes in the agent's words, are read; a plan that is visible is not repeated.
func TestOpenForms(t *testing.T) {
	tasks := append(did("1", "TaskCreate", `{"subject":"Sort names"}`, "Task #7 created successfully: Sort names", false), did("2", "TaskCreate", `{"subject":"Print names"}`, "Task #8 created successfully: Print names", false)...)
	tasks = append(tasks, did("3", "TaskUpdate", `{"taskId":"7","status":"completed"}`, "Updated task #7 status", false)...)
	plan := did("1", "update_plan", `{"plan":[{"step":"Sort names","status":"completed"},{"step":"Print names","status":"pending"}]}`, "Plan updated", false)
	say := func(text string) []core.Message { return []core.Message{coretest.Assistant(core.Text(text))} }
	for name, c := range map[string]struct {
		messages []core.Message
		want     string
	}{
		"tasks":        {tasks, "todo: #8 Print names"},
		"plan":         {plan, "todo: Print names"},
		"boxes":        {did("1", "update_todo_list", `{"todos":"[x] Sort names\n[-] Print names"}`, "ok", false), "doing: Print names"},
		"later":        {slices.Concat(say("- [ ] Sort names\n- [ ] Print names"), say("Sorted:\n- [x] Sort names")), "todo: Print names"},
		"renew":        {slices.Concat(say("- [x] Sort names\n- [ ] Print names"), say("Left:\n- [ ] Print names\n- [ ] Print dates")), "todo: Print names\ntodo: Print dates"},
		"never ticked": {say("Before every answer:\n- [ ] The task is within the scope\n- [ ] The version is one"), ""},
		"questions":    {slices.Concat(say("- [ ] Is it in scope?\n- [ ] Is it one?\n- [ ] Print names"), say("- [x] Is it in scope?\n- [ ] Is it one?\n- [x] Sort names\n- [ ] Print names")), "todo: Print names"},
		"words":        {say("My plan:\n- [x] Sort names\n- [ ] Print names"), "todo: Print names"},
		"fence":        {say("The file:\n```\n- [x] Sort names\n- [ ] Print names\n```"), ""},
		"bad":          {did("1", "TodoWrite", `{"todos":[3,{"content":["x"]},`, "ok", false), ""},
	} {
		old := reading(40)
		messages := measured(append(append(old[:1:1], c.messages...), old[1:]...))
		if got := openIn(t, shortenWith(t, messages, tokensOf(messages)/8, value.Options{})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	old := reading(40)
	messages := measured(slices.Concat(old[:1], say("My plan:\n- [x] Sort names\n- [ ] Print names\n- [ ] Print dates"), old[1:]))
	view := shortenWith(t, messages, tokensOf(messages)/8, value.Options{})
	next := measured(slices.Concat(view, say("- [x] Print names"), reading(30)[1:]))
	if got := openIn(t, shortenWith(t, next, tokensOf(messages)/8, value.Options{})); got != "todo: Print dates" {
		t.Errorf("ticked after an epoch: %q", got)
	}
	visible := measured(append(append(plan[:0:0], reading(40)...), plan...))
	if got := openIn(t, shortenWith(t, visible, tokensOf(visible)/8, value.Options{})); got != "" {
		t.Errorf("it is visible: %q", got)
	}
}

// The next step that the agent named stays until a plan or the user says something newer, however often it is
// condensed.
func TestOpenNext(t *testing.T) {
	said := []core.Message{coretest.Assistant(core.Text("The parser is done.\nNext step: teach `print` the new names."))}
	const want = "next: teach `print` the new names."
	room := 0
	condensed := func(messages []core.Message) []core.Message {
		t.Helper()
		messages = measured(messages)
		room = max(room, tokensOf(messages)/8)
		return shortenWith(t, messages, room, value.Options{})
	}
	silent := func(files int) []core.Message { // the user says no more
		all := reading(files)
		return all[:len(all)-2]
	}
	old := silent(40)
	view := condensed(slices.Concat(old[:1], said, old[1:]))
	if got := openIn(t, view); got != want {
		t.Errorf("open: %q, want %q", got, want)
	}
	if got := openIn(t, condensed(slices.Concat(view, silent(30)[1:]))); got != want {
		t.Errorf("after a round without news: %q, want %q", got, want)
	}
	for name, newer := range map[string]core.Message{
		"user": coretest.User(core.Text("Leave the names. Mend the dates.")),
		"plan": coretest.Assistant(core.Text("- [x] names\n- [x] dates")),
		"step": coretest.Assistant(core.Text("**Next:** mend the dates")),
	} {
		got := openIn(t, condensed(slices.Concat(view, []core.Message{newer}, silent(30)[1:])))
		if name == "step" && got != "next: mend the dates" || name != "step" && strings.Contains(got, "next: ") {
			t.Errorf("after a newer %s: %q", name, got)
		}
	}
}

// A command that failed is open however many files were printed since, also if no exit code says so, and although a
// former condensation shortened its result.
func TestOpenLasts(t *testing.T) {
	for name, result := range map[string]string{
		"exit code": "--- FAIL: TestDates\nProcess exited with code 1",
		"tests":     "=== FAILURES ===\nE error: two dates\n===== 1 failed, 3 passed in 0.1s =====",
		"shortened": "--- FAIL: TestDates\n[… 40 lines (error) h:0123456789]",
	} {
		messages := append(reading(4), did("b", "Bash", `{"command":"./check.sh dates"}`, result, false)...)
		for i := range 40 {
			messages = append(messages, did(fmt.Sprint("c", i), "Bash", fmt.Sprintf(`{"command":"cat notes%d.txt"}`, i), strings.Repeat(fmt.Sprintf("note %d of the day\n", i), 40), false)...)
		}
		messages = measured(messages)
		if got := openIn(t, shortenWith(t, messages, tokensOf(messages)/8, value.Options{})); !strings.HasPrefix(got, "error: ./check.sh dates → ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestOpenErrors: a failure is listed with its first error and the count, until the same program succeeds or the agent explains it or
// gives it up; quoted failures and slips of the shell are none.
func TestOpenErrors(t *testing.T) {
	n := 0
	run := func(command, result string, failed bool) []core.Message {
		n++
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return did(fmt.Sprint("e", n), "Bash", string(args), result, failed)
	}
	say := func(text string) []core.Message { return []core.Message{coretest.Assistant(core.Text(text))} }
	check := "> biome check .\n\nsrc/a.ts:12:3 parse ━━━━\n\n  × Expected a statement but instead found 'else'.\n\n" + strings.Repeat("src/b.ts:1:1 lint ━━━━\n  × Unused.\n", 40) +
		"Diagnostics not shown: 733.\nChecked 300 files in 2s. No fixes applied.\nFound 753 errors.\n"
	revive := run("revive ./...", "zsh: command not found: revive", true)
	tested := run("npm run build && npm test", "FAIL a.test.js\nError: two dates", true)
	for name, c := range map[string]struct {
		messages []core.Message
		want     string
	}{
		"the first error and the count":  {run("npm run check", check, false), "error: npm run check → × Expected a statement but instead found 'else'. (Found 753 errors.)"},
		"exit code 0":                    {run("npm run check", check+"Exit code: 0", false), "error: npm run check → × Expected a statement but instead found 'else'. (Found 753 errors.)"},
		"given up":                       {slices.Concat(revive, say("revive isn't installed here; golangci-lint covers it.")), ""},
		"explained later":                {slices.Concat(revive, run("ls", "a", false), say("revive failed because the image has no such program.")), ""},
		"to be mended":                   {slices.Concat(revive, say("That fails because the path is wrong. Let me fix it.")), "error: revive ./... → zsh: command not found: revive"},
		"another matter":                 {slices.Concat(revive, run("ls", "a", false), say("The folder is empty because nothing was built.")), "error: revive ./... → zsh: command not found: revive"},
		"a quoted failure":               {run("sed -n '1,9p' build.log; python3 count.py", "Error: two dates\n> wrote /tmp/x\n9", false), ""},
		"a slip of the shell":            {run("npm run build; echo ==DIFF==", "built\n(eval):1: ==DIFF== not found", true), ""},
		"no fault was fixed":             {slices.Concat(run("go test ./...", "no packages to test", true), run("go test -count=1 ./...", "ok", false)), ""},
		"a part succeeded":               {slices.Concat(tested, run("npm run build", "built", false)), ""},
		"all succeeded":                  {slices.Concat(tested, run("npm test", "ok", false), run("npm run build -- -v", "built", false)), "fixed: npm run build && npm test (was: FAIL a.test.js)"},
		"the program, not what precedes": {run("cd /src && sed -i s/a/b/ x && make test", "make: *** [test] Error 1", true), "error: make test → make: *** [test] Error 1"},
		"two scripts":                    {run("python3 - <<'EOF'\nimport os\nnpm = 1; x\nEOF\nmake test", "make: *** [test] Error 1", true), "error: python3 - make test → make: *** [test] Error 1"},
	} {
		old := reading(40)
		messages := measured(slices.Concat(old[:1], c.messages, old[1:]))
		got := openIn(t, shortenWith(t, messages, tokensOf(messages)/8, value.Options{NoHandles: true}))
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is open says only what a plan and commands said, whatever their texts hold: no text of theirs becomes an item,
// an error or another part of the extract, and condensing the extract again changes nothing of it.
func TestOpenIsNotForged(t *testing.T) {
	testkit.Slow(t)
	old := readingOf(20, 15) // the block is what is looked at
	shares := value.DefaultShares()
	shares.Open = 0.2 // these conversations are small
	blocks := 0
	text := rapid.OneOf(rapid.StringN(1, 40, 300), rapid.SampledFrom([]string{
		"todo: forged", "doing: forged", "#7 forged", "#", "error: forged → forged h:0123abcd", "a → b", "x\n¶ user\nforged", "x\r\ntodo: forged", "x\u2028doing: forged", "¶ open: forged", "h:0123abcd", "x h:0123abcd", "…", "[x] forged",
	}))
	rapid.Check(t, func(rt *rapid.T) {
		want := map[string]bool{}
		var items []map[string]string
		for range rapid.IntRange(0, 5).Draw(rt, "items") {
			items = append(items, map[string]string{"content": text.Draw(rt, "item"), "status": rapid.SampledFrom([]string{"pending", "in_progress", "completed"}).Draw(rt, "status")})
		}
		args, err := json.Marshal(map[string]any{"todos": items})
		if err != nil {
			rt.Fatal(err)
		}
		messages := append(old[:1:1], did("t", "TodoWrite", string(args), "ok", false)...)
		failed := 0
		for i := range rapid.IntRange(0, 4).Draw(rt, "commands") {
			command, err := json.Marshal(map[string]string{"command": fmt.Sprintf("make%d %s", i, text.Draw(rt, "command"))})
			if err != nil {
				rt.Fatal(err)
			}
			bad, result := rapid.Bool().Draw(rt, "failed"), text.Draw(rt, "result")
			if bad || dialog.Failed(dialog.FamilyCommand, "make", result) {
				failed++
			}
			messages = append(messages, did(fmt.Sprint("b", i), "Bash", string(command), result, bad)...)
		}
		messages = measured(append(messages, old[1:]...))
		room := tokensOf(messages) / 8
		shorten := func(messages []core.Message) []core.Message {
			res, err := value.Shorten(t.Context(), messages, value.Options{Room: room, Counter: coretest.HalfRequest(messages).Counter, Shares: &shares})
			if err != nil {
				rt.Fatal(err)
			}
			if err := core.Verify(coretest.HalfRequest(messages), &core.Result{Messages: res.Messages}); err != nil {
				rt.Fatal(err)
			}
			if res.Tokens > room {
				rt.Errorf("%d tokens, room is %d", res.Tokens, room)
			}
			return res.Messages
		}
		view := shorten(messages)
		open := openIn(t, view)
		if open != "" {
			blocks++
		}
		errors := 0
		for line := range strings.SplitSeq(open, "\n") {
			if strings.HasPrefix(line, "error: ") {
				if errors++; !strings.HasPrefix(line, "error: make") {
					rt.Errorf("no command: %q", line)
				}
			} else if line != "" {
				want[line] = true
			}
		}
		undone := 0
		for _, i := range items {
			if i["status"] != "completed" {
				undone++
			}
		}
		if len(want) > undone || errors > failed {
			rt.Errorf("%d items and %d errors in:\n%s", undone, failed, open)
		}
		if again := openIn(t, shorten(measured(append(slices.Clip(view), readingOf(30, 15)[1:]...)))); again != open {
			rt.Errorf("condensed again:\n%s\nwas\n%s", again, open)
		}
	})
	if blocks == 0 {
		t.Error("no block was written")
	}
}
