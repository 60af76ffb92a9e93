package wire

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

// errorTypes are the types of errors by status, as the vendors document them. Other statuses are errors of the
// server.
var errorTypes = map[int]struct{ anthropic, openai string }{
	http.StatusBadRequest:            {"invalid_request_error", "invalid_request_error"},
	http.StatusUnauthorized:          {"authentication_error", "authentication_error"},
	http.StatusForbidden:             {"permission_error", "permission_error"},
	http.StatusNotFound:              {"not_found_error", "not_found_error"},
	http.StatusRequestEntityTooLarge: {"request_too_large", "invalid_request_error"},
	http.StatusTooManyRequests:       {"rate_limit_error", "rate_limit_error"},
	http.StatusGatewayTimeout:        {"timeout_error", "server_error"},
}

// foreignErrors are the shapes of errors of APIs that the gateway does not read, for their clients; ? is the message.
// Others have OpenAI's.
var foreignErrors = map[Vendor]string{Azure: `{"error":{"code":"404","message":?}}`}

// forms are the APIs whose errors the clients of vendors read. Others have OpenAI's.
var forms = map[Vendor]API{Anthropic: Messages, Google: Gemini, Vertex: Gemini, Amazon: Converse}

// Form returns the API whose errors the clients of the path read.
func (e *Endpoint) Form() API {
	switch {
	case slices.Contains(e.Of, Amazon): // whatever the format of the conversation is
		return Converse
	case e.API != "":
		return e.API
	case len(e.Of) > 0:
		return forms[e.Of[0]]
	}
	return forms[e.Owner]
}

// NotFound returns the body of an answer with the status 404, in the error format of the API to which the path
// belongs.
func (e *Endpoint) NotFound(message string) []byte {
	owner := e.Owner
	if owner == "" && len(e.Of) > 0 {
		owner = e.Of[0]
	}
	if shape, ok := foreignErrors[owner]; ok {
		return rawjson.Append(nil, shape, message)
	}
	return Refusal(e.Form(), http.StatusNotFound, message)
}

// Refusal returns the body of an answer of the gateway's own with a status, in the shape of the vendor's errors.
func Refusal(api API, status int, message string) []byte { return Of(api).Refuse(status, message) }

func refuseAnthropic(status int, message string) []byte {
	return rawjson.Append(nil, `{"type":"error","error":{"type":?,"message":?}}`, cmp.Or(errorTypes[status].anthropic, "api_error"), message)
}

func refuseOpenAI(status int, message string) []byte {
	code := []byte("null")
	if status == http.StatusRequestEntityTooLarge {
		code = []byte(`"request_too_large"`)
	}
	return rawjson.Append(nil, `{"error":{"message":?,"type":?,"param":null,"code":?}}`, message, cmp.Or(errorTypes[status].openai, "server_error"), code)
}
