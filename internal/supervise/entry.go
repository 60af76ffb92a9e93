package supervise

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// An entry is a line of output as the host logs it.
type entry struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// What of an entry is logged. Keys and values are a plugin's and may be anything.
const (
	maxAttrs     = 16
	maxAttrBytes = 1 << 10
)

// The names that loggers in JSON give to level, message and time: hclog's, slog's, and
// pino's and others'. The time is left out: the host's log has its own.
var (
	levelKeys   = []string{"@level", "level"}
	messageKeys = []string{"@message", "msg", "message"}
	otherKeys   = []string{"@timestamp", "time", "timestamp", "ts", "pid", "hostname"}
)

// parseEntry reads a line: JSON of the usual loggers, text with the usual prefixes, or
// anything else.
func parseEntry(line string) entry {
	if strings.HasPrefix(line, "{") {
		if e, ok := parseJSON(line); ok {
			return e
		}
	}
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(line, p.text); ok {
			return entry{level: p.level, message: strings.TrimSpace(rest)}
		}
	}
	if beginsCrash(line) {
		return entry{level: slog.LevelError, message: line}
	}
	return entry{level: slog.LevelInfo, message: line}
}

var prefixes = []struct {
	text  string
	level slog.Level
}{
	{"[TRACE]", slog.LevelDebug},
	{"[DEBUG]", slog.LevelDebug},
	{"[INFO]", slog.LevelInfo},
	{"[WARN]", slog.LevelWarn},
	{"[ERROR]", slog.LevelError},
	{"[ERR]", slog.LevelError},
}

// parseJSON trusts nothing: go-plugin's own reader panics if a value is of another type
// than it expects.
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
