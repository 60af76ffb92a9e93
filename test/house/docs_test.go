package house_test

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestRulesDocument: docs/rules.md, which is generated from the table of rules, is up to
// date.
func TestRulesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The rules that every result must respect

Made from ` + "`core.Rules`" + ` by ` + "`go test ./test/house -update`" + `. The host checks every result of every provider against them, built
in or not, and rejects what breaks one; the next provider is asked. They are stated relative to the request:
conversations arrive with faults of their own, and returning the messages as they came breaks no rule.

| rule | what it demands |
|---|---|
`)
	for _, r := range core.Rules() {
		b.WriteString("| `" + r.Name + "` | " + r.Text + " |\n")
	}
	const file = "docs/rules.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is stale: run go test ./test/house -update", file)
	}
}

// The program in README works. TestReadmeProgramIsTheOneThatIsTested checks that it is this
// one.
func TestReadmeProgram(t *testing.T) {
	ctx, sent := t.Context(), 0
	send := func(messages []core.Message) { sent = len(messages) }
	messages := []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}}}
	program := func() error {
		h, err := condense.Open(ctx, nil) // the built-in strategies and configuration
		if err != nil {
			return err
		}
		defer h.Close()
		c := condense.NewConversation()

		if err := c.Append(messages...); err != nil { // user, assistant, tool calls and results
			return err
		}
		report, err := h.Manage(ctx, c, condense.Turn{}) // before every request to the model
		if err != nil {
			return err
		}
		send(c.View())
		if report == nil {
			return errors.New("no report")
		}
		return nil
	}
	if err := program(); err != nil || sent != 1 {
		t.Errorf("sent %d messages, %v", sent, err)
	}
}

func TestReadmeProgramIsTheOneThatIsTested(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("test/house/docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "## In a Go program")
	_, rest, _ = strings.Cut(rest, "```go\n")
	block, _, found := strings.Cut(rest, "\n```")
	if !found {
		t.Fatal("README has no program")
	}
	space := regexp.MustCompile(`\s+`)
	if got := space.ReplaceAllString(string(source), " "); !strings.Contains(got, space.ReplaceAllString(block, " ")) {
		t.Errorf("README's program is not the one that is tested:\n%s", block)
	}
}
