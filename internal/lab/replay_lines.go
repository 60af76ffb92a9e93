package lab

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
)

// The scopes of a [ReplayLine].
const (
	ScopeAll  = "all"
	ScopeLong = "long" // sessions that reach 100,000 tokens uncondensed
	ScopeA    = "a"    // the half on which defaults are chosen
	ScopeB    = "b"    // the half on which they are reported
)

// long is the size of a prompt from which a session counts as long.
const long = 100_000

// A ReplayLine sums up one policy under one tariff, over the sessions of a scope.
type ReplayLine struct {
	Scope    string `json:"scope"` // all, long, a, b; "long a", "long b"
	Policy   string `json:"policy"`
	Tariff   string `json:"tariff"`
	Sessions int    `json:"sessions"`
	// USD are sums; Saved is 1 - USD/Untouched.
	USD       float64 `json:"usd"`
	Untouched float64 `json:"untouched"`
	Saved     float64 `json:"saved"`
	// Worst is the largest ratio of the cost of one session to its cost untouched.
	Worst   float64 `json:"worst"`
	Sent    int     `json:"sent"`
	HitRate float64 `json:"hit_rate"` // tokens read from the cache, of all that were sent
	Epochs  int     `json:"epochs"`
	Cut     int     `json:"cut"`
	Repeats int     `json:"repeats"`
	Gone    int     `json:"gone"`
	Failed  int     `json:"failed,omitempty"` // sessions with a failed condensation
	// Paid is how many epochs paid for themselves before the next epoch or the end, Foreseen how many were predicted
	// to.
	Paid     int `json:"paid"`
	Foreseen int `json:"foreseen"`
	// Values are means over sessions: "cheaper" (the saved share of the session's cost untouched), "lost" (the share
	// of used content that was missing from the view), "panel" and "user_epoch" (at the epochs), "user" (at the end),
	// "depth" (the share of a prompt that an epoch leaves), "peak" (tokens), "predicted" and "paid_after" (turns).
	Values map[string]Estimate `json:"values"`
}

// conclude sorts the plays and derives the lines.
func (r *ReplayReport) conclude() {
	rank, tariff := ranks(r.Policies), map[string]int{}
	for i := range r.Tariffs {
		tariff[r.Tariffs[i].Name] = i
	}
	slices.SortFunc(r.Sessions, func(a, b PlayedSession) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Name, b.Name) })
	infos := make([]SessionInfo, 0, len(r.Sessions))
	for i := range r.Sessions {
		s := &r.Sessions[i]
		infos = append(infos, SessionInfo{Name: s.Name, Mode: s.Mode, Hash: s.Hash, Said: s.Said})
	}
	again := copies(infos)
	r.Sessions = slices.DeleteFunc(r.Sessions, func(s PlayedSession) bool {
		of := again[s.Name]
		if of == "" {
			return false
		}
		r.Skipped = append(r.Skipped, Skipped{Name: s.Name, Reason: "the same conversation as " + of})
		r.Plays = slices.DeleteFunc(r.Plays, func(p Played) bool { return p.Session == s.Name })
		return true
	})
	slices.SortStableFunc(r.Plays, func(a, b Played) int {
		return cmp.Or(strings.Compare(a.Session, b.Session), rank[a.Policy]-rank[b.Policy], tariff[a.Tariff]-tariff[b.Tariff])
	})
	halves := r.halves()
	var check CacheCheck
	for i := range r.Sessions {
		s := &r.Sessions[i]
		s.Half = halves[s.Source]
		if s.Check != nil {
			check.add(s.Check)
		}
	}
	if check.Requests > 0 {
		r.Check = &check
	}
	type key struct{ session, tariff string }
	plain := map[key]*Played{}
	for i := range r.Plays {
		p := &r.Plays[i]
		p.Half = halves[p.Source]
		if p.Policy == untouched {
			plain[key{p.Session, p.Tariff}] = p
		}
	}
	groups := map[[3]string][]*Played{}
	for i := range r.Plays {
		p := &r.Plays[i]
		if u := plain[key{p.Session, p.Tariff}]; u != nil {
			p.Untouched, p.Long = u.USD, u.Peak >= long
		}
		scopes := []string{ScopeAll, p.Half}
		if p.Long {
			scopes = append(scopes, ScopeLong, ScopeLong+" "+p.Half)
		}
		for _, s := range scopes {
			k := [3]string{s, p.Tariff, p.Policy}
			groups[k] = append(groups[k], p)
		}
	}
	r.Lines = r.Lines[:0]
	draws := newSampler(r.Seed)
	for _, scope := range []string{ScopeAll, ScopeLong, ScopeA, ScopeB, ScopeLong + " " + ScopeA, ScopeLong + " " + ScopeB} {
		for i := range r.Tariffs {
			for k := range r.Policies {
				if plays := groups[[3]string{scope, r.Tariffs[i].Name, r.Policies[k].Name}]; len(plays) > 0 {
					l := replayLine(plays, draws)
					l.Scope = scope
					r.Lines = append(r.Lines, l)
				}
			}
		}
	}
	r.Conclusion = r.conclusion()
	r.Skipped, r.Sessions, r.Plays, r.Lines = some(r.Skipped), some(r.Sessions), some(r.Plays), some(r.Lines)
}

func replayLine(plays []*Played, draws *sampler) ReplayLine {
	l := ReplayLine{Policy: plays[0].Policy, Tariff: plays[0].Tariff, Sessions: len(plays), Values: map[string]Estimate{}}
	values := map[string][]float64{}
	put := func(name string, v float64) { values[name] = append(values[name], v) }
	read := 0
	for _, p := range plays {
		l.USD += p.USD
		l.Untouched += p.Untouched
		l.Sent += p.Sent
		read += p.Read
		l.Epochs += len(p.Epochs)
		l.Cut += p.Cut
		l.Repeats += p.Repeats
		l.Gone += p.Gone
		if p.Error != "" {
			l.Failed++
		}
		if p.Untouched > 0 {
			l.Worst = max(l.Worst, p.USD/p.Untouched)
			put("cheaper", 1-p.USD/p.Untouched)
		}
		put("peak", float64(p.Peak))
		if p.Had != nil {
			put("lost", 1-*p.Had)
		}
		if p.User != nil {
			put("user", *p.User)
		}
		means := map[string][]float64{}
		for i := range p.Epochs {
			e := &p.Epochs[i]
			means["depth"] = append(means["depth"], float64(e.After)/float64(max(1, e.Before)))
			for name, v := range map[string]*float64{MeasurePanel: e.Panel, "user_epoch": e.User, "predicted": e.Predicted} {
				if v != nil {
					means[name] = append(means[name], *v)
				}
			}
			if e.Paid != nil {
				l.Paid++
				means["paid_after"] = append(means["paid_after"], float64(*e.Paid))
			}
			if e.Predicted != nil && *e.Predicted <= float64(p.Requests-e.Request) {
				l.Foreseen++
			}
		}
		for name, v := range means {
			put(name, mean(v))
		}
	}
	l.HitRate = float64(read) / math.Max(1, float64(l.Sent))
	l.Saved = 1 - l.USD/math.Max(1e-12, l.Untouched)
	for name, v := range values {
		l.Values[name], _ = draws.estimate(v)
	}
	return l
}

// WriteJSON writes r, indented by one space, with a final newline.
func (r *ReplayReport) WriteJSON(w io.Writer) error { return writeJSON(w, r) }
