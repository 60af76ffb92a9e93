package live

import (
	"fmt"
	"slices"
	"strconv"
)

// A Window describes the window of a model that neither the configuration nor the table of models has, or whose server
// cuts longer prompts.
type Window struct {
	Upstream string `json:"upstream"`
	Model    string `json:"model"`
	Tokens   int    `json:"window"` // tokens that conversations are condensed to fit
	From     string `json:"from"`   // one of the constants below; empty: the table or the configuration
	// Truncated counts the answers whose prompt the server has cut. Of the last such prompt the server took Taken
	// tokens by its count, and the gateway sent Counted by its own.
	Truncated int `json:"truncated,omitempty"`
	Taken     int `json:"taken,omitempty"`
	Counted   int `json:"counted,omitempty"`
	// Holds is the window, if several such prompts show it: the server took no more of each. Otherwise 0.
	Holds int `json:"holds,omitempty"`
}

// The values of Window.From.
const (
	WindowServer   = "server"    // reported by the server
	WindowRefusal  = "refusal"   // named in a refusal of a prompt as too long
	WindowUsual    = "usual"     // the default of a server that does not report its configuration
	WindowNotKnown = "not known" // no source has it: the profile's window is assumed
)

// Remedy returns a line for the configuration that corrects the window, or an empty string if none is needed or the
// window is not sure.
func (w *Window) Remedy() string {
	tokens := "TOKENS"
	switch {
	case w.Holds > 0:
		tokens = strconv.Itoa(w.Holds)
	case w.Truncated > 0:
		return ""
	case w.From != WindowNotKnown:
		return ""
	}
	return fmt.Sprintf("models: {%q: {window: %s}} in condense.yaml", w.Model, tokens)
}

// addWindow merges a window known to another gateway, or to an earlier one, into all.
func addWindow(all []Window, w Window) []Window {
	i := slices.IndexFunc(all, func(k Window) bool { return k.Upstream == w.Upstream && k.Model == w.Model })
	switch {
	case i >= 0:
		all[i].Truncated += w.Truncated
		if w.Truncated > 0 {
			all[i].Taken, all[i].Counted, all[i].Holds = w.Taken, w.Counted, w.Holds
		}
		if all[i].From == WindowNotKnown {
			all[i].From, all[i].Tokens = w.From, w.Tokens
		}
	case len(all) < maxWindows:
		all = append(all, w)
	}
	return all
}

// maxWindows limits the models remembered, because clients can name any number of them.
const maxWindows = 200
