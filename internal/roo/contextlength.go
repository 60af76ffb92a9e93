// Package roo reproduces behaviour of Roo-Code that depends on its own code: the text of tool calls for a model that
// writes a summary, and the errors of a model's API that mean a full context window. It follows Roo-Code v3.52.1,
// including JavaScript's treatment of members of unexpected types, and is checked against vectors recorded from it.
package roo

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

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
