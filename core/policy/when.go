package policy

import (
	"fmt"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// When has reasons to condense besides tokens; the zero value has none. They are about what came since the newest condensation, so a
// conversation that was just condensed is not due again for the same messages.
type When struct {
	MaxMessages     int           `json:"max_messages,omitempty"`
	MaxToolResults  int           `json:"max_tool_results,omitempty"`
	MaxAge          time.Duration `json:"max_age,omitempty"`           // of the first message, in JSON in nanoseconds
	MaxResultsShare float64       `json:"max_results_share,omitempty"` // percent of all messages that the results are, from a tenth of the window on
}

// shareFrom is the percent of the window from which the share of tool results is a reason.
const shareFrom = 10

// Since counts what came since the newest condensation; without one, everything.
type Since struct {
	Messages     int           `json:"messages,omitempty"` // without the system's
	ToolResults  int           `json:"tool_results,omitempty"`
	ResultTokens int           `json:"result_tokens,omitempty"`
	Age          time.Duration `json:"age,omitempty"` // of the first message whose time is known, in JSON in nanoseconds
}

// Count counts the messages that came since the newest condensation.
func Count(messages []core.Message, c core.Counter, now time.Time) (s Since) {
	for i := range messages {
		m := &messages[i]
		if m.Role == core.RoleSystem {
			continue
		}
		s.Messages++
		if !m.Time.IsZero() {
			s.Age = max(s.Age, now.Sub(m.Time))
		}
		for _, p := range m.Parts {
			if r, ok := p.(core.ToolResult); ok {
				s.ToolResults++
				s.ResultTokens += c.Count(r)
			}
		}
	}
	return s
}

// Due returns the reason to condense a conversation with so many tokens of messages, in a window; empty if there is none.
func (w When) Due(s Since, messages, window int) Reason {
	switch {
	case w.MaxMessages > 0 && s.Messages > w.MaxMessages:
		return ReasonMessages
	case w.MaxToolResults > 0 && s.ToolResults > w.MaxToolResults:
		return ReasonToolResults
	case w.MaxAge > 0 && s.Age > w.MaxAge:
		return ReasonAge
	case w.MaxResultsShare > 0 && 100*float64(s.ResultTokens) > w.MaxResultsShare*float64(messages) && float64(messages) >= percentOf(shareFrom, window):
		return ReasonResultsShare
	}
	return ""
}

// why describes a reason of w.
func (w When) why(r Reason, s Since, messages int) string {
	switch r { //nolint:exhaustive // the others are not of w
	case ReasonMessages:
		return fmt.Sprintf("%s since the last condensation, max_messages %s", size.Plural(s.Messages, "message"), size.Group(w.MaxMessages))
	case ReasonToolResults:
		return fmt.Sprintf("%s since the last condensation, max_tool_results %s", size.Plural(s.ToolResults, "tool result"), size.Group(w.MaxToolResults))
	case ReasonAge:
		return fmt.Sprintf("what is not condensed began %s ago, max_age %s", s.Age.Round(time.Second), w.MaxAge)
	}
	return fmt.Sprintf("new tool results are %s of %s tokens of messages, max_results_share %s %%",
		size.Group(s.ResultTokens), size.Group(messages), percentText(w.MaxResultsShare))
}
