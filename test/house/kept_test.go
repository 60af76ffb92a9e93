package house_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// keptKinds are what a conversion can lose, by their letters in the table.
var keptKinds = []struct {
	letter string
	of     func(p core.Part, m *core.Message) bool
}{
	{"S", func(_ core.Part, m *core.Message) bool { return m.Role == core.RoleSystem }},
	{"T", func(p core.Part, m *core.Message) bool {
		_, ok := p.(core.Text)
		return ok && m.Role != core.RoleSystem
	}},
	{"C", func(p core.Part, _ *core.Message) bool { _, ok := p.(core.ToolCall); return ok }},
	{"O", func(p core.Part, _ *core.Message) bool { _, ok := p.(core.ToolResult); return ok }},
	{"F", func(p core.Part, _ *core.Message) bool { r, ok := p.(core.ToolResult); return ok && r.IsError }},
	{"I", func(p core.Part, _ *core.Message) bool { _, ok := p.(core.Image); return ok }},
	{"R", func(p core.Part, _ *core.Message) bool { r, ok := p.(core.Reasoning); return ok && r.Text != "" }},
	{"E", func(p core.Part, _ *core.Message) bool { r, ok := p.(core.Reasoning); return ok && r.Encrypted != "" }},
}

// everything is a conversation with all kinds.
func everything() []core.Message {
	parts := func(p ...core.Part) []core.Part { return p }
	return []core.Message{
		{ID: "m0", Role: core.RoleSystem, Parts: parts(core.Text("You are an agent."))},
		{ID: "m1", Role: core.RoleUser, Parts: parts(core.Text("Repair it."), core.Image{MediaType: "image/png", Data: "iVBORw0KGgo="})},
		{ID: "m2", Role: core.RoleAssistant, Parts: parts(core.Reasoning{Text: "It is the pump.", Encrypted: "c2ln"}, core.Text("I look."), core.ToolCall{ID: "c1", Name: "bash", Args: `{"command":"make"}`})},
		{ID: "m3", Role: core.RoleUser, Parts: parts(core.ToolResult{CallID: "c1", IsError: true, Content: parts(core.Text("exit status 2"))})},
		{ID: "m4", Role: core.RoleAssistant, Parts: parts(core.Text("It fails."))},
	}
}

// counted returns the number of parts of each kind.
func counted(messages []core.Message) []int {
	counts := make([]int, len(keptKinds))
	for i := range messages {
		for _, p := range messages[i].Parts {
			for k := range keptKinds {
				if keptKinds[k].of(p, &messages[i]) {
					counts[k]++
				}
			}
		}
	}
	return counts
}

// converted returns data in another format, as it is read again.
func converted(t *testing.T, data []byte, from, to string) ([]byte, []int) {
	t.Helper()
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: from})
	if err != nil {
		t.Fatalf("%s: %v", from, err)
	}
	var b bytes.Buffer
	if _, err := d.Write(&b, to); err != nil {
		t.Fatalf("%s to %s: %v", from, to, err)
	}
	again, err := transcript.Read(bytes.NewReader(b.Bytes()), &transcript.ReadOptions{Format: to})
	if err != nil {
		t.Fatalf("%s to %s: %v", from, to, err)
	}
	return b.Bytes(), counted(again.Journal.View())
}

// TestKept: docs/files.md says what every conversion leaves out of a conversation that has everything.
func TestKept(t *testing.T) {
	j := history.New()
	if err := j.Append(everything()...); err != nil {
		t.Fatal(err)
	}
	d := &transcript.Document{Journal: j}
	var own bytes.Buffer
	if _, err := d.Write(&own, "condense"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range transcript.Formats() {
		if !f.ReadOnly && f.Name != "trace" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- table: kept -->\n| from \\ to | %s |\n|---%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	for _, from := range names {
		data, has := converted(t, own.Bytes(), "condense", from)
		fmt.Fprintf(&b, "| %s |", from)
		for _, to := range names {
			_, left := converted(t, data, from, to)
			lost := ""
			for k := range keptKinds {
				if left[k] < has[k] {
					lost += keptKinds[k].letter
				}
			}
			if lost == "" {
				lost = "–"
			}
			fmt.Fprintf(&b, " %s |", lost)
		}
		b.WriteString("\n")
	}
	b.WriteString("<!-- end -->")
	const file = "docs/files.md"
	text := readText(t, file)
	want := regexp.MustCompile(`(?s)<!-- table: kept -->.*?<!-- end -->`).ReplaceAllLiteralString(text, b.String())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("%s: the table of conversions is not up to date; go test ./test/house -run Kept -update", file)
	}
}
