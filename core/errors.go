package core

import (
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/size"
)

var (
	// ErrInvalidRequest means that the request itself is wrong.
	ErrInvalidRequest = errors.New("invalid request")
	// ErrUnavailable means that a provider cannot work at the moment and did not try;
	// the chain skips it.
	ErrUnavailable = errors.New("unavailable")
)

// A ViolationError says how a result breaks a rule.
type ViolationError struct {
	Rule    string // one of [Rules]
	Message string // ID of the message concerned; empty if none or if it is new
	Detail  string
}

// Error returns the rule, the message and the fault.
func (e *ViolationError) Error() string {
	if e.Message == "" {
		return e.Rule + ": " + e.Detail
	}
	return fmt.Sprintf("%s: message %s: %s", e.Rule, e.Message, e.Detail)
}

// An ExhaustedError means that no provider of a chain brought the conversation to its limit.
// It unwraps to the errors of all attempts.
type ExhaustedError struct {
	Tokens   int // of the best valid result
	Limit    int
	Attempts []Attempt
}

// Error lists the attempts.
func (e *ExhaustedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no provider brought the conversation to its limit of %s tokens; it still has %s", size.Group(e.Limit), size.Group(e.Tokens))
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "; %s: %s", a.Provider, a.Outcome)
		if a.Reason != "" {
			b.WriteString(", " + a.Reason)
		}
	}
	return b.String()
}

// Unwrap returns the errors of the attempts that have one.
func (e *ExhaustedError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}
