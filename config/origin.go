package config

import (
	"fmt"
)

// An OriginKind says which kind of place a value came from.
type OriginKind string

// The kinds of places.
const (
	FromDefault  OriginKind = "default"     // built in
	FromFile     OriginKind = "file"        // a configuration file
	FromEnv      OriginKind = "environment" // a CONDENSE_ variable
	FromFlag     OriginKind = "flag"        // the command line
	FromProgram  OriginKind = "program"     // values given by a Go program, see [New]
	FromPreset   OriginKind = "preset"      // a preset that a profile names
	FromModel    OriginKind = "model"       // what is known about the model
	FromComputed OriginKind = "computed"    // follows from other values
	FromArgument OriginKind = "argument"    // asked for in the call of [Config.Resolve]
)

// An Origin is the place that a value came from.
type Origin struct {
	Kind OriginKind `json:"kind"`
	// File, Line and Column are set if Kind is FromFile. Line and Column count from 1,
	// columns in characters; 0 means the parser did not say.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Name is the variable, the flag's key, the preset, the model, or how the value was
	// computed.
	Name string `json:"name,omitempty"`
}

// String returns the origin as a person reads it: "condense.yaml:3:12", "default",
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
