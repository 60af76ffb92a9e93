package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A fault reports where data is not what its format demands.
type fault struct {
	Offset  int    // bytes before it
	Message int    // number of the message concerned, the first is 1; 0 if none
	Found   string // what is there
	Want    string // what is expected
	CutOff  bool   // the file ends where more must follow
}

// Error says what was found and what was expected.
func (e *fault) Error() string {
	if e.Want == "" {
		return "found " + e.Found
	}
	return "found " + e.Found + "; want " + e.Want
}

// in puts the offset of raw, a part of data, and the number of the message before an
// error about raw.
func (e *fault) in(data, raw []byte, message int) *fault {
	e.Offset += offsetIn(data, raw)
	e.Message = message
	return e
}

// validate checks that data is one JSON value. The error says where it is not.
func validate(data []byte) *fault {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	e := &fault{Found: "no valid JSON", Want: "one JSON value"}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = max(0, int(syntax.Offset)-1)
		e.Found = syntax.Error()
	}
	if strings.HasSuffix(e.Found, "exceeded max depth") {
		e.Found, e.Want = "values nested more than 10000 deep", "fewer"
	}
	if skipSpace(data, 0) == len(data) {
		e.Found, e.Offset = "nothing", 0
	} else if e.Found == "unexpected end of JSON input" {
		e.Offset = len(data)
		e.Found = fmt.Sprintf("the end of the file in the middle of a JSON value, at byte %d", len(data))
		e.Want = "a complete file; was it cut off?"
		e.CutOff = true
	}
	return e
}

// describe names the raw value for an error: its type, and itself if it is short.
func describe(raw []byte) string {
	switch {
	case raw == nil:
		return "nothing"
	case isObject(raw):
		return "an object"
	case isArray(raw):
		return "an array"
	case len(raw) > 40:
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:40], nil))
	}
	return string(raw)
}

// missing reports that the block raw lacks a field or has it with another type.
func missing(raw []byte, kind, name, want string) *fault {
	e := &fault{Found: "a block", Want: want}
	if kind != "" {
		e.Found = article(kind) + " block"
	}
	if v := field(raw, name); v != nil {
		e.Offset = offsetIn(raw, v)
		e.Found += ` with ` + describe(v) + ` as "` + name + `"`
	} else {
		e.Found += ` without "` + name + `"`
	}
	return e
}

// article puts a or an before a word.
func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// withoutContent reports a message of another shape: read as if it said nothing, all that it
// says would be lost.
func withoutContent() *fault {
	return &fault{Found: `a message without "content"`, Want: "a message in the shape of the vendor's API"}
}

func wrongRole(raw, role []byte, want string) *fault {
	e := &fault{Found: `no "role"`, Want: `a "role" of ` + want}
	if role != nil {
		e.Offset = offsetIn(raw, role)
		e.Found = `the "role" ` + describe(role)
		e.Want = want
	}
	return e
}

func wrongMessages(data, value []byte) *fault {
	e := &fault{Found: `an object without "messages"`, Want: `an array as "messages"`}
	if value != nil {
		e.Offset = offsetIn(data, value)
		e.Found = describe(value) + ` as "messages"`
	}
	return e
}

// missingIn is missing for an element of the array list.
func missingIn(list, raw []byte, kind, name, want string) *fault {
	e := missing(raw, kind, name, want)
	e.Offset += offsetIn(list, raw)
	return e
}
