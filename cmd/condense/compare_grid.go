package main

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/condensehq/condense/internal/plain"
)

// A grid is a table for people, as wide as the terminal at most.
type grid struct {
	header   []string
	rows     [][]string
	dividers []int // rows that a line is drawn before
	fixed    int   // columns after the first that every part of a divided table has, too
}

// divide draws a line before the next row if there is to be one.
func (g *grid) divide(line bool) {
	if line {
		g.dividers = append(g.dividers, len(g.rows))
	}
}

// write writes the table with a title.
func (g *grid) write(w io.Writer, title string, markdown bool, width int) {
	heading := "\n%s\n"
	if markdown {
		heading = "\n### %s\n\n"
	}
	printf(w, heading, title)
	_ = printText(w, g.render(markdown, width)+"\n") // the page is written to a buffer first
}

// Widths in characters.
const (
	cellFrame   = 3  // what a column adds to its text
	narrowFirst = 26 // of the first column, which is wrapped where the table is too wide
)

// render returns the table. One that is wider than width is divided into several, one below
// the other, which all have the first columns; zero is no bound.
func (g *grid) render(markdown bool, width int) string {
	all := make([]int, len(g.header))
	for i := range all {
		all[i] = i
	}
	whole := g.part(all, nil, markdown)
	if markdown || width <= 0 || text.LongestLineLen(whole) <= width {
		return whole
	}
	widths := make([]int, len(g.header)) // heads are wrapped between words
	for i := range widths {
		for word := range strings.FieldsSeq(g.header[i]) {
			widths[i] = max(widths[i], text.StringWidth(word))
		}
		for _, row := range g.rows {
			widths[i] = max(widths[i], text.StringWidth(row[i]))
		}
	}
	widths[0] = min(widths[0], narrowFirst)
	first := 1 // the frame
	for i := range 1 + g.fixed {
		first += widths[i] + cellFrame
	}
	var parts []string
	part, used := all[:1+g.fixed:1+g.fixed], first
	for _, i := range all[1+g.fixed:] {
		if used += widths[i] + cellFrame; used > width && len(part) > 1+g.fixed {
			parts = append(parts, g.part(part, widths, false))
			part, used = all[:1+g.fixed:1+g.fixed], first+widths[i]+cellFrame
		}
		part = append(part, i)
	}
	return strings.Join(append(parts, g.part(part, widths, false)), "\n")
}

// part returns a table of some columns, wrapped to widths unless they are nil.
func (g *grid) part(columns, widths []int, markdown bool) string {
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	var configs []table.ColumnConfig
	pick := func(from []string) table.Row {
		var out table.Row
		for _, i := range columns {
			out = append(out, plain.Line(from[i]))
		}
		return out
	}
	for n, i := range columns {
		c := table.ColumnConfig{Number: n + 1}
		if i > 0 {
			c.Align = text.AlignRight
		}
		if widths != nil {
			c.WidthMax = widths[i]
			if c.WidthMaxEnforcer = text.WrapSoft; i == 0 {
				c.WidthMaxEnforcer = text.WrapHard // settings in JSON have no spaces
			}
		}
		configs = append(configs, c)
	}
	w.AppendHeader(pick(g.header))
	w.SetColumnConfigs(configs)
	next := g.dividers
	for i, row := range g.rows {
		if len(next) > 0 && next[0] == i {
			w.AppendSeparator()
			next = next[1:]
		}
		w.AppendRow(pick(row))
	}
	if markdown {
		return w.RenderMarkdown()
	}
	return w.Render()
}
