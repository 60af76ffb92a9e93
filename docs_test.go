package condense_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestRulesDocument holds docs/rules.md, which is made from the table of rules, up to
// date.
func TestRulesDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The rules that every result must respect

Made from ` + "`core.Rules`" + ` by ` + "`go test . -update`" + `. The host checks every result of every provider against them, built
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
		t.Errorf("%s is stale: run go test . -update", file)
	}
}
