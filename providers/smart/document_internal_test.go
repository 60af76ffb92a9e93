package smart

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated documents")

// TestDocument holds the tables of docs/smart.md and docs/smart-passes.md, which are made from those of the code, up to date.
func TestDocument(t *testing.T) {
	presets, passes := describe()
	upToDate(t, "../../docs/smart.md", "presets", presets)
	upToDate(t, "../../docs/smart-passes.md", "passes", passes)
}

// upToDate checks that the part of file that is marked with a name is text, or rewrites it.
func upToDate(t *testing.T, file, name, text string) {
	t.Helper()
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": generated -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(was), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no %q with %q after it", file, begin, end)
	}
	got := before + begin + text + end + after
	if *update && got != string(was) {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(was) {
		t.Errorf("%s is stale: run go test ./providers/smart -run Document -update", file)
	}
}

// TestHandoverDocument holds the settings in docs/handover.md up to date.
func TestHandoverDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("| setting | default | |\n|---|---|---|\n")
	for _, s := range Handover().Settings() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.Name, s.Default, s.Doc)
	}
	upToDate(t, "../../docs/handover.md", "settings", b.String())
}

// describe writes the presets and the passes, with their settings and sources, in Markdown:
// the generated parts of docs/smart.md and docs/smart-passes.md, which come from the tables that the code runs on.
func describe() (presetsDoc, passesDoc string) {
	var b strings.Builder
	b.WriteString("| preset | what it does | passes |\n|---|---|---|\n")
	for _, p := range presets {
		land := ""
		if p.land != 1 {
			land = fmt.Sprintf("; `land` %v", p.land)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", p.name, p.doc, listed(p.passes), land)
	}
	presetsDoc = b.String()
	b.Reset()
	for _, p := range passes {
		fmt.Fprintf(&b, "### `%s` (%s)\n\n%s", p.name, p.class, p.doc)
		if p.source != "" {
			fmt.Fprintf(&b, " Source: %s.", p.source)
		}
		b.WriteString("\n\n")
		if settings := p.settings(); len(settings) > 0 {
			b.WriteString("| setting | default | |\n|---|---|---|\n")
			for _, s := range settings {
				doc := s.Doc
				if len(s.Enum) > 0 {
					doc = strings.Join(s.Enum, ", ") + ". " + doc
				}
				fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.Name, s.Default, doc)
			}
			b.WriteString("\n")
		}
	}
	return presetsDoc, strings.TrimSuffix(b.String(), "\n")
}

// listed writes a list of passes: names, with the settings that are not the defaults.
func listed(list []PassConfig) string {
	var out []string
	for _, p := range list {
		s := "`" + p.Pass
		var settings map[string]json.RawMessage
		if json.Unmarshal(p.Settings, &settings) == nil && len(settings) > 0 {
			s += " " + string(p.Settings)
		}
		out = append(out, s+"`")
	}
	return strings.Join(out, ", ")
}
