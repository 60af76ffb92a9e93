package policy

import (
	"math"

	"github.com/condensehq/condense/core"
)

// patience is how many attempts in a row may fail to help before the conversation must
// have changed: a second one, because the first may have met an outage. It is Hermes's
// number.
const patience = 2

// A State is what a host remembers of one conversation between decisions. The zero value
// is a conversation that was never condensed, and is right after a rewind or an undo. It
// can be stored as JSON.
type State struct {
	Size        int `json:"size,omitempty"`        // tokens right after the last attempt
	Ineffective int `json:"ineffective,omitempty"` // attempts in a row that were no success
	Limit       int `json:"limit,omitempty"`       // the limit at the last attempt
}

// After returns the state after the attempt that d led to, which left the conversation
// with this many tokens, in the scope of d.Used: d.Used itself if the attempt failed or
// its result was dropped. An attempt that its caller canceled is none. If d does not act,
// the state stays as it is.
func (s State) After(d Decision, tokens int) State {
	if !d.Act {
		return s
	}
	next := State{Size: tokens, Limit: d.Budget.Limit}
	if !d.Worth(tokens) {
		next.Ineffective = min(max(0, s.Ineffective), math.MaxInt-1) + 1
	}
	return next
}

// stuck reports whether a further attempt at a conversation over its limit would be the
// same as those that have not helped: nothing was added, and no more is asked for.
func (s State) stuck(used, limit int) bool {
	return s.Ineffective >= patience && used <= s.Size && limit >= s.Limit
}

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

// Overhead returns what is sent in addition to the messages.
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
