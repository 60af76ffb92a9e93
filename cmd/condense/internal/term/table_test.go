package term_test

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/condensehq/condense/cmd/condense/internal/term"
)

// Tables fit the terminal: lines that the terminal wraps are unreadable.
func TestTablesAreNoWiderThanTheTerminalAndLoseNothing(t *testing.T) {
	t.Parallel()
	titles := []string{"strategy", ">sessions", ">needed later (of the budget)", ">far back", ">user's words", ">files", ">errors", ">tokens left", ">cached prefix", ">ms"}
	table := term.NewTable(titles...)
	var rows [][]any
	for i, name := range []string{"keep_last", "smart/observation_masking", `mine=smart{"preset":"balanced","tail":0.25,"human":0.5}`} {
		if i == 1 {
			table.Divide()
		}
		row := []any{name, "10"}
		for j := range titles[2:] {
			row = append(row, "0."+strings.Repeat(string(rune('1'+j)), 3)+" ±0.01"+string(rune('1'+i)))
		}
		row[2] = row[2].(string) + " (87 %)"
		table.Row(row...)
		rows = append(rows, row)
	}
	whole := table.Boxed(0)
	if w := text.LongestLineLen(whole); w < 150 {
		t.Fatalf("the whole table is %d wide: too narrow for this test", w)
	}
	for _, width := range []int{60, 80, 100, 120, 1000} {
		got := table.Boxed(width)
		if w := text.LongestLineLen(got); w > width {
			t.Errorf("%d columns: the table is %d wide:\n%s", width, w, got)
		}
		for _, row := range rows {
			for _, cell := range row[1:] {
				if !strings.Contains(got, cell.(string)) {
					t.Errorf("%d columns: %q is lost:\n%s", width, cell, got)
				}
			}
		}
		for _, head := range titles {
			for word := range strings.FieldsSeq(strings.TrimPrefix(head, ">")) {
				if !strings.Contains(got, word) {
					t.Errorf("%d columns: the head %q is lost:\n%s", width, word, got)
				}
			}
		}
	}
	if table.Boxed(1000) != whole {
		t.Error("a wide terminal changes the table")
	}
}

func TestTextHasNoLines(t *testing.T) {
	t.Parallel()
	table := term.NewTable("kind", ">tokens", "")
	table.Row("user", 1234567, "")
	table.Row("a\nb", 1, "last\x1b[2J")
	const want = `  kind     tokens
  user  1,234,567
  a b           1  last�[2J
`
	if got := table.Text("  "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const markdown = "| kind | tokens |  |\n| --- | ---:| --- |\n"
	if got := table.Markdown(); !strings.HasPrefix(got, markdown) {
		t.Errorf("got\n%s\nwant it to begin with\n%s", got, markdown)
	}
}
