package live

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Stats are what a gateway did since it was made. Tokens are as the vendors count them; what was
// not sent is estimated from how the vendor counted the rest.
type Stats struct {
	Since    time.Time `json:"since"`
	AsOf     time.Time `json:"as_of"`             // when this was true
	Observe  bool      `json:"observe,omitempty"` // nothing is changed now; see Observed
	Requests int       `json:"requests"`          // with a conversation
	Passed   int       `json:"passed"`            // of those, as they came
	Tokens   Tokens    `json:"tokens"`
	// Cost is by the price table, in US dollars. Requests to models without a known price are
	// not in it; Unpriced counts them. Estimated counts those whose tokens and cost are our own count, because the vendor did not report them.
	Cost      float64 `json:"cost"`
	Saved     float64 `json:"cost_saved"`
	Unpriced  int     `json:"unpriced,omitempty"`
	Estimated int     `json:"estimated,omitempty"`
	// Observed is what would have been while the gateway only observed, and is in no other number; nil if it never did.
	Observed *Observed `json:"observed,omitempty"`
	// Windows are those of models that only their server tells, or nothing, or whose server cuts prompts.
	Windows []Window `json:"windows,omitempty"`
	// Epochs are the newest, oldest first; EpochCount counts all.
	Epochs      []Epoch        `json:"epochs"`
	EpochCount  int            `json:"epoch_count"`
	Undone      int            `json:"undone,omitempty"` // epochs that the user has undone
	Compactions int            `json:"compactions"`      // that the gateway answered in place of the vendor
	Ingested    int            `json:"ingested"`         // tool results that were shortened before they were first sent
	Recalls     int            `json:"recalls"`          // how often an agent asked for what was condensed, and got it
	Recalled    []Recalled     `json:"recalled"`         // what they asked for, the most frequent first
	Errors      map[string]int `json:"errors"`           // by kind
	// Attempts are what providers did, by their name; a provider that was not needed is not among them. Unreachable are the upstreams to which
	// requests could not be sent.
	Attempts    []Attempt     `json:"attempts"`
	Unreachable []Unreachable `json:"unreachable,omitempty"`
	// Accounts are what clients' own models were asked for; nil if nothing.
	Accounts *Accounts `json:"accounts,omitempty"`
	// Pending says why the files of the configuration are not used as they are: a change waits for trust, or is invalid. Empty if they are.
	Pending string `json:"configuration_pending,omitempty"`
}

// Tokens of requests and answers.
type Tokens struct {
	Received   int `json:"received"` // what the clients' histories are, of each as much as fits into the window: vendors refuse more
	Sent       int `json:"sent"`     // what the vendors counted
	Saved      int `json:"saved"`    // the difference
	CacheRead  int `json:"cache_read"`
	CacheWrite int `json:"cache_write"`
	Output     int `json:"output"`
	Recalled   int `json:"recalled"` // given back to agents that asked for them
	Net        int `json:"net"`      // Saved without what was recalled
}

// Observed is what a gateway that changes nothing would have done: all of it is hypothetical. Tokens and US dollars.
type Observed struct {
	Epochs    int     `json:"would_have_condensed"`
	Ingested  int     `json:"would_have_shortened"` // tool results
	Sent      int     `json:"would_have_sent"`
	Saved     int     `json:"would_have_saved"`
	CostSaved float64 `json:"would_have_saved_cost"`
}

// observed returns s.Observed, which it makes if there is none.
func (s *Stats) observed() *Observed {
	if s.Observed == nil {
		s.Observed = &Observed{}
	}
	return s.Observed
}

// An Epoch is one condensation of a history. All numbers are tokens.
type Epoch struct {
	Time    time.Time `json:"time"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model"`
	Lineage string    `json:"lineage"`
	Reason  string    `json:"reason"` // window, threshold, cold, changed, payback, overflow, asked
	Before  int       `json:"before"`
	After   int       `json:"after"`
	// Turns is how many requests it was expected to take until the epoch has paid for itself.
	Turns float64 `json:"turns,omitempty"`
	// CacheRead and CacheWrite are what the vendor reported for the first request after it.
	CacheRead  int     `json:"cache_read"`
	CacheWrite int     `json:"cache_write"`
	Millis     float64 `json:"ms"`
	// Provider is the last one that contributed, and Outcome that of its [core.Attempt]. If it condensed in place of another one, Fallback is
	// set, and Cause says why: which provider failed, was rejected, or was not ready.
	Provider string `json:"provider,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Fallback bool   `json:"fallback,omitempty"`
	Cause    string `json:"cause,omitempty"`
	Observed bool   `json:"observed,omitempty"` // it was not made: the gateway only observed
}

// keptEpochs is how many epochs the statistics remember.
const keptEpochs = 100

type counters struct {
	since time.Time

	mu sync.Mutex
	s  Stats

	faulted func(kind string)
}

func (c *counters) add(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.s)
}

// fault counts an error.
func (c *counters) fault(kind string) {
	c.faulted(kind)
	c.add(func(s *Stats) {
		if s.Errors == nil {
			s.Errors = map[string]int{}
		}
		s.Errors[kind]++
	})
}

// epoch adds an epoch.
func (c *counters) epoch(e Epoch) {
	c.add(func(s *Stats) {
		if e.Observed {
			s.observed().Epochs++
		} else {
			s.EpochCount++
		}
		s.Epochs = append(s.Epochs[max(0, len(s.Epochs)-keptEpochs+1):], e)
	})
}

// Stats returns what the gateway did so far.
func (g *Gateway) Stats() Stats {
	pending := g.host.ReloadErr()
	g.stats.mu.Lock()
	defer g.stats.mu.Unlock()
	s := g.stats.s
	s.Since, s.AsOf = g.stats.since, g.current.Load().Now()
	if s.Observed != nil {
		o := *s.Observed
		s.Observed = &o
	}
	s.Accounts = addAccounts(s.Accounts, &Accounts{})
	if s.Accounts.Asked == 0 {
		s.Accounts = nil
	}
	s.Windows = g.windows.known()
	s.Observe = g.current.Load().Observe
	if pending != nil {
		s.Pending = pending.Error()
	}
	s.Epochs = append([]Epoch{}, s.Epochs...) // not null in JSON
	s.Recalled = append([]Recalled{}, s.Recalled...)
	s.Tokens.Net = s.Tokens.Saved - s.Tokens.Recalled
	s.Errors = map[string]int{}
	maps.Copy(s.Errors, g.stats.s.Errors)
	s.Attempts = append([]Attempt{}, s.Attempts...)
	s.Unreachable = slices.Clone(s.Unreachable)
	return s
}
