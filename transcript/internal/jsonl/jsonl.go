// Package jsonl reads files of JSON lines.
package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Row is a line of a JSONL file that holds a JSON object.
type Row struct {
	Raw  []byte // without white space around it
	At   int    // where it begins in the file
	Line int    // the first is 1
}

// Array returns the objects of data, a JSON array of what a file of lines has.
func Array(data []byte) (all []Row, _ []codec.Warning, err error) {
	if bad := syntax.Validate(data); bad != nil {
		return nil, nil, bad
	}
	for raw := range rawjson.Elements(data[rawjson.SkipSpace(data, 0):]) {
		at := rawjson.Offset(data, raw)
		if !rawjson.IsObject(raw) {
			return nil, nil, &syntax.Error{Offset: at, Found: syntax.Describe(raw), Want: "an array of objects"}
		}
		all = append(all, Row{Raw: raw, At: at, Line: 1 + bytes.Count(data[:at], []byte("\n"))})
	}
	return all, nil, nil
}

// Rows returns the objects of data, which has one on every line. Programs append to such
// files, and the results of crashes are repaired and reported: if a program was killed, the
// last line may be incomplete and is left out; if two wrote at a time, a line break may be
// missing.
func Rows(data []byte) (all []Row, warnings []codec.Warning, err error) {
	end := len(bytes.TrimRight(data, " \t\r\n"))
	all = make([]Row, 0, bytes.Count(data, []byte("\n"))+1)
	for n, raw := range lines(data) {
		raw = bytes.Trim(raw, " \t\r")
		if len(raw) == 0 {
			continue
		}
		at := rawjson.Offset(data, raw)
		if json.Valid(raw) {
			if !rawjson.IsObject(raw) {
				return nil, nil, &syntax.Error{Offset: at, Found: syntax.Describe(raw), Want: "an object on every line"}
			}
			all = append(all, Row{Raw: raw, At: at, Line: n})
			continue
		}
		for rest := raw; len(rest) > 0; {
			size := rawjson.SkipValue(rest, 0)
			if size < 0 && at+len(raw) == end && len(all) > 0 {
				warnings = append(warnings, codec.Warning{Text: fmt.Sprintf("line %d, the last, is incomplete and was left out", n)})
				break
			}
			object := rest[:max(size, 0)]
			if !rawjson.IsObject(object) || !json.Valid(object) {
				return nil, nil, invalidRow(raw, at)
			}
			all = append(all, Row{Raw: object, At: rawjson.Offset(data, rest), Line: n})
			rest = rest[size:]
			rest = rest[rawjson.SkipSpace(rest, 0):]
			if len(rest) > 0 {
				warnings = append(warnings, codec.Warning{Text: fmt.Sprintf("line %d holds more than one object; taken as if each had its line", n)})
			}
		}
	}
	return all, warnings, nil
}

// invalidRow reports why a line, which begins at the given offset, is invalid.
func invalidRow(raw []byte, at int) *syntax.Error {
	e := syntax.Validate(raw)
	if e == nil { // valid, but not for rawjson
		e = &syntax.Error{Found: syntax.Describe(raw)}
	}
	if e.Offset == len(raw) {
		e.Found = "the end of the line inside a JSON value"
	}
	e.Offset += at
	e.Want = "one JSON object on every line"
	return e
}

// Line returns the object raw as one line. Parts of it may come from a file with line breaks
// between tokens.
func Line(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// LineBreak returns how the lines of data end.
func LineBreak(data []byte) []byte {
	if at := bytes.IndexByte(data, '\n'); at > 0 && data[at-1] == '\r' {
		return []byte("\r\n")
	}
	return []byte("\n")
}

// Head yields the first n lines of data that are not blank.
func Head(data []byte, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, raw := range lines(data) {
			if rawjson.SkipSpace(raw, 0) == len(raw) {
				continue
			}
			if n--; n < 0 || !yield(raw) {
				return
			}
		}
	}
}

// lines yields the lines of data with their numbers, the first is 1. A line contains neither
// its "\n" nor a "\r" before it. Empty lines are included.
func lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n, i := 1, 0; i < len(data); n++ {
			end, next := len(data), len(data)
			if at := bytes.IndexByte(data[i:], '\n'); at >= 0 {
				end, next = i+at, i+at+1
			}
			if end > i && data[end-1] == '\r' {
				end--
			}
			if !yield(n, data[i:end]) {
				return
			}
			i = next
		}
	}
}
