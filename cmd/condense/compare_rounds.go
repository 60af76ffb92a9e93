package main

import (
	"fmt"
	"io"
	"strconv"

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
	g := grid{header: []string{"strategy", "round", "sessions"}}
	for _, c := range roundColumns {
		g.header = append(g.header, c.title)
	}
	last := ""
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		g.divide(!markdown && last != "" && l.Strategy != last)
		last = l.Strategy
		sessions := 0
		for _, e := range l.Values {
			sessions = max(sessions, e.Sessions)
		}
		row := []string{l.Strategy, strconv.Itoa(l.Round), strconv.Itoa(sessions)}
		for _, c := range roundColumns {
			text := ""
			if e, ok := l.Values[c.measure]; ok {
				text = fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
			}
			row = append(row, text)
		}
		g.rows = append(g.rows, row)
	}
	g.fixed = 2
	g.write(w, "condensed along the way", markdown, width)
}
