package supervise

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// What a plugin may write. More is read, so that it does not hang on a full pipe, but
// slowly, so that it costs it more than the host.
const (
	maxLine   = 8 << 10 // bytes of a line that are logged
	lineRate  = 20      // lines logged a second …
	lineBurst = 500     // … and at once
	byteRate  = 4 << 20 // bytes read a second …
	byteBurst = 1 << 20 // … and at once
	// maxTail is what is kept of the last output, for a crash report; maxHead what is
	// kept from the first line on that announces a crash. A Go program that runs out of
	// memory writes more after the cause than any tail would hold.
	maxTail = 64 << 10
	maxHead = 16 << 10
)

// An output takes what a process writes, by whatever way, into the host's log and keeps
// what a crash report needs. It is safe for concurrent use.
type output struct {
	log     *slog.Logger
	hurried chan struct{} // closed when the process has ended: the rest is read at once
	once    sync.Once

	mu      sync.Mutex
	lines   bucket
	bytes   bucket
	dropped int       // lines, since the log last said so
	noted   time.Time // when it did
	tail    []string
	tailLen int
	head    []string
	headLen int
	crashed bool // head has begun
}

func newOutput(log *slog.Logger) *output {
	now := time.Now()
	return &output{
		log: log, hurried: make(chan struct{}),
		lines: bucket{rate: lineRate, burst: lineBurst, level: lineBurst, at: now},
		bytes: bucket{rate: byteRate, burst: byteBurst, level: byteBurst, at: now},
	}
}

// read takes in r to its end.
func (o *output) read(r io.Reader, stream string) {
	w := o.writer(stream)
	_, _ = io.Copy(w, r)
	w.flush()
}

// write takes in a piece that is complete.
func (o *output) write(p []byte, stream string) {
	w := o.writer(stream)
	_, _ = w.Write(p)
	w.flush()
}

// writer returns a writer whose lines are taken in. It is not safe for concurrent use.
func (o *output) writer(stream string) *lineWriter { return &lineWriter{o: o, stream: stream} }

// A lineWriter cuts what is written to it into lines. It never fails.
type lineWriter struct {
	o      *output
	stream string
	line   []byte
	cut    bool // the line was longer
}

// Write takes in p. It blocks if the process writes faster than it may.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	w.o.throttle(n)
	for len(p) > 0 {
		piece, rest, found := bytes.Cut(p, []byte("\n"))
		if room := maxLine - len(w.line); len(piece) > room {
			piece, w.cut = piece[:room], true
		}
		w.line = append(w.line, piece...)
		if found {
			w.flush()
		}
		p = rest
	}
	return n, nil
}

// flush ends the line.
func (w *lineWriter) flush() {
	line := strings.TrimRight(printable(string(w.line)), " \t\r")
	if w.cut {
		line += " […]"
	}
	w.line, w.cut = w.line[:0], false
	if line != "" {
		w.o.take(line, w.stream)
	}
}

// throttle waits until n more bytes may be read, or the process has ended.
func (o *output) throttle(n int) {
	o.mu.Lock()
	wait := o.bytes.take(time.Now(), float64(n))
	o.mu.Unlock()
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.hurried:
	}
}

// hurry ends throttling.
func (o *output) hurry() { o.once.Do(func() { close(o.hurried) }) }

// take keeps a line and logs it, unless there are too many.
func (o *output) take(line, stream string) {
	o.mu.Lock()
	crashing := o.crashed // so the report has this line
	o.keep(line)
	now, dropped := time.Now(), 0
	ok := o.lines.has(now)
	if !ok {
		o.dropped++
	}
	if o.dropped > 0 && now.Sub(o.noted) > time.Second {
		dropped, o.dropped, o.noted = o.dropped, 0, now
	}
	o.mu.Unlock()
	ctx := context.Background()
	if dropped > 0 {
		o.log.WarnContext(ctx, "plugin writes too much", "dropped_lines", dropped)
	}
	if !ok {
		return
	}
	e := parseEntry(line)
	if crashing {
		e.level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("stream", stream)}
	if len(e.attrs) > 0 {
		// In a group of their own: a plugin must not pass for another one.
		attrs = append(attrs, slog.Attr{Key: "fields", Value: slog.GroupValue(e.attrs...)})
	}
	o.log.LogAttrs(ctx, e.level, e.message, attrs...) //nolint:sloglint // the plugin's words
}

// room reports whether a line may be logged, and counts it.
func (o *output) room() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.has(time.Now())
}

// close reports what was dropped last.
func (o *output) close() {
	o.mu.Lock()
	dropped := o.dropped
	o.dropped = 0
	o.mu.Unlock()
	if dropped > 0 {
		o.log.WarnContext(context.Background(), "plugin wrote too much", "dropped_lines", dropped)
	}
}

// keep remembers a line for a crash report.
func (o *output) keep(line string) {
	if o.crashed || beginsCrash(line) {
		o.crashed = true
		if o.headLen += len(line) + 1; o.headLen <= maxHead {
			o.head = append(o.head, line)
		}
	}
	o.tail = append(o.tail, line)
	for o.tailLen += len(line) + 1; o.tailLen > maxTail; {
		o.tailLen -= len(o.tail[0]) + 1
		o.tail = o.tail[1:]
	}
}

// lastLines returns the last n lines, for an error.
func (o *output) lastLines(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.tail[max(0, len(o.tail)-n):]
	short := make([]string, len(lines))
	for i, l := range lines {
		if e := parseEntry(l); e.message != "" {
			l = e.message
		}
		short[i] = clip(l, 300)
	}
	return strings.Join(short, " / ")
}

// crash returns what was written of a crash: the headline, and all that was kept.
func (o *output) crash() (headline, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.head) > 0 {
		return headlineOf(o.head), strings.Join(o.head, "\n")
	}
	return "", strings.Join(o.tail, "\n")
}

// A bucket is a rate with a burst.
type bucket struct {
	rate, burst float64 // a second; at once
	level       float64
	at          time.Time
}

func (b *bucket) fill(now time.Time) {
	b.level = min(b.burst, b.level+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
}

// has takes one if there is one.
func (b *bucket) has(now time.Time) bool {
	b.fill(now)
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}

// take takes n in any case, and returns how long to wait for it.
func (b *bucket) take(now time.Time, n float64) time.Duration {
	b.fill(now)
	b.level -= n
	if b.level >= 0 {
		return 0
	}
	return time.Duration(-b.level / b.rate * float64(time.Second))
}

var _ io.Writer = (*lineWriter)(nil)
