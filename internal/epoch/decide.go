package epoch

import "cmp"

// defaultShare is the share of the conversation that an epoch leaves by default. With today's prices for reading a cache, an epoch
// that leaves
// half takes 11 to 49 turns to pay for itself, one that leaves a quarter 4 to 16.
const defaultShare = 0.25

// shareBy returns the share of the conversation that an epoch leaves, by the prices of the vendor's cache. The cheaper reading is, the
// longer a
// shallow cut takes to pay for itself; where writing costs nothing extra it takes no time. See docs/decisions/0032-epoch-defaults.md.
func shareBy(write, read float64) float64 {
	switch {
	case read < 0.1:
		return 0.2
	case write <= 1:
		return 0.3
	}
	return defaultShare
}

// The least that an epoch leaves where the limit does not force it: a deep cut loses more than money. See
// docs/decisions/0032-epoch-defaults.md.
const (
	minLeft     = 20_000  // tokens of the conversation, for money
	largeWindow = 200_000 // from this window on
	largeShare  = 0.5     // of the conversation
)

// Risk is the largest cost of an epoch that pays for itself only later, if the conversation ended with it: a share of the cost of the
// conversation so far, without the system prompt and the tools. Savings of earlier epochs may be risked, too. See
// docs/decisions/0032-epoch-defaults.md.
const Risk = 0.04

// grace is how much longer than its lifetime a cache counts as alive. Taking a live cache for dead costs about twelve times as much as the
// opposite error.
const grace = 1.1

// The bounds of the number of turns still expected. See docs/decisions/0023-lineage.md for the measurement.
const (
	fewestTurns = 1
	maxTurns    = 40
)

// Decide says whether a request should begin an epoch.
//
// Only the limit needs no minimum gain, nothing new since the last epoch, and no regard for a failed attempt. The cache counts as dead when
// it was idle for a tenth longer than the longest lifetime that the conversation asked for, counted from the start of the last request that
// used it. If the lifetime is unknown, or a prediction for this conversation was wrong, it counts as alive.
//
// An epoch writes the share c that it leaves at the price w, where otherwise everything would be read at the price r; every later turn
// reads less. It pays for itself after T = c (w - r) / (r (1 - c)) turns.
func Decide(f Facts, p Policy) Decision {
	d := predict(&f, &p, false)
	counted := Reason(p.When.Due(f.Since, f.Tokens-f.Fixed, p.Window))
	switch {
	case f.Overflow || p.Limit > 0 && f.Tokens > p.Limit:
		d.Reason = Forced
		return d
	case f.Tokens < f.Retry, counted == None && f.Last.After > 0 && f.Tokens-f.Last.After < p.MinNew:
		return d
	case p.Threshold > 0 && f.Tokens >= p.Threshold:
		if d.gains(&f, &p) {
			d.Reason = Threshold
		}
	case counted != None && f.Tokens >= p.Smallest && d.gains(&f, &p):
		d.Reason = counted
	default:
		if m := forMoney(&f, &p); m.Reason != None {
			d = m
		}
	}
	if d.Reason != None && f.Thinking {
		d.Reason, d.Wait = None, ForTurn
	}
	return d
}

// Target returns the size to condense to for every reason but money.
func Target(f Facts, p Policy) int { return sized(&f, shareLeft(&f, &p, false)) }

// forMoney decides by the state and the prices of the vendor's cache.
func forMoney(f *Facts, p *Policy) Decision {
	d := predict(f, p, true)
	if !d.gains(f, p) || f.Tokens < p.Smallest || f.Tokens-f.Fixed < minSize(f, p) {
		return d
	}
	if !p.IgnoreCold {
		d.Reason = cold(f)
	}
	if d.Reason == None && !p.IgnorePayback {
		payback(&d, f, p)
	}
	return d
}

// minSize returns the size of the conversation from which money is a reason: half of the largest that it can have, but of a window of
// a million
// tokens that is a size that no recorded session reaches. System prompt and tools do not count: an epoch keeps them, and their size
// says nothing about the amount of conversation.
func minSize(f *Facts, p *Policy) int {
	const enough = 60_000
	largest := max(p.Threshold, p.Limit)
	switch {
	case p.MinSize > 0:
		return p.MinSize
	case largest <= 0:
		return enough
	}
	return min(max(0, largest-f.Fixed)/2, enough)
}

// shareLeft returns the share of the conversation that an epoch is to leave, for money or for another reason.
func shareLeft(f *Facts, p *Policy, money bool) float64 {
	if wish := wished(f, p); wish > 0 {
		return min(wish, 1)
	}
	share := shareBy(f.Cache.Write, f.Cache.Read)
	if p.Window >= largeWindow {
		share = largeShare
	}
	if money {
		share = max(share, minLeft/float64(max(1, f.Tokens-f.Fixed)))
	}
	return min(share, 1)
}

// wished returns the share that the user wants to be left; 0 for the default.
func wished(f *Facts, p *Policy) float64 {
	if target := percentOf(p.Target, p.Window); target > 0 && f.Tokens > f.Fixed {
		return float64(max(1, target-f.Fixed)) / float64(f.Tokens-f.Fixed)
	}
	return p.Share
}

// sized returns the size of the request if a share of the conversation is left.
func sized(f *Facts, share float64) int {
	return f.Fixed + int(share*float64(max(0, f.Tokens-f.Fixed)))
}

// predict returns the sizes of an epoch. The share that the last epoch left is a better guess than the target.
func predict(f *Facts, p *Policy, money bool) Decision {
	share := shareLeft(f, p, money)
	d := Decision{Before: f.Tokens, Target: sized(f, share)}
	if last := f.Last; last.Before > f.Fixed && (f.Wrong > 0 || wished(f, p) <= 0) {
		left := float64(max(0, last.After-f.Fixed)) / float64(last.Before-f.Fixed)
		share = max(share, min(left, 0.95))
	}
	d.After = sized(f, share)
	return d
}

// gains reports whether an epoch saves enough.
func (d *Decision) gains(f *Facts, p *Policy) bool {
	return d.Before-d.After >= max(1, percentOf(p.MinGain, max(0, f.Tokens-f.Fixed)))
}

// cold looks for the reasons that need no arithmetic: an epoch loses nothing but content.
func cold(f *Facts) Reason {
	c := &f.Cache
	if !c.Began {
		return None
	}
	if c.Used.IsZero() {
		return Changed
	}
	if life := c.life(); life > 0 && f.Wrong == 0 && float64(f.Now.Sub(c.Used)) > grace*float64(max(life, c.Seen)) {
		return Cold
	}
	return None
}

// payback sets the reason of d if the epoch pays for itself in the turns still to come, but only until the conversation has doubled.
func payback(d *Decision, f *Facts, p *Policy) {
	c := &f.Cache
	if c.Read <= 0 || c.Write <= 0 || !renewed(f, p) {
		return
	}
	left, removed := float64(d.After-f.Fixed), float64(d.Before-d.After)
	d.Turns = max(0, left*(c.Write-c.Read)/(c.Read*removed))
	if d.Turns <= float64(turnsLeft(d, f, p)) && affords(d, f, p) {
		d.Reason = Payback
	}
}

// turnsLeft returns the number of turns that an epoch has to pay for itself. A conversation that has lived long lives longer; but after an
// epoch it grows again, and the next one begins when it has its old size.
func turnsLeft(d *Decision, f *Facts, p *Policy) int {
	turns := p.Turns
	turns = cmp.Or(turns, min(max(f.Turns, fewestTurns), maxTurns))
	if f.Answers > 0 {
		turns = max(1, min(turns, (d.Before-d.After)/max(1, f.Grown/f.Answers)))
	}
	return turns
}

// renewed reports whether enough is new since the last epoch for one that pays for itself only later: epochs in close succession save
// little more, and lose content still in use. It was measured with a twentieth of a window of a million tokens.
func renewed(f *Facts, p *Policy) bool {
	const enough = 50_000
	least := enough
	if p.Window > 0 {
		least = min(enough, p.Window*3/10)
	}
	return f.Last.After <= 0 || f.Tokens-f.Last.After >= least
}

// affords reports whether an epoch costs little enough, compared with the cost so far, for a conversation that may end at once.
func affords(d *Decision, f *Facts, p *Policy) bool {
	risk := p.Risk
	risk = cmp.Or(risk, Risk)
	extra := f.Cache.Write*float64(d.After-f.Fixed) - f.Cache.Read*float64(d.Before-f.Fixed)
	return risk < 0 || extra <= risk*f.Spent+max(0, f.Saved)
}
