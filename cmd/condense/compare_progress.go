package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/condensehq/condense/internal/lab"
)

// A progress says how far a comparison is: on a terminal in one line that
// is written again and again, elsewhere in a line now and then, as logs like it.
type progress struct {
	w        io.Writer // nil: it is silent
	doing    string    // what is in progress; empty for the measuring
	terminal bool
	last     time.Time
	width    int
}

// quietFor is how long nothing is said where there is no terminal.
const quietFor = 5 * time.Second

func (a *app) newProgress(quiet bool) *progress {
	if quiet {
		return &progress{}
	}
	f, ok := a.stderr.(*os.File)
	terminal := ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
	return &progress{w: a.stderr, terminal: terminal, last: time.Now()}
}

func (p *progress) show(s lab.Progress) {
	if p.w == nil || !p.terminal && time.Since(p.last) < quietFor {
		return
	}
	p.last = time.Now()
	text := p.doing + fmt.Sprintf("%d/%d sessions, %s results", s.Done, s.Total, thousands(s.Rows))
	if s.Cached > 0 {
		text += fmt.Sprintf(" (%s known)", thousands(s.Cached))
	}
	if s.USD > 0 {
		text += fmt.Sprintf(", %.4f USD", s.USD)
	}
	if s.Left > 0 && s.Done < s.Total {
		text += fmt.Sprintf(", about %s left", s.Left.Round(time.Second))
	}
	if !p.terminal {
		printf(p.w, "%s\n", text)
		return
	}
	printf(p.w, "\r%-*s", p.width, text)
	p.width = len(text)
}

// end clears the line.
func (p *progress) end() {
	if p.terminal && p.width > 0 {
		printf(p.w, "\r%*s\r", p.width, "")
	}
}
