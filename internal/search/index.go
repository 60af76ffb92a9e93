package search

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
)

const (
	passageLines = 40
	passageBytes = 4000

	// aboutWeight is the count of a word of a piece's tool or path in each of its passages.
	aboutWeight = .5
)

// An Index has the words of pieces. It is safe for concurrent use.
type Index struct {
	pieces   []recall.Piece // each content once
	passages []passage
	first    []int                // of the passages of each piece, and one more
	terms    map[string][]posting // by stem
	words    int                  // in all passages
}

// A passage is a part of a piece.
type passage struct {
	piece, words int
	lines        recall.Lines
	from, to     int // bytes of the text
}

// A posting is the number of times that a term is in a passage.
type posting struct {
	passage int32
	count   float32
}

// NewIndex reads pieces in the order of the conversation. Equal content appears once, and neither messages that a
// condensation inserted nor what only the vendor can read appear. The cost is linear in the bytes of the pieces.
func NewIndex(ctx context.Context, pieces []recall.Piece) (*Index, error) {
	b := builder{Index: &Index{terms: map[string][]posting{}}, ids: map[string]int32{}, stems: map[string]int32{}}
	seen := map[string]bool{}
	for i := range pieces {
		p := &pieces[i]
		if seen[p.Handle] || p.Places[0].InsertedBy != "" || p.Sealed() {
			continue
		}
		seen[p.Handle] = true
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the search takes too long: %w", err)
		}
		b.add(p)
	}
	b.first = append(b.first, len(b.passages))
	for stem, id := range b.stems {
		b.terms[stem] = b.lists[id]
	}
	return b.Index, nil
}

// A builder makes an index.
type builder struct {
	*Index
	stemmer    Stemmer
	ids, stems map[string]int32 // indices in lists, by word and by stem
	lists      [][]posting
}

// count adds n to the count of a word in a passage.
func (b *builder) count(w []byte, n float32, passage int32) {
	id, ok := b.ids[string(w)]
	if !ok {
		stem := b.stemmer.Stem(w)
		if id, ok = b.stems[stem]; !ok {
			id = int32(len(b.lists))
			b.stems[stem] = id
			b.lists = append(b.lists, nil)
		}
		b.ids[string(w)] = id
	}
	list := &b.lists[id]
	if k := len(*list); k > 0 && (*list)[k-1].passage == passage {
		(*list)[k-1].count += n
		return
	}
	*list = append(*list, posting{passage, n})
}

// add reads the passages of a piece.
func (b *builder) add(p *recall.Piece) {
	b.first = append(b.first, len(b.passages))
	all := p.Text()
	for from, line := 0, 1; from < len(all); {
		end, n := passageEnd(all[from:])
		text := all[from : from+end]
		x := passage{piece: len(b.pieces), lines: recall.Lines{From: line, To: line + dialog.CountLines(text) - 1}, from: from, to: from + end}
		from, line = from+end, line+n
		at := int32(len(b.passages))
		Words(text, func(w []byte, part bool) {
			if !part {
				x.words++
			}
			b.count(w, 1, at)
		})
		if !isText(p.Part) {
			Words(p.What+" "+p.Path, func(w []byte, _ bool) { b.count(w, aboutWeight, at) })
		}
		b.words += x.words
		b.passages = append(b.passages, x)
	}
	b.pieces = append(b.pieces, *p)
}

// text returns the text of a passage.
func (x *Index) text(p *passage) string { return x.pieces[p.piece].Text()[p.from:p.to] }

// passageEnd returns where the first passage of text ends, and how many line ends it has. A long line is cut between
// two words.
func passageEnd(text string) (end, lines int) {
	for lines < passageLines {
		n := cmp.Or(strings.IndexByte(text[end:], '\n')+1, len(text)-end)
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
	end = plain.On(text, end)
	if text[:end][end-1] == '\n' {
		lines = 1
	}
	return end, lines
}
