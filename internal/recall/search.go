package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/size"
)

// A Hit is a passage of a piece that has words of a query.
type Hit struct {
	Piece *Piece
	Lines Lines  // of the passage
	Best  []Line // the lines with most of the words, in order
	Other int    // passages of the same piece that have some of the words too
}

// A Line is one line of a text.
type Line struct {
	Number int
	Text   string // without its end
}

const (
	passageLines = 40
	passageBytes = 4000
	maxWords     = 32 // of a query
	bestLines    = 3

	// The usual constants of BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009).
	bm25K = 1.2
	bm25B = 0.75
)

// Search returns the pieces that have words of the query, best first, each with its best passage. A word is a run of
// letters, digits and underscores, without regard to case; the parts of a name such as readFile count, too. Equal
// content appears once, and messages that a condensation inserted do not appear. The cost is linear in the bytes of
// the pieces.
func Search(ctx context.Context, pieces []Piece, query string) ([]Hit, error) {
	if len(query) > MaxPattern {
		return nil, fmt.Errorf("the query has %s bytes; at most %s are allowed", size.Group(len(query)), size.Group(MaxPattern))
	}
	words := map[string]int{} // index, by word
	each(query, func(word []byte) {
		if _, ok := words[string(word)]; !ok && len(words) < maxWords {
			words[string(word)] = len(words)
		}
	})
	if len(words) == 0 {
		return nil, errors.New("the query has no words: name some that the text has, such as a function, a file or an error")
	}
	type passage struct {
		piece, length int
		lines         Lines
		text          string
		counts        []int // by word
		score         float64
	}
	var (
		found []passage
		all   int
		total int // words
		with  = make([]int, len(words))
		seen  = map[string]bool{}
	)
	for i := range pieces {
		p := &pieces[i]
		if seen[p.Handle] || p.Places[0].InsertedBy != "" {
			continue
		}
		seen[p.Handle] = true
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the search takes too long: %w", err)
		}
		for text, line := p.Text(), 1; text != ""; {
			end, n := passageEnd(text)
			x := passage{piece: i, lines: Lines{line, line + CountLines(text[:end]) - 1}, text: text[:end]}
			text, line = text[end:], line+n
			each(x.text, func(word []byte) {
				x.length++
				if w, ok := words[string(word)]; ok {
					if x.counts == nil {
						x.counts = make([]int, len(words))
					}
					x.counts[w]++
				}
			})
			all, total = all+1, total+x.length
			if x.counts == nil {
				continue
			}
			for w, n := range x.counts {
				if n > 0 {
					with[w]++
				}
			}
			found = append(found, x)
		}
	}
	average := float64(total) / float64(max(all, 1))
	for i := range found {
		x := &found[i]
		for w, n := range x.counts {
			if n == 0 {
				continue
			}
			rare := math.Log(1 + (float64(all)-float64(with[w])+.5)/(float64(with[w])+.5))
			tf := float64(n)
			x.score += rare * tf * (bm25K + 1) / (tf + bm25K*(1-bm25B+bm25B*float64(x.length)/average))
		}
	}
	slices.SortStableFunc(found, func(a, b passage) int { return cmp.Compare(b.score, a.score) })
	var hits []Hit
	at := map[int]int{} // index in hits, by piece
	for _, x := range found {
		if h, ok := at[x.piece]; ok {
			hits[h].Other++
			continue
		}
		at[x.piece] = len(hits)
		hits = append(hits, Hit{Piece: &pieces[x.piece], Lines: x.lines, Best: best(x.text, x.lines.From, words)})
	}
	return hits, nil
}

// passageEnd returns where the first passage of text ends, and how many line ends it has. A long line
// is cut between two words.
func passageEnd(text string) (end, lines int) {
	for lines < passageLines {
		n := after(text[end:], 1)
		if end+n > passageBytes {
			break
		}
		if end += n; n == 0 || text[end-1] != '\n' {
			return end, lines
		}
		lines++
	}
	if end > 0 {
		return end, lines
	}
	end = passageBytes
	for end < len(text) && end < 2*passageBytes && isWord(text[end]) {
		end++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	if text[:end][end-1] == '\n' {
		lines = 1
	}
	return end, lines
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= utf8.RuneSelf
}

// best returns the lines of text with the most different words, in order.
func best(text string, first int, words map[string]int) []Line {
	type line struct {
		Line
		words int
	}
	var lines []line
	for n, t := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var has uint32
		each(t, func(word []byte) {
			if w, ok := words[string(word)]; ok {
				has |= 1 << w
			}
		})
		if count := bits.OnesCount32(has); count > 0 {
			lines = append(lines, line{Line{first + n, t}, count})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return b.words - a.words })
	var found []Line
	for _, l := range lines[:min(len(lines), bestLines)] {
		found = append(found, l.Line)
	}
	slices.SortFunc(found, func(a, b Line) int { return a.Number - b.Number })
	return found
}

// each calls word for every word of text in lower case, and for the words that it is made of. The
// slice is overwritten by the next call.
func each(text string, word func([]byte)) {
	var whole, part []byte
	parts, upper := 0, false // whether the last letter was a capital
	endPart := func() {
		if len(part) > 0 && len(part) < len(whole) {
			word(part)
			parts++
		}
		part = part[:0]
	}
	end := func() {
		if len(whole) > 0 {
			if parts > 0 {
				endPart()
			}
			word(whole)
		}
		whole, part, parts, upper = whole[:0], part[:0], 0, false
	}
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf && !isWord(byte(r)), r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
		case r >= utf8.RuneSelf && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai): // written without spaces
			end()
			whole = utf8.AppendRune(whole, r)
			end()
		case r == '_':
			whole = append(whole, '_')
			endPart()
			upper = false
		default:
			capital := unicode.IsUpper(r)
			low := unicode.ToLower(r)
			whole = utf8.AppendRune(whole, low)
			if capital && !upper {
				endPart()
			}
			upper = capital
			part = utf8.AppendRune(part, low)
		}
	}
	end()
}
