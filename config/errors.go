package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// An Error is one fault of a configuration.
type Error struct {
	Origin     Origin `json:"origin"`
	Key        string `json:"key,omitempty"` // as the user writes it: profiles.code.threshold
	Problem    string `json:"problem"`
	Allowed    string `json:"allowed,omitempty"`    // the valid values
	Suggestion string `json:"suggestion,omitempty"` // the name that was probably meant

	id string // of the path
}

func (e *Error) Error() string {
	text := e.Origin.String() + ": "
	if e.Key != "" {
		text += e.Key + ": "
	}
	text += e.Problem
	if e.Allowed != "" {
		text += "; " + e.Allowed
	}
	if e.Suggestion != "" {
		text += "; did you mean " + strconv.Quote(e.Suggestion) + "?"
	}
	return text
}

// Errors are all faults of a configuration, in order of file and line. They unwrap to each
// [*Error].
type Errors []*Error

func (e Errors) Error() string { return strings.Join(plain.Each(e, (*Error).Error), "\n") }

// Unwrap returns each fault.
func (e Errors) Unwrap() []error {
	return plain.Each(e, func(err *Error) error { return err })
}

// ordered returns e sorted by position and without duplicates, nil if it is empty.
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

// An OriginKind is the kind of source that a value came from.
type OriginKind string

// The kinds of sources.
const (
	FromDefault  OriginKind = "default"     // built in
	FromFile     OriginKind = "file"        // a configuration file
	FromEnv      OriginKind = "environment" // a CONDENSE_ variable
	FromFlag     OriginKind = "flag"        // the command line
	FromProgram  OriginKind = "program"     // values given by a Go program, see [New]
	FromPreset   OriginKind = "preset"      // a preset that a profile names
	FromModel    OriginKind = "model"       // the table of models, or the section models
	FromComputed OriginKind = "computed"    // follows from other values
	FromArgument OriginKind = "argument"    // passed to [Config.Resolve]
)

// An Origin says where a value came from.
type Origin struct {
	Kind OriginKind `json:"kind"`
	// File, Line and Column are set if Kind is FromFile. Line and Column count from 1,
	// columns in characters; 0 means unknown.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Name is the variable, the flag's key, the preset, the model, or how the value was
	// computed.
	Name string `json:"name,omitempty"`
}

// String returns the origin as users read it: "condense.yaml:3:12", "default",
// "environment CONDENSE_THRESHOLD".
func (o Origin) String() string {
	switch {
	case o.Kind == FromFile && o.Line > 0 && o.Column > 0:
		return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
	case o.Kind == FromFile && o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.Kind == FromFile:
		return o.File
	case o.Kind == "":
		return "unknown"
	case o.Kind == FromComputed && o.Name != "":
		return "computed: " + o.Name
	case o.Name != "":
		return string(o.Kind) + " " + o.Name
	}
	return string(o.Kind)
}
