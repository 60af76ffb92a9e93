package live

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/job"
)

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
	switch a.Outcome {
	case string(core.OutcomeFailed), string(core.OutcomeRejected), string(core.OutcomeSkipped), Replaced:
		return true
	}
	return false
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

// addFailure returns all with n added to the entry of the same kind and cause.
func addFailure(all []Failure, n *Failure) []Failure {
	i := slices.IndexFunc(all, func(f Failure) bool { return f.Kind == n.Kind && causeOf(f.Reason) == causeOf(n.Reason) })
	switch {
	case i >= 0:
		if all[i].Count += n.Count; !n.Last.Before(all[i].Last) {
			all[i].Last, all[i].Reason, all[i].Status = n.Last, n.Reason, n.Status
		}
		if n.Since.Before(all[i].Since) {
			all[i].Since = n.Since
		}
	case len(all) < maxAttempts:
		all = append(all, *n)
	}
	return all
}

const maxAttempts = 200 // distinct ones; limited because every edit of a file can bring new names

// addAttempt returns all with a added to the entry of the same provider, outcome and mode, sorted by these.
func addAttempt(all []Attempt, a *Attempt) []Attempt {
	compare := func(x Attempt, y *Attempt) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Outcome, y.Outcome), cmp.Compare(x.Mode, y.Mode))
	}
	i, found := slices.BinarySearchFunc(all, a, compare)
	switch {
	case !found && len(all) < maxAttempts:
		return slices.Insert(all, i, *a)
	case found:
		if all[i].Count += a.Count; !a.Last.Before(all[i].Last) {
			all[i].Last, all[i].Reason = a.Last, a.Reason
		}
	}
	return all
}

// addUnreachable returns all with n added to the entry of the same upstream and address.
func addUnreachable(all []Unreachable, n *Unreachable) []Unreachable {
	i := slices.IndexFunc(all, func(u Unreachable) bool { return u.Upstream == n.Upstream && u.Address == n.Address })
	switch {
	case i >= 0:
		if all[i].Count += n.Count; !n.Last.Before(all[i].Last) {
			all[i].Last, all[i].Reason = n.Last, n.Reason
		}
	case len(all) < maxAttempts:
		all = append(all, *n)
	}
	return all
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
	if c.of == nil {
		c.of = map[string]time.Time{}
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
