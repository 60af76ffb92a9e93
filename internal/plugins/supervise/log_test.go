//go:build linux

package supervise_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// plain removes times and varying numbers from the log of b.
func (b *bench) plain() {
	b.opts.Logger = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if slices.Contains([]string{slog.TimeKey, "pid", "took", "uptime", "plugin"}, a.Key) {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// TestLogOfNonsense: a plugin writes what panics go-plugin, and control characters of a
// terminal.
func TestLogOfNonsense(t *testing.T) {
	b := newBench(t, "logs-nonsense")
	b.plain()
	p := b.open(t)
	if err := condenseOnce(t, p); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.log.String(), "\n") // after "plugin started"
	want := `level=INFO msg="{\"@message\":123}" stream=stderr
level=INFO msg=level stream=stderr @level=5
level=INFO msg=time stream=stderr
level=INFO msg={ stream=stderr
level=INFO msg=[] stream=stderr
level=INFO msg=null stream=stderr
level=INFO msg=[2J]0;ownedcleared stream=stderr
level=INFO msg="� not text" stream=stderr
level=WARN msg="well formed" stream=stderr n=1 fields.stream=mine
level=INFO msg="plugin stopped" calls=1
`
	if got != want {
		t.Errorf("got the log\n%s\nwant\n%s", got, want)
	}
}

// TestLogOfCrash: the log reports a crash once, in one record.
func TestLogOfCrash(t *testing.T) {
	b := newBench(t, "panics")
	b.plain()
	p := b.open(t)
	wantError(t, condenseOnce(t, p), nil, "crashed")
	_, got, _ := strings.Cut(b.log.String(), "\n")
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 2 || lines[0] != `level=ERROR msg="panic: a bug in a goroutine" stream=stderr` ||
		!strings.HasPrefix(lines[1], `level=ERROR msg="plugin crashed" status="exit status 2" calls=0 lost_calls=1 panic="panic: a bug in a goroutine at programs_test.go:`) ||
		!strings.Contains(lines[1], `output="panic: a bug in a goroutine\ngoroutine `) {
		t.Errorf("got the log\n%s", got)
	}
}

// TestLogOfFlood: a plugin writes as much as it can for a while.
func TestLogOfFlood(t *testing.T) {
	programs := []string{"floods-stderr", "floods-stdout", "floods-one-line"}
	together(t, programs, strings.Clone, func(t *testing.T, program string) {
		b := newBench(t, program)
		p := b.open(t)
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		wantError(t, within(t, p, 500*time.Millisecond), context.DeadlineExceeded, "no answer in time")
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		log := []byte(b.log.String())
		took := time.Since(begun)
		if n, most := bytes.Count(log, []byte("\n")), 500+22*int(took.Seconds()+1)+10; n > most {
			t.Errorf("%d lines in %s; want at most %d", n, took, most)
		}
		if n := len(log); n > 1<<20 {
			t.Errorf("%d bytes in the log", n)
		}
		if program != "floods-one-line" && !bytes.Contains(log, []byte("dropped_lines=")) {
			t.Error("nothing in the log says that lines are missing")
		}
	})
}
