package value_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// reading returns a conversation that reads files, each once, of many lines.
func reading(files int) []core.Message { return readingOf(files, 60) }

// readingOf returns the same, of files with so many lines.
func readingOf(files, lines int) []core.Message {
	messages := []core.Message{coretest.User(core.Text("Read all of it, please, and say what you think."))}
	for i := range files {
		id := fmt.Sprint("c", i)
		var text strings.Builder
		for k := range lines {
			fmt.Fprintf(&text, "value%d_%d is set to the number %d here\n", i, k, i*1000+k)
		}
		messages = append(messages,
			coretest.Assistant(core.Text("Next."), core.ToolCall{ID: id, Name: "Read", Args: fmt.Sprintf(`{"file_path":"/src/part%d/file%d.go"}`, i, i)}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(text.String())}}))
	}
	return coretest.Conversation(append(messages, coretest.Assistant(core.Text("Done.")), coretest.User(core.Text("Go on.")))...)
}

var (
	entryForm = regexp.MustCompile(`(?m)(?:^|; )(m\d+(?:\.\d+)?|h:[0-9a-f]{10})(?:-(m\d+))? [^;\n]*\(\d`)
	contents  = regexp.MustCompile(`(?s)¶ contents:[^\n]*\n(.*?)\n¶`)
)

// numbered gives messages their places as numbers.
func numbered(messages []core.Message) []core.Message {
	for i := range messages {
		messages[i].Number = i + 1
	}
	return messages
}

func viewText(messages []core.Message) string {
	var b strings.Builder
	for i := range messages {
		for _, p := range messages[i].Parts {
			if t, ok := p.(core.Text); ok {
				b.WriteString(string(t) + "\n")
			}
		}
	}
	return b.String()
}

func shortenWith(t *testing.T, messages []core.Message, room int, o value.Options) []core.Message {
	t.Helper()
	o.Room, o.Counter = room, coretest.HalfRequest(messages).Counter
	if o.Shares == nil {
		shares := value.DefaultShares()
		shares.Index, shares.Open = 0.1, 0.1 // these conversations are small
		o.Shares = &shares
	}
	res, err := value.Shorten(t.Context(), messages, o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Tokens > room {
		t.Fatalf("%d tokens, room is %d", res.Tokens, room)
	}
	return res.Messages
}

// listedIn returns the numbers of the messages that a table lists.
func listedIn(t *testing.T, table string) map[int]bool {
	t.Helper()
	listed := map[int]bool{}
	last := 0
	for _, e := range entryForm.FindAllStringSubmatch(table, -1) {
		ends := strings.Split(strings.TrimPrefix(e[1], "m")+strings.ReplaceAll("-"+e[2], "-m", "-"), "-")
		from, _ := strconv.Atoi(ends[0])
		to := from
		if n, err := strconv.Atoi(ends[1]); err == nil {
			to = n
		}
		if from <= last {
			t.Errorf("%s after m%d", e[0], last)
		}
		for last = from; last <= to; last++ {
			listed[last] = true
		}
		last = to
	}
	return listed
}

// Every hidden result has its number in the table of contents, in one of its ranges, or is whole in the view.
func TestContentsLeadToAllThatIsHidden(t *testing.T) {
	messages := numbered(reading(60))
	got := shortenWith(t, messages, tokensOf(messages)/12, value.Options{})
	view := viewText(got)
	table := contents.FindStringSubmatch(view)
	if table == nil {
		t.Fatalf("no table in\n%.600s", view)
	}
	listed := listedIn(t, table[1])
	for i := range messages {
		_, ok := messages[i].Parts[0].(core.ToolResult)
		if ok && !listed[i+1] && !slices.ContainsFunc(got, func(m core.Message) bool { return m.ID == messages[i].ID }) {
			t.Errorf("m%d is not in\n%s", i+1, table[1])
		}
	}
}

// A call is found by its ID, even if another tool has that for a name.
func TestContentsOfCallsWithNamesAsIDs(t *testing.T) {
	messages, at := reading(60), 7
	for i, c := range []core.ToolCall{{ID: "Read", Name: "Bash", Args: `{"command":"make heron"}`}, {ID: "Bash", Name: "Read", Args: `{"file_path":"/src/okapi.go"}`}} {
		r, _ := messages[at+1+2*i].Parts[0].(core.ToolResult)
		r.CallID = c.ID
		messages[at].Parts = append(messages[at].Parts[:1+i:1+i], c)
		messages[at+1].Parts = append(messages[at+1].Parts[:i:i], r)
	}
	messages = numbered(coretest.Conversation(append(messages[:at+2:at+2], messages[at+4:]...)...))
	view := viewText(shortenWith(t, messages, tokensOf(messages)/12, value.Options{}))
	if want := fmt.Sprintf("m%d.1 Bash make heron", at+2); !strings.Contains(view, want) {
		t.Errorf("%q is not in\n%s", want, view)
	}
}

// A line says the file with its lines, the command with its outcome, what an edit inserted, and the size. Small and failed results have
// one, too. No two are equal.
func TestContentsLabels(t *testing.T) {
	messages := []core.Message{coretest.User(core.Text("Make the server start, please."))}
	add := func(name, args, result string, failed bool) {
		id := fmt.Sprint("c", len(messages))
		messages = append(messages, coretest.Assistant(core.ToolCall{ID: id, Name: name, Args: args}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(result)}, IsError: failed}))
	}
	long := strings.Repeat("a line of some file that nobody needs at all\n", 800)
	for n := range 6 {
		add("Read", fmt.Sprintf(`{"file_path":"/src/app/server/file%d.go","offset":%d,"limit":40}`, n, 10*n+1), long, false)
	}
	add("Bash", `{"command":"cd /src/app && go test ./..."}`, long+"--- FAIL: TestStart (0.01s)\nserver_test.go:7: no port\nFAIL\n", true)
	for n := range 9 {
		add("Edit", fmt.Sprintf(`{"file_path":"/src/app/server.go","old_string":"start(%d)","new_string":"start(%d)\nport%d := listen()"}`, n, n, n), "The file has been updated.", false)
	}
	add("Bash", `{"command":"go test ./..."}`, "ok\tapp\t0.5s\n", false)
	for range 4 {
		add("Bash", `{"command":"ps aux"}`, strings.Repeat("root 1 0.0 0.1 init\n", 40), false)
	}
	messages = numbered(coretest.Conversation(append(messages, coretest.Assistant(core.Text("It starts.")), coretest.User(core.Text(strings.Repeat("Now write what we did down for the others. ", 40))))...))
	shares := value.DefaultShares()
	shares.Index, shares.Tail = 0.6, 0.01
	view := viewText(shortenWith(t, messages, tokensOf(messages)/20, value.Options{Shares: &shares}))
	table := contents.FindStringSubmatch(view)
	if table == nil {
		t.Fatalf("no table in\n%.900s", view)
	}
	for _, want := range []string{"m3 Read server/file0.go:1-40 (", "Bash go test ./... → --- FAIL: TestStart", "Edit app/server.go → + port3 listen (", "Bash ps aux → root 1 0.0 0.1 init and 3 more ("} {
		if !strings.Contains(table[1], want) {
			t.Errorf("no %q in\n%s", want, table[1])
		}
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.ReplaceAll(table[1], "; ", "\n"), "\n") {
		_, label, _ := strings.Cut(line, " ")
		if seen[label] {
			t.Errorf("%q twice in\n%s", label, table[1])
		}
		seen[label] = true
	}
}

// A view with little room has no table, and a table never has more than its share.
func TestContentsOfASmallView(t *testing.T) {
	messages := numbered(reading(60))
	shares := value.DefaultShares()
	for room, want := range map[int]bool{tokensOf(messages) / 8: true, 250: false} {
		view := viewText(shortenWith(t, messages, room, value.Options{Shares: &shares}))
		if table := contents.FindString(view); (table != "") != want || tokensOf([]core.Message{{Parts: []core.Part{core.Text(table)}}}) > room/7 {
			t.Errorf("%d tokens: table %q", room, table)
		}
	}
}

// The next condensation keeps the lines, whose content is not in the conversation any more, and goes on with the numbers.
func TestContentsStayOverRounds(t *testing.T) {
	messages := numbered(reading(40))
	room := tokensOf(messages) / 8
	view := shortenWith(t, messages, room, value.Options{})
	first := listedIn(t, contents.FindString(viewText(view)))
	more := append(view, reading(30)[1:]...)
	for i := range more {
		more[i].ID = fmt.Sprint("n", i)
		if i >= len(view) {
			more[i].Number = len(messages) + i - len(view) + 1
		}
		more[i].Tokens = core.MessageTokens(coretest.HalfRequest(messages).Counter, more[i])
	}
	again := viewText(shortenWith(t, more, room*2/3, value.Options{}))
	listed := listedIn(t, contents.FindString(again))
	for n := range first {
		if !listed[n] {
			t.Errorf("m%d is not listed any more", n)
		}
	}
	if len(first) == 0 || !listed[len(messages)+2] {
		t.Errorf("%d lines; not all are left in\n%.900s", len(first), again)
	}
	if strings.Count(again, "¶ contents:") != 1 {
		t.Errorf("%d tables", strings.Count(again, "¶ contents:"))
	}
}

// Without recall the index names files and lines that can be read again, but none that was changed. It can be
// turned off.
func TestIndexWithoutRecall(t *testing.T) {
	messages := reading(40)
	messages = append(messages,
		coretest.Assistant(core.ToolCall{ID: "e", Name: "Edit", Args: `{"file_path":"/src/part3/file3.go","old_string":"a","new_string":"b"}`}),
		coretest.User(core.ToolResult{CallID: "e", Content: []core.Part{core.Text("done")}}))
	messages = coretest.Conversation(messages...)
	view := viewText(shortenWith(t, messages, tokensOf(messages)/8, value.Options{NoHandles: true}))
	if contents.MatchString(view) || !strings.Contains(view, "/src/part4/file4.go:1-60") || strings.Contains(view, "/src/part3/file3.go:") {
		t.Errorf("index without handles:\n%.900s", view)
	}
	shares := value.DefaultShares()
	shares.Index = 0
	if view := viewText(shortenWith(t, messages, tokensOf(messages)/8, value.Options{Shares: &shares})); strings.Contains(view, "hidden:") {
		t.Errorf("it was turned off:\n%.600s", view)
	}
}
