package live

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/secret"
)

// Stats are the totals of a gateway since it was made. Tokens are by the vendors' counts. Tokens that were not sent
// are estimated at the ratio between the vendor's count and the gateway's own.
type Stats struct {
	Since    time.Time `json:"since"`
	AsOf     time.Time `json:"as_of"`             // the time of this snapshot
	Observe  bool      `json:"observe,omitempty"` // the gateway changes nothing now; see Observed
	Requests int       `json:"requests"`          // with a conversation
	Passed   int       `json:"passed"`            // of these, forwarded unchanged
	Tokens   Tokens    `json:"tokens"`
	// Cost is by the price table, in US dollars. It excludes requests to models without a known price; Unpriced counts
	// them. Estimated counts requests whose tokens and cost are the gateway's own count, because the vendor did not
	// report them.
	Cost      float64 `json:"cost"`
	Saved     float64 `json:"cost_saved"`
	Unpriced  int     `json:"unpriced,omitempty"`
	Estimated int     `json:"estimated,omitempty"`
	// Observed holds hypothetical results from the time when the gateway only observed. They are in no other number;
	// nil if it never did.
	Observed *Observed `json:"observed,omitempty"`
	// Windows lists models whose window is known only from their server, or is unknown, or whose server cuts prompts.
	Windows []Window `json:"windows,omitempty"`
	// Epochs holds the newest epochs, oldest first; EpochCount counts all.
	Epochs      []Epoch        `json:"epochs"`
	EpochCount  int            `json:"epoch_count"`
	Undone      int            `json:"undone,omitempty"` // epochs undone by the user
	Compactions int            `json:"compactions"`      // answered by the gateway in place of the vendor
	Ingested    int            `json:"ingested"`         // tool results shortened before they were first sent
	Recalls     int            `json:"recalls"`          // successful requests of agents for condensed content
	Recalled    []Recalled     `json:"recalled"`         // the recalled content, the most frequent first
	Errors      map[string]int `json:"errors"`           // by kind
	// Attempts counts the outcomes of providers, by name, without providers that were not needed. Unreachable lists
	// upstreams to which requests could not be sent.
	Attempts    []Attempt     `json:"attempts"`
	Unreachable []Unreachable `json:"unreachable,omitempty"`
	// Failures has the causes of Errors, where they are known.
	Failures []Failure `json:"failures,omitempty"`
	// Accounts counts the requests to clients' own models; nil if there were none.
	Accounts *Accounts `json:"accounts,omitempty"`
	// Pending says why the current configuration files are not in effect: a change waits for trust, or is invalid.
	// Empty if they are.
	Pending string `json:"configuration_pending,omitempty"`
	// Preparing counts the condensations that run beside requests now.
	Preparing int `json:"preparing,omitempty"`
}

// Tokens counts the tokens of requests and answers.
type Tokens struct {
	Received   int `json:"received"` // the clients' histories, each limited to the window, because vendors refuse more
	Sent       int `json:"sent"`     // by the vendors' counts
	Saved      int `json:"saved"`    // Received minus Sent
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
	Recalled   int `json:"recalled"` // given back to agents that asked
	Net        int `json:"net"`      // Saved minus Recalled
}

// Observed holds the hypothetical results of a gateway that changes nothing, in tokens and US dollars.
type Observed struct {
	Epochs    int     `json:"would_have_condensed"`
	Ingested  int     `json:"would_have_shortened"` // tool results
	Sent      int     `json:"would_have_sent"`
	Saved     int     `json:"would_have_saved"`
	CostSaved float64 `json:"would_have_saved_cost"`
}

// hypothetical returns s.Observed, created if nil.
func (s *Stats) hypothetical() *Observed {
	s.Observed = cmp.Or(s.Observed, &Observed{})
	return s.Observed
}

// An Epoch is one condensation of a history. Sizes are in tokens.
type Epoch struct {
	Time    time.Time `json:"time"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model"`
	Lineage string    `json:"lineage"`
	Reason  string    `json:"reason"` // window, threshold, cold, changed, payback, overflow, asked
	Before  int       `json:"before"`
	After   int       `json:"after"`
	// Turns is the expected number of requests until the epoch pays for itself.
	Turns float64 `json:"turns,omitempty"`
	// CacheRead and CacheWrite are the vendor's report for the first request of the epoch.
	CacheRead  int     `json:"cache_read"`
	CacheWrite int     `json:"cache_write"`
	Millis     float64 `json:"ms"`
	// Provider is the last contributing provider, and Outcome is the outcome of its [core.Attempt]. If it stood in for
	// another provider, Fallback is set, and Cause says why the other one failed, was rejected, or was not ready.
	Provider  string `json:"provider,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Fallback  bool   `json:"fallback,omitempty"`
	Cause     string `json:"cause,omitempty"`
	WordsLost int    `json:"words_lost"`         // tokens of the user's words that the epoch left out
	Observed  bool   `json:"observed,omitempty"` // not carried out: the gateway only observed
	// Truth holds the view against the client's whole history; nil until it is measured, a moment later.
	Truth *Truth `json:"truth,omitempty"`
}

// keptEpochs limits the epochs kept in the statistics.
const keptEpochs = 100

// counters count the work of one gateway. They are safe for concurrent use.
type counters struct {
	Since time.Time

	mu sync.Mutex
	s  Stats

	Faulted func(kind string)
}

// Add changes the counts.
func (c *counters) Add(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.s)
}

// Fault counts an error.
func (c *counters) Fault(kind string) {
	c.Faulted(kind)
	c.Add(func(s *Stats) {
		if s.Errors == nil {
			s.Errors = map[string]int{}
		}
		s.Errors[kind]++
	})
}

// Failed counts an error and its cause, which may be any text.
func (c *counters) Failed(kind string, why job.Cause, now time.Time) {
	c.Fault(kind)
	c.Add(func(s *Stats) {
		s.Failures = addFailure(s.Failures, &Failure{kind, 1, secret.Safe(why.Why), why.Status, now, now})
	})
}

// Epoch adds an epoch.
func (c *counters) Epoch(e Epoch) {
	c.Add(func(s *Stats) {
		if e.Observed {
			s.hypothetical().Epochs++
		} else {
			s.EpochCount++
		}
		s.Epochs = append(s.Epochs[max(0, len(s.Epochs)-keptEpochs+1):], e)
	})
}

// Change changes the epoch of a lineage that began at a time, if it is kept.
func (c *counters) Change(lineage string, began time.Time, change func(*Epoch)) {
	c.Add(func(s *Stats) {
		for i := range s.Epochs {
			if e := &s.Epochs[i]; e.Lineage == lineage && e.Time.Equal(began) {
				change(e)
			}
		}
	})
}

// Snapshot returns a copy of the statistics that is not changed any more.
func (c *counters) Snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Since = c.Since
	if s.Observed != nil {
		o := *s.Observed
		s.Observed = &o
	}
	s.Accounts = addAccounts(s.Accounts, &Accounts{})
	if s.Accounts.Asked == 0 {
		s.Accounts = nil
	}
	s.Epochs = append([]Epoch{}, s.Epochs...) // empty, not null, in JSON
	s.Recalled = append([]Recalled{}, s.Recalled...)
	s.Tokens.Net = s.Tokens.Saved - s.Tokens.Recalled
	s.Errors = map[string]int{}
	maps.Copy(s.Errors, c.s.Errors)
	s.Attempts = append([]Attempt{}, s.Attempts...)
	s.Unreachable, s.Failures = slices.Clone(s.Unreachable), slices.Clone(s.Failures)
	return s
}
