// Package epoch decides when condensing a conversation pays. Condensing replaces the first messages, so the vendor's prompt cache
// no longer serves them. An epoch is the time from one condensation to the next. The gateway asks before every request, and replays
// of recorded sessions ask with the same numbers. The package is arithmetic, without clock, I/O or state.
//
// Tokens are counted by the vendor, as far as its counts are known. The unit of costs is the price of one input token.
package epoch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/size"
)

// A Reason says why an epoch begins.
type Reason string

// The reasons of [Decide], in the order in which they are looked for.
const (
	None      Reason = ""
	Forced    Reason = "window"    // the request does not fit, or the vendor has refused it as too long
	Threshold Reason = "threshold" // the conversation has reached the threshold of its profile
	Cold      Reason = "cold"      // the vendor's cache has expired
	Changed   Reason = "changed"   // another model, effort, system prompt or tools: their cache has never seen the conversation
	Payback   Reason = "payback"   // the epoch costs less than it saves in the turns still expected
)

// Overflow is the reason of a forced epoch that follows a vendor's refusal.
const Overflow Reason = "overflow"

// The reasons that only a user gives. [Decide] never returns them.
const (
	Asked  Reason = "asked"  // the user wants a condensation
	Undone Reason = "undone" // the user has undone the last condensation
)

// Reasons explains the reasons of condensations, in the past tense.
var Reasons = map[Reason]string{
	Forced: "the window was nearly full", Threshold: "the threshold of the profile was reached", Cold: "the vendor's cache had expired",
	Changed: "the vendor's cache was lost anyway", Payback: "it was to save more than it costs",
	Overflow: "the vendor refused it as too long", Asked: "you asked for it",
	Reason(policy.ReasonMessages): "more messages than max_messages had come", Reason(policy.ReasonToolResults): "more results than max_tool_results had come",
	Reason(policy.ReasonAge): "it was older than max_age", Reason(policy.ReasonResultsShare): "its results of tools were more than max_results_share",
}

// Trigger returns the trigger of the condensation with which an epoch for this reason begins. The rule of the profile knows nothing of
// caches and prices: for these reasons it is asked as a user would ask.
func (r Reason) Trigger() core.Trigger {
	if r == Forced || r == Threshold {
		return core.TriggerAutomatic
	}
	return core.TriggerManual
}

// Facts are the numbers of one request and its conversation that a decision rests on.
type Facts struct {
	Now      time.Time // the start of the request
	Tokens   int       // size of the request, as it would be sent without an epoch
	Fixed    int       // the part of Tokens that no condensation removes: system prompt and tools
	Overflow bool      // the vendor has refused the request as too long
	Thinking bool      // the vendor wants the thinking back with which the model's current turn began
	Retry    int       // size below which another attempt is useless, because the last one failed; 0 for none

	Grown   int          // tokens of the messages since the cut of the last epoch, or of all messages
	Since   policy.Since // of these messages; only for a policy with When
	Answers int          // the model's answers in these messages; 0 if unknown
	Turns   int          // the model's answers in the whole conversation
	Last    Last         // the last epoch

	Spent float64 // cost of the conversation so far, without system prompt and tools
	Saved float64 // part that epochs have saved, less their cost
	Wrong int     // predictions for earlier epochs that did not come true
	Cache Cache
}

// Last has the sizes of the request that began the last epoch, without and with it. Zero: there was no epoch, or its sizes are unknown.
type Last struct{ Before, After int }

// Cache is the knowledge about the vendor's prompt cache.
type Cache struct {
	Write float64 // price of a token that is written; 0 if unknown
	Read  float64 // price of a token that is read; 0 if unknown

	Began bool      // an earlier request of the conversation was sent
	Used  time.Time // start of the last request with this model, effort, system prompt and tools; zero for none

	Asked time.Duration // longest lifetime of entries that the conversation has asked for; 0 for none
	Usual time.Duration // the vendor's lifetime if nothing is asked for; 0 if unknown
	Seen  time.Duration // longest pause after which the cache was seen to be alive
}

// life returns how long the cache keeps a request; 0 if unknown.
func (c *Cache) life() time.Duration { return cmp.Or(c.Asked, c.Usual) }

// Until returns when the cache forgets the last request; zero if unknown.
func (c *Cache) Until() (t time.Time) {
	if life := c.life(); life > 0 {
		t = c.Used.Add(life)
	}
	return t
}

// A Policy has the limits and wishes of a user. The zero value of a field is the default, or no limit.
type Policy struct {
	Window    int // tokens of the model's window; 0 if unknown
	Limit     int // size that a request must not exceed; 0 if unknown
	Threshold int // size from which the profile wants an epoch; 0 for never
	Smallest  int // size of the request below which only the limit is a reason
	MinSize   int // size of the conversation, without Fixed, below which money is no reason; 0 for the default

	Target  float64 // size to condense to, in percent of the window; 0 for a share of the conversation
	Share   float64 // that share, without Fixed; 0 for the default
	MinGain float64 // percent of the conversation that an epoch must save
	MinNew  int     // tokens that must be new since the last epoch
	When    policy.When

	Turns int     // turns still expected; 0: as many as there were, within bounds
	Risk  float64 // see [Risk], which 0 means; below 0 there is no limit

	IgnoreCold    bool // neither an expired cache nor another one is a reason
	IgnorePayback bool
}

// Of returns the policy of a profile's rule. See docs/decisions/0032-epoch-defaults.md for the fields that a rule does not have.
func Of(r policy.Rule) Policy {
	p := Policy{
		Window: r.Window, Limit: r.Budget(policy.Size{}, core.TriggerAutomatic).Limit, Smallest: r.MinSize, Target: r.Target,
		MinGain: r.MinGain, MinNew: max(1, r.MinNewTokens), IgnoreCold: !r.Auto, IgnorePayback: !r.Auto,
	}
	if r.Auto {
		p.Threshold = percentOf(r.Threshold, r.Window)
		if r.MaxContextTokens > 0 {
			p.Threshold = min(p.Threshold, r.MaxContextTokens)
		}
		p.Threshold, p.When = max(p.Threshold, p.Smallest), r.When
	}
	return p
}

func percentOf(percent float64, n int) int { return int(percent / 100 * float64(n)) }

// RetryAfter returns the size below which another attempt is useless after one has failed at a size.
func (p *Policy) RetryAfter(tokens int) int { return tokens + max(1, p.MinNew) }

// LaterAfter returns the size below which a provider that chose to wait at a size is not asked again.
func (p *Policy) LaterAfter(tokens int) int { return tokens + policy.LaterAfter(p.Window) }

// A Wait is the event that a due epoch waits for.
type Wait string

// The waits.
const (
	NoWait  Wait = ""
	ForTurn Wait = "the end of the turn"
)

// A Decision is the result of [Decide], with predictions to compare with the vendor's counts.
type Decision struct {
	Reason Reason
	Wait   Wait    // if set, Reason is None and the epoch waits for this
	Before int     // tokens of the request without an epoch
	After  int     // predicted tokens with one
	Target int     // tokens that the epoch aims at
	Turns  float64 // requests after which the epoch has paid for itself; 0 if at once or unknown
}

// A Truth counts what the view of an epoch says that is not so, and what it no longer says, held against the history that it stands for.
type Truth struct {
	// Sentences of the user in the history, and those that the view does not have verbatim, white space aside.
	Sentences     int `json:"sentences"`
	SentencesGone int `json:"sentences_gone"`
	// Claims are lines that the view gives as the user's; WrongAuthor those that somebody else wrote.
	Claims      int `json:"claims"`
	WrongAuthor int `json:"wrong_author"`
	// Lines are lines of files in the view; Superseded those that an edit or a newer read replaced, without the newer text.
	Lines      int `json:"lines"`
	Superseded int `json:"superseded"`
	// Outcomes are identifiers of what calls started or created, while their end was not seen; OutcomesLost those not in the view.
	Outcomes     int `json:"outcomes"`
	OutcomesLost int `json:"outcomes_lost"`
}

// String returns the four numbers in the order of the fields; a dash for nil, which is not measured.
func (t *Truth) String() string {
	if t == nil {
		return "–"
	}
	return fmt.Sprintf("%s · %s · %s · %s", size.Group(t.SentencesGone), size.Group(t.WrongAuthor), size.Group(t.Superseded), size.Group(t.OutcomesLost))
}

// Faults says each in words, if there are any; nothing for nil.
func (t *Truth) Faults() (all []string) {
	if t == nil {
		return nil
	}
	for _, f := range []struct {
		n, of int
		what  string
	}{
		{t.SentencesGone, t.Sentences, "sentences of the user are gone"},
		{t.WrongAuthor, t.Claims, "lines given as the user's are not"},
		{t.Superseded, t.Lines, "lines of files were replaced since"},
		{t.OutcomesLost, t.Outcomes, "identifiers of started or created things are gone"},
	} {
		if f.n > 0 {
			all = append(all, fmt.Sprintf("%s of %s %s", size.Group(f.n), size.Group(f.of), f.what))
		}
	}
	return all
}
