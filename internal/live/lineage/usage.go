package lineage

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Facts returns the state's knowledge about request r, which continues s. our is our token count of r. The caller adds
// its own knowledge: the prices and the usual lifetime of the vendor's cache, a refusal, a failed attempt.
func (s *State) Facts(r *wire.Request, our int, now time.Time) epoch.Facts {
	f := epoch.Facts{
		Now: now, Tokens: s.Estimate(our), Fixed: s.Scale(s.HeadOur), Thinking: r.Thinking == "enabled" && s.Bound && thinks(r.Messages),
		Turns: s.Turns, Spent: s.Spent, Saved: s.Saved, Wrong: s.Wrong,
		Cache: epoch.Cache{Began: len(s.Caches) > 0, Used: s.Caches[cacheOf(r)], Asked: s.TTL, Seen: s.Lives},
	}
	from, size := prompts(r.Messages), our-s.HeadOur
	size -= plain.Sum(s.Counts[:min(from, len(s.Counts))], func(n int) int { return n })
	if e := s.Epoch; e != nil {
		f.Last = epoch.Last{Before: e.Before, After: e.After}
		from, size = min(max(0, e.Cut), len(r.Messages)), our-s.HeadOur-e.Our
	}
	f.Since = s.since(r, from, now)
	f.Grown, f.Answers = s.Scale(size), max(1, answers(r.Messages, from))
	return f
}

// since counts the messages from index from on.
func (s *State) since(r *wire.Request, from int, now time.Time) (n policy.Since) {
	began := s.First
	if s.Epoch != nil {
		began = s.Epoch.Time
	}
	if !began.IsZero() {
		n.Age = now.Sub(began)
	}
	for i := from; i < len(r.Messages); i++ {
		m := &r.Messages[i]
		if m.Role != "system" {
			n.Messages++
		}
		if n.ToolResults += len(m.Results); len(m.Results) > 0 && i < len(s.Counts) {
			n.ResultTokens += s.Scale(s.Counts[i])
		}
	}
	return n
}

// answers returns the number of the model's answers among the messages from index from on.
func answers(messages []wire.Message, from int) int {
	n := 0
	for i := from; i < len(messages); i++ {
		if messages[i].Role == "assistant" && (i == from || messages[i-1].Role != "assistant") {
			n++
		}
	}
	return n
}

// Count changes s: it returns our token count of the view of r, and counts each message, the head and the block only
// once. count is the caller's counter for the JSON of a message, of the system prompt or of the tools.
func (s *State) Count(r *wire.Request, rolling []wire.Hash, count func(raw []byte) int) int {
	if h := key(r.Head); s.Head != h || s.HeadOur == 0 {
		s.Head, s.HeadOur = h, 0
		for _, raw := range [][]byte{r.System, r.Tools} {
			if raw != nil {
				s.HeadOur += count(raw)
			}
		}
	}
	view, origin := s.view(r, rolling)
	base := s.counted
	if base == nil {
		base = s.Rolling
	}
	known := min(common(base, rolling), len(s.Counts))
	counts := make([]int, len(rolling))
	total, block := s.HeadOur, 0
	for i, raw := range view {
		k := origin[i]
		if k < 0 {
			if s.Epoch.Our == 0 {
				block += count(wire.Unmark(raw))
			}
			continue
		}
		if k < known && s.Counts[k] > 0 {
			counts[k] = s.Counts[k]
		} else {
			counts[k] = max(1, count(wire.Unmark(raw)))
		}
		total += counts[k]
	}
	if block > 0 {
		e := *s.Epoch
		e.Our = block
		s.Epoch = &e
	}
	if len(view) > 0 && origin[0] < 0 {
		total += s.Epoch.Our
	}
	s.Counts, s.counted = counts, rolling
	return total
}

// Bounds of the ratio of the vendor's count to ours. Vocabularies differ by less; outside of the bounds the vendor did
// not count this request.
const (
	minRatio, maxRatio = 0.1, 10
	samples            = 5   // the median of this many counts is used, so two odd ones do not matter
	oddRatio           = 1.5 // a count that differs from the median by this factor is odd
	minSample          = 200 // tokens; below this, the vendor's fixed additions to every request dominate
)

// ratio returns the number of the vendor's tokens per token of ours.
func (s *State) ratio() float64 {
	if len(s.Ratios) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(s.Ratios))
	return sorted[len(sorted)/2]
}

// roleParts are the parts in [State.Parts] of messages that are neither results nor the model's, by role.
var roleParts = map[string]string{"system": "system", "developer": "system", "user": "person", "tool": "results"}

// Parts returns the size of the view of r, which was counted last, by kind: system, tools, condensed (in place of hidden messages),
// person, results and model.
func (s *State) Parts(r *wire.Request) map[string]int {
	system := s.HeadOur * len(r.System) / max(1, len(r.System)+len(r.Tools))
	ours, cut := map[string]int{"system": system, "tools": s.HeadOur - system}, 0
	if s.Epoch != nil {
		cut, ours["condensed"] = s.Epoch.Cut, s.Epoch.Our
	}
	for i := range min(max(cut, len(s.Counts)), len(r.Messages)) {
		m := &r.Messages[i]
		part := cmp.Or(roleParts[m.Role], "model")
		switch {
		case len(m.Results) > 0:
			part = "results"
		case m.Role == "developer" && rawjson.Text(rawjson.Field(m.Raw, "type")) == "additional_tools":
			part = "tools"
		}
		if i >= cut {
			ours[part] += s.Counts[i]
		} else if b := s.Epoch.Block; roleParts[m.Role] == "system" && i < len(b) && bytes.Equal(b[i], shape(r.API, m.Raw)) {
			ours[part], ours["condensed"] = ours[part]+m.Tokens, ours["condensed"]-m.Tokens
		}
	}
	for part, n := range ours {
		ours[part] = s.Scale(n)
	}
	return ours
}

// Scale converts our count of a part of a request to the vendor's tokens.
func (s *State) Scale(our int) int { return int(s.ratio()*float64(our) + 0.5) }

// Estimate returns the expected vendor's count of a request, given our count: the vendor's last count plus the scaled
// difference between our counts.
func (s *State) Estimate(our int) int {
	if s.Vendor > 0 {
		return max(0, s.Vendor+s.Scale(our)-s.Scale(s.Our))
	}
	return s.Scale(our)
}

// Rates are prices per token, relative to the price of an input token: for tokens written to the cache, read from it,
// and written by the model.
type Rates struct{ Write, Read, Answer float64 }

// Paid changes s: it adds the cost of a request and its answer, without the system prompt and the tools, and the
// savings by the epoch. Call it before [State.Measured]. If the conversation began elsewhere, Paid assumes that it
// grew to its size step by step.
func (s *State) Paid(u Usage, answer int, r Rates) {
	if u.Input <= 0 {
		return
	}
	// A prompt begins with the fixed part, and the cached part is at its beginning.
	fixed := min(s.Scale(s.HeadOur), u.Input)
	read := max(0, u.Read-fixed)
	write := min(u.Write, u.Input-max(fixed, u.Read))
	prompt := r.Read*float64(read) + r.Write*float64(write) + float64(u.Input-max(fixed, u.Read)-write)
	s.Spent = cmp.Or(s.Spent, r.Read*float64(u.Input-fixed)*float64(max(0, s.Turns-1))/2)
	s.Spent += prompt + r.Answer*float64(answer)
	e := s.Epoch
	switch {
	case e == nil || e.Before <= e.After:
	case len(e.Usage) > 0:
		s.Saved += r.Read * float64(e.Before-e.After)
	case e.Reason == epoch.Cold || e.Reason == epoch.Changed:
		s.Saved += r.Write*float64(e.Before-fixed) - prompt
	default:
		s.Saved += r.Read*float64(e.Before-fixed) - prompt
	}
}

// Bounds of a vendor's input tokens, from which [State.Once] concludes that they include the cached ones.
const (
	sureTwice  = 3   // answers in a row
	leastOfAll = 0.9 // of the input before: a cache serves blocks of tokens
	mostOfAll  = 1.1 // it may have the answer too
	grows      = 1.5 // by our count, so that the tokens cannot be new
)

// Once changes s, and returns a report on a request, given our count, without the tokens that the vendor has counted twice:
// some servers report the whole prompt as input, and its cached part again. Then the cache serves the input before, and
// grows with it, and the input is not smaller than that although the conversation has not doubled. Reports of such a server
// are corrected from the third sign on; if it is known, from the first report on. Call Once before [State.Measured].
func (s *State) Once(our int, u Usage, known bool) Usage {
	input, was := u.fresh(), s.Said.fresh()
	if known && s.Said == (Usage{}) {
		s.Twice = sureTwice
	}
	switch read := float64(u.Read); {
	case input < u.Read: // most of a long prompt is cached: it is counted once
		s.Twice = 0
	case s.Twice >= sureTwice:
	case was >= minSample && u.Read > s.Said.Read && read >= leastOfAll*float64(was) && read <= mostOfAll*float64(was+s.Said.Write) &&
		float64(our) < grows*float64(s.Our):
		s.Twice++
	default:
		s.Twice = 0
	}
	if s.Said = u; s.Twice >= sureTwice {
		if u.Input -= u.Read; input >= u.Read+u.Write { // the written tokens are counted twice, too
			u.Input = input
		}
	}
	return u
}

// fresh returns the tokens that were neither read from the cache nor written to it, as far as the vendor counts honestly.
func (u Usage) fresh() int { return u.Input - u.Read - u.Write }

// CountsTwice reports whether the vendor counts cached tokens twice.
func (s *State) CountsTwice() bool { return s.Twice >= sureTwice }

// Measured changes s: it takes in the vendor's report about a request, given our count. The first two requests of an
// epoch are checked against its prediction: the first must have about the predicted size, and the second must find the
// first in the cache.
func (s *State) Measured(our int, u Usage) {
	if u.Input <= 0 || our <= 0 {
		return
	}
	ratio := float64(u.Input) / float64(our)
	if ratio < minRatio || ratio > maxRatio {
		return
	}
	if our >= minSample {
		s.Ratios = append(slices.Clone(s.Ratios[max(0, len(s.Ratios)-samples+1):]), ratio)
	}
	s.Our, s.Vendor = our, u.Input
	if m := s.ratio(); len(s.Ratios) > 0 && (ratio > m*oddRatio || ratio < m/oddRatio) {
		s.Vendor = 0
	}
	read := float64(u.Read) >= 0.5*float64(u.Input)
	if read && s.Gap > s.Lives {
		s.Lives = s.Gap
	}
	if s.Epoch == nil || len(s.Epoch.Usage) >= 2 || s.Epoch.Cut == 0 {
		return
	}
	e := *s.Epoch
	e.Usage = append(slices.Clone(e.Usage), u)
	if len(e.Usage) == 1 {
		if e.After > 0 && (float64(u.Input) > tolerance*float64(e.After) || float64(u.Input) < float64(e.After)/tolerance) {
			s.Wrong++
		}
		e.After = u.Input
	} else if !read && u.Read+u.Write > 0 && s.TTL > 0 && s.Gap < s.TTL {
		s.Wrong++
	}
	s.Epoch = &e
}

// tolerance is the factor by which the size after an epoch may miss the prediction.
const tolerance = 1.25
