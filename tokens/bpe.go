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
