package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/condensehq/condense/compare"
)

// roundColumns are those of the table of rounds.
var roundColumns = []column{
	{compare.MeasurePanel, "needed later"},
	{"once", "condensed once"},
	{compare.MeasureUser, "user's words"},
	{"once_user", "condensed once"},
	{"first_user", "user's words of the beginning"},
	{"first_files", "files of the beginning"},
}

// writeRounds writes what is left after every round; nothing if none were asked for.
func writeRounds(w io.Writer, r *compare.Report, markdown bool) {
	if len(r.RoundLines) == 0 {
		return
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"strategy", "round", "sessions"}
	configs := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}}
	for i, c := range roundColumns {
		header = append(header, c.title)
		configs = append(configs, table.ColumnConfig{Number: i + 4, Align: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	last := ""
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		if !markdown && last != "" && l.Strategy != last {
			t.AppendSeparator()
		}
		last = l.Strategy
		sessions := 0
		for _, e := range l.Values {
			sessions = max(sessions, e.Sessions)
		}
		row := table.Row{l.Strategy, l.Round, sessions}
		for _, c := range roundColumns {
			text := ""
			if e, ok := l.Values[c.measure]; ok {
				text = fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
			}
			row = append(row, text)
		}
		t.AppendRow(row)
	}
	title, body := "condensed along the way", t.Render
	if markdown {
		title, body = "### "+title+"\n", t.RenderMarkdown
	}
	fmt.Fprintf(w, "\n%s\n%s\n", title, body())
}
