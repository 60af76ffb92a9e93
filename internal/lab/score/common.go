package score

import (
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// common.bin is what [Background.WriteTo] wrote of the sessions that testdata/traces is
// taken from; bench/retention -background makes it.
//
//go:embed common.bin
var commonFile []byte

// Common returns the background that comes with the package: names and words that are
// in two or more of 13 unrelated sources of recorded sessions. It makes scores independent
// of what else is compared.
var Common = sync.OnceValue(func() *Background {
	b, err := ReadBackground(bytes.NewReader(commonFile))
	if err != nil {
		panic(err) // the file is part of the program
	}
	return b
})

// WriteTo writes b, what is in one source only left out.
func (b *Background) WriteTo(w io.Writer) (int64, error) {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return 0, err
	}
	names := strings.Join(slices.Sorted(maps.Keys(b.sources)), "\n")
	head := binary.AppendUvarint(nil, uint64(len(names)))
	if _, err := z.Write(append(head, names...)); err != nil {
		return 0, err
	}
	// Forty bits of the hash are enough to tell so few apart.
	last := uint64(0)
	for _, h := range slices.Sorted(maps.Keys(b.count)) {
		n := min(b.count[h], commonMost)
		if n < 2 {
			continue
		}
		v := h >> 24
		if _, err := z.Write(append(binary.AppendUvarint(nil, v-last), byte(n))); err != nil {
			return 0, err
		}
		last = v
	}
	if err := z.Close(); err != nil {
		return 0, err
	}
	return out.WriteTo(w)
}

// commonMost is where counting ends: the weight is zero with five sources, and the source
// of a session may be one of them or not.
const commonMost = 7

// ReadBackground reads what [Background.WriteTo] wrote.
func ReadBackground(r io.Reader) (*Background, error) {
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
