package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// An Error is one fault of a configuration.
type Error struct {
	Origin     Origin `json:"origin"`
	Key        string `json:"key,omitempty"` // as the user writes it: profiles.code.threshold
	Problem    string `json:"problem"`
	Allowed    string `json:"allowed,omitempty"`    // what would be right
	Suggestion string `json:"suggestion,omitempty"` // the name that was probably meant

	id string // of the path
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Origin.String())
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Allowed != "" {
		b.WriteString("; ")
		b.WriteString(e.Allowed)
	}
	if e.Suggestion != "" {
		b.WriteString("; did you mean ")
		b.WriteString(strconv.Quote(e.Suggestion))
		b.WriteByte('?')
	}
	return b.String()
}

// Errors are all faults of a configuration, in order of file and line. It unwraps to each
// [*Error].
type Errors []*Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each fault.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// ordered returns e sorted by place and without repetitions, nil if there are none.
func (e Errors) ordered() error {
	if len(e) == 0 {
		return nil
	}
	return e.sorted()
}

func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(
			cmp.Compare(a.Origin.Kind, b.Origin.Kind),
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column),
			cmp.Compare(a.Origin.Name, b.Origin.Name),
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Problem, b.Problem),
		)
	})
	return slices.CompactFunc(e, func(a, b *Error) bool { return *a == *b })
}
