package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

const (
	// unknownReserve is Roo-Code's reserve for a model with an unknown maximum output.
	unknownReserve = 8192
	// unknownReserveShare limits it to the window divided by this, as Roo-Code limits the
	// maxima in its model table. Otherwise a window of 8,000 would have a negative limit.
	unknownReserveShare = 5
	// A threshold has an effect only if the share 1/minRemovable of it can be removed.
	minRemovable = 4
	// A target leaves at least the share 1/minKept of the removable tokens.
	minKept = 16
	// regrowPercent is how much of the window a conversation must grow by after attempts
	// that did not help. It is deliberately not configurable.
	regrowPercent = 10
	laterPercent  = 2 // see [LaterAfter]

	minThreshold = 5
	maxThreshold = 100
)

// A Rule defines when to condense and how far. The zero value of a field means none or
// unknown where that makes sense; [Default] returns the recommended values. A Rule that
// [Rule.Validate] refuses is safe to use, but its decisions are not meaningful.
type Rule struct {
	// Window is the model's context window in tokens.
	Window int
	// MaxOutput is the maximum output, in tokens, that the host requests of the model; 0 if
	// unknown.
	MaxOutput int
	// Buffer is the percent of the window, 0 to 90, that is kept free because no count is
	// exact.
	Buffer float64
	// Auto is false if only a conversation over its limit is condensed automatically.
	Auto bool
	// Threshold is the percent of the window, 5 to 100, at which a conversation is due.
	Threshold float64
	// MaxContextTokens is the size above which a conversation is due; 0 for none.
	MaxContextTokens int
	// MinSize is the size below which a conversation is not condensed automatically,
	// unless it is over its limit, and to which a lower target is raised, if there is
	// room; 0 for none.
	MinSize int
	// Target is the percent of the window that a condensation should end at or below; 0 for half way between the
	// tokens that cannot be removed and the size at which the conversation is due.
	Target float64
	// MinGain is the percent, 0 to 90, of the removable tokens that a condensation must save to be a success.
	MinGain float64
	// MinNewTokens is the growth of a conversation, after an attempt to condense it, before the next automatic one,
	// unless it is over its limit.
	MinNewTokens int
	// When has reasons to condense besides tokens. With Auto unset they are none.
	When When
	Exceptions
}

// Exceptions turn off parts of a [Rule], to decide as an agent does that has no such part.
type Exceptions struct {
	// UnknownReserve is the reserve, in tokens, if MaxOutput is 0; 0 means 8,192 and at most
	// 20 % of the window.
	UnknownReserve int
	// StopAtLimit makes the limit the target of a conversation over its limit, unless Target
	// is set.
	StopAtLimit bool
	// IgnoreFixed decides as if everything could be removed.
	IgnoreFixed bool
	// Eager attempts a condensation even if it can save little: MinSize, MinNewTokens and
	// attempts that did not help do not prevent it.
	Eager bool
	// Unchecked makes every rule valid: numbers out of range are used unchanged.
	Unchecked bool
}

// Default returns the recommended rule for a window, in tokens. The decision record on
// policy has the sources of the numbers.
func Default(window int) Rule {
	return Rule{Window: window, Buffer: 10, Auto: true, Threshold: 80, MinGain: 10, MinNewTokens: floorInt(percentOf(5, window))}
}

// Validate reports every field that is out of range, joined. Each text begins with the
// name that the field has in a configuration file. An Unchecked rule is always valid.
func (r Rule) Validate() error {
	if r.Unchecked {
		return nil
	}
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(r.Window > 0, "window: %d is not positive; set the context window of the model, in tokens", r.Window)
	must(r.MaxOutput >= 0, "max_output: %d is negative; want tokens, or 0 if unknown", r.MaxOutput)
	must(within(r.Buffer, 0, 90), "buffer: %v is outside 0..90 percent of the window", r.Buffer)
	validThreshold := within(r.Threshold, minThreshold, maxThreshold)
	must(validThreshold, "threshold: %v is outside %d..%d percent of the window", r.Threshold, minThreshold, maxThreshold)
	must(r.MaxContextTokens >= 0, "max_context_tokens: %d is negative; want tokens, or 0 for none", r.MaxContextTokens)
	must(r.MinSize >= 0, "min_size: %d is negative; want tokens, or 0 for none", r.MinSize)
	must(r.MaxContextTokens <= 0 || r.MinSize <= r.MaxContextTokens,
		"min_size: %d is above max_context_tokens, %d", r.MinSize, r.MaxContextTokens)
	must(r.Target == 0 || within(r.Target, 1, 99), "target: %v is outside 1..99 percent of the window; 0 means the default", r.Target)
	must(!within(r.Target, 1, 99) || !validThreshold || r.Target < r.Threshold,
		"target: %v %% is not below the threshold of %v %%", r.Target, r.Threshold)
	must(within(r.MinGain, 0, 90), "min_gain: %v is outside 0..90 percent of what can be removed", r.MinGain)
	must(r.MinNewTokens >= 0, "min_new_tokens: %d is negative; want tokens, or 0 for none", r.MinNewTokens)
	w := r.When
	must(w.MaxMessages >= 0 && w.MaxToolResults >= 0 && w.MaxAge >= 0, "max_messages, max_tool_results, max_age: %d, %d, %s: one is negative; 0 is none",
		w.MaxMessages, w.MaxToolResults, w.MaxAge)
	must(within(w.MaxResultsShare, 0, 100), "max_results_share: %v is outside 0..100 percent of the messages", w.MaxResultsShare)
	if len(errs) == 0 && r.limit() < 1 {
		must(false, "max_output: %s tokens for the answer and a buffer of %v %% leave no room in the window of %s; lower them or set a larger window",
			size.Group(r.reserve()), r.Buffer, size.Group(r.Window))
	}
	return errors.Join(errs...)
}

// within is false for NaN.
func within(x, low, high float64) bool { return x >= low && x <= high }

// reserve is the number of tokens kept free for the answer.
func (r Rule) reserve() int {
	switch {
	case r.MaxOutput != 0:
		return r.MaxOutput
	case r.UnknownReserve != 0:
		return r.UnknownReserve
	default:
		return min(unknownReserve, max(0, r.Window/unknownReserveShare))
	}
}

// limit is the largest size that may be sent. An integer exceeds the rounded number exactly when
// it exceeds the float64, so the rounding changes no decision. The conversion of the
// product keeps the compiler from fusing it with the subtraction, which would give other
// numbers on some processors.
func (r Rule) limit() int {
	return floorInt(float64(float64(r.Window)*(1-r.Buffer/100)) - float64(r.reserve()))
}

// due is the smallest size at which the threshold makes a conversation due.
func (r Rule) due() int { return floorInt(math.Ceil(percentOf(r.Threshold, r.Window))) }

// minGain is the least that must be saved for a success of the tokens that can be removed.
func (r Rule) minGain(removable int) int {
	return max(1, floorInt(math.Ceil(percentOf(r.MinGain, removable))))
}

// wait is how much the conversation must grow after an attempt before it can be due again
// below its limit.
func (r Rule) wait(s State) int {
	switch {
	case s.Waits:
		return LaterAfter(r.Window)
	case r.Eager || s == State{}:
		return 0
	case s.Ineffective >= patience:
		return max(1, r.MinNewTokens, floorInt(percentOf(regrowPercent, r.Window)))
	default:
		return r.MinNewTokens
	}
}

func percentOf(percent float64, n int) float64 { return float64(percent*float64(n)) / 100 }

// floorInt rounds down to an int, within the range of int; NaN gives 0.
func floorInt(x float64) int {
	switch x = math.Floor(x); {
	case x >= math.MaxInt:
		return math.MaxInt
	case x <= math.MinInt:
		return math.MinInt
	case math.IsNaN(x):
		return 0
	}
	return int(x)
}

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

// Budget returns the budget of a condensation with this trigger, for a conversation of
// this size. Target is at most Limit.
//
// The target lies between the floor and the top, which is the smallest of: the limit;
// the threshold and MaxContextTokens, if Auto is set and they are so far above the floor
// that a quarter of them can be removed; and, for a manual trigger or a reason of When, the size of the
// conversation. It is half way between the two, or at Rule.Target, and not below MinSize. It keeps a
// distance of MinNewTokens to the top, so that the conversation is not due again at once,
// and to the floor, so that some messages can be kept; without room for both, it is half way.
// At least a sixteenth of the removable tokens is kept: a target below the floor would leave nothing.
// Finally it is lowered if a conversation within its limit would not save MinGain by
// reaching it. For a manual trigger, summaries count as part of the floor.
//
// With StopAtLimit, a conversation over its limit has the limit as its target, unless
// Rule.Target is set.
//
// On overflow the model's API has refused a conversation that may be within the limit.
// The error of the count is unknown, so the limit becomes three quarters of the refused
// size, and again after every refusal; but at least a quarter of the removable tokens is kept.
func (r Rule) Budget(size Size, trigger core.Trigger) core.Budget {
	b, _ := r.budget(size, trigger)
	return b
}

// budget also returns the wanted target, before any adjustment.
func (r Rule) budget(size Size, trigger core.Trigger) (b core.Budget, wish int) {
	used, floor := size.Used(), size.floor(trigger)
	b = core.Budget{Window: r.Window, Reserve: r.reserve(), Overhead: size.Overhead(), Limit: r.limit()}
	if trigger == core.TriggerOverflow {
		b.Limit = min(b.Limit, refusedLimit(used, floor))
	}
	if r.StopAtLimit && r.Target == 0 && used > b.Limit {
		b.Target = b.Limit
		return b, b.Target
	}
	top := r.top(floor, b.Limit)
	if trigger == core.TriggerManual || r.Auto && r.When.Due(size.Since, size.Messages, r.Window) != "" {
		top = min(top, used)
	}
	if top <= floor {
		b.Target = top
		return b, top
	}
	wish = floor + (top-floor)/2
	if r.Target > 0 {
		wish = floorInt(percentOf(r.Target, r.Window))
	}
	wish = max(wish, r.MinSize)
	gap := min(max(1, r.MinNewTokens), (top-floor)/2)
	least := max(gap, (top-floor)/minKept)
	b.Target = min(max(wish, floor+least), top-max(1, gap)) // at the top it would be due
	if used <= b.Limit {
		whole := max(used, top)
		b.Target = min(b.Target, max(floor, whole-r.minGain(whole-floor)))
	}
	return b, wish
}

// top is the smallest size with an effect that makes a conversation due, and the limit if
// there is none.
func (r Rule) top(floor, limit int) int {
	top := limit
	if !r.Auto {
		return top
	}
	for _, n := range []int{r.due(), r.MaxContextTokens} {
		if r.counts(n, floor) {
			top = min(top, n)
		}
	}
	return top
}

// counts reports whether a trigger size below the limit has an effect for this floor. It has
// none if most of it is the floor: the conversation would be due again and again, and lose
// nearly all of its messages each time.
func (r Rule) counts(due, floor int) bool {
	return due > floor && (r.IgnoreFixed || due-floor >= due/minRemovable)
}

// refusedLimit is the limit after an API has refused used tokens. It is below used, so that a conversation from which
// nothing can be removed exceeds it.
func refusedLimit(used, floor int) int {
	threeQuarters := used/4*3 + used%4*3/4
	return min(max(threeQuarters, floor+(used-floor)/4), used-1)
}
