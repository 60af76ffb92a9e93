package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A row is a line of a JSONL file that holds a JSON object.
type row struct {
	raw  []byte // without white space around it
	at   int    // where it begins in the file
	line int    // the first is 1
}

// rows returns the objects of data, which has one on every line. Programs append to such
// files, and what happens to them then is repaired and reported: when one is killed the
// last line may be incomplete, and is left out; when two write at a time a line break may
// be missing.
func rows(data []byte) (all []row, warnings []FileWarning, err error) {
	end := len(bytes.TrimRight(data, " \t\r\n"))
	all = make([]row, 0, bytes.Count(data, []byte("\n"))+1)
	for n, raw := range lines(data) {
		raw = bytes.Trim(raw, " \t\r")
		if len(raw) == 0 {
			continue
		}
		at := offsetIn(data, raw)
		if json.Valid(raw) {
			if !isObject(raw) {
				return nil, nil, &fault{Offset: at, Found: describe(raw), Want: "an object on every line"}
			}
			all = append(all, row{raw: raw, at: at, line: n})
			continue
		}
		for rest := raw; len(rest) > 0; {
			size := skipValue(rest, 0)
			if size < 0 && at+len(raw) == end && len(all) > 0 {
				warnings = append(warnings, FileWarning{Text: fmt.Sprintf("line %d, the last, is incomplete and was left out", n)})
				break
			}
			object := rest[:max(size, 0)]
			if !isObject(object) || !json.Valid(object) {
				return nil, nil, invalidRow(raw, at)
			}
			all = append(all, row{raw: object, at: offsetIn(data, rest), line: n})
			rest = rest[size:]
			rest = rest[skipSpace(rest, 0):]
			if len(rest) > 0 {
				warnings = append(warnings, FileWarning{Text: fmt.Sprintf("line %d holds more than one object; taken as if each had its line", n)})
			}
		}
	}
	return all, warnings, nil
}

// invalidRow says what is wrong with a line, which begins at the given offset.
func invalidRow(raw []byte, at int) *fault {
	e := validate(raw)
	if e == nil { // JSON, but for what skipValue thinks of it
		e = &fault{Found: describe(raw)}
	}
	if e.Offset == len(raw) {
		e.Found = "the end of the line inside a JSON value"
	}
	e.Offset += at
	e.Want = "one JSON object on every line"
	return e
}

// lineBreak returns how the lines of data end.
func lineBreak(data []byte) string {
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
