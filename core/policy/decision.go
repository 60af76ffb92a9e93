package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// A Decision has the decision whether to condense, its reason, and all numbers that it
// depends on. Percent and Threshold are percent of the window, all other numbers are tokens.
type Decision struct {
	Act     bool         `json:"act"`
	Reason  Reason       `json:"reason"`
	Trigger core.Trigger `json:"trigger"`
	Size    Size         `json:"size"`
	Used    int          `json:"used"`
	Floor   int          `json:"floor"`   // tokens that cannot be removed
	Percent float64      `json:"percent"` // 0 if there is no window
	// Threshold, MaxContextTokens, MinSize and When are the rule's.
	Threshold        float64 `json:"threshold"`
	MaxContextTokens int     `json:"max_context_tokens,omitempty"`
	MinSize          int     `json:"min_size,omitempty"`
	When             When    `json:"when,omitzero"`
	// Budget is for the request to the providers.
	Budget core.Budget `json:"budget"`
	// TargetWanted is the target before it was adjusted to be reachable and useful; 0 if it
	// was not adjusted.
	TargetWanted int `json:"target_wanted,omitempty"`
	// MinGain is the least that a condensation must save to be a success; at least 1.
	MinGain int `json:"min_gain"`
	// Grown is the number of tokens added since the last attempt, and MinNewTokens the
	// number required for a conversation within its limit to be due again. Both are 0 before
	// the first attempt.
	Grown        int `json:"grown,omitempty"`
	MinNewTokens int `json:"min_new_tokens,omitempty"`
}

// Worth reports whether a condensation to this many tokens is a success: it saves MinGain, or
// it saves less and brings the conversation within its limit. A host discards any other
// result.
func (d Decision) Worth(tokens int) bool {
	limit := d.Budget.Limit
	return tokens <= d.Used-d.MinGain || d.Used > limit && tokens <= limit
}

// Err returns an error if the conversation is over its limit and no provider can help: a
// [*FloorError], which wraps [ErrFloorExceedsWindow], or an error that earlier attempts
// have not helped. With IgnoreFixed, Act may be set nevertheless; the error takes precedence.
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

// String describes the decision and its reason in one line.
func (d Decision) String() string {
	if !d.Act {
		return notActing[d.Reason] + ": " + d.why()
	}
	acting := "due"
	if d.Reason == ReasonManual {
		acting = "requested"
	}
	text := fmt.Sprintf("%s: %s; target %s", acting, d.why(), size.Group(d.Budget.Target))
	if d.TargetWanted > 0 {
		text += fmt.Sprintf(" instead of %s, because %s tokens cannot be removed and a result must be worth it",
			size.Group(d.TargetWanted), size.Group(d.Floor))
	}
	return text
}

// notActing has the general meaning of the reasons not to act.
var notActing = map[Reason]string{
	ReasonBelow:      "not due",
	ReasonOff:        "not due",
	ReasonSmall:      "not due",
	ReasonCooling:    "not due",
	ReasonNoGain:     "nothing to do",
	ReasonNothingNew: "nothing to do",
	ReasonStuck:      "not possible",
	ReasonFloor:      "not possible",
}

func (d Decision) why() string {
	used, limit := size.Group(d.Used), size.Group(d.Budget.Limit)
	share := fmt.Sprintf("%s of %s tokens (%s %%)", used, size.Group(d.Budget.Window), percentText(d.Percent))
	threshold := percentText(d.Threshold) + " %"
	switch d.Reason {
	case ReasonThreshold, ReasonBelow:
		return share + ", threshold " + threshold
	case ReasonMaxContext:
		return fmt.Sprintf("%s tokens exceed max_context_tokens, %s", used, size.Group(d.MaxContextTokens))
	case ReasonLimit:
		return fmt.Sprintf("%s tokens exceed the limit of %s (window %s, reserve %s)",
			used, limit, size.Group(d.Budget.Window), size.Group(d.Budget.Reserve))
	case ReasonManual:
		return share
	case ReasonOverflow:
		return fmt.Sprintf("the model refused %s tokens as too many", used)
	case ReasonOff:
		return fmt.Sprintf("automatic condensing is off, and %s tokens are within the limit of %s", used, limit)
	case ReasonSmall:
		return fmt.Sprintf("%s, fewer than min_size, %s", share, size.Group(d.MinSize))
	case ReasonCooling:
		return fmt.Sprintf("%s, but only %s were added since the last attempt; %s must be", share, size.Group(d.Grown), size.Group(d.MinNewTokens))
	case ReasonNoGain:
		if d.Trigger == core.TriggerManual {
			return fmt.Sprintf("nothing of the %s tokens can be removed (system prompt, tools, protected messages)", used)
		}
		return fmt.Sprintf("%s, but %s of them cannot be removed (system prompt, tools, protected messages): "+
			"below the threshold of %s too little of the conversation could be kept, so nothing is condensed below the limit of %s",
			share, size.Group(d.Floor), threshold, limit)
	case ReasonNothingNew:
		return fmt.Sprintf("nothing was said since the last condensation, and %s tokens are within the limit of %s", used, limit)
	case ReasonStuck:
		return fmt.Sprintf("%s tokens exceed the limit of %s, and the last %d attempts to condense have not helped: "+
			"change the chain, protect fewer messages, or use a model with a larger window", used, limit, patience)
	case ReasonFloor:
		return d.Err().Error()
	case ReasonMessages, ReasonToolResults, ReasonAge, ReasonResultsShare:
		return d.When.why(d.Reason, d.Size.Since, d.Size.Messages)
	}
	return string(d.Reason)
}

// percentText rounds down, so that a number below a threshold is never shown as equal to it.
func percentText(p float64) string { return strconv.FormatFloat(math.Floor(p*100)/100, 'f', -1, 64) }

// A Reason says why a conversation is condensed or left alone.
type Reason string

// The reasons to condense.
const (
	ReasonThreshold  Reason = "threshold"   // its percent of the window has reached the threshold
	ReasonMaxContext Reason = "max_context" // it is over MaxContextTokens
	ReasonLimit      Reason = "limit"       // it is over the limit: the model would refuse it
	ReasonManual     Reason = "manual"      // the user asked
	ReasonOverflow   Reason = "overflow"    // the model has refused it
)

// The reasons of [When], to condense as well.
const (
	ReasonMessages     Reason = "max_messages"
	ReasonToolResults  Reason = "max_tool_results"
	ReasonAge          Reason = "max_age"
	ReasonResultsShare Reason = "max_results_share"
)

// The reasons to leave a conversation alone.
const (
	// ReasonBelow: it is not large enough.
	ReasonBelow Reason = "below_threshold"
	// ReasonOff: it is within its limit, and Auto is off.
	ReasonOff Reason = "off"
	// ReasonSmall: it is due, but below MinSize.
	ReasonSmall Reason = "too_small"
	// ReasonCooling: it is due, but has not grown enough since the last attempt.
	ReasonCooling Reason = "cooling_down"
	// ReasonNoGain: it is due, but most of it cannot be removed; or the user asked, and
	// nothing can be removed.
	ReasonNoGain Reason = "nothing_to_gain"
	// ReasonNothingNew: it is due, or the user asked, but it has no new messages since the
	// last condensation.
	ReasonNothingNew Reason = "nothing_new"
	// ReasonStuck: it is over the limit, and attempts have not helped since it last changed.
	// [Decision.Err] is an error.
	ReasonStuck Reason = "stuck"
	// ReasonFloor: it is over the limit, and so are the tokens that cannot be removed. [Decision.Err] is a
	// [*FloorError].
	ReasonFloor Reason = "floor_exceeds_window"
)

// Acts reports whether r is a reason to condense.
func (r Reason) Acts() bool {
	switch r {
	case ReasonThreshold, ReasonMaxContext, ReasonLimit, ReasonManual, ReasonOverflow, ReasonMessages, ReasonToolResults, ReasonAge, ReasonResultsShare:
		return true
	case ReasonBelow, ReasonOff, ReasonSmall, ReasonCooling, ReasonNoGain, ReasonNothingNew, ReasonStuck, ReasonFloor:
	}
	return false
}

// ErrFloorExceedsWindow means that the fixed tokens of a conversation exceed its limit, so
// that no provider can help.
var ErrFloorExceedsWindow = errors.New("what cannot be removed exceeds the window")

// A FloorError gives the numbers of an [ErrFloorExceedsWindow].
type FloorError struct {
	Size    Size
	Budget  core.Budget
	Refused int // the size that the model's API refused; 0 if it was not asked
}

// Error returns the numbers and the remedy.
func (e *FloorError) Error() string {
	s := e.Size
	text := fmt.Sprintf("%v: system prompt %s + tools %s + protected messages and unanswered calls %s = %s tokens; ",
		ErrFloorExceedsWindow, size.Group(max(0, s.System)), size.Group(max(0, s.Tools)), size.Group(max(0, min(s.Protected, s.Messages))), size.Group(s.Floor()))
	if e.Refused > 0 {
		text += fmt.Sprintf("the model refused %s", size.Group(e.Refused))
	} else {
		text += fmt.Sprintf("at most %s may be sent (window %s, reserve %s)",
			size.Group(e.Budget.Limit), size.Group(e.Budget.Window), size.Group(e.Budget.Reserve))
	}
	return text + ": use a model with a larger window, offer fewer tools, protect fewer messages, or leave fewer calls unanswered"
}

// Unwrap returns [ErrFloorExceedsWindow].
func (e *FloorError) Unwrap() error { return ErrFloorExceedsWindow }

// Decide decides whether to condense a conversation of this size now. Call it once before
// every request to the model ([core.TriggerAutomatic]), when the user asks for a condensation
// ([core.TriggerManual]), and when the model's API has refused the conversation as too large
// ([core.TriggerOverflow]); new tool results always are ([core.TriggerIngest]). An unknown
// trigger counts as automatic. Decide does not panic for any numbers.
func (r Rule) Decide(size Size, s State, trigger core.Trigger) Decision {
	used := size.Used()
	share := float64(100*float64(used)) / float64(r.Window)
	d := Decision{
		Trigger: trigger, Size: size, Used: used, Floor: size.Floor(),
		Percent: finite(share), Threshold: finite(r.Threshold),
		MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize, When: r.When,
		MinGain: r.minGain(used - size.floor(trigger)), MinNewTokens: r.wait(s),
	}
	if s != (State{}) {
		d.Grown = max(0, used-s.Size)
	}
	var wish int
	if d.Budget, wish = r.budget(size, trigger); wish != d.Budget.Target {
		d.TargetWanted = wish
	}
	if d.Reason = r.reason(&d, s, share >= r.Threshold); trigger == core.TriggerIngest { // there is no size to aim at
		d.Reason, d.MinGain, d.TargetWanted, d.Budget.Target = ReasonManual, 1, 0, 1
	}
	d.Act = d.Reason.Acts()
	return d
}

func (r Rule) reason(d *Decision, s State, reached bool) Reason {
	limit := d.Budget.Limit
	over := d.Used > limit
	switch {
	case d.Floor > limit && !r.IgnoreFixed:
		return ReasonFloor
	case d.Trigger == core.TriggerManual && !over && d.Size.NothingNew:
		return ReasonNothingNew
	case d.Trigger == core.TriggerManual && !over && !r.Eager && d.Used-d.Size.floor(d.Trigger) < d.MinGain:
		return ReasonNoGain
	case d.Trigger == core.TriggerManual:
		return ReasonManual
	case over && !r.Eager && s.stuck(d.Used, limit):
		return ReasonStuck
	case d.Trigger == core.TriggerOverflow:
		return ReasonOverflow
	case over:
		return ReasonLimit
	case !r.Auto:
		return ReasonOff
	}
	return r.wanted(d, s, reached)
}

// wanted decides about a conversation within its limit.
func (r Rule) wanted(d *Decision, s State, reached bool) Reason {
	above := r.MaxContextTokens > 0 && d.Used > r.MaxContextTokens
	counted := r.When.Due(d.Size.Since, d.Size.Messages, r.Window)
	why := ReasonNoGain
	switch {
	case !reached && !above && counted == "":
		return ReasonBelow
	case d.Size.NothingNew:
		return ReasonNothingNew
	case reached && (r.IgnoreFixed || r.counts(r.due(), d.Floor)):
		why = ReasonThreshold
	case above && (r.IgnoreFixed || r.counts(r.MaxContextTokens, d.Floor)):
		why = ReasonMaxContext
	case counted != "" && (r.IgnoreFixed || r.counts(d.Used, d.Floor)):
		why = counted
	}
	switch {
	case r.Eager && d.MinNewTokens == 0:
		return why
	case d.Used < r.MinSize:
		return ReasonSmall
	case why == ReasonNoGain:
		return ReasonNoGain
	case d.Grown < d.MinNewTokens && (counted == "" || s.Ineffective > 0 || s.Waits): // it counts by itself what is new
		return ReasonCooling
	}
	return why
}

// finite replaces NaN and infinities, which JSON does not have, by 0. A window of 0 causes
// them.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

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
