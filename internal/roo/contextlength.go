// Package roo reproduces behaviour of Roo-Code that depends on its own code: the text of tool calls for a model that
// writes a summary, and the errors of a model's API that mean a full context window. It follows Roo-Code v3.52.1,
// including JavaScript's treatment of members of unexpected types, and is checked against vectors recorded from it.
package roo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// jsSpace and jsDot are JavaScript's \s and . in Go's syntax.
const (
	jsSpace = `[\s\v\x{00A0}\x{FEFF}\p{Zs}\x{2028}\x{2029}]`
	jsDot   = `[^\n\r\x{2028}\x{2029}]`
)

var (
	gatewayOverflow = plain.Pattern(`(?i)\bcontext` + jsSpace + `*(?:length|window)\b|\bmaximum` + jsSpace + `*context\b|` +
		`\b(?:input` + jsSpace + `*)?tokens?` + jsSpace + `*exceed|\btoo` + jsSpace + `*many` + jsSpace + `*tokens?\b`)
	anthropicOverflow = plain.Pattern(`(?i)prompt is too long|maximum` + jsDot + `*tokens|context` + jsDot + `*too` + jsDot + `*long|` +
		`exceeds` + jsDot + `*context|token` + jsDot + `*limit|context_length_exceeded|max_tokens_to_sample`)
	// unfold takes out the two letters that Unicode folds to ASCII ones and JavaScript,
	// without its flag u, does not.
	unfold = strings.NewReplacer("\u212a", "\ufffd", "\u017f", "\ufffd")
)

// ContextWindowExceeded reports whether Roo-Code takes an error of a model's API for a
// context window that is too small (checkContextWindowExceededError). Value is the error
// object as JSON; apiError says that it is an APIError of OpenAI's SDK, which JSON does not
// show.
func ContextWindowExceeded(value json.RawMessage, apiError bool) bool {
	if !json.Valid(value) {
		return false
	}
	v := bytes.TrimSpace(value)
	return rawjson.IsObject(v) && (byOpenAI(v, apiError) || byGateway(v) || byAnthropic(v))
}

// ContextLengthError reports whether Roo-Code would take err, the error of an SDK, for one
// that says that the conversation exceeds the model's window. Status is its HTTP status; 0
// if unknown. The error's JSON is read through a method RawJSON() string; an error that
// Roo-Code knows by its class has a method OpenAIAPIError() bool. Any other error is read from its text, which may be
// JSON or begin with the status, as in "400 context length": earlier versions of Roo-Code did so.
func ContextLengthError(err error, status int) bool {
	var object json.RawMessage
	if r, ok := err.(interface{ RawJSON() string }); ok {
		object = json.RawMessage(r.RawJSON())
	} else {
		return fromText(err.Error(), status)
	}
	class, ok := err.(interface{ OpenAIAPIError() bool })
	if ContextWindowExceeded(object, ok && class.OpenAIAPIError()) || ContextWindowExceeded(object, false) {
		return true
	}
	if status == 0 {
		return false
	}
	seen, fault := json.Marshal(map[string]any{"status": status, "error": object}) // as a client in JavaScript sees it
	return fault == nil && ContextWindowExceeded(seen, false)
}

// statusForm matches the beginning of "Error: 400 context length exceeded".
var statusForm = plain.Pattern(`^\s*(?:\w*Error: )?([45]\d\d)\b`)

// fromText reads an error of which only the text is known. A text that names no status is taken for one of status 400,
// unless it is about a rate.
func fromText(text string, status int) bool {
	if found := statusForm().FindStringSubmatch(text); found != nil && status == 0 {
		status, _ = strconv.Atoi(found[1])
	}
	message := rawjson.Field([]byte(text), "message")
	if !json.Valid([]byte(text)) || message == nil {
		message = rawjson.AppendQuote(nil, text)
	}
	if status == 0 && !ratesForm().MatchString(text) {
		status = http.StatusBadRequest
	}
	return ContextWindowExceeded(rawjson.Append(nil, `{"status":?,"message":?}`, []byte(strconv.Itoa(status)), message), false)
}

var ratesForm = plain.Pattern(`(?i)rate|quota|per (?:minute|hour|day)`)

func byOpenAI(v []byte, apiError bool) bool {
	if rawjson.Text(rawjson.Field(v, "name")) == "LengthFinishReasonError" {
		return true
	}
	if !apiError || toString(rawjson.Field(v, "code")) != "400" {
		return false
	}
	text := rawjson.Text(rawjson.Field(v, "message"))
	return strings.Contains(text, "token") || strings.Contains(text, "context length")
}

func byGateway(v []byte) bool {
	nested, response := rawjson.Field(v, "error"), rawjson.Field(v, "response")
	status := coalesce(rawjson.Field(v, "status"), rawjson.Field(v, "code"), rawjson.Field(nested, "status"), rawjson.Field(response, "status"))
	if toString(status) != "400" {
		return false
	}
	message := rawjson.Field(v, "message")
	if !truthy(message) {
		message = rawjson.Field(nested, "message")
	}
	return truthy(message) && gatewayOverflow().MatchString(unfold.Replace(toString(message)))
}

func byAnthropic(v []byte) bool {
	inner := rawjson.Field(rawjson.Field(v, "error"), "error")
	message := rawjson.Field(inner, "message")
	return rawjson.Text(rawjson.Field(inner, "type")) == "invalid_request_error" && truthy(message) &&
		anthropicOverflow().MatchString(unfold.Replace(toString(message)))
}

// coalesce is a ?? b ?? … .
func coalesce(values ...[]byte) []byte {
	for _, v := range values {
		if v != nil && !rawjson.IsNull(v) {
			return v
		}
	}
	return nil
}

// ToolUseText spells a tool call as Roo-Code shows it to a model that writes a summary: its
// name and a line for every member of its input, in JavaScript's order. Input is JSON; an
// empty one is undefined. Input that is not valid JSON, which Roo never has, is copied.
func ToolUseText(name, input string) string {
	var b strings.Builder
	b.WriteString("[Tool Use: " + name + "]")
	raw := []byte(strings.TrimSpace(input))
	line := func(key string, value []byte) {
		b.WriteString("\n" + key + ": ")
		if rawjson.IsArray(value) || rawjson.IsObject(value) {
			stringify(&b, value, "")
		} else {
			b.WriteString(toString(value))
		}
	}
	begun := b.Len()
	switch {
	case len(raw) > 0 && !json.Valid(raw):
		b.WriteString("\n" + input)
	case rawjson.IsArray(raw):
		n := 0
		for v := range rawjson.Elements(raw) {
			line(strconv.Itoa(n), v)
			n++
		}
	case rawjson.IsObject(raw):
		for _, p := range properties(raw) {
			line(p.key, p.value)
		}
	default:
		b.WriteString("\n" + toString(raw))
	}
	if b.Len() == begun { // no members
		b.WriteByte('\n')
	}
	return b.String()
}

// ToolResultText spells a tool result as Roo-Code shows it to a model that writes a
// summary. Items are its content, line by line; nil means that it has none.
func ToolResultText(isError bool, items []string) string {
	head := "[Tool Result]"
	if isError {
		head = "[Tool Result (Error)]"
	}
	if items == nil {
		return head
	}
	return head + "\n" + strings.Join(items, "\n")
}

// This file reproduces JavaScript's treatment of values from JSON. A value is its JSON text, which must be valid;
// undefined is nil.

// isNumber reports whether raw is a number.
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// truthy reports whether JavaScript's if takes raw for true.
func truthy(raw []byte) bool {
	switch {
	case len(raw) == 0, raw[0] == 'n', raw[0] == 'f', string(raw) == `""`:
		return false
	case isNumber(raw):
		return number(raw) != 0
	}
	return true
}

// number returns the float64 nearest to a number, an infinity beyond the range.
func number(raw []byte) float64 {
	f, _ := strconv.ParseFloat(string(raw), 64) // f is the right value even after a range error
	return f
}

// toString converts raw as String does.
func toString(raw []byte) string {
	switch {
	case len(raw) == 0:
		return "undefined"
	case isNumber(raw):
		switch f := number(raw); {
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		default:
			return formatNumber(f)
		}
	case rawjson.IsString(raw):
		return rawjson.Unquote(raw)
	case rawjson.IsArray(raw):
		var parts []string
		for v := range rawjson.Elements(raw) {
			if rawjson.IsNull(v) {
				v = []byte(`""`)
			}
			parts = append(parts, toString(v))
		}
		return strings.Join(parts, ",")
	case rawjson.IsObject(raw):
		return "[object Object]"
	}
	return string(raw)
}

// formatNumber spells f as JSON.stringify does, which is also how encoding/json does. JSON
// has no NaN and no infinities; both are null.
func formatNumber(f float64) string {
	if f == 0 {
		return "0" // of -0, too
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "null"
	}
	return string(text)
}

// stringify appends JSON.stringify(JSON.parse(raw), null, 2) to b, for a value that is indented by indent: members
// whose names are array indices come first, in ascending order; of members with one name the last one's value takes
// the first one's place; numbers and escapes are spelled as JavaScript does. Values nested a hundred deep, which only
// an attacker writes, are copied unchanged: indented, they would grow with the square of the depth.
func stringify(b *strings.Builder, raw []byte, indent string) {
	const deepest = 200
	deeper := indent + "  "
	line := func(n int) {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + deeper)
	}
	end := func(n int, bracket byte) {
		if n > 0 {
			b.WriteString("\n" + indent)
		}
		b.WriteByte(bracket)
	}
	n := 0
	switch {
	case len(indent) >= deepest:
		b.Write(raw)
	case isNumber(raw):
		b.WriteString(formatNumber(number(raw)))
	case rawjson.IsString(raw):
		b.WriteString(requote(string(raw)))
	case rawjson.IsArray(raw):
		b.WriteByte('[')
		for v := range rawjson.Elements(raw) {
			line(n)
			stringify(b, v, deeper)
			n++
		}
		end(n, ']')
	case rawjson.IsObject(raw):
		b.WriteByte('{')
		for _, p := range properties(raw) {
			line(n)
			b.WriteString(quote(p.key) + ": ")
			stringify(b, p.value, deeper)
			n++
		}
		end(n, '}')
	default:
		b.Write(raw)
	}
}

// A property is a member of an object.
type property struct {
	key   string
	value []byte
	index int64 // of the key as an array index, -1 if it is none
}

// properties returns the members of object in the order of Object.keys.
func properties(object []byte) []property {
	var all []property
	at := make(map[string]int)
	for k, v := range rawjson.Fields(object) {
		key := string(k)
		if i, ok := at[key]; ok {
			all[i].value = v
			continue
		}
		at[key] = len(all)
		all = append(all, property{key, v, arrayIndex(key)})
	}
	slices.SortStableFunc(all, func(a, b property) int {
		switch {
		case a.index >= 0 && b.index >= 0:
			return cmp.Compare(a.index, b.index)
		case a.index >= 0:
			return -1
		case b.index >= 0:
			return 1
		}
		return 0
	})
	return all
}

// arrayIndex returns the array index that key spells, -1 if it spells none.
func arrayIndex(key string) int64 {
	const last = 1<<32 - 2
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil || n < 0 || n > last || strconv.FormatInt(n, 10) != key {
		return -1
	}
	return n
}

// quote spells s as JSON.stringify does, with a minimum of escapes.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		writeEscaped(&b, r)
	}
	b.WriteByte('"')
	return b.String()
}

// requote spells the JSON string token as JSON.stringify does. A surrogate without its other
// half, which quote cannot spell, stays escaped.
func requote(token string) string {
	i := strings.IndexByte(token, '\\')
	if i < 0 {
		return token
	}
	var b strings.Builder
	b.Grow(len(token))
	for rest := token; ; i = strings.IndexByte(rest, '\\') {
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		size := 2
		switch rest[1] {
		case '/':
			b.WriteByte('/')
		case 'u':
			r := hex4(rest[2:])
			size = 6
			if utf16.IsSurrogate(r) && strings.HasPrefix(rest[6:], `\u`) {
				if pair := utf16.DecodeRune(r, hex4(rest[8:])); pair != utf8.RuneError {
					r, size = pair, 12
				}
			}
			writeEscaped(&b, r)
		default:
			b.WriteString(rest[:2])
		}
		rest = rest[size:]
	}
}

// hex4 reads the four hexadecimal digits that s begins with.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[:4], 16, 16) // valid JSON has nothing else here
	return rune(n)
}

// writeEscaped writes a character, escaped if it must be.
func writeEscaped(b *strings.Builder, r rune) {
	switch short := bytes.IndexByte([]byte("\b\f\n\r\t"), byte(min(r, 0xff))); {
	case r == '"' || r == '\\':
		b.WriteByte('\\')
		b.WriteRune(r)
	case short >= 0:
		b.WriteByte('\\')
		b.WriteByte("bfnrt"[short])
	case r < ' ' || utf16.IsSurrogate(r):
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		b.WriteRune(r)
	}
}
