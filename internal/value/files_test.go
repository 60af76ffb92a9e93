package value_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/value"
)

// TestFilesUnderWork: an extract begins with the newest text of a file under work, with its path and lines, once; a
// line that an edit replaced is not shown as current, and further condensations keep it so.
func TestFilesUnderWork(t *testing.T) {
	var file strings.Builder
	for i := range 24 {
		fmt.Fprintf(&file, "%4d→\tzebra%d := okapi%d(walrus%d)\n", i+100, i, i, i)
	}
	work := []core.Message{
		coretest.Assistant(core.ToolCall{ID: "r", Name: "Read", Args: `{"file_path":"/r/src/zoo.go","offset":100}`}),
		coretest.User(coretest.Result("r", file.String())),
		coretest.Assistant(core.ToolCall{ID: "e", Name: "Edit", Args: `{"file_path":"/r/src/zoo.go","old_string":"\tzebra7 := okapi7(walrus7)","new_string":"\tzebra7 := heron(walrus7)\n\tfeed(zebra7)"}`}),
		coretest.User(coretest.Result("e", "done")),
		coretest.Assistant(core.Text("In zoo.go I go on with zebra7 and feed.")),
	}
	s := session(40)
	messages := uniqueCalls(append(append(append(s[:len(s)/2:len(s)/2], work...), s[len(s)/2:]...), coretest.User(core.Text("Now go on in zoo.go."))))
	room := tokensOf(messages) / 4
	for round := range 3 {
		res := shorten(t, messages, room)
		got := text(res.Messages)
		at := strings.Index(got, "¶ result file /r/src/zoo.go:100-124\n")
		if at < 0 {
			t.Fatalf("round %d: the file is not there:\n%.3000s", round, got)
		}
		if !strings.Contains(got[at:], "\tzebra6 := okapi6(walrus6)\n\tzebra7 := heron(walrus7)\n\tfeed(zebra7)\n\tzebra8 := okapi8(walrus8)\n") {
			t.Errorf("round %d: the edit is not in its place:\n%.1500s", round, got[at:])
		}
		if n := strings.Count(got, "zebra12 := okapi12(walrus12)"); n != 1 {
			t.Errorf("round %d: a line is there %d times", round, n)
		}
		messages = uniqueCalls(append(res.Messages, session(20)[1:]...))
	}
}

// TestBlocksSayTheirAge: a block of a file that a command or an edit of unknown text changed since says so, in each condensation, until
// the file is read again.
func TestBlocksSayTheirAge(t *testing.T) {
	testkit.Slow(t)
	var file strings.Builder
	for i := range 24 {
		fmt.Fprintf(&file, "%4d→\tzebra%d := okapi%d(walrus%d)\n", i+100, i, i, i)
	}
	read := did("r", "Read", `{"file_path":"/r/src/zoo.go","offset":100}`, file.String(), false)
	bash := func(command string) []core.Message { return did("b", "Bash", `{"command":"`+command+`"}`, "", false) }
	for name, c := range map[string]struct {
		change []core.Message
		marked bool
	}{
		"sed":                     {bash(`cd /r && sed -i 's/oka[a-z]*/tapir/' src/zoo.go`), true},
		"sed with a plain text":   {bash(`cd /r && sed -i 's/okapi/tapir/' src/zoo.go`), false},
		"a script":                {bash(`python3 -c \"open('src/zoo.go', 'w').write(x)\"`), true},
		"a redirection":           {bash(`./generate > src/zoo.go`), true},
		"a formatter":             {bash(`npx prettier --write src/zoo.go`), true},
		"an edit of unknown text": {did("b", "Edit", `{"file_path":"/r/src/zoo.go","old_string":"\tunseen := heron(walrus)","new_string":"\tseen := heron(walrus)"}`, "done", false), true},
		"a known edit":            {did("b", "Edit", `{"file_path":"/r/src/zoo.go","old_string":"zebra1 :=","new_string":"zebra1 ="}`, "done", false), false},
		"a search":                {bash(`grep -i -w okapi src/zoo.go`), false},
		"a later read":            {slices.Concat(bash(`sed -i 's/okapi/tapir/' src/zoo.go`), read), false},
	} {
		s := session(40)
		messages := uniqueCalls(slices.Concat(s[:len(s)/2], read, c.change, []core.Message{coretest.Assistant(core.Text("In zoo.go I go on with zebra7."))}, s[len(s)/2:], []core.Message{coretest.User(core.Text("Now go on in zoo.go."))}))
		room := tokensOf(messages) / 4
		for round := range 3 {
			res := shorten(t, messages, room)
			got := text(res.Messages)
			_, header, ok := strings.Cut(got, "¶ result file /r/src/zoo.go:100-123")
			if header, _, _ = strings.Cut(header, "\n"); !ok || (header == ", edited since") != c.marked || !c.marked && header != "" {
				t.Errorf("%s, round %d: %v, %q", name, round, ok, header)
			}
			messages = uniqueCalls(append(res.Messages, session(20)[1:]...))
		}
	}
}

// TestCommandNamesTwoFiles: the result is the same each time if a command names two of the files that are shown.
func TestCommandNamesTwoFiles(t *testing.T) {
	testkit.Slow(t)
	var texts [2]string
	var work []core.Message
	for f, name := range []string{"farm", "zoo"} {
		for i := range 24 {
			texts[f] += fmt.Sprintf("\t%s%d := okapi%d(walrus%d)\n", name, i, i, f)
		}
		id := fmt.Sprint("r", f)
		work = append(work,
			coretest.Assistant(core.ToolCall{ID: id, Name: "Read", Args: fmt.Sprintf(`{"file_path":"/r/src/%s.go"}`, name)}),
			coretest.User(coretest.Result(id, texts[f])))
	}
	work = append(work,
		coretest.Assistant(core.ToolCall{ID: "b", Name: "Bash", Args: `{"command":"tail farm.go zoo.go"}`}),
		coretest.User(coretest.Result("b", texts[0]+texts[1])),
		coretest.Assistant(core.Text("In farm.go and zoo.go I go on with zoo7 and farm7.")))
	s := session(40)
	messages := uniqueCalls(append(append(append(s[:73:73], work...), s[73:]...), coretest.User(core.Text("Now go on in zoo.go and farm.go."))))
	shares := value.DefaultShares()
	shares.Files, shares.Tail = 0.5, 0.02
	shortened := func() string {
		res, err := value.Shorten(t.Context(), messages, value.Options{Room: tokensOf(messages) / 3, Counter: coretest.Counter{}, Shares: &shares})
		if err != nil {
			t.Fatal(err)
		}
		return text(res.Messages)
	}
	want := shortened()
	if !strings.Contains(want, "¶ result file src/farm.go") || !strings.Contains(want, "¶ result file src/zoo.go") {
		t.Fatalf("the files are not there:\n%s", want)
	}
	for range 20 {
		if got := shortened(); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}
