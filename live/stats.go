package live

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
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

// Sum adds other statistics.
func (c *counters) Sum(o *Stats) { c.Add(func(s *Stats) { s.add(o) }) }

// Fault counts an error.
func (c *counters) Fault(kind string) {
	c.Faulted(kind)
	c.Sum(&Stats{Errors: map[string]int{kind: 1}})
}

// Failed counts an error and its cause, which may be any text.
func (c *counters) Failed(kind string, why job.Cause, now time.Time) {
	c.Fault(kind)
	c.Sum(&Stats{Failures: []Failure{{kind, 1, secret.Safe(why.Why), why.Status, now, now}}})
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
		s.Observed = new(*s.Observed)
	}
	s.Epochs = append([]Epoch{}, s.Epochs...) // empty, not null, in JSON
	s.Recalled = append([]Recalled{}, s.Recalled...)
	s.Tokens.Net = s.Tokens.Saved - s.Tokens.Recalled
	s.Errors = maps.Clone(s.Errors)
	s.Attempts = append([]Attempt{}, s.Attempts...)
	s.Unreachable, s.Failures = slices.Clone(s.Unreachable), slices.Clone(s.Failures)
	return s
}

// Attempt counts how often a provider, when its turn came to condense, had one outcome. Reason is the most recent one.
type Attempt struct {
	Provider string    `json:"provider"`
	Outcome  string    `json:"outcome"`        // the outcome of a [core.Attempt], or [Replaced]
	Mode     string    `json:"mode,omitempty"` // mode, or profile if there is no mode
	Count    int       `json:"count"`
	Reason   string    `json:"reason,omitempty"` // without keys
	Last     time.Time `json:"last"`
}

// Replaced is the outcome of a provider that would have taken too long for a request that the vendor would refuse.
// Either it would have asked a language model and nothing was prepared, so the built-in chain condensed at once; or
// too many requests waited, so truncation did.
const Replaced = string(job.Replaced)

// Failed reports whether the provider failed to do its work. Finding nothing to condense is no failure.
func (a *Attempt) Failed() bool {
	failures := []core.Outcome{core.OutcomeFailed, core.OutcomeRejected, core.OutcomeSkipped, job.Replaced}
	return slices.Contains(failures, core.Outcome(a.Outcome))
}

// Unreachable counts requests that could not be sent to an upstream.
type Unreachable struct {
	Upstream string    `json:"upstream"`
	Address  string    `json:"address"` // without its path
	Count    int       `json:"count"`
	Reason   string    `json:"reason"` // the most recent one
	Last     time.Time `json:"last"`
}

// Failure counts errors of a kind with the same cause. Reason is the most recent one, and Status that of HTTP of the answer that
// said so; 0 if there was none.
type Failure struct {
	Kind   string    `json:"kind"` // as in [Stats.Errors]
	Count  int       `json:"count"`
	Reason string    `json:"reason"` // without keys
	Status int       `json:"status,omitempty"`
	Since  time.Time `json:"since"`
	Last   time.Time `json:"last"`
}

// addTo returns all with n: add adds it to the entry that is the same, or else it is a new one, if there are less than most.
func addTo[T any](all []T, n T, most int, same func(*T) bool, add func(*T)) []T {
	for i := range all {
		if same(&all[i]) {
			add(&all[i])
			return all
		}
	}
	if len(all) < most {
		all = append(all, n)
	}
	return all
}

// addFailure returns all with n added to the entry of the same kind and cause.
func addFailure(all []Failure, n Failure) []Failure {
	same := func(f *Failure) bool { return f.Kind == n.Kind && causeOf(f.Reason) == causeOf(n.Reason) }
	return addTo(all, n, maxAttempts, same, func(f *Failure) {
		if f.Count += n.Count; !n.Last.Before(f.Last) {
			f.Last, f.Reason, f.Status = n.Last, n.Reason, n.Status
		}
		if n.Since.Before(f.Since) {
			f.Since = n.Since
		}
	})
}

const maxAttempts = 200 // distinct ones; limited because every edit of a file can bring new names

// addAttempt returns all with n added to the entry of the same provider, outcome and mode, sorted by these.
func addAttempt(all []Attempt, n Attempt) []Attempt {
	compare := func(x, y Attempt) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Outcome, y.Outcome), cmp.Compare(x.Mode, y.Mode))
	}
	all = addTo(all, n, maxAttempts, func(a *Attempt) bool { return compare(*a, n) == 0 }, func(a *Attempt) {
		if a.Count += n.Count; !n.Last.Before(a.Last) {
			a.Last, a.Reason = n.Last, n.Reason
		}
	})
	slices.SortFunc(all, compare)
	return all
}

// addUnreachable returns all with n added to the entry of the same upstream and address.
func addUnreachable(all []Unreachable, n Unreachable) []Unreachable {
	same := func(u *Unreachable) bool { return u.Upstream == n.Upstream && u.Address == n.Address }
	return addTo(all, n, maxAttempts, same, func(u *Unreachable) {
		if u.Count += n.Count; !n.Last.Before(u.Last) {
			u.Last, u.Reason = n.Last, n.Reason
		}
	})
}

// causes remembers which causes of failures have been logged, and when.
type causes struct {
	mu sync.Mutex
	of map[string]time.Time
}

const (
	maxCauses  = 100
	namedAgain = time.Hour // an ongoing cause is logged again after this time
)

// First reports whether the cause of a failure should be logged now.
func (c *causes) First(of, reason string, now time.Time) bool {
	key := of + " " + causeOf(reason)
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.of[key]; ok && now.Sub(at) < namedAgain {
		return false
	}
	for k, at := range c.of {
		if now.Sub(at) >= namedAgain {
			delete(c.of, k)
		}
	}
	if len(c.of) >= maxCauses {
		return false // they are still counted
	}
	c.of[key] = now
	return true
}

// causeOf returns the constant part of a reason: words with digits, such as request IDs and token counts, become "#".
func causeOf(reason string) string {
	const longestCode = 3 // as in 401
	words := strings.Fields(reason)
	for i, w := range words {
		if w = strings.Trim(w, ".,:;()\"'"); len(w) > longestCode && strings.ContainsAny(w, "0123456789") {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// Recalled counts recalls of one kind of content.
type Recalled struct {
	What   string `json:"what"`           // kind of content, as in "result of read_file"
	Pass   string `json:"pass,omitempty"` // the pass that left it out, as in "smart/prune", or "ingest"; empty if unknown
	Count  int    `json:"count"`
	Tokens int    `json:"tokens"`           // given back; estimated
	Handle string `json:"handle,omitempty"` // only in a [Finding]
}

const maxKinds = 200 // distinct kinds of recalled content

// addRecalled returns the sum of two lists of recalls, the most frequent first.
func addRecalled(all, more []Recalled) []Recalled {
	all = slices.Clone(all)
	for _, m := range more {
		all = addTo(all, m, maxKinds, func(r *Recalled) bool { return r.What == m.What && r.Pass == m.Pass }, func(r *Recalled) {
			r.Count += m.Count
			r.Tokens += m.Tokens
		})
	}
	slices.SortStableFunc(all, func(a, b Recalled) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.What, b.What))
	})
	return all
}

// savedStats is the stored form of the statistics.
type savedStats struct {
	Stats Stats `json:"stats"`
}

// add adds the statistics of another gateway to s.
func (s *Stats) add(o *Stats) {
	if s.Since.IsZero() || o.Since.Before(s.Since) {
		s.Since = o.Since
	}
	s.Requests += o.Requests
	s.Passed += o.Passed
	s.Cost += o.Cost
	s.Unpriced += o.Unpriced
	s.Estimated += o.Estimated
	if o.AsOf.After(s.AsOf) {
		s.AsOf = o.AsOf
	}
	if h := o.Observed; h != nil {
		sum := s.hypothetical()
		*sum = Observed{sum.Epochs + h.Epochs, sum.Ingested + h.Ingested, sum.Sent + h.Sent, sum.Saved + h.Saved, sum.CostSaved + h.CostSaved}
	}
	t, u := s.Tokens, o.Tokens
	if o.Observe && o.Observed == nil { // saved by an earlier version: everything was sent unchanged
		u.Sent, u.Saved, u.Net = u.Received, 0, 0
	} else {
		s.EpochCount += o.EpochCount
		s.Saved += o.Saved
		s.Ingested += o.Ingested
	}
	s.Tokens = Tokens{
		t.Received + u.Received, t.Sent + u.Sent, t.Saved + u.Saved, t.CacheRead + u.CacheRead, t.CacheWrite + u.CacheWrite,
		t.Output + u.Output, t.Recalled + u.Recalled, t.Net + u.Net,
	}
	s.Accounts = addAccounts(s.Accounts, o.Accounts)
	s.Compactions += o.Compactions
	s.Recalls += o.Recalls
	s.Recalled = addRecalled(s.Recalled, o.Recalled)
	for kind, n := range o.Errors {
		s.Errors[kind] += n
	}
	s.Attempts = addAll(s.Attempts, o.Attempts, addAttempt)
	s.Windows = addAll(s.Windows, o.Windows, addWindow)
	s.Failures = addAll(s.Failures, o.Failures, addFailure)
	s.Unreachable = addAll(s.Unreachable, o.Unreachable, addUnreachable)
}

// addAll returns all with each of more added.
func addAll[T any](all, more []T, add func([]T, T) []T) []T {
	for _, one := range more {
		all = add(all, one)
	}
	return all
}

// Accounts sums up the requests to clients' own models. Cost and Expected are in US dollars: Cost is from the vendors'
// reports; Expected is the estimate made before each request, for a cached prompt and the longest permitted answer.
// Cost is included in [Stats.Cost]; the tokens are included in no other number.
type Accounts struct {
	Asked     int     `json:"asked"`
	Failed    int     `json:"failed"` // no answer, or an answer without text
	Input     int     `json:"input"`  // tokens of prompts
	CacheRead int     `json:"cache_read"`
	Output    int     `json:"output"`
	Cost      float64 `json:"cost"`
	Expected  float64 `json:"cost_expected"`
	Estimated int     `json:"estimated,omitempty"` // requests whose usage the vendor did not report
}

// addAccounts returns the sum of a and b; nil if both are.
func addAccounts(a, b *Accounts) *Accounts {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Accounts{
		a.Asked + b.Asked, a.Failed + b.Failed, a.Input + b.Input, a.CacheRead + b.CacheRead, a.Output + b.Output,
		a.Cost + b.Cost, a.Expected + b.Expected, a.Estimated + b.Estimated,
	}
}
