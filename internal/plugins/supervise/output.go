package supervise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/plain"
)

// Limits of a plugin's output. The rest is read too, so that the plugin does not block on a
// full pipe, but slowly, so that it costs the plugin more than the host.
const (
	maxLine   = 8 << 10 // bytes of a line that are logged
	lineRate  = 20      // lines logged a second …
	lineBurst = 500     // … and at once
	byteRate  = 4 << 20 // bytes read a second …
	byteBurst = 1 << 20 // … and at once
	// maxTail is how much of the last output is kept for a crash report, maxHead how much
	// from the first line of a crash. A Go program that runs out of memory writes more
	// after the cause than the tail can contain.
	maxTail = 64 << 10
	maxHead = 16 << 10
)

// An output writes the output of a process to the host's log and keeps the end of it for a crash report. It is safe
// for concurrent use.
type output struct {
	log     *slog.Logger
	hurried chan struct{} // closed when the process has ended: the rest is read at once
	once    sync.Once

	mu      sync.Mutex
	lines   bucket
	bytes   bucket
	dropped int       // lines that were dropped and not yet reported
	noted   time.Time // when dropped lines were last reported
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

// read reads r to its end.
func (o *output) read(r io.Reader, stream string) {
	w := o.writer(stream)
	_, _ = io.Copy(w, r)
	w.flush()
}

// write handles complete output.
func (o *output) write(p []byte, stream string) {
	w := o.writer(stream)
	_, _ = w.Write(p)
	w.flush()
}

// writer returns a writer of lines. It is not safe for concurrent use.
func (o *output) writer(stream string) *lineWriter { return &lineWriter{o: o, stream: stream} }

// A lineWriter splits its input into lines. It never fails.
type lineWriter struct {
	o      *output
	stream string
	line   []byte
	cut    bool // the line was longer
}

// Write implements [io.Writer]. It blocks if the process writes faster than it may.
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
	crashing := o.crashed // then the report has this line
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
		o.log.WarnContext(ctx, "plugin output is limited", "dropped_lines", dropped)
	}
	if !ok {
		return
	}
	e := parseEntry(line)
	if crashing {
		e.level = slog.LevelDebug
	}
	attrs := []slog.Attr{slog.String("stream", stream)}
	for _, a := range e.attrs {
		if slices.Contains(hostKeys, a.Key) {
			a.Key = "fields." + a.Key
		}
		attrs = append(attrs, a)
	}
	o.log.LogAttrs(ctx, e.level, e.message, attrs...) //nolint:sloglint // the plugin's message
}

// hostKeys are the attributes of a line that the host sets. A plugin's own attributes of these names are renamed, so
// that it cannot set the host's.
var hostKeys = []string{"plugin", "stream", slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey}

// room reports whether a line may be logged, and counts it.
func (o *output) room() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines.has(time.Now())
}

// close reports the lines dropped last.
func (o *output) close() {
	o.mu.Lock()
	dropped := o.dropped
	o.dropped = 0
	o.mu.Unlock()
	if dropped > 0 {
		o.log.WarnContext(context.Background(), "plugin output was limited", "dropped_lines", dropped)
	}
}

// keep stores a line for a crash report.
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

// crash returns the output of a crash: the headline and everything from there on, or the last output without debug
// lines.
func (o *output) crash() (headline, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.head) > 0 {
		return headlineOf(o.head), strings.Join(o.head, "\n")
	}
	var said []string
	for _, l := range o.tail {
		e := parseEntry(l)
		if e.level == slog.LevelDebug {
			continue // such as an SDK's messages about its start
		}
		said = append(said, cmp.Or(e.message, l))
	}
	return "", strings.Join(said, "\n")
}

// A bucket is a token bucket: a rate with a burst.
type bucket struct {
	rate, burst float64 // a second; at once
	level       float64
	at          time.Time
}

func (b *bucket) fill(now time.Time) {
	b.level = min(b.burst, b.level+now.Sub(b.at).Seconds()*b.rate)
	b.at = now
}

// has takes one token if there is one.
func (b *bucket) has(now time.Time) bool {
	b.fill(now)
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}

// take takes n tokens in any case, and returns how long to wait for them.
func (b *bucket) take(now time.Time, n float64) time.Duration {
	b.fill(now)
	b.level -= n
	if b.level >= 0 {
		return 0
	}
	return time.Duration(-b.level / b.rate * float64(time.Second))
}

var _ io.Writer = (*lineWriter)(nil)

// An entry is a line of output as the host logs it.
type entry struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// Limits of an entry. Keys and values come from the plugin and may be anything.
const (
	maxAttrs     = 16
	maxAttrBytes = 1 << 10
)

// The names of level, message and time in JSON logs: of hclog, slog, pino and others. The
// time is dropped: the host's log has its own.
var (
	levelKeys   = []string{"@level", "level"}
	messageKeys = []string{"@message", "msg", "message"}
	otherKeys   = []string{"@timestamp", "time", "timestamp", "ts", "pid", "hostname"}
)

// parseEntry parses a line: JSON of common loggers, text with a common prefix, or anything
// else.
func parseEntry(line string) entry {
	if strings.HasPrefix(line, "{") {
		if e, ok := parseJSON(line); ok {
			return e
		}
	}
	if m := prefix().FindStringSubmatch(line); m != nil {
		return entry{level: parseLevel(m[1]), message: strings.TrimSpace(m[2])}
	}
	if beginsCrash(line) {
		return entry{level: slog.LevelError, message: line}
	}
	return entry{level: slog.LevelInfo, message: line}
}

// prefix matches a line that begins with its level.
var prefix = plain.Pattern(`(?s)^\[(TRACE|DEBUG|INFO|WARN|ERROR|ERR)\](.*)`)

// parseJSON accepts values of any type; go-plugin's own parser panics on some.
func parseJSON(line string) (entry, bool) {
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return entry{}, false
	}
	pick := func(keys []string) (found string) {
		for _, k := range keys {
			if s, ok := fields[k].(string); ok && found == "" {
				found = s
				delete(fields, k)
			}
		}
		return found
	}
	level, message := pick(levelKeys), pick(messageKeys)
	if message == "" {
		return entry{}, false
	}
	for _, k := range otherKeys {
		delete(fields, k)
	}
	e := entry{level: parseLevel(level), message: clip(printable(message), maxLine)}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if len(e.attrs) == maxAttrs {
			break
		}
		e.attrs = append(e.attrs, slog.String(clip(printable(k), 100), clip(printable(fmt.Sprint(fields[k])), maxAttrBytes)))
	}
	return e, true
}

func parseLevel(s string) slog.Level {
	switch strings.ToLower(s) {
	case "trace", "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error", "err", "fatal", "panic", "critical":
		return slog.LevelError
	}
	return slog.LevelInfo
}
