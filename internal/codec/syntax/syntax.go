// Package syntax reports where a file is not valid in its format.
package syntax

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// An Error reports where data is not valid in its format.
type Error struct {
	Offset  int    // bytes before it
	Message int    // number of the message concerned, the first is 1; 0 if none
	Found   string // the content there
	Want    string // the expected content
	CutOff  bool   // the file ends where more must follow
}

// Error returns the found and the expected content.
func (e *Error) Error() string {
	if e.Want == "" {
		return "found " + e.Found
	}
	return "found " + e.Found + "; want " + e.Want
}

// In converts e, an error about raw, to an error about data, of which raw is a part, and about the message with that
// number.
func (e *Error) In(data, raw []byte, message int) *Error {
	e.Offset += rawjson.Offset(data, raw)
	e.Message = message
	return e
}

// Validate checks that data is one JSON value.
func Validate(data []byte) *Error {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	e := &Error{Found: "no valid JSON", Want: "one JSON value"}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		e.Offset = max(0, int(syntax.Offset)-1)
		e.Found = syntax.Error()
	}
	if strings.HasSuffix(e.Found, "exceeded max depth") {
		e.Found, e.Want = "values nested more than 10000 deep", "fewer"
	}
	if rawjson.SkipSpace(data, 0) == len(data) {
		e.Found, e.Offset = "nothing", 0
	} else if e.Found == "unexpected end of JSON input" {
		e.Offset = len(data)
		e.Found = fmt.Sprintf("the end of the file in the middle of a JSON value, at byte %d", len(data))
		e.Want = "a complete file; was it cut off?"
		e.CutOff = true
	}
	return e
}

// Describe returns the type of the raw value, or the value itself if it is short.
func Describe(raw []byte) string {
	switch {
	case raw == nil:
		return "nothing"
	case rawjson.IsObject(raw):
		return "an object"
	case rawjson.IsArray(raw):
		return "an array"
	case len(raw) > 40:
		return fmt.Sprintf("%s…", bytes.ToValidUTF8(raw[:40], nil))
	}
	return string(raw)
}

// Missing reports that the block raw lacks a field or has it with another type.
func Missing(raw []byte, kind, name, want string) *Error {
	e := &Error{Found: "a block", Want: want}
	if kind != "" {
		e.Found = Article(kind) + " block"
	}
	if v := rawjson.Field(raw, name); v != nil {
		e.Offset = rawjson.Offset(raw, v)
		e.Found += ` with ` + Describe(v) + ` as "` + name + `"`
	} else {
		e.Found += ` without "` + name + `"`
	}
	return e
}

// Article adds a or an to a word.
func Article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// NoContent reports a message of another shape. Read as an empty message, all its content
// would be lost.
func NoContent() *Error {
	return &Error{Found: `a message without "content"`, Want: "a message in the shape of the vendor's API"}
}

// WrongRole reports that the message raw has another role than want, or none.
func WrongRole(raw, role []byte, want string) *Error {
	e := &Error{Found: `no "role"`, Want: `a "role" of ` + want}
	if role != nil {
		e.Offset = rawjson.Offset(raw, role)
		e.Found = `the "role" ` + Describe(role)
		e.Want = want
	}
	return e
}

// NoMessages reports that the object data has value, or nothing, as the member that holds its
// messages.
func NoMessages(data []byte, member string, value []byte) *Error {
	e := &Error{Found: fmt.Sprintf("an object without %q", member), Want: fmt.Sprintf("an array as %q", member)}
	if value != nil {
		e.Offset = rawjson.Offset(data, value)
		e.Found = fmt.Sprintf("%s as %q", Describe(value), member)
	}
	return e
}

// MissingIn is [Missing] for an element of the array list.
func MissingIn(list, raw []byte, kind, name, want string) *Error {
	e := Missing(raw, kind, name, want)
	e.Offset += rawjson.Offset(list, raw)
	return e
}
