package score

import (
	"github.com/condensehq/condense/core"
)

const (
	sentenceWords  = 3    // a shorter sentence has too few 3-grams to check
	sentenceMost   = 40   // maximum weight of a sentence, in words
	sentenceKept   = 0.80 // share of the 3-grams that a kept sentence has
	recentMessages = 10
)

// readUser adds the sentences that the user typed before the cut.
func (s *Scorer) readUser() {
	for m, msg := range s.cut.Prefix() {
		for p, part := range msg.Parts {
			if !s.cut.Session.typed(m, p) {
				continue
			}
			text, _ := part.(core.Text)
			lines(string(text), func(line string) {
				sentences(line, func(start, end int) { s.addSentence(line[start:end]) })
			})
		}
	}
}

func (s *Scorer) addSentence(text string) {
	words := appendWords(nil, text)
	if len(words) < sentenceWords {
		return
	}
	out := sentence{weight: float64(min(len(words), sentenceMost))}
	for i := 2; i < len(words); i++ {
		h := trigram(words[i-2].hash, words[i-1].hash, words[i].hash)
		at, ok := s.userTri[h]
		if !ok {
			at = int32(len(s.userTri))
			s.userTri[h] = at
		}
		out.tri = append(out.tri, at)
	}
	s.user = append(s.user, out)
}

// userKept returns the share of the user's sentences that are in text of view with the role user.
func (s *Scorer) userKept(view []core.Message) Share {
	var out Share
	if len(s.user) == 0 {
		return out
	}
	have := make([]bool, len(s.userTri))
	var words []word
	for i := range view {
		if view[i].Role != core.RoleUser {
			continue
		}
		for _, p := range view[i].Parts {
			text, ok := p.(core.Text)
			if !ok {
				continue
			}
			var g grams
			lines(string(text), func(line string) {
				words = appendWords(words[:0], line)
				for _, w := range words {
					g.push(w.hash)
					if h, ok := g.tri(); ok {
						if at, ok := s.userTri[h]; ok {
							have[at] = true
						}
					}
				}
			})
		}
	}
	for _, h := range s.user {
		n := 0
		for _, at := range h.tri {
			if have[at] {
				n++
			}
		}
		out.Needed += h.weight
		if float64(n) >= sentenceKept*float64(len(h.tri)) {
			out.Kept += h.weight
		}
	}
	return out
}

// messageHashes returns a hash of the role and the content of every message.
func messageHashes(messages []core.Message) []uint64 {
	out := make([]uint64, len(messages))
	for i := range messages {
		h := hashString(fnvOffset, string(messages[i].Role))
		blocks(messages[i].Parts, func(part int, text string) {
			h = hashString(hashByte(hashUint(h, uint64(part)), 0xFF), text)
		})
		out[i] = h
	}
	return out
}

// recentKept returns the share of the last messages before the cut that are in view verbatim.
func (s *Scorer) recentKept(view []core.Message) Share {
	have := map[uint64]int{}
	for _, h := range messageHashes(view) {
		have[h]++
	}
	out := Share{Needed: float64(len(s.recent))}
	for _, h := range s.recent {
		if have[h] > 0 {
			have[h]--
			out.Kept++
		}
	}
	return out
}

// faults counts violations of the vendors' APIs: results without an earlier call, calls without a result that are not
// in the last message, duplicate IDs, blank messages.
func faults(messages []core.Message) int {
	n := 0
	calls := map[string]bool{} // true once answered
	callAt := map[string]int{}
	for i := range messages {
		if messages[i].Blank() {
			n++
		}
		for _, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if _, ok := calls[p.ID]; ok {
					n++
					continue
				}
				calls[p.ID] = false
				callAt[p.ID] = i
			case core.ToolResult:
				if answered, ok := calls[p.CallID]; !ok || answered {
					n++
				} else {
					calls[p.CallID] = true
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	for id, answered := range calls {
		if !answered && callAt[id] < len(messages)-1 {
			n++
		}
	}
	return n
}
