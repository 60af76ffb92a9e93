package main

import (
	"fmt"
	"io"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
)

// roundColumns are those of the table of rounds.
var roundColumns = []column{
	{lab.MeasurePanel, "needed later"},
	{"once", "condensed once"},
	{lab.MeasureUser, "user's words"},
	{"once_user", "condensed once"},
	{"first_user", "user's words of the beginning"},
	{"first_files", "files of the beginning"},
}

// writeRounds writes what is left after every round; nothing if none were asked for.
func writeRounds(w io.Writer, r *lab.Report, markdown bool, width int) {
	if len(r.RoundLines) == 0 {
		return
	}
	titles := []string{"strategy", ">round", ">sessions"}
	for _, c := range roundColumns {
		titles = append(titles, ">"+c.title)
	}
	t := term.NewTable(titles...)
	t.Repeat(3)
	last := ""
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		if !markdown && last != "" && l.Strategy != last {
			t.Divide()
		}
		last = l.Strategy
		sessions := 0
		for _, e := range l.Values {
			sessions = max(sessions, e.Sessions)
		}
		row := []any{l.Strategy, l.Round, sessions}
		for _, c := range roundColumns {
			text := ""
			if e, ok := l.Values[c.measure]; ok {
				text = fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
			}
			row = append(row, text)
		}
		t.Row(row...)
	}
	printTable(w, t, "condensed along the way", markdown, width)
}
