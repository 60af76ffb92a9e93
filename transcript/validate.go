package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// validate checks that data is one JSON value. The error says where it is not.
func validate(data []byte) *SyntaxError {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	err := json.Unmarshal(data, &v)
	e := &SyntaxError{Found: "no valid JSON", Want: "one JSON value"}
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
		e.cutOff = true
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
