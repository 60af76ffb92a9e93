package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
)

// A Hit is a passage of a piece that has words of a query, or whose neighbours have.
type Hit struct {
	Piece *recall.Piece
	Lines recall.Lines // of the passage
	Best  []Line       // the lines with most of the words, in order; the first line with text if none has any
	Other int          // passages of the same piece that have some of the words too
}

// A Line is one line of a text.
type Line struct {
	Number int    `json:"number"`
	Text   string `json:"text"` // without its end
}

// The constants were tuned on LoCoMo's conversations 1 to 5 and on BEAM-100K's chats 1 to 10 (docs/recall.md).
const (
	bm25K, bm25B = 1.4, .85 // of BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009)
	nameWeight   = 2        // of a name such as readFile in a query, in which it is rarely by chance
	partWeight   = .3       // of its parts
	userWeight   = 1.2      // of texts of the user, which few words of the assistant's outweigh
	personWeight = 2        // the same if the query is about the user, such as "my deadline"
	newest       = .01      // the newest piece counts this much more than the oldest
	crowded      = .9       // for every better hit close by
	crowd        = 5        // pieces that are close by
	crowding     = 40       // hits that are put in order by it
	bestLines    = 3

	// Words of the best passages help to find the others: Lavrenko and Croft, "Relevance-Based Language Models" (2001).
	feedbackPassages = 5
	feedbackTerms    = 10
	feedbackWeight   = .2
	feedbackLength   = 33 // words of a passage in which a word counts half
)

// shares are the parts of the scores of its neighbours, one to four pieces away, that a piece has, too: the answer
// to a question often has none of its words.
var shares = []float64{.5, .3, .1, .1}

// A rating is the best passage of a piece.
type rating struct {
	piece, passage int
	score          float64
}

// Find returns the pieces that fit the query, best first, at most limit of them, and the number of all.
func (x *Index) Find(q *Query, limit int) (hits []Hit, all int) {
	var s Stemmer
	ratings, scores := x.rate(q, q.terms)
	ratings = slices.DeleteFunc(ratings, func(r rating) bool {
		p := &x.pieces[r.piece]
		return r.score == 0 || !q.wants(p) || !q.Says(&s, p)
	})
	best := func(a, b rating) int { return cmp.Or(cmp.Compare(b.score, a.score), b.piece-a.piece) }
	slices.SortStableFunc(ratings, best)
	if more := x.feedback(&s, q, ratings); len(more) > 0 {
		again, _ := x.rate(q, more)
		score := map[int]float64{}
		for _, r := range again {
			score[r.piece] = r.score
		}
		for i := range ratings {
			ratings[i].score += score[ratings[i].piece]
		}
		slices.SortStableFunc(ratings, best)
	}
	for _, r := range spread(ratings)[:min(limit, len(ratings))] {
		p := &x.passages[r.passage]
		h := Hit{Piece: &x.pieces[r.piece], Lines: p.lines, Best: q.Best(&s, x.text(p), p.lines.From)}
		for at := x.first[r.piece]; at < x.first[r.piece+1]; at++ {
			if at != r.passage && scores[at] > 0 {
				h.Other++
			}
		}
		hits = append(hits, h)
	}
	return hits, len(ratings)
}

// rate returns the ratings of all pieces with text, and the scores of their passages without neighbours.
func (x *Index) rate(q *Query, terms []term) (ratings []rating, scores []float64) {
	n := len(x.pieces)
	scores = make([]float64, len(x.passages))
	mixed, of := make([]float64, n), make([]float64, n)
	average := float64(x.words) / float64(max(len(x.passages), 1))
	user := userWeight
	if q.person {
		user = personWeight
	}
	for _, t := range terms {
		list := x.terms[t.stem]
		rare := t.weight * x.rare(len(list))
		clear(of)
		for _, p := range list {
			passage := &x.passages[p.passage]
			tf := float64(p.count)
			s := rare * tf * (bm25K + 1) / (tf + bm25K*(1-bm25B+bm25B*float64(passage.words)/average))
			scores[p.passage] += s
			of[passage.piece] = max(of[passage.piece], s)
		}
		for i := range of {
			mixed[i] += mix(of, i)
		}
	}
	for i := range n {
		if x.first[i] == x.first[i+1] {
			continue
		}
		r := rating{i, x.first[i], mixed[i] * (1 + newest*float64(i)/float64(n))}
		for p := r.passage; p < x.first[i+1]; p++ {
			if scores[p] > scores[r.passage] {
				r.passage = p
			}
		}
		if at := x.pieces[i].Places[0].Message; at.Role == core.RoleUser && isText(x.pieces[i].Part) {
			r.score *= user
		}
		if len(terms) == 0 { // the newest with the file or the tool
			r.score = float64(i + 1)
		}
		ratings = append(ratings, r)
	}
	return ratings, scores
}

// rare returns the weight of a term that is in n passages.
func (x *Index) rare(n int) float64 {
	return math.Log(1 + (float64(len(x.passages)-n)+.5)/(float64(n)+.5))
}

// feedback returns terms that are frequent in the best passages and rare elsewhere: words related to the query. Sorted
// begins with the best.
func (x *Index) feedback(s *Stemmer, q *Query, sorted []rating) []term {
	if len(q.terms) == 0 {
		return nil
	}
	weights := map[string]float64{}
	for _, r := range sorted[:min(feedbackPassages, len(sorted))] {
		p := &x.passages[r.passage]
		counts := map[string]float64{}
		Words(x.text(p), func(w []byte, part bool) {
			if !part && len(w) > 2 && !stopWords[string(w)] {
				counts[s.Stem(w)]++
			}
		})
		for stem, n := range counts {
			if _, asked := q.index[stem]; !asked && len(x.terms[stem]) > 1 {
				weights[stem] += r.score * x.rare(len(x.terms[stem])) * n / (n + float64(p.words)/feedbackLength)
			}
		}
	}
	var terms []term
	for stem, weight := range weights {
		terms = append(terms, term{stem: stem, weight: weight})
	}
	slices.SortFunc(terms, func(a, b term) int { return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.stem, b.stem)) })
	terms = terms[:min(feedbackTerms, len(terms))]
	for i := len(terms) - 1; i >= 0; i-- {
		terms[i].weight *= feedbackWeight / terms[0].weight
	}
	return terms
}

func isText(p core.Part) bool {
	_, ok := p.(core.Text)
	return ok
}

// mix returns the score of a piece for a term with its share of the neighbours': half for having the term once, close
// by, half for all of it.
func mix(scores []float64, i int) float64 {
	sum, most := scores[i], scores[i]
	add := func(j int, share float64) {
		if j >= 0 && j < len(scores) {
			sum += share * scores[j]
			most = max(most, share*scores[j])
		}
	}
	for d, share := range shares {
		add(i-d-1, share)
		add(i+d+1, share)
	}
	return (sum + most) / 2
}

// spread puts the best hits in the order of their scores, lowered for every better hit close by.
func spread(ratings []rating) []rating {
	top := slices.Clone(ratings[:min(crowding, len(ratings))])
	for i := range top {
		best := i
		for k := i + 1; k < len(top); k++ {
			if top[k].score > top[best].score {
				best = k
			}
		}
		chosen := top[best]
		copy(top[i+1:best+1], top[i:best]) // the others stay in order
		top[i] = chosen
		for k := range top[i+1:] {
			if d := top[i+1+k].piece - chosen.piece; -crowd <= d && d <= crowd {
				top[i+1+k].score *= crowded
			}
		}
	}
	return append(top, ratings[len(top):]...)
}

// wants reports whether the piece is of a file and of a tool that the query names.
func (q *Query) wants(p *recall.Piece) bool {
	has := func(parts []string, text string) bool {
		text = strings.ToLower(text)
		return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	return has(q.files, p.Path) && has(q.tools, p.What)
}

// Says reports whether the piece has the phrases of the query.
func (q *Query) Says(s *Stemmer, p *recall.Piece) bool {
	if len(q.phrases) == 0 {
		return true
	}
	var stems []string
	Words(p.Text(), func(w []byte, part bool) {
		switch {
		case part:
		case q.begins[w[0]]:
			stems = append(stems, s.Stem(w))
		default:
			stems = append(stems, "") // in no phrase
		}
	})
	return !slices.ContainsFunc(q.phrases, func(phrase []string) bool { return !containsRun(stems, phrase) })
}

// containsRun reports whether run is in all without a gap.
func containsRun(all, run []string) bool {
	for i := 0; i+len(run) <= len(all); i++ {
		if slices.Equal(all[i:i+len(run)], run) {
			return true
		}
	}
	return false
}

// has returns the set of the terms in text.
func (q *Query) has(s *Stemmer, text string) (set uint64) {
	Words(text, func(w []byte, _ bool) {
		if !q.begins[w[0]] {
			return
		}
		if t, ok := q.index[s.Stem(w)]; ok {
			set |= 1 << t
		}
	})
	return set
}

// Best returns the lines of text with the most different terms, in order. The number of its first line is first.
func (q *Query) Best(s *Stemmer, text string, first int) []Line {
	type line struct {
		Line
		terms int
	}
	var lines []line
	var some []Line
	for n, t := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		l := Line{first + n, t}
		if count := bits.OnesCount64(q.has(s, t)); count > 0 {
			lines = append(lines, line{l, count})
		} else if some == nil && strings.TrimSpace(t) != "" {
			some = []Line{l}
		}
	}
	if len(lines) == 0 {
		return some
	}
	slices.SortStableFunc(lines, func(a, b line) int { return b.terms - a.terms })
	found := plain.Each(lines[:min(len(lines), bestLines)], func(l line) Line { return l.Line })
	slices.SortFunc(found, func(a, b Line) int { return a.Number - b.Number })
	return found
}
