package extractive

import (
	"container/heap"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
)

// weights are added to the score of a sentence's words. They follow Edmundson's order:
// cue words before place before frequency alone.
var (
	cues = []string{
		"must", "never", "always", "don't", "decided", "because", "instead", "important", "error", "failed",
		"fixed", "bug", "todo", "next", "remaining", "done", "works", "need", "should",
	}
	byRole = map[core.Role]float64{core.RoleUser: 2, core.RoleAssistant: 1, core.RoleSystem: 1, core.RoleTool: 0.25}
)

const (
	cueBonus    = 1.5
	firstBonus  = 1.5 // the first sentence of a message gives its subject
	leadBonus   = 2   // for the first message, which gives the task
	recentBonus = 2   // at the end, falling to 1 over the newest quarter
	recentShare = 0.25
	// rough is the factor for text that is not prose: code, a path, a line of a log, which
	// any author may write. Prose has fewWords words, and prosaic of it are letters and
	// spaces.
	rough    = 0.2
	prosaic  = 0.8
	fewWords = 4
	// said is the factor for a word that was already used; SumBasic squares its probability.
	said = 0.3
	// stale is the share of its value below which a sentence is a repetition.
	stale = 0.1
)

// A candidate is a sentence that may be picked.
type candidate struct {
	index  int
	words  []int32 // distinct
	weight float64
	value  float64 // per token, when it was last looked at
	alone  float64 // value before anything was picked
}

// pick returns the indices, ascending, of the sentences that say most in room tokens.
// Values only ever fall, so that a sentence that is still the best after it was looked at
// again is the best of all: the accelerated greedy algorithm of M. Minoux (1978).
func pick(ctx context.Context, sentences []sentence, room int) ([]int, error) {
	queue, worth := rate(sentences)
	heap.Init(&queue)
	var picked []int
	for steps := 0; len(queue) > 0; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		best := &queue[0]
		if now := best.valueOf(sentences, worth); now < best.value {
			best.value = now
			heap.Fix(&queue, 0)
			continue
		}
		c, _ := heap.Pop(&queue).(candidate)
		s := &sentences[c.index]
		need := s.cost + headingCost // wherever it will be
		if room < smallest {
			break
		}
		if c.value <= stale*c.alone || need > room {
			continue
		}
		room -= need
		for _, w := range c.words {
			worth[w] *= said
		}
		picked = append(picked, c.index)
	}
	slices.Sort(picked)
	return picked, nil
}

const (
	headingCost = 4 // the most that a line with the author costs
	smallest    = 6 // tokens of the shortest sentence
)

func (c *candidate) valueOf(sentences []sentence, worth []float64) float64 {
	sum := 0.0
	for _, w := range c.words {
		sum += worth[w]
	}
	return c.weight * sum / float64(sentences[c.index].cost)
}

// rate returns the sentences as candidates, and the value of each word: by how often it occurs, but little if it is
// in many sentences.
func rate(sentences []sentence) (queue, []float64) {
	number := map[string]int32{}
	var in []int // sentences with the word
	all := make(queue, len(sentences))
	last := sentences[len(sentences)-1].message
	for i := range sentences {
		s := &sentences[i]
		c := candidate{index: i, weight: weigh(s, last)}
		for w := range words(s.text) {
			n, ok := number[w]
			if !ok {
				n = int32(len(in))
				number[strings.Clone(w)] = n
				in = append(in, 0)
			}
			if !slices.Contains(c.words, n) {
				c.words = append(c.words, n)
				in[n]++
			}
			for _, cue := range cues {
				if w == cue {
					c.weight *= cueBonus
				}
			}
		}
		all[i] = c
	}
	worth := make([]float64, len(in))
	for w, n := range in {
		worth[w] = math.Log1p(float64(n)) * math.Log(float64(len(sentences)+1)/float64(n))
	}
	for i := range all {
		all[i].value = all[i].valueOf(sentences, worth)
		all[i].alone = all[i].value
	}
	return all, worth
}

// weigh returns the factor for the place of a sentence.
func weigh(s *sentence, last int) float64 {
	w, ok := byRole[s.role]
	if !ok {
		w = byRole[core.RoleUser]
	}
	if s.first {
		w *= firstBonus
	}
	if !prose(s.text) {
		w *= rough
	}
	if s.message == 0 {
		w *= leadBonus
	}
	if last > 0 {
		if age := float64(last-s.message) / float64(last); age < recentShare {
			w *= recentBonus - (recentBonus-1)*age/recentShare
		}
	}
	return w
}

// prose reports whether s looks like a sentence that somebody wrote for a reader.
func prose(s string) bool {
	letters, all, spaces := 0, 0, 0
	for _, r := range s {
		all++
		switch {
		case r == ' ':
			spaces++
		case unicode.IsLetter(r):
			letters++
		}
	}
	dense := letters > 0 && spaces == 0 && s[0] >= utf8.RuneSelf // a script without spaces
	code := strings.ContainsRune(";{}(,\\<>[]", rune(s[len(s)-1])) || strings.HasPrefix(s, "//")
	return !code && (spaces >= fewWords-1 || dense) && float64(letters+spaces) >= prosaic*float64(all)
}

// words yields the words of s in lower case. Numbers are none: every line of a log has its
// own.
func words(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\''
		}) {
			if len(w) > 1 && strings.Trim(w, "0123456789") != "" && !yield(w) {
				return
			}
		}
	}
}

// A queue has the best candidate in front; of equals, the first in the conversation.
type queue []candidate

// Len is part of [heap.Interface], as are the next four.
func (q *queue) Len() int { return len(*q) }

// Less reports whether the candidate at i comes first.
func (q *queue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	if a.value != b.value {
		return a.value > b.value
	}
	return a.index < b.index
}

// Swap swaps two candidates.
func (q *queue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// Push adds a candidate.
func (q *queue) Push(x any) {
	c, _ := x.(candidate)
	*q = append(*q, c)
}

// Pop removes the last sentence.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
