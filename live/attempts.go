package live

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
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
const Replaced = "replaced"

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

const (
	mostAttempts  = 200 // distinct ones; limited because every edit of a file can bring new names
	longestReason = 240 // bytes
)

// shown returns an error text that is safe to display: one line, without keys, and short. A provider's error can quote
// anything.
func shown(text string) string {
	const read = 4 << 10 // bytes; the rest is ignored
	text = secret.Redact(plain.Line(text[:min(len(text), read)]))
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "") + "…"
	}
	return text
}

// A maker is the provider that made a view, and the reason if another one should have made it.
type maker struct {
	provider, outcome string
	setback           string // the first failure of a provider
	cause             string // empty unless the provider stood in for another one
}

// makerOf returns the provider that condensed, according to a report.
func makerOf(r *condense.Report) maker {
	var m maker
	for i := range r.Attempts {
		a := &r.Attempts[i]
		switch {
		case a.Err != nil:
			m.setback = cmp.Or(m.setback, a.Provider+" "+string(a.Outcome)+": "+shown(a.Reason))
		case a.Outcome == core.OutcomeApplied, a.Outcome == core.OutcomeInsufficient:
			m.provider, m.outcome = a.Provider, string(a.Outcome)
			if m.cause = m.setback; m.cause == "" && i > 0 && a.Provider == condense.Truncation {
				last := &r.Attempts[i-1]
				m.cause = last.Provider + " " + string(last.Outcome) + ": " + shown(last.Reason)
			}
		}
	}
	return m
}

// tries returns a function that counts the attempts in a report, and logs why one failed. It may be called after x has
// ended.
func (x *exchange) tries() func(*condense.Report) {
	g, mode := x.Gateway, cmp.Or(x.mode, x.profile)
	return func(r *condense.Report) {
		for i := range r.Attempts {
			a := &r.Attempts[i]
			needed := a.Outcome != core.OutcomeSkipped || a.Err != nil
			if !needed || errors.Is(a.Err, context.Canceled) { // the client has gone
				continue
			}
			g.attempted(Attempt{Provider: a.Provider, Outcome: string(a.Outcome), Mode: mode, Reason: shown(a.Reason)})
		}
	}
}

// tried counts the attempts of a job's providers, and records the reason if its chain failed.
func (j *job) tried(r *condense.Report, err error) {
	if r != nil && j.tries != nil {
		j.tries(r)
	}
	switch {
	case r != nil && r.Acted:
		return
	case r != nil && makerOf(r).setback != "":
		j.instead, j.named = makerOf(r).setback, j.tries != nil
	case err != nil:
		j.instead = shown(err.Error())
	default:
		j.instead = shown(r.Reason)
	}
	j.asker = ""
}

// asks records the provider that would ask a language model.
func (j *job) asks(asked []condense.Estimate, err error) {
	if err != nil {
		j.asker, j.instead = "", shown(err.Error())
		return
	}
	j.asker = asked[0].Provider
	j.instead = j.asker + " " + Replaced + ": it asks a language model, and nothing was prepared"
}

// replaced counts that the built-in chain stands in for the chain of the job.
func (x *exchange) replaced(j *job) {
	if j.asker != "" {
		x.attempted(Attempt{Provider: j.asker, Outcome: Replaced, Mode: cmp.Or(x.mode, x.profile), Reason: "it asks a language model, and nothing was prepared: the built-in chain condensed in its place"})
	}
}

// attempted counts an attempt. A failure is logged once per cause.
func (g *Gateway) attempted(a Attempt) {
	s := g.current.Load()
	a.Count, a.Last = 1, s.Now()
	g.measure(&mAttempts, 1, aCondenser.String(a.Provider), aOutcome.String(a.Outcome), aMode.String(a.Mode))
	g.stats.add(func(s *Stats) { s.Attempts = addAttempt(s.Attempts, &a) })
	about := []any{"provider", a.Provider, "outcome", a.Outcome, "mode", a.Mode, "reason", a.Reason}
	switch {
	case !a.Failed():
		s.Logger.DebugContext(g.life, "a provider was asked to condense", about...)
	case g.causes.first(a.Provider+" "+a.Outcome+" "+a.Mode, a.Reason, a.Last):
		s.Logger.WarnContext(g.life, "a provider did not condense", about...)
	default:
		s.Logger.DebugContext(g.life, "a provider did not condense", about...)
	}
}

// addAttempt returns all with a added to the entry of the same provider, outcome and mode, sorted by these.
func addAttempt(all []Attempt, a *Attempt) []Attempt {
	compare := func(x Attempt, y *Attempt) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Outcome, y.Outcome), cmp.Compare(x.Mode, y.Mode))
	}
	i, found := slices.BinarySearchFunc(all, a, compare)
	switch {
	case !found && len(all) < mostAttempts:
		return slices.Insert(all, i, *a)
	case found:
		if all[i].Count += a.Count; !a.Last.Before(all[i].Last) {
			all[i].Last, all[i].Reason = a.Last, a.Reason
		}
	}
	return all
}

// unreached counts a request that could not be sent to its upstream.
func (g *Gateway) unreached(s *settings, u *upstream, why string) {
	n := Unreachable{Upstream: u.name, Address: u.base.Scheme + "://" + u.base.Host, Count: 1, Reason: shown(why), Last: s.Now()}
	g.stats.add(func(s *Stats) { s.Unreachable = addUnreachable(s.Unreachable, &n) })
	if g.causes.first("upstream "+n.Upstream+n.Address, n.Reason, n.Last) {
		s.Logger.Warn("an upstream cannot be reached", "upstream", n.Upstream, "address", n.Address, "err", n.Reason)
	}
}

func addUnreachable(all []Unreachable, n *Unreachable) []Unreachable {
	i := slices.IndexFunc(all, func(u Unreachable) bool { return u.Upstream == n.Upstream && u.Address == n.Address })
	switch {
	case i >= 0:
		if all[i].Count += n.Count; !n.Last.Before(all[i].Last) {
			all[i].Last, all[i].Reason = n.Last, n.Reason
		}
	case len(all) < mostAttempts:
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
	mostCauses = 100
	namedAgain = time.Hour // an ongoing cause is logged again after this time
)

// first reports whether the cause of a failure should be logged now.
func (c *causes) first(of, reason string, now time.Time) bool {
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
	if len(c.of) >= mostCauses {
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
