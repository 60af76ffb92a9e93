package score

import (
	"strconv"

	"github.com/condensehq/condense/core"
)

// A Cut is a place in a session at which it is condensed: the messages before At are
// given to a strategy, those up to End are what the agent really did afterwards.
type Cut struct {
	Session *Session
	Name    string // "32k", "50%", "compaction 1": unique in its session
	At, End int
	Tokens  int // of the messages before At
	// Compaction is the index of the recorded one that happened here; -1 if none did.
	Compaction int
	// Budget is what the recorded summary and the messages kept with it cost in tokens;
	// zero if Compaction is -1.
	Budget int
}

// TurnsAfter is how many turns of the assistant must follow a cut: a shorter future says too
// little.
const TurnsAfter = 6

// The sizes come from the field: 32k is a small local model, 64k and 100k are where large
// ones begin to degrade or are condensed.
const (
	smallSession     = 36_000 // tokens; a session below is cut at shares of itself
	turnsAfterReal   = 5      // the same for a recorded compaction
	messagesBefore   = 20     // messages that must precede a recorded compaction
	turnsOfTheFuture = 40     // assistant turns that are looked at
)

var (
	cutWindows = []int{32_000, 64_000, 100_000}
	cutShares  = []int{50, 75}
)

// Cuts returns the places at which s is to be cut: where it would have overflowed a
// window of 32,000, 64,000 and 100,000 tokens (a small session: at half and at three
// quarters of its tokens), always before a turn of the assistant and before its first
// recorded compaction; and at every recorded compaction with a summary. Every message of
// s must be measured.
func Cuts(s *Session, c core.Counter) []Cut {
	turns := s.turns()
	sizes := make([]int, len(s.Messages)+1)
	for i := range s.Messages {
		sizes[i+1] = sizes[i] + s.Messages[i].Tokens
	}
	end := len(s.Messages)
	if len(s.Compactions) > 0 {
		end = min(end, s.Compactions[0].At)
	}
	var out []Cut
	last := 0
	add := func(name string, tokens int) {
		at := 0
		for _, t := range turns {
			if t <= end && sizes[t] <= tokens {
				at = t
			}
		}
		if at <= last || turnsFrom(turns, at) < TurnsAfter {
			return
		}
		last = at
		out = append(out, s.cut(name, at, sizes[at], turns))
	}
	if total := sizes[len(s.Messages)]; total < smallSession {
		for _, share := range cutShares {
			add(strconv.Itoa(share)+"%", total*share/100)
		}
	} else {
		for _, w := range cutWindows {
			if sizes[end] >= w {
				add(strconv.Itoa(w/1000)+"k", w)
			}
		}
	}
	for i, k := range s.Compactions {
		if k.Summary == "" || k.At < messagesBefore || k.At > len(s.Messages) || turnsFrom(turns, k.At) < turnsAfterReal {
			continue
		}
		cut := s.cut("compaction "+strconv.Itoa(i+1), k.At, sizes[k.At], turns)
		cut.Compaction = i
		cut.Budget = core.MessageTokens(c, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(k.Summary)}}) + sizes[k.At] - sizes[min(k.KeptFrom, k.At)]
		out = append(out, cut)
	}
	return out
}

// CutAt returns the cut of s before message at; false if too little follows it, or if it
// is not before the first recorded compaction. Every message of s must be measured.
func CutAt(s *Session, name string, at int) (Cut, bool) {
	turns := s.turns()
	if at < 1 || at > len(s.Messages) || turnsFrom(turns, at) < TurnsAfter || len(s.Compactions) > 0 && at > s.Compactions[0].At {
		return Cut{}, false
	}
	tokens := 0
	for i := range at {
		tokens += s.Messages[i].Tokens
	}
	return s.cut(name, at, tokens, turns), true
}

func (s *Session) cut(name string, at, tokens int, turns []int) Cut {
	end := len(s.Messages)
	if n := len(turns) - turnsFrom(turns, at) + turnsOfTheFuture; n < len(turns) {
		end = turns[n]
	}
	return Cut{Session: s, Name: name, At: at, End: end, Tokens: tokens, Compaction: -1}
}

// Prefix returns the messages before the cut.
func (c *Cut) Prefix() []core.Message { return c.Session.Messages[:c.At:c.At] }
