package config //nolint:testpackage // the tables are made from the fields

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/providers"
)

// The tables of docs/configuration.md are made from the tags of the settings.
func TestReferenceIsCurrent(t *testing.T) {
	const page = "../docs/configuration.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	marked := regexp.MustCompile(`(?s)(<!-- table: ([^,]+), [^\n]*-->\n).*?(<!-- end -->)`)
	got := marked.ReplaceAllStringFunc(string(text), func(s string) string {
		m := marked.FindStringSubmatch(s)
		found++
		if m[2] == "presets" {
			return m[1] + referencePresets() + m[3]
		}
		return m[1] + referenceTable(place(m[2])) + m[3]
	})
	if found != 15 {
		t.Errorf("got %d tables, want 15", found)
	}
	table, err := os.ReadFile("../internal/catalog/table.json")
	if err != nil {
		t.Fatal(err)
	}
	var models struct {
		Source string
		AsOf   string `json:"as_of"`
	}
	if err := json.Unmarshal(table, &models); err != nil {
		t.Fatal(err)
	}
	if source := models.Source + ", prices as of " + models.AsOf; models.AsOf == "" || !strings.Contains(got, source) {
		t.Errorf("%s does not name the source of the table of models: %s", page, source)
	}
	if f := flag.Lookup("update"); f.Value.String() == "true" {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), got); diff != "" {
		t.Errorf("%s is stale; run go test ./config -update (-want +got):\n%s", page, diff)
	}
}

// referenceTable lists the keys of a place. The keys that a profile or a mode shares with the
// top level are documented there and only named here.
func referenceTable(at place) string {
	var b strings.Builder
	var inherited []string
	opts := Options{Chain: providers.Chain()}
	cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
	b.WriteString("| Key | Value | Default | Meaning |\n|---|---|---|---|\n")
	for _, f := range fieldsAt(at) {
		if f.at != at {
			inherited = append(inherited, "`"+f.key+"`")
			continue
		}
		def := "–"
		if v := opts.def(f); v != nil {
			def = "`" + compact(v) + "`"
		}
		allowed := f.allowed()
		if f.example != "" && f.kind != kindBool && f.kind != kindEnum && !strings.Contains(allowed, f.example) {
			allowed += ", as in `" + f.example + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.key, cell(allowed), cell(def), cell(f.doc))
	}
	if len(inherited) > 0 {
		fmt.Fprintf(&b, "\nand, to override the [top level](#top-level): %s.\n", strings.Join(inherited, ", "))
	}
	return b.String()
}

func referencePresets() string {
	var b strings.Builder
	for _, p := range presets() {
		fmt.Fprintf(&b, "### %s\n\n%s Its values, which the profile's own override:\n\n```yaml\n", p.name, p.doc)
		for _, f := range fieldsAt(inProfile) {
			if v, ok := p.values[f.key]; ok {
				fmt.Fprintf(&b, "%s: %s\n", f.key, compact(v))
			}
		}
		b.WriteString("```\n\nProviders that it brings, for any chain:\n\n```yaml\n")
		for _, name := range sortedKeys(p.providers) {
			fmt.Fprintf(&b, "%s: %s\n", name, compact(p.providers[name]))
		}
		b.WriteString("```\n")
	}
	return b.String()
}
