package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/model"
)

// An Error says why a model gave no answer. It contains no key, and nothing of the request
// unless the vendor quotes it.
type Error struct {
	Model    string // name for display
	Kind     Kind
	Status   int           // of HTTP; 0 if there was no response
	Code     string        // the vendor's code or type of the error, if it gave one
	Message  string        // the vendor's message, cut at 500 characters, or a description
	Param    string        // the parameter of the request that the vendor complains about
	Request  string        // the vendor's ID of the request, to ask its support with
	Wait     time.Duration // that the vendor asked for; 0 if it did not
	Attempts int           // requests sent
	Err      error         // the cause, if that was an error
}

// Error returns one line without the name of the model, which the caller knows.
func (e *Error) Error() string {
	var all []string
	if e.Status != 0 {
		all = append(all, strings.TrimSpace(strconv.Itoa(e.Status)+" "+strings.ToLower(http.StatusText(e.Status))))
	}
	all = append(all, plain.Only([]string{e.Code, e.Message}, func(s string) bool { return s != "" })...)
	if len(all) == 0 {
		all = append(all, string(e.Kind))
	}
	var more []string
	if e.Attempts > 1 {
		more = append(more, fmt.Sprintf("%d attempts", e.Attempts))
	}
	if e.Wait > 0 {
		more = append(more, "to be tried again after "+e.Wait.String())
	}
	if e.Request != "" {
		more = append(more, "request "+e.Request)
	}
	text := strings.Join(all, ": ")
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}

// Unwrap returns the error of its kind, and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	if w := kinds[e.Kind].wraps; w != nil {
		all = append(all, w)
	}
	if e.Err != nil {
		all = append(all, e.Err)
	}
	return all
}

// Reported returns the error that a vendor reports in data, as JSON: an object or an object in its member "error",
// with a message and a code or type. Status is the answer's; 0 for an error within a stream, whose status follows
// from its type. Vendors and gateways use one of few forms. The result is nil if data holds no error.
func Reported(status int, data []byte) *Error {
	var whole struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"` // of servers made with FastAPI
		Request string          `json:"request_id"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		whole.Error = nil // not one of these forms
	}
	var inner struct {
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"` // a word or a status
		Message string          `json:"message"`
		Param   string          `json:"param"`
	}
	switch raw := whole.Error; {
	case len(raw) == 0 || string(raw) == "null":
		if inner.Message = cmp.Or(whole.Message, scalar(whole.Detail)); inner.Message == "" {
			return nil
		}
	case raw[0] != '{':
		inner.Message = scalar(raw)
	case json.Unmarshal(raw, &inner) != nil:
		inner.Message = string(raw)
	}
	e := &Error{Status: status, Code: scalar(inner.Code), Message: inner.Message, Param: inner.Param, Request: whole.Request}
	if n, err := strconv.Atoi(e.Code); err == nil {
		e.Code = ""
		if status == 0 && n >= 400 && n < 600 {
			status = n
		}
	}
	if e.Code == "" || e.Code == "null" {
		e.Code = inner.Type
	}
	status = cmp.Or(status, statusOf[e.Code], statusOf[inner.Type])
	switch {
	case isContextLength(status, data):
		e.Kind = KindTooLong
	case status == 0: // within a stream, without a reason
		e.Kind = KindCut
	default:
		e.Kind = kindOf(status, e.Code, inner.Type)
	}
	return e
}

// scalar returns the text of a JSON string, and other JSON unchanged.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// longestMessage is how many characters of a vendor's message are kept. Some quote the whole
// request.
const longestMessage = 500

// tidy returns a vendor's text as one line without secrets.
func tidy(s string, known ...string) string {
	s = secret.Redact(s, known...)
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return plain.First(strings.ToValidUTF8(s, "\uFFFD"), longestMessage)
}

// refusal returns the error of a response with an error status.
func refusal(status int, header http.Header, body []byte) *Error {
	e := Reported(status, body)
	if e == nil {
		e = &Error{Status: status, Kind: kindOf(status)}
		switch {
		case isContextLength(status, body):
			e.Kind = KindTooLong
		case !strings.HasPrefix(http.DetectContentType(body), "text/html"):
			e.Message = string(body)
		}
	}
	e.Request = cmp.Or(e.Request, header.Get("request-id"), header.Get("x-request-id"))
	if to, err := url.Parse(header.Get("Location")); err == nil && status >= 300 && status < 400 {
		e.Message = "the server redirects to " + withoutQuery(to) + "; set base_url to where the API is"
	}
	e.Wait = retryAfter(header, time.Now())
	switch header.Get("x-should-retry") { // the header by which Anthropic and OpenAI control their clients
	case "true":
		if e.Kind == KindRefused {
			e.Kind = KindBusy
		}
	case "false":
		if e.Kind == KindBusy {
			e.Kind = KindRefused
		}
	}
	return e
}

var errSilent = errors.New("silent")

// A Kind is a class of errors that need the same reaction.
type Kind string

// The kinds of errors.
const (
	KindDenied      Kind = "denied"      // no key, a wrong one, no credit, no such model: whatever is asked
	KindUnreachable Kind = "unreachable" // no connection came about
	KindUntrusted   Kind = "untrusted"   // the certificate of the server does not hold
	KindTooLong     Kind = "too_long"    // more than the model can read
	KindRefused     Kind = "refused"     // this request, and it would be again
	KindBusy        Kind = "busy"        // 408, 429, 5xx
	KindCut         Kind = "cut"         // the answer broke off
	KindSilent      Kind = "silent"      // nothing came for too long
	KindMalformed   Kind = "malformed"   // violates the API's format
	KindTooLarge    Kind = "too_large"   // more than any answer has
	KindNoText      Kind = "no_text"     // an answer that says nothing
	KindStopped     Kind = "stopped"     // the context ended
)

// kinds has for each kind whether the request is repeated, and the error that it wraps. A model that cannot be called
// at all is unavailable, so that a chain skips it.
var kinds = map[Kind]struct {
	repeat bool
	wraps  error
}{
	KindDenied:      {false, core.ErrUnavailable},
	KindUnreachable: {true, core.ErrUnavailable},
	KindUntrusted:   {false, core.ErrUnavailable},
	KindTooLong:     {false, model.ErrTooLong},
	KindRefused:     {false, nil},
	KindBusy:        {true, nil},
	KindCut:         {true, nil},
	KindSilent:      {true, nil},
	KindMalformed:   {false, nil},
	KindTooLarge:    {false, nil},
	KindNoText:      {false, model.ErrNoText},
	KindStopped:     {false, nil}, // wraps the context's own
}

// deniedStatus are refusals that concern the key, the account or the address, not the request.
var deniedStatus = map[int]bool{
	http.StatusUnauthorized: true, http.StatusPaymentRequired: true, http.StatusForbidden: true, http.StatusNotFound: true,
	http.StatusMethodNotAllowed: true, http.StatusProxyAuthRequired: true,
}

// deniedCodes are refusals with a status that means something else: OpenAI reports an
// exhausted quota as 429, which waiting does not restore.
var deniedCodes = map[string]bool{
	"insufficient_quota": true, "billing_hard_limit_reached": true, "billing_not_active": true, "invalid_api_key": true,
	"model_not_found": true, "authentication_error": true, "permission_error": true,
}

// statusOverloaded is Anthropic's status for an overload.
const statusOverloaded = 529

// statusOf is the status that an error within a stream would have had before it, by the
// type or code that the vendors give it.
var statusOf = map[string]int{
	"overloaded_error": statusOverloaded, "api_error": http.StatusInternalServerError, "server_error": http.StatusInternalServerError,
	"timeout_error": http.StatusGatewayTimeout, "rate_limit_error": http.StatusTooManyRequests, "rate_limit_exceeded": http.StatusTooManyRequests,
	"invalid_request_error": http.StatusBadRequest, "authentication_error": http.StatusUnauthorized,
	"permission_error": http.StatusForbidden, "not_found_error": http.StatusNotFound,
}

func kindOf(status int, codes ...string) Kind {
	for _, c := range codes {
		if deniedCodes[c] {
			return KindDenied
		}
	}
	switch {
	case deniedStatus[status], status >= 300 && status < 400:
		return KindDenied
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests, status >= 500:
		return KindBusy
	}
	return KindRefused
}
