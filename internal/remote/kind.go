package remote

import (
	"net/http"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// A Kind says what went wrong, as far as it matters for what to do next.
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
	KindMalformed   Kind = "malformed"   // not what the API promises
	KindTooLarge    Kind = "too_large"   // more than any answer has
	KindNoText      Kind = "no_text"     // an answer that says nothing
	KindStopped     Kind = "stopped"     // the context ended
)

// kinds says for each kind whether the request is repeated, and what the error wraps.
// What cannot be asked at all is unavailable, so that a chain skips it and says so.
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

// deniedStatus are refusals of whoever asks or of where he asks, not of what is asked.
var deniedStatus = map[int]bool{
	http.StatusUnauthorized:      true,
	http.StatusPaymentRequired:   true,
	http.StatusForbidden:         true,
	http.StatusNotFound:          true,
	http.StatusMethodNotAllowed:  true,
	http.StatusProxyAuthRequired: true,
}

// deniedCodes are refusals that come with a status of something else: of OpenAI, a quota
// that is used up as 429, which no wait restores.
var deniedCodes = map[string]bool{
	"insufficient_quota":         true,
	"billing_hard_limit_reached": true,
	"billing_not_active":         true,
	"invalid_api_key":            true,
	"model_not_found":            true,
	"authentication_error":       true,
	"permission_error":           true,
}

// statusOverloaded is what Anthropic answers when it has too much to do.
const statusOverloaded = 529

// statusOf is the status that an error within a stream would have had before it, by the
// type or code that the vendors give it.
var statusOf = map[string]int{
	"overloaded_error":      statusOverloaded,
	"api_error":             http.StatusInternalServerError,
	"server_error":          http.StatusInternalServerError,
	"timeout_error":         http.StatusGatewayTimeout,
	"rate_limit_error":      http.StatusTooManyRequests,
	"rate_limit_exceeded":   http.StatusTooManyRequests,
	"invalid_request_error": http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
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
