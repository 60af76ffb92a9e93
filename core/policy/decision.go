package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/condensehq/condense/core"
)

// A Decision says whether to condense, why, and every number that led there. Percent and
// Threshold are percent of the window, all other numbers are tokens.
type Decision struct {
	Act     bool         `json:"act"`
	Reason  Reason       `json:"reason"`
	Trigger core.Trigger `json:"trigger"`
	Size    Size         `json:"size"`
	Used    int          `json:"used"`
	Floor   int          `json:"floor"`   // what cannot be removed
	Percent float64      `json:"percent"` // 0 if there is no window
	// Threshold, MaxContextTokens and MinSize are the rule's.
	Threshold        float64 `json:"threshold"`
	MaxContextTokens int     `json:"max_context_tokens,omitempty"`
	MinSize          int     `json:"min_size,omitempty"`
	// Budget is for the request to the providers.
	Budget core.Budget `json:"budget"`
	// TargetWanted is the target before it was moved to where it can be reached and is
	// of use; 0 if it was not moved.
	TargetWanted int `json:"target_wanted,omitempty"`
	// MinGain is the least that a condensation must save to be a success; at least 1.
	MinGain int `json:"min_gain"`
	// Grown is what was added since the last attempt, and MinNewTokens what must have
	// been for a conversation within its limit to be due again. Both are 0 before the
	// first.
	Grown        int `json:"grown,omitempty"`
	MinNewTokens int `json:"min_new_tokens,omitempty"`
}

// Worth reports whether a condensation that leaves the conversation with this many
// tokens is a success: it saves MinGain, or it saves something and is what gets the
// conversation within its limit. A host drops any other result.
func (d Decision) Worth(tokens int) bool {
	limit := d.Budget.Limit
	return tokens <= d.Used-d.MinGain || d.Used > limit && tokens <= limit
}

// Err returns an error if the conversation is over its limit and it is of no use to ask
// a provider: a [*FloorError], which wraps [ErrFloorExceedsWindow], or one that says
// that the attempts so far have not helped. By Roo-Code's rule d may act nevertheless;
// the error counts.
func (d Decision) Err() error {
	switch {
	case d.Floor > d.Budget.Limit:
		e := &FloorError{Size: d.Size, Budget: d.Budget}
		if d.Trigger == core.TriggerOverflow {
			e.Refused = d.Used
		}
		return e
	case d.Reason == ReasonStuck:
		return errors.New(d.why())
	}
	return nil
}

// String says in a line what is done and why.
func (d Decision) String() string {
	if !d.Act {
		return "leave: " + d.why()
	}
	text := fmt.Sprintf("condense: %s; target %d", d.why(), d.Budget.Target)
	if d.TargetWanted > 0 {
		text += fmt.Sprintf(" instead of %d, because %d tokens cannot be removed and a result must be worth it", d.TargetWanted, d.Floor)
	}
	return text
}

func (d Decision) why() string {
	share := fmt.Sprintf("%d tokens are %s %% of the window of %d", d.Used, percentText(d.Percent), d.Budget.Window)
	threshold := percentText(d.Threshold) + " %"
	switch d.Reason {
	case ReasonThreshold:
		return share + ", and the threshold is " + threshold
	case ReasonMaxContext:
		return fmt.Sprintf("%d tokens are over max_context_tokens, %d", d.Used, d.MaxContextTokens)
	case ReasonLimit:
		return fmt.Sprintf("%d tokens are over the limit of %d (window %d, reserve %d)",
			d.Used, d.Budget.Limit, d.Budget.Window, d.Budget.Reserve)
	case ReasonManual:
		return "asked for; " + share
	case ReasonOverflow:
		return fmt.Sprintf("the model refused %d tokens as too many", d.Used)
	case ReasonBelow:
		return share + ", below the threshold of " + threshold
	case ReasonOff:
		return fmt.Sprintf("automatic condensing is off, and %d tokens are within the limit of %d", d.Used, d.Budget.Limit)
	case ReasonSmall:
		return fmt.Sprintf("%s, but fewer than min_size, %d", share, d.MinSize)
	case ReasonCooling:
		return fmt.Sprintf("%s, but only %d were added since the last attempt; %d must be", share, d.Grown, d.MinNewTokens)
	case ReasonNoGain:
		if d.Trigger == core.TriggerManual {
			return fmt.Sprintf("asked for, but nothing of the %d tokens can be removed (system prompt, tools, protected messages)", d.Used)
		}
		return fmt.Sprintf("%s, but %d of them cannot be removed (system prompt, tools, protected messages): "+
			"below the threshold of %s too little of what was said could stay, so nothing is done up to the limit of %d",
			share, d.Floor, threshold, d.Budget.Limit)
	case ReasonNothingNew:
		return fmt.Sprintf("nothing was said since the last condensation, and %d tokens are within the limit of %d", d.Used, d.Budget.Limit)
	case ReasonStuck:
		return fmt.Sprintf("%d tokens are over the limit of %d, and the last %d attempts to condense have not helped: "+
			"change the chain, protect fewer messages, or use a model with a larger window", d.Used, d.Budget.Limit, patience)
	case ReasonFloor:
		return d.Err().Error()
	}
	return string(d.Reason)
}

// percentText rounds down, so that what is below a threshold never looks like it.
func percentText(p float64) string {
	return strconv.FormatFloat(math.Floor(p*100)/100, 'f', -1, 64)
}
