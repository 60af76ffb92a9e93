package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/size"
)

// A Choice is the policy that a replay recommends for the sessions of a mode.
type Choice struct {
	Mode     string `json:"mode"`     // empty: all
	Sessions int    `json:"sessions"` // of the mode, those that some policy condensed
	// Policy is empty if the sessions are too few, or if the policy is not shown to be cheaper than the default.
	Policy string `json:"policy,omitempty"`
	// Cheaper and Lost are means over sessions, each under the policy chosen from the other sessions: the saved share
	// of the cost of the session untouched, and the share of used content that was missing from the view. More is the
	// difference of Cheaper from the default's.
	Cheaper *Estimate `json:"cheaper,omitempty"`
	Lost    *Estimate `json:"lost,omitempty"`
	More    *Estimate `json:"more,omitempty"`
	Why     string    `json:"why"`
}

// maxLost is the largest loss of a recommended policy.
const maxLost = 0.02

// Choose returns the policy that saves most, under the first tariff, among those that lose at most 0.02 at the moment
// of use. ByDefault names the policy to compare with.
func (r *ReplayReport) Choose(mode, byDefault string) Choice {
	plays := map[string]map[string]*Played{} // by session and policy
	for i := range r.Plays {
		p := &r.Plays[i]
		if p.Tariff != r.Tariffs[0].Name || mode != "" && p.Mode != mode {
			continue
		}
		if plays[p.Session] == nil {
			plays[p.Session] = map[string]*Played{}
		}
		plays[p.Session][p.Policy] = p
	}
	var sessions []map[string]*Played
	for i := range r.Sessions {
		own := plays[r.Sessions[i].Name]
		for _, p := range own {
			if len(p.Epochs) > 0 && own[byDefault] != nil {
				sessions = append(sessions, own)
				break
			}
		}
	}
	out := Choice{Mode: mode, Sessions: len(sessions)}
	if len(sessions) < fewSessions {
		out.Why = fmt.Sprintf("not enough sessions that are long enough to be condensed (%d of the %d needed)", len(sessions), fewSessions)
		return out
	}
	var cheaper, lost, more []float64
	for i, own := range sessions {
		p := own[r.cheapest(slices.Concat(sessions[:i:i], sessions[i+1:]), byDefault)]
		cheaper = append(cheaper, p.cheaper())
		more = append(more, p.cheaper()-own[byDefault].cheaper())
		if p.Had != nil {
			lost = append(lost, 1-*p.Had)
		}
	}
	s := newSampler(r.Seed)
	estimate := func(v []float64) *Estimate {
		e, ok := s.estimate(v)
		if !ok {
			return nil
		}
		return &e
	}
	out.Cheaper, out.Lost, out.More = estimate(cheaper), estimate(lost), estimate(more)
	best := r.cheapest(sessions, byDefault)
	switch {
	case best == byDefault:
		out.Why = "no other saves more without losing more than 2 % of what is used"
	case out.More.Low <= 0:
		out.Why = best + " is not shown to be cheaper than the default"
	default:
		out.Policy, out.Why = best, "it is cheaper than the default, and loses at most 2 % of what is used"
	}
	return out
}

func (p *Played) cheaper() float64 {
	if p.Untouched <= 0 {
		return 0
	}
	return 1 - p.USD/p.Untouched
}

// Window is the name of the policy of a program that only truncates, when the window is full.
const Window = "window"

// baselines are the policies that others are compared with, and that none chooses.
var baselines = []string{untouched, Recorded, Window}

// conclusion is the result in one sentence, the same in every output: the costs of the cheapest policy that loses little, under the first
// tariff, against the baselines that can happen; empty if there is none.
func (r *ReplayReport) conclusion() string {
	lines, plays := map[string]*ReplayLine{}, map[string]map[string]*Played{}
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Scope == ScopeAll && l.Tariff == r.Tariffs[0].Name {
			lines[l.Policy] = l
		}
	}
	for i := range r.Plays {
		if p := &r.Plays[i]; p.Tariff == r.Tariffs[0].Name {
			if plays[p.Session] == nil {
				plays[p.Session] = map[string]*Played{}
			}
			plays[p.Session][p.Policy] = p
		}
	}
	var all []map[string]*Played
	half := map[string][]map[string]*Played{}
	for i := range r.Sessions {
		own := plays[r.Sessions[i].Name]
		all = append(all, own)
		half[r.Sessions[i].Half] = append(half[r.Sessions[i].Half], own)
	}
	best := lines[r.cheapest(all, "")]
	if best == nil {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "of the policies that lose at most %g %% of the text in use, %s costs least: %.2f USD in %s at the prices of %s",
		100*maxLost, best.Policy, best.USD, size.Plural(best.Sessions, "session"), best.Tariff)
	for _, b := range []struct{ name, is string }{{Recorded, "the agents' own compactions"}, {Window, "truncation in a full window"}} {
		if l := lines[b.name]; l != nil && l.USD > 0 {
			fmt.Fprintf(&text, ", %+.1f %% against %s (%.2f)", 100*(best.USD/l.USD-1), b.is, l.USD)
		}
	}
	switch a, b := r.cheapest(half[ScopeA], ""), r.cheapest(half[ScopeB], ""); {
	case len(half) < 2: //nolint:mnd // halves
	case a == b:
		text.WriteString("; it is the cheapest of both halves of the sessions")
	default:
		fmt.Fprintf(&text, "; the halves of the sessions choose %s and %s", cmp.Or(a, "none"), cmp.Or(b, "none"))
	}
	for i := range r.Sessions {
		name := r.Sessions[i].Name
		if p := plays[name][best.Policy]; p != nil && 2*p.USD > best.USD && len(all) > 1 {
			fmt.Fprintf(&text, "; one session, %s, is %.0f %% of that", name, 100*p.USD/best.USD)
		}
	}
	return text.String() + "."
}

// cheapest returns the policy that saves most in sessions and loses little; the default if there is none.
func (r *ReplayReport) cheapest(sessions []map[string]*Played, byDefault string) string {
	best, most := byDefault, -1.0
	for i := range r.Policies {
		name := r.Policies[i].Name
		if slices.Contains(baselines, name) {
			continue
		}
		cheaper, lost, n := 0.0, 0.0, 0
		for _, own := range sessions {
			if p := own[name]; p != nil {
				cheaper += p.cheaper()
				if n++; p.Had != nil {
					lost += 1 - *p.Had
				}
			}
		}
		if n == len(sessions) && lost <= maxLost*float64(n) && cheaper > most {
			best, most = name, cheaper
		}
	}
	return best
}
