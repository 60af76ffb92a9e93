package value_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
	"github.com/condensehq/condense/tokens"
)

// shown returns a conversation whose last call's result is text.
func shown(text string) []core.Message {
	return coretest.Conversation(append(session(40),
		coretest.User(core.Text("Look at this.")),
		coretest.Assistant(core.ToolCall{ID: "z", Name: "shell", Args: `{"command":"show"}`}),
		coretest.User(core.ToolResult{CallID: "z", Content: []core.Part{core.Text(text)}}))...)
}

// left returns what a tenth of the room leaves of the last result.
func left(t *testing.T, messages []core.Message) string {
	t.Helper()
	shares := value.DefaultShares()
	shares.Index = 0 // a table has no room for itself in a conversation of this size
	got := shortenWith(t, messages, tokensOf(messages)/10, value.Options{Shares: &shares})
	last, _ := got[len(got)-1].Parts[0].(core.ToolResult)
	text, _ := last.Content[0].(core.Text)
	return string(text)
}

// TestInPlace: lines of a result that stay in place are as they were, with those between them
// that say nothing, and the mark counts all others.
func TestInPlace(t *testing.T) {
	var b strings.Builder
	for i := range 80 {
		fmt.Fprintf(&b, "    func zebra%d(okapi%d int) {\n\n        walrus%d()\n    }\n", i, i*37, i*11)
	}
	text := b.String()
	got := left(t, shown(text))
	m := regexp.MustCompile(`(?s)^(.*)\n\[… (\d+) lines h:[0-9a-f]{10}\]$`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("no mark at the end of %q", got)
	}
	have := 0
	gaps := regexp.MustCompile(`\n…(\d*)\n`)
	for _, run := range gaps.Split(m[1], -1) {
		if !strings.Contains(text, run) {
			t.Errorf("this was not there:\n%s", run)
		}
		have += strings.Count(run, "\n") + 1
	}
	said, sized := 0, 0
	for _, gap := range gaps.FindAllStringSubmatch(m[1], -1) {
		if n, err := strconv.Atoi(gap[1]); err == nil {
			said, sized = said+n, sized+1
		}
	}
	if n := strings.Count(text, "\n"); sized == 0 || said > n-have {
		t.Errorf("%d gaps say how large they are, %d lines in all; %d are missing", sized, said, n-have)
	}
	if n := strings.Count(text, "\n"); m[2] != strconv.Itoa(n-have) {
		t.Errorf("the mark says %s lines; %d of %d are there", m[2], have, n)
	}
}

// TestValuesInPlace: lines made of values of JSON are not counted as lines.
func TestValuesInPlace(t *testing.T) {
	var rows []string
	for i := range 300 {
		rows = append(rows, fmt.Sprintf(`{"zebra":"okapi%d","walrus":%d}`, i*37, i*11))
	}
	if got := left(t, shown("["+strings.Join(rows, ",")+"]")); !regexp.MustCompile(`\n\[… h:[0-9a-f]{10}\]$`).MatchString(got) {
		t.Errorf("got the end %q", got[max(0, len(got)-80):])
	}
}

// TestMarksSave: by the tokens of a real model nothing in place is replaced by more.
func TestMarksSave(t *testing.T) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	counter := tokens.NewCounter(encoding)
	messages := []core.Message{coretest.User(core.Text("go")), coretest.Assistant()}
	for i := range 60 {
		id := fmt.Sprint("c", i)
		messages[1].Parts = append(messages[1].Parts, core.ToolCall{ID: id, Name: "shell", Args: "{}"})
		messages = append(messages, coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(fmt.Sprintf("the zebra %d of the okapi is in the walrus %d, as it was\nand ok", i*3777, i))}}))
	}
	core.Measure(counter, coretest.Conversation(messages...))
	for i := range messages {
		messages[i].Tokens = core.MessageTokens(counter, messages[i])
	}
	was := map[string]int{}
	for _, m := range messages {
		was[m.ID] = m.Tokens
	}
	for room := tokensOf(messages) * 9 / 10; room > tokensOf(messages)/2; room = room * 9 / 10 {
		res, err := value.Shorten(t.Context(), messages, value.Options{Room: room, Counter: counter})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range res.Messages {
			if n, ok := was[m.ID]; ok && m.Tokens > n {
				t.Errorf("message %s had %d tokens and has %d", m.ID, n, m.Tokens)
			}
		}
	}
}

// TestCallsAndResults: in an extract a result does not follow the call of another, and a
// call that changed or read a file names it.
func TestCallsAndResults(t *testing.T) {
	messages := session(40)
	var files strings.Builder
	for i := range 10 {
		fmt.Fprintf(&files, "zebra%d okapi%d walrus%d\n", i*37, i*41, i*43)
	}
	messages[5] = coretest.Assistant(
		core.ToolCall{ID: "a", Name: "Read", Args: `{"file_path":"src/one.go","offset":10}`},
		core.ToolCall{ID: "b", Name: "Read", Args: `{"file_path":"src/one.go","offset":320}`})
	messages[6] = coretest.User(
		core.ToolResult{CallID: "a", Content: []core.Part{core.Text(files.String())}},
		core.ToolResult{CallID: "b", Content: []core.Part{core.Text("nothing")}})
	filler := strings.Repeat(`it is as it was and so on\n`, 60)
	messages[7] = coretest.Assistant(core.ToolCall{ID: "c", Name: "Edit", Args: `{"old_string":"` + filler + `","file_path":"src/one.go","note":"` + filler + `","new_string":"pelican12 = heron34\nstork56 = crane78"}`})
	messages[8] = coretest.User(core.ToolResult{CallID: "c", Content: []core.Part{core.Text("done")}})
	messages = append(messages, coretest.Assistant(core.Text("zebra37 okapi41 walrus43 pelican12 heron34 stork56 crane78 again: I go on with these.")))
	shares := value.DefaultShares()
	shares.Files = 0
	got := viewText(shortenWith(t, coretest.Conversation(messages...), tokensOf(messages)/10, value.Options{Shares: &shares}))
	if i := strings.Index(got, "zebra37"); i < 0 || !strings.Contains(got[strings.LastIndex(got[:i], "\n¶")+1:i], "¶ result Read src/one.go") {
		t.Errorf("the result of the first of two calls does not name its own:\n%s", got)
	}
	if i := strings.Index(got, "pelican12"); i < 0 || !strings.Contains(got[strings.LastIndex(got[:i], "\n¶")+1:i], "one.go") {
		t.Errorf("an edit does not name its file:\n%s", got)
	}
}

// TestNewestBesideMuch: a newest message that has room is kept, even where the messages before it have none.
func TestNewestBesideMuch(t *testing.T) {
	messages := session(40)
	all := tokensOf(messages)
	for _, system := range []int{20, 40} {
		room := all / 4
		rules := core.Message{Role: core.RoleSystem, Parts: []core.Part{core.Text(strings.Repeat("Be kind. ", room*4*system/100/9))}}
		newest := coretest.User(core.Text(strings.Repeat("I see zebras. ", room*4*47/100/14)))
		res := shorten(t, coretest.Conversation(append(append([]core.Message{rules}, session(40)...), newest)...), room)
		if last := res.Messages[len(res.Messages)-1]; len(last.Parts) != 1 || last.Parts[0] != newest.Parts[0] {
			t.Errorf("beside a system message of %d %% the newest one is gone", system)
		}
		if res.Tokens > room {
			t.Errorf("%d tokens, room is %d", res.Tokens, room)
		}
	}
}

// TestInPlaceAgain: a result that is shortened again counts all its lines once, those of the marks within it, too.
func TestInPlaceAgain(t *testing.T) {
	var b strings.Builder
	for i := range 80 {
		fmt.Fprintf(&b, "    func zebra%d(okapi%d int) {\n\n        walrus%d()\n    }\n", i, i*37, i*11)
	}
	whole := strings.Count(b.String(), "\n")
	count := regexp.MustCompile(`\[… (\d+) lines h:[0-9a-f]{10}\]$`)
	text := b.String()
	for round := range 3 {
		text = left(t, shown(text))
		m := count.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("round %d: no mark at the end of %q", round, text)
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n > whole || round > 0 && n < whole/2 {
			t.Errorf("round %d: %d lines are missing of %d: %v", round, n, whole, err)
		}
	}
}

// TestRepeatedLinesFillTheRoom: lines that are repeated go only for want of room, and a result
// that was not read yet stays as it is while there is room for it.
func TestRepeatedLinesFillTheRoom(t *testing.T) {
	messages := []core.Message{coretest.User(core.Text("Watch the build until it is green."))}
	for i := range 200 {
		id := fmt.Sprint("c", i)
		messages = append(messages,
			coretest.Assistant(core.ToolCall{ID: id, Name: "shell", Args: `{"command":"tail build.log"}`}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("still compiling the okapi\n", 120))}}))
	}
	messages = coretest.Conversation(messages...)
	room := tokensOf(messages) / 2
	res := shorten(t, messages, room)
	if res.Tokens < room*95/100 {
		t.Errorf("%d tokens, room is %d", res.Tokens, room)
	}
	if last := res.Messages[len(res.Messages)-1]; !last.Equal(messages[len(messages)-1]) {
		t.Errorf("the result that was not read is cut: %v", last.Parts)
	}
}

// TestMarksOfFailures: the mark of a shortened result says that the call failed, as the result or the exit code of a
// command says.
func TestMarksOfFailures(t *testing.T) {
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "compiling zebra%d okapi%d\n", i*37, i*41)
	}
	for _, tt := range []struct {
		tool, end string
		flagged   bool
		failed    bool
	}{
		{"shell", "Process exited with code 1", false, true},
		{"shell", "exit status 2", false, true},
		{"shell", "Exit code: 0", false, false},
		{"shell", "all is well", true, true},
		{"read_file", "it ends with exit code 1", false, false}, // the file says so
	} {
		args := `{"command":"make all"}`
		messages := coretest.Conversation(append(session(40), coretest.User(core.Text("Build it.")),
			coretest.Assistant(core.ToolCall{ID: "z", Name: tt.tool, Args: args}),
			coretest.User(core.ToolResult{CallID: "z", IsError: tt.flagged, Content: []core.Part{core.Text(log.String() + tt.end)}}))...)
		got := left(t, messages)
		mark := got[strings.LastIndexByte(got, '\n')+1:]
		if !strings.HasPrefix(mark, "[… ") || strings.Contains(mark, "(error)") != tt.failed {
			t.Errorf("%s, %q: the mark is %q", tt.tool, tt.end, mark)
		}
	}
}

// TestTemplates: of a log in which most lines repeat a shape, those that do not are kept, and a mark says of the others
// that they are alike; not where every line has a value of its own.
func TestTemplates(t *testing.T) {
	name := letters
	show := func(form string) string {
		var b strings.Builder
		for i := range 120 {
			fmt.Fprintf(&b, form+"\n", name(i))
			if i%20 == 10 {
				fmt.Fprintf(&b, "okapi_%s is not what walrus_%s wants of it\n", name(500+i), name(900+i))
			}
		}
		return b.String()
	}
	got := left(t, shown(show("Generated %s app")))
	if n := strings.Count(got, "okapi_"); n < 5 {
		t.Errorf("%d of 6 lines without a shape are left: %s", n, got)
	}
	if n := strings.Count(got, "Generated"); n > 30 || !strings.Contains(got, " alike\n") {
		t.Errorf("%d of 120 lines of one shape are left, and no mark says how many are not: %s", n, got)
	}
	if got := left(t, shown(show("id: %s"))); strings.Contains(got, " alike") {
		t.Errorf("values are no template: %s", got)
	}
}
