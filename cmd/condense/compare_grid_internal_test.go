package main

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Tables were 170 characters wide whatever the terminal; on 80 columns they wrapped into
// rubble.
func TestTablesAreNoWiderThanTheTerminalAndLoseNothing(t *testing.T) {
	t.Parallel()
	g := grid{header: []string{"strategy", "sessions", "needed later (of the oracle)", "far back", "user's words", "files", "errors", "tokens left", "head untouched", "ms"}}
	for i, name := range []string{"oracle", "smart/observation_masking", `mine=smart{"preset":"balanced","tail":0.25,"human":0.5}`} {
		g.divide(i == 1)
		row := []string{name, "10"}
		for j := range g.header[2:] {
			row = append(row, "0."+strings.Repeat(string(rune('1'+j)), 3)+" ±0.01"+string(rune('1'+i)))
		}
		row[2] += " (87 %)"
		g.rows = append(g.rows, row)
	}
	whole := g.render(false, 0)
	if w := text.LongestLineLen(whole); w < 150 {
		t.Fatalf("the whole table is %d wide: too narrow for this test", w)
	}
	for _, width := range []int{60, 80, 100, 120, 1000} {
		got := g.render(false, width)
		if w := text.LongestLineLen(got); w > width {
			t.Errorf("%d columns: the table is %d wide:\n%s", width, w, got)
		}
		for _, row := range g.rows {
			for _, cell := range row[1:] {
				if !strings.Contains(got, cell) {
					t.Errorf("%d columns: %q is lost:\n%s", width, cell, got)
				}
			}
		}
		for _, head := range g.header {
			for word := range strings.FieldsSeq(head) {
				if !strings.Contains(got, word) {
					t.Errorf("%d columns: the head %q is lost:\n%s", width, word, got)
				}
			}
		}
	}
	if g.render(false, 1000) != whole {
		t.Error("a wide terminal changes the table")
	}
	if g.render(true, 40) != g.render(true, 0) {
		t.Error("Markdown depends on the terminal")
	}
}
