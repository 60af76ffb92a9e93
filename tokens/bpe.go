package tokens

import (
	"compress/gzip"
	"embed"
	"io"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// A bpe counts by byte pair encoding: it splits text into pieces by a pattern, and pieces into
// tokens by a vocabulary.
type bpe struct {
	vocabulary *vocabulary
	classes    *classes
	split      splitter

	// idle holds the workers that are not in use. A sync.Pool would lose them, with their
	// caches, to the garbage collector.
	mu   sync.Mutex
	idle []*worker
}

// files are the vocabularies of tiktoken, in the form that parseVocabulary reads: a third of their size as text in base64.
//
//go:embed vocabularies/*.gz
var files embed.FS

func openBPE(name string, split splitter) (*bpe, error) {
	data, err := readVocabulary(name)
	if err != nil {
		return nil, err
	}
	v, err := parseVocabulary(data)
	if err != nil {
		return nil, err
	}
	return &bpe{vocabulary: v, classes: loadClasses(), split: split}, nil
}

// Ranks returns the tokens of an exact encoding with their ranks, for programs that read vocabularies of tiktoken.
func Ranks(name string) (map[string]int, error) {
	data, err := readVocabulary(name)
	ranks := map[string]int{}
	for len(data) > 0 {
		end := 1 + int(data[0])
		ranks[data[1:end]], data = len(ranks), data[end:]
	}
	return ranks, err
}

func readVocabulary(name string) (string, error) {
	f, err := files.Open("vocabularies/" + name + ".gz")
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	_, err = io.Copy(&b, io.LimitReader(z, maxBlob+1))
	return b.String(), err
}

func (b *bpe) count(s string) int {
	w := b.acquire()
	defer b.release(w)
	return w.count(toValid(s))
}

func (b *bpe) prefix(s string, n int) int {
	w := b.acquire()
	defer b.release(w)
	valid := toValid(s)
	return fromValid(s, valid, w.prefix(valid, n))
}

func (b *bpe) suffix(s string, n int) int {
	w := b.acquire()
	defer b.release(w)
	valid := toValid(s)
	return fromValid(s, valid, w.suffix(valid, n))
}

func (b *bpe) acquire() *worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.idle); n > 0 {
		w := b.idle[n-1]
		b.idle = b.idle[:n-1]
		return w
	}
	return &worker{bpe: b}
}

func (b *bpe) release(w *worker) {
	if cap(w.merger.next) > maxKept {
		w.merger = merger{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.idle) < runtime.GOMAXPROCS(0) {
		b.idle = append(b.idle, w)
	}
}

// toValid returns s with every byte that is not UTF-8 replaced by U+FFFD.
// [strings.ToValidUTF8] replaces a run of such bytes by one.
func toValid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

// fromValid converts the offset at in valid = toValid(s) to an offset in s.
func fromValid(s, valid string, at int) int {
	if len(s) == len(valid) { // nothing was replaced: a replacement is longer
		return at
	}
	i := 0
	for at > 0 {
		r, size := utf8.DecodeRuneInString(s[i:])
		at -= utf8.RuneLen(r)
		i += size
	}
	return i
}

// linearLimit is the size in bytes of the pieces for which a search of all ranks for the
// lowest is faster than a queue. Measured with BenchmarkMerge.
const linearLimit = 32

// A merger splits pieces of text into tokens by byte pair encoding: it starts from single
// bytes and repeatedly joins the two neighbors that form the token of the lowest rank, the
// leftmost of equals.
type merger struct {
	starts []int32 // the result: where the tokens begin

	// Working memory; it grows with the longest piece. ranks[i] is the rank of the token that starts at i (for
	// linear: the i-th) joined with the next one.
	ranks []uint32
	next  []int32 // start of the token after the one that starts at i
	prev  []int32
	queue rankQueue
}

// merge sets m.starts to where the tokens of s begin.
func (m *merger) merge(v *vocabulary, s string) {
	if len(s) <= linearLimit {
		m.linear(v, s)
	} else {
		m.queued(v, s)
	}
}

func (m *merger) linear(v *vocabulary, s string) {
	starts, ranks := m.starts[:0], m.ranks[:0]
	for i := range len(s) - 1 {
		starts = append(starts, int32(i))
		ranks = append(ranks, v.pair(s, i))
	}
	// The last token has no neighbor to be joined with; starts has its end, too.
	starts = append(starts, int32(len(s)-1), int32(len(s)))
	ranks = append(ranks, noRank)
	for {
		at, low := 0, uint32(noRank)
		for i, r := range ranks {
			if r < low {
				at, low = i, r
			}
		}
		if low == noRank {
			break
		}
		starts = append(starts[:at+1], starts[at+2:]...)
		ranks = append(ranks[:at+1], ranks[at+2:]...)
		for i := at; i >= max(at-1, 0); i-- {
			ranks[i] = noRank
			if i+2 < len(starts) {
				ranks[i] = v.rank(s, int(starts[i]), int(starts[i+2]))
			}
		}
	}
	m.starts, m.ranks = starts[:len(starts)-1], ranks
}

// queued takes time linear in the size of s. It makes the merges of one rank together, lowest
// rank first. The result is the same as with one merge at a time: a merge never makes one of a
// lower or the same rank possible. Vocabularies have this property because they were learned
// in the order of the ranks, and a test verifies it for ours.
func (m *merger) queued(v *vocabulary, s string) {
	n := len(s)
	m.ranks, m.next, m.prev = grow(m.ranks, n+1), grow(m.next, n+1), grow(m.prev, n+1)
	ranks, next, prev, queue := m.ranks, m.next, m.prev, &m.queue
	queue.reset(v.ranks)
	for i := range n {
		next[i], prev[i], ranks[i] = int32(i+1), int32(i-1), noRank
		if i+1 < n {
			ranks[i] = v.pair(s, i)
		}
		if ranks[i] != noRank {
			queue.add(ranks[i], int32(i))
		}
	}
	next[n], prev[n], ranks[n] = int32(n), int32(n-1), noRank // the end, a sentinel

	renew := func(i int32) {
		ranks[i] = noRank
		if int(next[i]) < n {
			ranks[i] = v.rank(s, int(i), int(next[next[i]]))
		}
		if ranks[i] != noRank {
			queue.add(ranks[i], i)
		}
	}
	for rank, list := queue.pop(); list != none; rank, list = queue.pop() {
		for ; list != none; list = queue.nodes[list].next {
			i := queue.nodes[list].start
			// Merges that became impossible stay in the queue; they are detected here. Of
			// merges that exclude each other, as in "aaa", the leftmost is first.
			for prev[i] >= 0 && ranks[i] == rank && ranks[prev[i]] == rank {
				i = prev[i]
			}
			for ranks[i] == rank {
				gone := next[i]
				next[i] = next[gone]
				prev[next[i]] = i
				ranks[gone] = noRank
				renew(i)
				if prev[i] >= 0 {
					renew(prev[i])
				}
				i = next[i]
			}
		}
	}

	m.starts = m.starts[:0]
	for i := 0; i < n; i = int(next[i]) {
		m.starts = append(m.starts, int32(i))
	}
}

// grow returns a slice of length n, the given one if it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
