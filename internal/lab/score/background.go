package score

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
)

// A Background holds the names and words that are common to unrelated projects. An agent that later writes
// README.md or "config" need not have it from the conversation. It is immutable and safe for concurrent
// use.
type Background struct {
	sources map[string]bool
	count   map[uint64]uint16 // sources that have the unit or the word
	shift   int               // number of low bits that the keys of count lack
}

// common.bin has the names and words of two or more of the sources of recorded sessions. A test writes
// it: go test ./internal/lab/score -run Background -update.
//
//go:embed common.bin
var commonFile []byte

// Common returns the background that comes with the package: names and words of two or more of 13 unrelated sources
// of recorded sessions. With it, a score does not depend on the other sessions of a comparison.
var Common = sync.OnceValue(func() *Background {
	b, err := readBackground(bytes.NewReader(commonFile))
	if err != nil {
		panic(err) // the file is part of the program
	}
	return b
})

// readBackground reads the form of common.bin, compressed with flate: the names of the sources, then for every hash
// of 40 bits its distance from the previous one and the number of sources.
func readBackground(r io.Reader) (*Background, error) {
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(r), 1<<26))
	if err != nil {
		return nil, fmt.Errorf("background: %w", err)
	}
	n, used := binary.Uvarint(data)
	if used <= 0 || n > uint64(len(data)-used) {
		return nil, errors.New("background: no list of sources")
	}
	b := &Background{sources: map[string]bool{}, count: map[uint64]uint16{}, shift: 24}
	data = data[used:]
	for name := range strings.SplitSeq(string(data[:n]), "\n") {
		b.sources[name] = true
	}
	data = data[n:]
	last := uint64(0)
	for len(data) > 0 {
		d, used := binary.Uvarint(data)
		if used <= 0 || used == len(data) || d > math.MaxUint64>>24-last {
			return nil, fmt.Errorf("background: broken after %d entries", len(b.count))
		}
		last += d
		b.count[last] = uint16(data[used])
		data = data[used+1:]
	}
	return b, nil
}

// others returns the number of sources other than the named one that have the unit or word h.
func (b *Background) others(h uint64, source string) int {
	if b == nil {
		return 0
	}
	n := int(b.count[h>>b.shift])
	if n > 0 && b.sources[source] {
		n--
	}
	return n
}

// rarity returns 1 for a unit that only the source has, 0 for a unit that four other sources have.
func (b *Background) rarity(h uint64, source string) float64 {
	return max(0, 1-float64(b.others(h, source))/4)
}

// CommonIn returns the names and words of a session that other projects have, too, with the number of those projects. A name has the
// letter of its kind and a colon before it.
func (b *Background) CommonIn(s *Session) map[string]int {
	out := map[string]int{}
	note := func(name string, hash uint64) {
		if n := b.others(hash, s.Source); n > 0 {
			out[name] = n
		}
	}
	for i := range s.Messages {
		blocks(s.Messages[i].Parts, func(_ int, text string) {
			lines(text, func(line string) {
				for _, u := range appendUnits(nil, line) {
					note(string(u.kind)+":"+line[u.start:u.end], u.hash)
				}
				for _, w := range appendWords(nil, line) {
					note(line[w.start:w.end], w.hash)
				}
			})
		})
	}
	return out
}

// idf returns the weight of a unit that df of n messages have: 1 for a single message, 0 for nearly all.
func idf(df, n int) float64 {
	if n < 1 {
		return 0
	}
	v := math.Log((1+float64(n))/(0.5+float64(df))) / math.Log((1+float64(n))/1.5)
	return min(1, max(0, v))
}
