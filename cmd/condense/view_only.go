package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/suggest"
)

// An only is the flag that chooses what view lists. Nil means everything.
type only []string

// The parts that only knows.
const (
	onlyUser      = "user"
	onlySummary   = "summary"
	onlyNoResults = "no-results"
	onlyNoParams  = "no-params"
)

var onlyParts = []string{onlyUser, onlySummary, onlyNoResults, onlyNoParams}

// Set implements pflag.Value.
func (o *only) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(onlyParts, name) {
			return fmt.Errorf("want %s%s", strings.Join(onlyParts, ", "), suggest.DidYouMean(name, onlyParts))
		}
		*o = append(*o, name)
	}
	return nil
}

func (o *only) String() string { return strings.Join(*o, ",") }

// Type is what --help calls the value.
func (o *only) Type() string { return "part" }

// choosesMessages reports whether some messages are left out as a whole.
func (o *only) choosesMessages() bool {
	return slices.Contains(*o, onlyUser) || slices.Contains(*o, onlySummary)
}

// leaves takes out of m what is not listed and reports whether anything is left.
func (o *only) leaves(m *core.Message) bool {
	user := slices.Contains(*o, onlyUser) && m.Role == core.RoleUser && m.Kind == core.KindOriginal
	summary := slices.Contains(*o, onlySummary) && m.Kind != core.KindOriginal
	if o.choosesMessages() && !user && !summary {
		return false
	}
	before := len(m.Parts)
	var parts []core.Part
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolResult:
			if slices.Contains(*o, onlyNoResults) || slices.Contains(*o, onlyUser) {
				continue // formats of APIs have results in messages of the user
			}
			parts = append(parts, p)
		case core.ToolCall:
			if slices.Contains(*o, onlyNoParams) {
				p.Args = ""
			}
			parts = append(parts, p)
		case core.Text, core.Image, core.Reasoning, core.Opaque:
			parts = append(parts, p)
		}
	}
	m.Parts = parts
	return len(parts) > 0 || before == 0
}
