// Package audit notes how requests were answered.
package audit

import (
	"cmp"
	"net/http"
)

// An Outcome is a ResponseWriter that records the result for the audit log.
type Outcome struct {
	http.ResponseWriter
	status  int
	Refused string // reason; empty if not refused
	Unsent  string // reason why the request could not be sent to the upstream; empty if it was
}

// WriteHeader notes the status.
func (o *Outcome) WriteHeader(status int) {
	if o.status == 0 && status >= http.StatusOK {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Code returns the status that was sent.
func (o *Outcome) Code() int { return cmp.Or(o.status, http.StatusOK) }

// Unwrap is for [http.ResponseController].
func (o *Outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush is for handlers that do not use a controller.
func (o *Outcome) Flush() { _ = http.NewResponseController(o.ResponseWriter).Flush() }
