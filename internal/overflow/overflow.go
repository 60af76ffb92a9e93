// Package overflow recognises the errors with which the APIs of language models refuse a
// conversation because it is too large.
//
// No two vendors say it alike, and gateways wrap what they say. [Is] looks at an error of
// any SDK, [Response] at an answer over HTTP. Both take for an overflow whatever Roo-Code
// does, and besides the refusals in the table of this package that Roo-Code misses.
package overflow

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/roo"
)

// A refusal is how a vendor says that a conversation is too large.
type refusal struct {
	vendor string
	code   string         // of the error, or its type; empty if it has none of its own
	text   *regexp.Regexp // in its message; nil if the code is enough
}

// refusals were taken from the vendors' documentation and from reports of users. Their
// texts are matched without regard to case.
var refusals = []refusal{
	{vendor: "OpenAI", code: "context_length_exceeded"},
	{vendor: "OpenAI", text: regexp.MustCompile(`(?i)context_length_exceeded`)},
	{vendor: "OpenAI", text: regexp.MustCompile(`(?i)maximum context length|context window of this model|exceeds the context window`)},
	{vendor: "Anthropic", code: "request_too_large"},
	{vendor: "Anthropic", text: regexp.MustCompile(`(?i)prompt is too long|input length and .max_tokens. exceed context limit`)},
	{vendor: "Amazon Bedrock", text: regexp.MustCompile(`(?i)input is too long for requested model|too many input tokens`)},
	{vendor: "Google Gemini", text: regexp.MustCompile(`(?i)input token count.{0,40} exceeds the maximum number of tokens`)},
	{vendor: "Mistral", text: regexp.MustCompile(`(?i)prompt contains \d+ tokens.{0,80}too large for model`)},
	{vendor: "Groq", text: regexp.MustCompile(`(?i)reduce the length of the messages or completion`)},
	{vendor: "xAI", text: regexp.MustCompile(`(?i)maximum prompt length is \d+`)},
	{vendor: "llama.cpp", code: "exceed_context_size_error"},
	{vendor: "llama.cpp, LM Studio", text: regexp.MustCompile(`(?i)exceeds? the available context size|greater than the context length`)},
	{vendor: "Ollama", text: regexp.MustCompile(`(?i)prompt too long|exceeds? (?:max )?context length`)},
	{vendor: "OpenRouter", text: regexp.MustCompile(`(?i)maximum context length is \d+ tokens`)},
}

// Response reports whether an answer over HTTP says that the conversation is too large.
// The body may be anything.
func Response(status int, body []byte) bool {
	f := failure{status: status, text: string(body)}
	f.read(body)
	return f.overflow()
}

// Is reports whether err, or an error that it wraps, says that the conversation is too
// large. Where the errors of an SDK have a field StatusCode or Status and a method
// RawJSON, as those of OpenAI and Anthropic do, they are used; otherwise the text of the
// error decides.
func Is(err error) bool {
	if err == nil {
		return false
	}
	f := failure{text: err.Error()}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if n := statusOf(e); n != 0 && f.status == 0 {
			f.status = n
		}
		if r, ok := e.(interface{ RawJSON() string }); ok {
			f.read([]byte(r.RawJSON()))
		}
	}
	return f.overflow()
}

// IsRoo reports whether Roo-Code would take err for an overflow. It is less than [Is]:
// Roo-Code misses the refusals of Bedrock and Gemini and the status 413. An error whose
// class matters and not only its content has a method OpenAIAPIError() bool.
func IsRoo(err error) bool {
	if err == nil {
		return false
	}
	f := failure{status: statusOf(err)}
	apiError := false
	if r, ok := err.(interface{ RawJSON() string }); ok {
		f.object = json.RawMessage(r.RawJSON())
	}
	if a, ok := err.(interface{ OpenAIAPIError() bool }); ok {
		apiError = a.OpenAIAPIError()
	}
	return roo.ContextWindowExceeded(f.object, apiError) || f.object != nil && f.byRoo()
}

// A failure is what is known of an error.
type failure struct {
	status int      // of HTTP; 0 if unknown
	text   string   // all that was said
	codes  []string // codes and types
	object json.RawMessage
}

// read takes codes out of an error as JSON, however deep a gateway has wrapped it.
func (f *failure) read(body []byte) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return
	}
	f.object = body
	f.text += "\n" + string(body)
	f.walk(v, 0)
}

func (f *failure) walk(v any, depth int) {
	const deepest = 8
	if depth > deepest {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			f.walk(e, depth+1)
		}
	case map[string]any:
		for key, e := range v {
			s, ok := e.(string)
			switch {
			case !ok:
				f.walk(e, depth+1)
			case key == "code" || key == "type":
				f.codes = append(f.codes, s)
			case key == "message" || key == "raw" || key == "error" || key == "detail":
				f.text += "\n" + s
				var inner any
				if strings.HasPrefix(strings.TrimSpace(s), "{") && json.Unmarshal([]byte(s), &inner) == nil {
					f.walk(inner, depth+1) // a gateway that quotes the vendor
				}
			}
		}
	}
}

func (f *failure) overflow() bool {
	if f.status == http.StatusRequestEntityTooLarge {
		return true
	}
	if f.byRoo() {
		return true
	}
	switch f.status {
	case http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden:
		return false // "tokens per minute", a quota: shortening does not help, or not for long
	}
	for _, r := range refusals {
		if r.code != "" && slices.Contains(f.codes, r.code) {
			return true
		}
		if r.text != nil && r.text.MatchString(f.text) {
			return true
		}
	}
	return false
}

// byRoo asks Roo-Code's rule, of the error itself and of the error as a client in
// JavaScript would have seen it.
func (f *failure) byRoo() bool {
	if f.object == nil {
		return false
	}
	if roo.ContextWindowExceeded(f.object, false) {
		return true
	}
	seen, err := json.Marshal(map[string]any{"status": f.status, "error": f.object})
	return err == nil && f.status != 0 && roo.ContextWindowExceeded(seen, false)
}

// statusOf returns the status of HTTP that an error of an SDK carries in a field; 0 if it
// has none.
func statusOf(err error) int {
	v := reflect.ValueOf(err)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range []string{"StatusCode", "Status", "HTTPStatusCode"} {
		switch f := v.FieldByName(name); {
		case !f.IsValid():
		case f.CanInt():
			return int(f.Int())
		case f.Kind() == reflect.String:
			digits, _, _ := strings.Cut(f.String(), " ")
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return 0
}
