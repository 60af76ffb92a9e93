package score

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"strings"
)

var ReadBackground = readBackground

// Others returns how many other sources have the identifier.
func (b *Background) Others(identifier, source string) int {
	return b.others(makeUnit(UnitIdentifier, identifier, 0, 0).hash, source)
}

// NewBackground learns from sessions. The outcome does not depend on their order.
func NewBackground(sessions []*Session) *Background {
	sorted := slices.Clone(sessions)
	slices.SortStableFunc(sorted, func(a, b *Session) int { return strings.Compare(a.Source, b.Source) })
	b := &Background{sources: map[string]bool{}, count: map[uint64]uint16{}}
	seen := map[uint64]struct{}{}
	var units []unit
	var words []word
	for i, s := range sorted {
		b.sources[s.Source] = true
		for m := range s.Messages {
			blocks(s.Messages[m].Parts, func(_ int, text string) {
				lines(text, func(line string) {
					units, words = appendUnits(units[:0], line), appendWords(words[:0], line)
					for _, u := range units {
						seen[u.hash] = struct{}{}
					}
					for _, w := range words {
						if w.plain {
							seen[w.hash] = struct{}{}
						}
					}
				})
			})
		}
		if i == len(sorted)-1 || sorted[i+1].Source != s.Source {
			for h := range seen {
				b.count[h]++
			}
			clear(seen)
		}
	}
	return b
}

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
