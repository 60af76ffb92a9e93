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

// A Background knows which names and words are common to unrelated projects. An agent
// that later writes README.md or "config" need not have it from the conversation. It
// never changes and is safe for concurrent use.
type Background struct {
	sources map[string]bool
	count   map[uint64]uint16 // sources that have the unit or the word
	shift   int               // bits of the hash that count has dropped
}

// common.bin holds what two or more of the sources have that testdata/traces is taken from. A test
// writes the file: see writeTo.
//
//go:embed common.bin
var commonFile []byte

// Common returns the background that comes with the package: names and words that are
// in two or more of 13 unrelated sources of recorded sessions. It makes scores independent
// of what else is compared.
var Common = sync.OnceValue(func() *Background {
	b, err := readBackground(bytes.NewReader(commonFile))
	if err != nil {
		panic(err) // the file is part of the program
	}
	return b
})

// readBackground reads the form of common.bin, compressed with flate: the names of the sources, then for every hash
// of 40 bits its distance from the one before and the number of sources.
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

// others returns how many sources other than the named one have the unit or word h, which
// the named one has.
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

// rarity is 1 for what only the source has, 0 for what four others have too.
func (b *Background) rarity(h uint64, source string) float64 {
	return max(0, 1-float64(b.others(h, source))/4)
}

// idf weights what df of n messages have: 1 for a single one, 0 for all of them.
func idf(df, n int) float64 {
	if n < 1 {
		return 0
	}
	v := math.Log((1+float64(n))/(0.5+float64(df))) / math.Log((1+float64(n))/1.5)
	return min(1, max(0, v))
}
