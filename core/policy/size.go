package policy

import (
	"math"

	"github.com/condensehq/condense/core"
)

// A Size says what a conversation consists of, in tokens by the host's counter. Negative
// numbers count as 0, and sums stop at the largest int.
type Size struct {
	System    int `json:"system"`    // the system prompt
	Tools     int `json:"tools"`     // the definitions of the tools
	Messages  int `json:"messages"`  // all messages, the last one included
	Protected int `json:"protected"` // those of Messages that may not be removed
	// Summaries are those of Messages that earlier condensations put in place of others
	// and that may be removed. A manual condensation does not count on them.
	Summaries int `json:"summaries,omitempty"`
	// NothingNew says that the conversation is as the last condensation left it, or that
	// nothing but summaries could be removed. Such a conversation is left alone unless it
	// is over its limit: to summarize a summary saves little and loses much.
	NothingNew bool `json:"nothing_new,omitempty"`
}

// Overhead returns what is sent beside the messages.
func (s Size) Overhead() int { return sum(s.System, s.Tools) }

// Used returns the size of the conversation.
func (s Size) Used() int { return sum(s.System, s.Tools, s.Messages) }

// Floor returns what no condensation can go below.
func (s Size) Floor() int { return sum(s.System, s.Tools, min(s.Protected, s.Messages)) }

// floor returns what a condensation by this trigger should leave.
func (s Size) floor(trigger core.Trigger) int {
	if trigger == core.TriggerManual {
		return min(sum(s.Floor(), s.Summaries), s.Used())
	}
	return s.Floor()
}

func sum(ns ...int) int {
	total := 0
	for _, n := range ns {
		n = max(0, n)
		if total > math.MaxInt-n {
			return math.MaxInt
		}
		total += n
	}
	return total
}
