package house_test

import (
	"os"
	"strings"
	"testing"
)

// TestPublishedTableIsItsSource: each number in the table of docs/smart.md is in bench/results/presets.md, in the row of the strategy
// and under
// the heading that the table names. A column that is added to the results once shifted the published ones.
func TestPublishedTableIsItsSource(t *testing.T) {
	results := tables(t, "bench/results/presets.md")
	published := tables(t, "docs/smart.md")["Results"]
	if len(published) < 10 {
		t.Fatalf("the table of docs/smart.md has %d rows", len(published))
	}
	columns := []struct{ published, source, budgets string }{
		{"needed later, at 10 %", "needed later", "10%"},
		{"25 %", "needed later", "25%"},
		{"50 %", "needed later", "50%"},
		{"recorded compactions", "needed later", "real"},
		{"far back, at 10, 25, 50 %", "far back", "10% 25% 50%"},
		{"user's words, at 10, 25 %", "user's words", "10% 25%"},
	}
	for strategy, row := range published {
		for _, c := range columns {
			var want []string
			for b := range strings.FieldsSeq(c.budgets) {
				cell := results["budget "+b][strings.Trim(strategy, "`")][c.source]
				if strings.Contains(c.budgets, " ") {
					cell, _, _ = strings.Cut(cell, " ") // several in a cell have no interval
				}
				want = append(want, strings.TrimSpace(cell))
			}
			if got := row[c.published]; got != strings.Join(want, ", ") {
				t.Errorf("docs/smart.md, %s, %q: %s, and bench/results/presets.md has %q", strategy, c.published, got, want)
			}
		}
	}
}

// tables returns the tables of a document: by heading, by first cell, by name of the column.
func tables(t *testing.T, file string) map[string]map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]map[string]string{}
	heading, header := "", []string(nil)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title := strings.TrimLeft(line, "#"); title != line {
			heading, header = strings.TrimSpace(title), nil
			continue
		}
		if !strings.HasPrefix(line, "|") {
			header = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case header == nil:
			header = cells
			if found[heading] == nil {
				found[heading] = map[string]map[string]string{}
			}
		case strings.Trim(cells[0], "-: ") != "" && len(cells) == len(header):
			row := map[string]string{}
			for i, name := range header {
				row[name] = cells[i]
			}
			found[heading][cells[0]] = row
		}
	}
	return found
}
