package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A Table is text in columns. Cells are cleaned, as by [Printf].
type Table struct {
	header   []string
	right    []bool
	rows     [][]string
	dividers []int // indices of the rows that a line is drawn above
	fixed    int
}

// NewTable returns a table with these column titles. A title that begins with ">" aligns its
// column to the right. A table whose titles are all empty has no header.
func NewTable(titles ...string) *Table {
	t := &Table{}
	for _, title := range titles {
		title, right := strings.CutPrefix(title, ">")
		t.header, t.right = append(t.header, plain.Line(title)), append(t.right, right)
	}
	return t
}

// Rows adds rows, and returns t.
func (t *Table) Rows(rows [][]any) *Table {
	for _, row := range rows {
		t.Row(row...)
	}
	return t
}

// Row adds a row. Integers get thousands separators.
func (t *Table) Row(cells ...any) {
	var row []string
	for _, cell := range cells {
		if n, ok := cell.(int); ok {
			row = append(row, size.Group(n))
			continue
		}
		row = append(row, plain.Line(fmt.Sprint(cell)))
	}
	t.rows = append(t.rows, row)
}

// Divide draws a line above the next row. Only boxed tables have such lines.
func (t *Table) Divide() { t.dividers = append(t.dividers, len(t.rows)) }

// Repeat makes every part of a table that [Table.Boxed] splits start with the first n columns.
func (t *Table) Repeat(n int) { t.fixed = n }

// Text returns the table without lines, its columns two spaces apart.
func (t *Table) Text(indent string) string {
	w := t.writer(t.all(), nil, text.AlignRight)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "  ", ""
	w.SetStyle(style)
	var b strings.Builder
	for line := range strings.Lines(w.Render() + "\n") {
		b.WriteString(strings.TrimRight(indent+strings.TrimPrefix(line, "  "), " \n") + "\n")
	}
	return b.String()
}

// Markdown returns the table in Markdown.
func (t *Table) Markdown() string {
	return t.writer(t.all(), nil, text.AlignDefault).RenderMarkdown() + "\n"
}

// Widths in characters.
const (
	cellFrame   = 3  // padding and border of a column
	narrowFirst = 26 // first column of a table that is too wide; its cells are wrapped
)

// Boxed returns the table with lines around it. One that is wider than width characters is
// split into several, one below the other; zero means no limit.
func (t *Table) Boxed(width int) string {
	whole := t.box(t.all(), nil)
	if width <= 0 || text.LongestLineLen(whole) <= width {
		return whole
	}
	widths := make([]int, len(t.header)) // titles are wrapped between words
	for i := range widths {
		for word := range strings.FieldsSeq(t.header[i]) {
			widths[i] = max(widths[i], text.StringWidth(word))
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], text.StringWidth(row[i]))
		}
	}
	widths[0] = min(widths[0], narrowFirst)
	fixed := t.all()[:max(1, t.fixed)]
	first := 1 + plain.Sum(fixed, func(i int) int { return widths[i] + cellFrame }) // with the left border
	var parts []string
	part, used := slices.Clone(fixed), first
	for _, i := range t.all()[len(fixed):] {
		if used += widths[i] + cellFrame; used > width && len(part) > len(fixed) {
			parts = append(parts, t.box(part, widths))
			part, used = slices.Clone(fixed), first+widths[i]+cellFrame
		}
		part = append(part, i)
	}
	return strings.Join(append(parts, t.box(part, widths)), "")
}

func (t *Table) all() []int {
	all := make([]int, len(t.header))
	for i := range all {
		all[i] = i
	}
	return all
}

func (t *Table) box(columns, widths []int) string {
	w := t.writer(columns, widths, text.AlignDefault)
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	return w.Render() + "\n"
}

// writer returns a writer of some columns, wrapped to widths unless they are nil. Titles is the
// alignment of titles of columns that are aligned to the right.
func (t *Table) writer(columns, widths []int, titles text.Align) table.Writer {
	w := table.NewWriter()
	var configs []table.ColumnConfig
	for n, i := range columns {
		c := table.ColumnConfig{Number: n + 1}
		if t.right[i] {
			c.Align, c.AlignHeader = text.AlignRight, titles
		}
		if widths != nil {
			c.WidthMax = widths[i]
			if c.WidthMaxEnforcer = text.WrapSoft; i == 0 {
				c.WidthMaxEnforcer = text.WrapHard // settings in JSON have no spaces
			}
		}
		configs = append(configs, c)
	}
	w.SetColumnConfigs(configs)
	pick := func(from []string) table.Row {
		return plain.Each(columns, func(i int) any { return from[i] })
	}
	if strings.Join(t.header, "") != "" {
		w.AppendHeader(pick(t.header))
	}
	next := t.dividers
	for i, row := range t.rows {
		if len(next) > 0 && next[0] == i {
			w.AppendSeparator()
			next = next[1:]
		}
		w.AppendRow(pick(row))
	}
	return w
}
