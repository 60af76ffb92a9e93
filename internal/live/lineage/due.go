package lineage

import (
	"slices"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
)

// A Reason says why an epoch begins.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	None      Reason = ""
	Forced    Reason = "window"    // the request would not fit, or the vendor has said so
	Threshold Reason = "threshold" // of the profile
	Cold      Reason = "cold"      // the vendor's cache has forgotten the conversation
	Changed   Reason = "changed"   // another model, effort, system prompt or tools: its cache has never seen it
	Payback   Reason = "payback"   // it costs less than it saves in the turns that are still expected
)

// The reasons that are the user's: [Due] never returns them.
const (
	Asked  Reason = "asked"  // the user wants a condensation
	Undone Reason = "undone" // the user wants that of the last epoch no more
)

// A Question is what [Due] has to know besides the lineage. All numbers of tokens are the vendor's, as
// far as they are known: see [State.Estimate].
type Question struct {
	Now      time.Time // when the request began
	Tokens   int       // of the request, as it would be sent
	Fixed    int       // of them, what no condensation can remove: system prompt and tools
	Grown    int       // of them, what came since the last epoch, or since the beginning
	Answers  int       // of the model in Grown; 0 if not known
	Output   int       // the longest answer
	Window   int       // of the model; 0 if not known
	Limit    int       // the most that may be sent, answer included; 0 if not known
	Overflow bool      // the vendor has refused the request as too long

	Threshold int           // from this size on the profile wants an epoch; 0 for never
	Floor     int           // money is no reason while the conversation, without Fixed, is smaller; 0 is what the record on defaults says
	MinGain   int           // what an epoch has to save
	MinNew    int           // what has to be added after an epoch before there is another one
	Share     float64       // of the conversation, what an epoch leaves; 0 is what the record on defaults says
	Turns     int           // that are still expected; 0 means [State.Expected]
	Write     float64       // price of a token written to the cache, as a share of the input price; 0 if not known
	Read      float64       // of one that is read from it
	Risk      float64       // see [Risk], which 0 means; below 0 there is no limit
	Lifetime  time.Duration // of cache entries, if the client asks for none; 0 if not known

	IgnoreCold, IgnorePayback bool
}

// A Decision is the answer, with the prediction that [State.Measured] is going to hold against the vendor's numbers.
type Decision struct {
	Reason Reason
	Wait   bool    // there would be a reason, but not before the model's turn is over
	Before int     // tokens of the request without an epoch
	After  int     // and with one, as far as it can be foreseen
	Target int     // and what the epoch aims at
	Turns  float64 // after which the epoch pays for itself; 0 if at once or not known
}

// deep is the share that an epoch leaves by default. With today's prices for reading a cache, an epoch that leaves
// half takes 11 to 49 turns to pay for itself, one that leaves a quarter 4 to 16.
const deep = 0.25

// leave returns the share of the conversation that an epoch leaves, by the prices of the vendor's cache. The cheaper
// reading is, the longer a shallow cut takes to pay for itself; where writing costs nothing extra it takes no time.
// See docs/decisions/0032-epoch-defaults.md.
func leave(write, read float64) float64 {
	switch {
	case read < 0.1:
		return 0.2
	case write <= 1:
		return 0.3
	}
	return deep
}

// What an epoch leaves at least where nothing has to go: a conversation that is cut deep loses more than money.
// See docs/decisions/0032-epoch-defaults.md.
const (
	leastLeft   = 20_000  // tokens of the conversation, for money
	largeWindow = 200_000 // from this window on
	largeShare  = 0.5     // of the conversation
)

// floor returns the size of the conversation from which on money is a reason: half of the largest that it may have,
// but of a window of a million tokens that is a size that no recorded session reaches. The system prompt and the
// tools do not count: an epoch keeps them, and how large they are says nothing about how much conversation there is.
func (q *Question) floor() int {
	const enough = 60_000
	largest := max(q.Threshold, q.Limit)
	switch {
	case q.Floor > 0:
		return q.Floor
	case largest <= 0:
		return enough
	}
	return min(max(0, largest-q.Fixed)/2, enough)
}

// Risk is the most that an epoch that pays for itself only later may cost if the conversation ended with it, as a
// share of what the conversation, without the system prompt and the tools, has cost so far; what epochs have saved
// may be risked, too. See docs/decisions/0032-epoch-defaults.md.
const Risk = 0.04

// grace is how much longer than the lifetime asked for a cache counts as alive. To take a live cache for dead
// costs about twelve times as much as the opposite.
const grace = 1.1

// Due decides whether the request r, which goes on with s, should begin an epoch.
//
// Everything but the window asks for a minimum gain, and for something new since the last epoch. The cache counts as
// dead when it was idle for longer than the longest lifetime that the conversation asked for, and a tenth, counted
// from the start of the last request that used it. If the lifetime is not known, or a prediction for this lineage was
// wrong, it counts as alive.
//
// An epoch writes what it leaves, the share c, at the price w, where otherwise everything would be read at r; every
// later turn reads less: it pays for itself after T = c (w - r) / (r (1 - c)) turns.
func Due(s *State, r *wire.Request, q Question) Decision {
	d := s.predict(&q, false)
	switch {
	case q.Overflow || q.Limit > 0 && q.Tokens+q.Output > q.Limit:
		d.Reason = Forced
		return d
	case s.Epoch != nil && s.Epoch.After > 0 && q.Tokens-s.Epoch.After < q.MinNew:
		return d
	case q.Threshold > 0 && q.Tokens >= q.Threshold:
		if d.gains(&q) {
			d.Reason = Threshold
		}
	default:
		if money := s.predict(&q, true); money.gains(&q) && q.Tokens-q.Fixed >= q.floor() {
			if money.Reason = s.cold(r, &q); money.Reason == None {
				s.payback(&money, &q)
			}
			if money.Reason != None {
				d = money
			}
		}
	}
	// In a turn that began with thinking, a vendor wants it back with "enabled". Of a bound model it would be invalid.
	if d.Reason != None && r.Thinking == "enabled" && s.Bound && thinks(r.Messages) {
		d.Reason, d.Wait = None, true
	}
	return d
}

// share is what an epoch is to leave of the conversation, for money or for the window.
func (q *Question) share(money bool) float64 {
	if q.Share > 0 {
		return min(q.Share, 1)
	}
	share := leave(q.Write, q.Read)
	if q.Window >= largeWindow {
		share = largeShare
	}
	if money {
		share = max(share, leastLeft/float64(max(1, q.Tokens-q.Fixed)))
	}
	return min(share, 1)
}

// Target returns the tokens of the request that an epoch aims at which is not for money.
func (q *Question) Target() int { return q.leaves(q.share(false)) }

// leaves returns the tokens of the request if a share of the conversation is left.
func (q *Question) leaves(share float64) int {
	return q.Fixed + int(share*float64(max(0, q.Tokens-q.Fixed)))
}

// predict returns the sizes of an epoch, for money or for the window. What the last one left is a better guess than
// what this one wishes.
func (s *State) predict(q *Question, money bool) Decision {
	share := q.share(money)
	d := Decision{Before: q.Tokens, Target: q.leaves(share)}
	if e := s.Epoch; e != nil && e.Before > q.Fixed && (s.Wrong > 0 || q.Share <= 0) {
		left := float64(max(0, e.After-q.Fixed)) / float64(e.Before-q.Fixed)
		share = max(share, min(left, 0.95))
	}
	d.After = q.leaves(share)
	return d
}

// gains reports whether an epoch saves enough.
func (d *Decision) gains(q *Question) bool { return d.Before-d.After >= max(1, q.MinGain) }

// payback sets the reason of d if the epoch pays for itself in the turns that are still to come, but only until the
// conversation is as long again as it is now.
func (s *State) payback(d *Decision, q *Question) {
	if q.IgnorePayback || !s.renewed(q) || q.Read <= 0 || q.Write <= 0 {
		return
	}
	turns := q.Turns
	if turns == 0 {
		turns = s.Expected()
	}
	if q.Answers > 0 {
		turns = max(1, min(turns, (d.Before-d.After)/max(1, q.Grown/q.Answers)))
	}
	left, removed := float64(d.After-q.Fixed), float64(d.Before-d.After)
	if d.Turns = max(0, left*(q.Write-q.Read)/(q.Read*removed)); d.Turns <= float64(turns) && s.affords(d, q) {
		d.Reason = Payback
	}
}

// renewed reports whether enough is new since the last epoch for one that pays for itself only later: epochs that
// follow each other closely save little more, and lose what is still used. It was measured with a twentieth of a
// window of a million tokens.
func (s *State) renewed(q *Question) bool {
	const enough = 50_000
	least := enough
	if q.Window > 0 {
		least = min(enough, q.Window*3/10)
	}
	return s.Epoch == nil || s.Epoch.After <= 0 || q.Tokens-s.Epoch.After >= least
}

// affords reports whether an epoch costs little enough, compared with what was paid so far, for a conversation that
// may end at once.
func (s *State) affords(d *Decision, q *Question) bool {
	risk := q.Risk
	if risk == 0 {
		risk = Risk
	}
	extra := q.Write*float64(d.After-q.Fixed) - q.Read*float64(d.Before-q.Fixed)
	return risk < 0 || extra <= risk*s.Spent+max(0, s.Saved)
}

// cold looks for the reasons that need no arithmetic: nothing is lost by an epoch but the conversation.
func (s *State) cold(r *wire.Request, q *Question) Reason {
	if q.IgnoreCold || len(s.Caches) == 0 {
		return None
	}
	used, ok := s.Caches[cacheOf(r)]
	if !ok {
		return Changed
	}
	life := s.TTL
	if life == 0 {
		life = q.Lifetime
	}
	if life > 0 && s.Wrong == 0 && float64(q.Now.Sub(used)) > grace*float64(max(life, s.Lives)) {
		return Cold
	}
	return None
}

// Most and fewest turns that are expected of a conversation. See docs/decisions/0023-lineage.md for the measurement.
const (
	fewestTurns = 1
	mostTurns   = 40
)

// Expected returns how many turns are still to come: as many as there were, within bounds. A conversation that has
// lived long lives longer.
func (s *State) Expected() int { return min(max(s.Turns, fewestTurns), mostTurns) }

// Count changes s: it returns our count of the view of r, counting each message, the head and the block
// only once. Count is the caller's counter, of the JSON of a message, of the system prompt or of the tools.
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

// Bounds of ratios of the vendor's count to ours. Vocabularies differ by less; what is outside is no count of this
// request.
const (
	leastRatio, mostRatio = 0.1, 10
	samples               = 5   // the median of so many counts: two odd ones do not matter
	oddRatio              = 1.5 // a count that far from the median is odd
	leastSample           = 200 // tokens: below that, what the vendor adds to every request dominates
)

// ratio returns how many of the vendor's tokens are one of ours.
func (s *State) ratio() float64 {
	if len(s.Ratios) == 0 {
		return 1
	}
	sorted := slices.Sorted(slices.Values(s.Ratios))
	return sorted[len(sorted)/2]
}

// Scale returns our count of some part of a request in the vendor's tokens.
func (s *State) Scale(our int) int { return int(s.ratio()*float64(our) + 0.5) }

// Estimate returns the vendor's count of a request of which our count is our: what it counted last, and the
// difference corrected by what it counted before.
func (s *State) Estimate(our int) int {
	if s.Vendor > 0 {
		return max(0, s.Vendor+s.Scale(our)-s.Scale(s.Our))
	}
	return s.Scale(our)
}

// Rates are prices of a token, as shares of the price of one of input: written to the cache, read from it, and
// written by the model.
type Rates struct{ Write, Read, Answer float64 }

// Paid changes s: it adds what a request and its answer have cost without the system prompt and the tools, and what
// the epoch has saved with it. Call it before [State.Measured]. Of a conversation that began elsewhere, it is assumed
// that it grew to its size step by step.
func (s *State) Paid(u Usage, answer int, r Rates) {
	if u.Input <= 0 {
		return
	}
	// A prompt begins with what is fixed, and what was read is at its beginning.
	fixed := min(s.Scale(s.HeadOur), u.Input)
	read := max(0, u.Read-fixed)
	write := min(u.Write, u.Input-max(fixed, u.Read))
	prompt := r.Read*float64(read) + r.Write*float64(write) + float64(u.Input-max(fixed, u.Read)-write)
	if s.Spent == 0 {
		s.Spent = r.Read * float64(u.Input-fixed) * float64(max(0, s.Turns-1)) / 2
	}
	s.Spent += prompt + r.Answer*float64(answer)
	e := s.Epoch
	switch {
	case e == nil || e.Before <= e.After:
	case len(e.Usage) > 0:
		s.Saved += r.Read * float64(e.Before-e.After)
	case e.Reason == Cold || e.Reason == Changed:
		s.Saved += r.Write*float64(e.Before-fixed) - prompt
	default:
		s.Saved += r.Read*float64(e.Before-fixed) - prompt
	}
}

// Measured changes s: it takes what the vendor reports of a request of which our count was our. The first two
// requests of an epoch are held against its prediction: the first must have about the size, and the second must find
// the first in the cache.
func (s *State) Measured(our int, u Usage) {
	if u.Input <= 0 || our <= 0 {
		return
	}
	ratio := float64(u.Input) / float64(our)
	if ratio < leastRatio || ratio > mostRatio {
		return
	}
	if our >= leastSample {
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
