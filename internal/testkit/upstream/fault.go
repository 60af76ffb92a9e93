package upstream

import (
	"net/http"
)

// A Fault is what goes wrong with one answer. The zero value is none.
type Fault struct {
	Status     int    // refuse with this status: 429, 500 or 529
	RetryAfter string // the header of that refusal
}

// trouble are refusals that are not the client's fault.
var trouble = map[int]*refusal{
	429: {429, "fault", "rate_limit_error", "", "This request would exceed your organization's rate limit."},
	500: {500, "fault", "api_error", "", "Internal server error"},
	529: {529, "fault", "overloaded_error", "", "Overloaded"},
}

// send writes the parts of an answer, each flushed.
func (*Vendor) send(w http.ResponseWriter, _ *http.Request, _ *Record, parts [][]byte, _ *Fault) {
	flush := http.NewResponseController(w)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return
		}
		_ = flush.Flush() // a recorder of tests cannot
	}
}
