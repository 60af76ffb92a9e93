package roo

import (
	"encoding/json"
	"regexp"
	"strings"
)

// jsSpace and jsDot are what \s and . match in JavaScript.
const (
	jsSpace = `[\s\v\x{00A0}\x{FEFF}\p{Zs}\x{2028}\x{2029}]`
	jsDot   = `[^\n\r\x{2028}\x{2029}]`
)

var (
	gatewayOverflow = regexp.MustCompile(`(?i)\bcontext` + jsSpace + `*(?:length|window)\b|\bmaximum` + jsSpace + `*context\b|` +
		`\b(?:input` + jsSpace + `*)?tokens?` + jsSpace + `*exceed|\btoo` + jsSpace + `*many` + jsSpace + `*tokens?\b`)
	anthropicOverflow = regexp.MustCompile(`(?i)prompt is too long|maximum` + jsDot + `*tokens|context` + jsDot + `*too` + jsDot + `*long|` +
		`exceeds` + jsDot + `*context|token` + jsDot + `*limit|context_length_exceeded|max_tokens_to_sample`)
	// unfold takes out the two letters that Unicode folds to ASCII ones and JavaScript,
	// without its flag u, does not.
	unfold = strings.NewReplacer("\u212a", "\ufffd", "\u017f", "\ufffd")
)

// ContextWindowExceeded reports whether Roo-Code takes an error of a model's API for a
// context window that is too small (checkContextWindowExceededError). Value is the error
// object as JSON; apiError says that it is an APIError of OpenAI's SDK, which JSON cannot
// tell.
func ContextWindowExceeded(value json.RawMessage, apiError bool) bool {
	if !json.Valid(value) {
		return false
	}
	v := strings.TrimSpace(string(value))
	if kindOf(v) != kindObject {
		return false
	}
	return byOpenAI(v, apiError) || byGateway(v) || byAnthropic(v)
}

// ContextLengthError reports whether Roo-Code would take err, the error of an SDK, for one
// that says that the conversation exceeds the model's window. Status is its HTTP status; 0
// if unknown. The error's JSON is read through a method RawJSON() string; an error that
// Roo-Code knows by its class has a method OpenAIAPIError() bool.
func ContextLengthError(err error, status int) bool {
	var object json.RawMessage
	if r, ok := err.(interface{ RawJSON() string }); ok {
		object = json.RawMessage(r.RawJSON())
	}
	class, ok := err.(interface{ OpenAIAPIError() bool })
	if ContextWindowExceeded(object, ok && class.OpenAIAPIError()) || ContextWindowExceeded(object, false) {
		return true
	}
	if object == nil || status == 0 {
		return false
	}
	seen, fault := json.Marshal(map[string]any{"status": status, "error": object}) // as a client in JavaScript sees it
	return fault == nil && ContextWindowExceeded(seen, false)
}

func byOpenAI(v string, apiError bool) bool {
	if name := lookup(v, "name"); kindOf(name) == kindString && unquote(name) == "LengthFinishReasonError" {
		return true
	}
	if !apiError || toString(lookup(v, "code")) != "400" {
		return false
	}
	message := lookup(v, "message")
	if kindOf(message) != kindString {
		return false
	}
	text := unquote(message)
	return strings.Contains(text, "token") || strings.Contains(text, "context length")
}

func byGateway(v string) bool {
	nested, response := member(v, "error"), member(v, "response")
	status := coalesce(lookup(v, "status"), lookup(v, "code"), member(nested, "status"), member(response, "status"))
	if toString(status) != "400" {
		return false
	}
	message := lookup(v, "message")
	if !truthy(message) {
		message = member(nested, "message")
	}
	return truthy(message) && gatewayOverflow.MatchString(unfold.Replace(toString(message)))
}

func byAnthropic(v string) bool {
	inner := member(member(v, "error"), "error")
	kind, message := member(inner, "type"), member(inner, "message")
	if kindOf(kind) != kindString || unquote(kind) != "invalid_request_error" {
		return false
	}
	return truthy(message) && anthropicOverflow.MatchString(unfold.Replace(toString(message)))
}

// member is v?.name for a JSON value.
func member(v, name string) string {
	if kindOf(v) != kindObject {
		return ""
	}
	return lookup(v, name)
}

// coalesce is a ?? b ?? … .
func coalesce(values ...string) string {
	for _, v := range values {
		if k := kindOf(v); k != kindUndefined && k != kindNull {
			return v
		}
	}
	return ""
}
