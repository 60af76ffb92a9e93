package policy

import (
	"math"

	"github.com/condensehq/condense/core"
)

// patience is how many attempts in a row may fail to help before the conversation must
// change: two, because the first may have failed by an outage. Hermes uses the same number.
const patience = 2

// A State is a host's record of one conversation between decisions. The zero value is for a conversation that was
// never condensed, and for one after a rewind or an undo. It can be stored as JSON.
type State struct {
	Size        int `json:"size,omitempty"`        // tokens right after the last attempt
	Ineffective int `json:"ineffective,omitempty"` // attempts in a row without success
	Limit       int `json:"limit,omitempty"`       // the limit at the last attempt
	// Waits is set if a provider chose to wait at the last attempt: see [LaterAfter].
	Waits bool `json:"waits,omitempty"`
}

// Later returns the state after an attempt in which a provider chose to wait.
func (s State) Later(d Decision) State {
	return State{Size: d.Used, Ineffective: s.Ineffective, Limit: d.Budget.Limit, Waits: true}
}

// LaterAfter returns by how many tokens a conversation grows before a provider that chose to wait is asked again: 2 % of the window.
func LaterAfter(window int) int { return max(1, floorInt(percentOf(laterPercent, window))) }

// After returns the state after the attempt that d led to, which left the conversation
// with this many tokens, in the scope of d.Used: d.Used itself if the attempt failed or
// its result was discarded. An attempt that its caller canceled does not count. If d.Act is
// not set, the state does not change.
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

// stuck reports whether another attempt at a conversation over its limit would repeat earlier ones that failed:
// nothing was added, and the limit is not lower.
func (s State) stuck(used, limit int) bool {
	return s.Ineffective >= patience && used <= s.Size && limit >= s.Limit
}

// A Size is the size of a conversation by part, in tokens by the host's counter. Negative
// numbers count as 0, and sums are limited to the largest int.
type Size struct {
	System    int `json:"system"`    // the system prompt
	Tools     int `json:"tools"`     // the definitions of the tools
	Messages  int `json:"messages"`  // all messages, the last one included
	Protected int `json:"protected"` // tokens of Messages that may not be removed
	// Summaries are tokens of Messages that earlier condensations inserted and that may be removed. A manual
	// condensation does not expect to remove them.
	Summaries int `json:"summaries,omitempty"`
	// NothingNew is set if the conversation has not changed since the last condensation, or
	// if only summaries could be removed. Such a conversation is not condensed unless it is
	// over its limit: summarizing a summary saves little and loses much.
	NothingNew bool `json:"nothing_new,omitempty"`
	// Since is for the reasons of [Rule.When]; zero if the rule has none.
	Since Since `json:"since,omitzero"`
}

// Overhead returns the tokens that are sent in addition to the messages.
func (s Size) Overhead() int { return sum(s.System, s.Tools) }

// Used returns the size of the conversation.
func (s Size) Used() int { return sum(s.System, s.Tools, s.Messages) }

// Floor returns the fixed tokens, which no condensation can remove.
func (s Size) Floor() int { return sum(s.System, s.Tools, min(s.Protected, s.Messages)) }

// floor returns the smallest size that a condensation by this trigger should reach.
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
