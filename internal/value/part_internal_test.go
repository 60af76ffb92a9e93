package value

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// parted returns the parts of a name, put together again from a table of words.
func parted(name string, words ...string) string {
	var c Conversation
	c.partAt = newTable(8)
	c.takeApart(name)
	var out []string
	for _, k := range c.termParts {
		for _, w := range words {
			if hashFolded(w) == c.partAt.keys[k] {
				out = append(out, w)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestTakeApart(t *testing.T) {
	words := []string{"parse", "header", "http", "server", "http2", "aa", "one", "two", "six", "ten", "day", "httpserver"}
	for _, tt := range []struct{ name, want string }{
		{"parseHeader", "parse header"},
		{"ParseHeader2", "parse header"},
		{"parse_header-aa", "parse header"},
		{"HTTPServer", "httpserver"},
		{"header.go", "header"},
		{"one_two_six_ten_day_parse", "one two six ten day"},
		{"", ""},
	} {
		if got := parted(tt.name, words...); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestPartFocus checks that a name which was only seen is near to what the agent speaks of,
// if they share a part, and that a name is not near to itself.
func TestPartFocus(t *testing.T) {
	c := Read(coretest.Conversation(
		coretest.User(core.Text("read parseHeader, formatFooter")),
		coretest.Assistant(core.Text("lookupTable parse_header_line")),
	))
	focus := func(name string) float32 {
		mean, _ := c.partFocus(int(c.termAt.find(hashOf(name))))
		return mean
	}
	if shared, alone := focus("parseHeader"), focus("lookupTable"); shared <= 0.5 || alone != 0 {
		t.Errorf("parseHeader is in focus by %v and lookupTable by %v, want more than a half and 0", shared, alone)
	}
}

// work is a session in which a file is read, planned, and changed later, by a name that was not
// seen for a while.
func work() *Conversation {
	call := func(id, tool, args string) core.Message {
		return coretest.Assistant(core.ToolCall{ID: id, Name: tool, Args: args})
	}
	return Read(coretest.Conversation(
		call("a", "Read", `{"file_path":"src/header.go"}`),
		coretest.User(coretest.Result("a", "package header\nfunc firstName() {}\nfunc otherName() {}\nfunc lastName() {}")),
		call("b", "TodoWrite", `{"todos":[{"content":"change otherName in footer.go"}]}`),
		coretest.User(coretest.Result("b", "noted")),
		coretest.Assistant(core.Text("I go on with firstName")),
		call("c", "Edit", `{"file_path":"src/header.go","old_string":"a","new_string":"otherName"}`),
		coretest.User(coretest.Result("c", "changed")),
	))
}

func TestFindWork(t *testing.T) {
	c := work()
	for _, tt := range []struct {
		name            string
		edited, planned int32
	}{
		{"header.go", 5, -1},
		{"footer.go", -1, 2},
		{"otherName", -1, 2},
		{"lastName", -1, -1},
	} {
		term := c.terms[c.termAt.find(hashOf(tt.name))]
		if term.edited != tt.edited || term.planned != tt.planned {
			t.Errorf("%s: edited %d, planned %d; want %d, %d", tt.name, term.edited, term.planned, tt.edited, tt.planned)
		}
	}
}

// TestFindBacks checks that a name which was written two messages or more after it was seen
// marks the line where it was seen last, and only that.
func TestFindBacks(t *testing.T) {
	c := work()
	for l := range c.Lines {
		line := &c.Lines[l]
		pass := &c.Passages[line.Passage]
		if pass.Kind != dialog.KindToolResult || pass.Message != 1 {
			continue
		}
		at := l - pass.Lines.Start
		if line.back != (at == 1) {
			t.Errorf("line %d, %q: back is %v", at, line.Text, line.back)
		}
		if at == 3 && (line.backAbove != 2 || line.backBelow < farLine) {
			t.Errorf("the last line is %d lines from one above and %d from one below, want 2 and none", line.backAbove, line.backBelow)
		}
	}
}
