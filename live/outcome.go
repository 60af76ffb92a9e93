package live

import (
	"net/http"
)

// An outcome is a ResponseWriter that records the result for the audit log.
type outcome struct {
	http.ResponseWriter
	status  int
	refused string // reason; empty if not refused
	unsent  string // reason why the request could not be sent to the upstream; empty if it was
}

// WriteHeader notes the status.
func (o *outcome) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// code returns the status that was sent.
func (o *outcome) code() int {
	if o.status == 0 {
		return http.StatusOK
	}
	return o.status
}

// Unwrap is for [http.ResponseController].
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush is for handlers that do not use a controller.
func (o *outcome) Flush() { _ = http.NewResponseController(o.ResponseWriter).Flush() }
