package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A row is a line of a JSONL file that holds a JSON object.
type row struct {
	raw  []byte // without white space around it
	at   int    // where it begins in the file
	line int    // the first is 1
}

// rows returns the lines of data, without the empty ones. Programs append to such files,
// and when one is killed the last line may be incomplete: that one is left out, and
// reported by cut.
func rows(data []byte) (all []row, cut *Warning, err error) {
	last := len(bytes.TrimRight(data, " \t\r\n"))
	all = make([]row, 0, bytes.Count(data, []byte("\n"))+1)
	for n, raw := range lines(data) {
		at := offsetIn(data, raw)
		at += skipSpace(raw, 0)
		raw = data[at : offsetIn(data, raw)+len(bytes.TrimRight(raw, " \t"))]
		if len(raw) == 0 {
			continue
		}
		if !json.Valid(raw) {
			e := invalidRow(raw)
			if at+len(raw) == last && e.Offset == len(raw) && len(all) > 0 {
				return all, &Warning{Text: fmt.Sprintf("line %d: the last line is incomplete and was left out: %d bytes", n, len(raw))}, nil
			}
			e.Offset += at
			return nil, nil, e
		}
		if !isObject(raw) {
			return nil, nil, &SyntaxError{Offset: at, Found: describe(raw), Want: "an object on every line"}
		}
		all = append(all, row{raw: raw, at: at, line: n})
	}
	return all, nil, nil
}

// invalidRow says what is wrong with a line that is no JSON. The offset is the length of
// the line if it merely ends too early.
func invalidRow(raw []byte) *SyntaxError {
	e := validate(raw)
	e.Want = "one JSON object on every line"
	if e.Offset == len(raw) {
		e.Found = "the end of the line inside a JSON value"
	}
	return e
}

// in puts the offset of raw, a part of data, and the number of the message before an
// error about raw.
func (e *SyntaxError) in(data, raw []byte, message int) *SyntaxError {
	e.Offset += offsetIn(data, raw)
	e.Message = message
	return e
}

// lineBreak returns how the lines of data end.
func lineBreak(data []byte) string {
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// timestamp returns the time in a raw value as RFC 3339 has it; zero if there is none.
func timestamp(raw []byte) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text(raw))
	if err != nil {
		return time.Time{}
	}
	return t
}

// appendTimestamp appends t as agents write it: UTC, with milliseconds.
func appendTimestamp(out []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(out, `"2006-01-02T15:04:05.000Z"`)
}

// asSyntax returns the SyntaxError in err, or nil.
func asSyntax(err error) *SyntaxError {
	var e *SyntaxError
	errors.As(err, &e)
	return e
}
