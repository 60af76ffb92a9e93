// Package apilint finds faults for which the APIs of Anthropic and OpenAI would reject a request.
//
// It checks the raw JSON and shares no code with the encoders, as an independent oracle for
// tests. Rules come from the vendors' API references and from the errors that the APIs return. A
// rule of only some models or endpoints is included.
package apilint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Fault is one reason for the vendor to reject a request.
type Fault struct {
	Index  int    // of the message, the first is 0; -1 if it concerns the request
	Rule   string // such as "tool-pair"
	Detail string // the fault without the index, so that equal faults are equal
}

// String returns the message, the rule and the fault.
func (f Fault) String() string {
	if f.Index < 0 {
		return f.Rule + ": " + f.Detail
	}
	return fmt.Sprintf("messages[%d]: %s: %s", f.Index, f.Rule, f.Detail)
}

// Added returns the faults of after that before does not have, at any index. A rewrite is not responsible for faults
// of the original conversation.
func Added(before, after []Fault) []Fault {
	had := map[Fault]int{}
	for _, f := range before {
		f.Index = 0
		had[f]++
	}
	var added []Fault
	for _, f := range after {
		key := f
		key.Index = 0
		if had[key]--; had[key] < 0 {
			added = append(added, f)
		}
	}
	return added
}

type object = map[string]any

// A linter collects faults.
type linter struct {
	at     int
	faults []Fault
}

func (l *linter) fault(rule, format string, args ...any) {
	l.faults = append(l.faults, Fault{l.at, rule, fmt.Sprintf(format, args...)})
}

// open returns the request raw and its messages. A bare array is a request without other
// members.
func (l *linter) open(raw []byte) (request object, messages []any, ok bool) {
	l.at = -1
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		l.fault("json", "%v", err)
		return nil, nil, false
	}
	l.unicode(raw)
	if array, ok := v.([]any); ok {
		v = object{"messages": array}
	}
	request, _ = v.(object)
	if messages, ok = request["messages"].([]any); !ok {
		l.fault("messages", "want an array")
	} else if len(messages) == 0 {
		l.fault("messages", "want at least one")
	}
	return request, messages, ok
}

// unicode checks that raw is text: the APIs reject bytes that are not UTF-8 and halves of surrogate
// pairs.
func (l *linter) unicode(raw []byte) {
	if !utf8.Valid(raw) {
		l.fault("utf8", "the request is not valid UTF-8")
	}
	high := -1 // where a low half must begin
	for i := bytes.IndexByte(raw, '\\'); i >= 0 && i+1 < len(raw); {
		size := 2
		if raw[i+1] == 'u' && i+6 <= len(raw) {
			size = 6
		}
		n, err := strconv.ParseUint(string(raw[i+2:i+size]), 16, 16)
		low := err == nil && n >= 0xdc00 && utf16.IsSurrogate(rune(n))
		if low != (high == i) || high >= 0 && high != i {
			l.fault("surrogate", "half of a surrogate pair")
		}
		high = -1
		if err == nil && utf16.IsSurrogate(rune(n)) && !low {
			high = i + size
		}
		next := bytes.IndexByte(raw[i+size:], '\\')
		if next < 0 {
			break
		}
		i += size + next
	}
	if high >= 0 {
		l.fault("surrogate", "half of a surrogate pair")
	}
}

// only reports members of o that the API does not know.
func (l *linter) only(what string, o object, known ...string) {
	for k := range o {
		if !slices.Contains(known, k) {
			l.fault("field", "%s has the field %q", what, k)
		}
	}
}

// require returns the member name of o, which must be a string that is not empty.
func (l *linter) require(what string, o object, name string) string {
	s, ok := o[name].(string)
	if !ok || s == "" {
		l.fault("field", "%s has no %q", what, name)
	}
	return s
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

var mediaTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (l *linter) inlineImage(mediaType, data string) {
	if !slices.Contains(mediaTypes, mediaType) {
		l.fault("image", "media type %q", mediaType)
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
		l.fault("image", "the data is not base64")
	}
}

func (l *linter) imageURL(url string) {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
		l.fault("image", "the URL is not one of the web")
	}
}

// callIDs checks that IDs of calls are valid and unique.
type callIDs struct {
	pattern *regexp.Regexp
	used    map[string]bool
}

func (l *linter) callID(c *callIDs, id string) {
	if !c.pattern.MatchString(id) {
		l.fault("tool-id", "id %q", id)
	}
	if c.used[id] {
		l.fault("tool-id", "id %q is used twice", id)
	}
	c.used[id] = true
}
