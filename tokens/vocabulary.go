package tokens

import (
	"fmt"
	"math"
	"math/bits"
)

// noRank marks a byte string that is not a token. It is larger than every rank.
const noRank = math.MaxUint32

// A vocabulary maps byte strings to their rank, which is the number of the token that they
// are; lower ranks merge first.
//
// A map[string]uint32 would do, at a fraction of the speed. Tokens of two bytes are in an
// array. Up to eight bytes, a token is itself the key of a hash table; above, its hash is, and
// the bytes are compared.
type vocabulary struct {
	pairs   []uint32 // by the two bytes, the first one low
	short   table    // 3 to 8 bytes
	long    table    // 9 bytes and more
	blob    string   // the bytes of the long tokens
	longest int      // bytes of the longest token
	ranks   int      // one more than the highest rank
}

// pair returns the rank of the two bytes of s at i, or noRank.
func (v *vocabulary) pair(s string, i int) uint32 { return v.pairs[int(s[i])|int(s[i+1])<<8] }

// rank returns the rank of s[p:e], or noRank.
func (v *vocabulary) rank(s string, p, e int) uint32 {
	switch n := e - p; {
	case n <= 1:
		return noRank // the rank of a single byte is never asked for
	case n == 2:
		return v.pair(s, p)
	case n <= 8:
		return v.short.find(load(s, p, n), n)
	case n <= v.longest:
		return v.rankLong(s[p:e])
	}
	return noRank
}

func (v *vocabulary) rankLong(s string) uint32 {
	key := hash(s)
	t := &v.long
	for i := key; ; i++ {
		x := &t.slots[i&t.mask]
		if x.where == 0 {
			return noRank
		}
		if x.key == key {
			at := int(x.where >> sizeBits)
			if n := int(x.where & maxSize); n == len(s) && v.blob[at:at+n] == s {
				return x.rank
			}
		}
	}
}

// A table is an open hash table with linear probing.
type table struct {
	slots []slot
	mask  uint64 // number of slots, a power of two, less one
}

// A slot holds a token, or is empty if where is 0.
type slot struct {
	key   uint64 // the bytes, zero padded, or their hash
	rank  uint32
	where uint32 // the length in bytes in the low bits, the offset in blob above
}

const (
	sizeBits = 8
	maxSize  = 1<<sizeBits - 1
	maxBlob  = 1 << (32 - sizeBits)
)

// newTable returns a table for n entries. It is filled to two thirds at most: emptier ones are
// slower, because they take more of the processor's cache.
func newTable(n int) table {
	size := 1 << bits.Len(uint(n+n/2))
	return table{slots: make([]slot, size), mask: uint64(size - 1)}
}

func (t *table) add(home uint64, x slot) {
	for t.slots[home&t.mask].where != 0 {
		home++
	}
	t.slots[home&t.mask] = x
}

// find returns the rank of the token of n bytes that is key.
func (t *table) find(key uint64, n int) uint32 {
	for i := spread(key); ; i++ {
		x := &t.slots[i&t.mask]
		if x.key == key && x.where == uint32(n) {
			return x.rank
		}
		if x.where == 0 {
			return noRank
		}
	}
}

// spread distributes keys that differ in few bits.
func spread(key uint64) uint64 {
	hi, lo := bits.Mul64(key, 0x9e3779b97f4a7c15) // 2^64 over the golden ratio
	return hi ^ lo
}

// hash returns a hash of s, which has more than 8 bytes. It need not resist an attacker: only
// tokens are in the table, so input cannot make its chains longer.
func hash(s string) uint64 {
	h := uint64(len(s))
	for i := 0; i < len(s)-8; i += 8 {
		h = spread(h ^ load8(s, i))
	}
	return spread(h ^ load8(s, len(s)-8))
}

// load8 returns the 8 bytes of s at i.
func load8(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// load returns the n bytes of s at i, 1 <= n <= 8, padded with zeros.
func load(s string, i, n int) uint64 {
	if i+8 <= len(s) {
		unused := (64 - 8*n) & 63 // bits; the mask lets the compiler omit a check
		return load8(s, i) << unused >> unused
	}
	return loadEnd(s, i, n)
}

func loadEnd(s string, i, n int) uint64 {
	var x uint64
	for j := n - 1; j >= 0; j-- {
		x = x<<8 | uint64(s[i+j])
	}
	return x
}

// parseVocabulary reads the tokens of a vocabulary in the order of their ranks: the length of each in a byte, and its bytes.
func parseVocabulary(data string) (*vocabulary, error) {
	if len(data) > maxBlob {
		return nil, fmt.Errorf("%d bytes; want at most %d", len(data), maxBlob)
	}
	// The tokens are counted before the tables are made, to allocate them with the right size.
	var (
		single      [256]bool // the tokens of one byte
		short, long int
	)
	for rank, at := 0, 0; at < len(data); rank++ {
		n := int(data[at])
		if at++; n == 0 || n > len(data)-at {
			return nil, fmt.Errorf("token %d has %d bytes, and %d are left", rank, n, len(data)-at)
		}
		switch {
		case n > 8:
			long++
		case n > 2:
			short++
		case n == 1:
			single[data[at]] = true
		}
		at += n
	}
	for b, ok := range single {
		if !ok {
			return nil, fmt.Errorf("byte %#02x is no token", b)
		}
	}

	v := &vocabulary{pairs: make([]uint32, 1<<16), short: newTable(short), long: newTable(long), blob: data}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	for at := 0; at < len(data); v.ranks++ {
		n := int(data[at])
		at++
		s, rank := data[at:at+n], uint32(v.ranks)
		switch {
		case n == 1: // never asked for
		case n == 2:
			v.pairs[int(s[0])|int(s[1])<<8] = rank
		case n <= 8:
			key := load(s, 0, n)
			v.short.add(spread(key), slot{key, rank, uint32(n)})
		default:
			key := hash(s)
			v.long.add(key, slot{key, rank, uint32(at<<sizeBits | n)})
		}
		v.longest = max(v.longest, n)
		at += n
	}
	return v, nil
}
