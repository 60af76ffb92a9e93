package value_test

import (
	"fmt"
	"regexp"
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

var entryForm = regexp.MustCompile(`(?m)^h:([0-9a-f]{10})(\+?)`)

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

// The index leads to every hidden message: what follows each entry, up to the next, has all of them.
func TestIndexLeadsToAllThatIsHidden(t *testing.T) {
	messages := reading(60)
	view := viewText(shortenWith(t, messages, tokensOf(messages)/12, value.Options{}))
	at := map[string]int{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if _, ok := at[core.Handle(p)]; !ok {
				at[core.Handle(p)] = i
			}
		}
	}
	found := entryForm.FindAllStringSubmatch(view, -1)
	if len(found) < 3 {
		t.Fatalf("%d entries in\n%.600s", len(found), view)
	}
	last := -1
	for _, e := range found {
		i, ok := at[e[1]]
		if !ok || i <= last || e[2] != "+" {
			t.Errorf("entry %s is of message %d, after %d", e[0], i, last)
		}
		last = i
	}
	if first := at[found[0][1]]; first != 0 {
		t.Errorf("the first entry is of message %d", first)
	}
	if !strings.Contains(view, "+ file") {
		t.Errorf("no file is named:\n%.600s", view)
	}
}

// Commands are labels of what they printed, the files that they show by their names; a handle has more than one.
func TestIndexLabels(t *testing.T) {
	messages := reading(60)
	commands := []string{"cd /src && git diff --stat HEAD~3", "sed -n '1,40p' 'docs/plan.md'", "for f in *; do wc $f; done", "FOO=1 go test -run X ./...", "cat x.log | grep y"}
	for i := range messages {
		for j, p := range messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				c.Name, c.Args = "Bash", fmt.Sprintf(`{"command":%q}`, commands[i/2%len(commands)])
				messages[i].Parts[j] = c
			}
		}
	}
	shares := value.DefaultShares()
	shares.Index = 0.3
	view := viewText(shortenWith(t, messages, tokensOf(messages)/12, value.Options{Shares: &shares}))
	_, index, _ := strings.Cut(view, "hidden:")
	index, _, _ = strings.Cut(index, "\n¶")
	for _, want := range []string{"git diff", "plan.md", "go test", "x.log", "plan.md, "} {
		if !strings.Contains(index, want) {
			t.Errorf("no %q in\n%s", want, index)
		}
	}
	for _, not := range []string{"sed", "for", "FOO", "src", "cat", "grep", "*"} {
		if strings.Contains(strings.SplitN(index, "\n", 2)[1], not) {
			t.Errorf("%q in\n%s", not, index)
		}
	}
}

// A small view has one handle, from which a reader can go on to the rest; the smallest has none.
func TestIndexOfASmallView(t *testing.T) {
	messages := reading(3)
	shares := value.DefaultShares()
	for room, want := range map[int]int{700: 1, 200: 0} {
		view := viewText(shortenWith(t, messages, room, value.Options{Shares: &shares}))
		if found := entryForm.FindAllString(view, -1); len(found) != want || want > 0 && found[0] != "h:"+core.Handle(messages[0].Parts[0])+"+" {
			t.Errorf("%d tokens: handles %q, want %d, of the first message:\n%.400s", room, found, want, view)
		}
	}
}

// The next condensation keeps the entries, whose content is not in the conversation any more.
func TestIndexStaysOverRounds(t *testing.T) {
	messages := reading(40)
	room := tokensOf(messages) / 12
	view := shortenWith(t, messages, room, value.Options{})
	first := entryForm.FindAllString(viewText(view), -1)
	more := append(view, reading(30)[1:]...)
	for i := range more {
		more[i].ID = fmt.Sprint("n", i)
		more[i].Tokens = core.MessageTokens(coretest.HalfRequest(messages).Counter, more[i])
	}
	again := viewText(shortenWith(t, more, room, value.Options{}))
	kept := 0
	for _, e := range first {
		if strings.Contains(again, "\n"+e) {
			kept++
		}
	}
	if len(first) == 0 || kept < len(first)/2 {
		t.Errorf("%d of %d entries are left in\n%.800s", kept, len(first), again)
	}
	if strings.Count(again, "hidden:") != 1 {
		t.Errorf("%d indices", strings.Count(again, "hidden:"))
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
	if entryForm.MatchString(view) || !strings.Contains(view, "/src/part4/file4.go:1-60") || strings.Contains(view, "/src/part3/file3.go:") {
		t.Errorf("index without handles:\n%.900s", view)
	}
	shares := value.DefaultShares()
	shares.Index = 0
	if view := viewText(shortenWith(t, messages, tokensOf(messages)/8, value.Options{Shares: &shares})); strings.Contains(view, "hidden:") {
		t.Errorf("it was turned off:\n%.600s", view)
	}
}
