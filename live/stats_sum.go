package live

import (
	"cmp"
	"slices"
)

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
		i := slices.IndexFunc(all, func(r Recalled) bool { return r.What == m.What && r.Pass == m.Pass })
		switch {
		case i >= 0:
			all[i].Count += m.Count
			all[i].Tokens += m.Tokens
		case len(all) < maxKinds:
			all = append(all, m)
		}
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
	t, u := &s.Tokens, &o.Tokens
	t.Received += u.Received
	t.Recalled += u.Recalled
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	t.Output += u.Output
	s.Cost += o.Cost
	s.Unpriced += o.Unpriced
	s.Estimated += o.Estimated
	if o.AsOf.After(s.AsOf) {
		s.AsOf = o.AsOf
	}
	if h := o.Observed; h != nil {
		sum := s.hypothetical()
		sum.Epochs += h.Epochs
		sum.Ingested += h.Ingested
		sum.Sent += h.Sent
		sum.Saved += h.Saved
		sum.CostSaved += h.CostSaved
	}
	if o.Observe && o.Observed == nil { // saved by an earlier version: everything was sent unchanged
		t.Sent += u.Received
	} else {
		t.Sent += u.Sent
		s.EpochCount += o.EpochCount
		t.Saved += u.Saved
		t.Net += u.Net
		s.Saved += o.Saved
		s.Ingested += o.Ingested
	}
	s.Accounts = addAccounts(s.Accounts, o.Accounts)
	s.Compactions += o.Compactions
	s.Recalls += o.Recalls
	s.Recalled = addRecalled(s.Recalled, o.Recalled)
	for kind, n := range o.Errors {
		s.Errors[kind] += n
	}
	for i := range o.Attempts {
		s.Attempts = addAttempt(s.Attempts, &o.Attempts[i])
	}
	for _, w := range o.Windows {
		s.Windows = addWindow(s.Windows, w)
	}
	for i := range o.Failures {
		s.Failures = addFailure(s.Failures, &o.Failures[i])
	}
	for i := range o.Unreachable {
		s.Unreachable = addUnreachable(s.Unreachable, &o.Unreachable[i])
	}
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
