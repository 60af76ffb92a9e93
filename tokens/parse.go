package tokens

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
)

// parseVocabulary reads the .tiktoken format: a line for each token, its bytes in base64,
// a space, its rank.
func parseVocabulary(data []byte) (*vocabulary, error) {
	// All tokens are decoded before the tables are made, to allocate them with the right size.
	type token struct {
		end  int // in flat
		rank uint32
	}
	var (
		list   = make([]token, 0, bytes.Count(data, []byte("\n")))
		flat   = make([]byte, 0, base64.StdEncoding.DecodedLen(len(data)))
		single [256]bool // the tokens of one byte
		sizes  [maxSize + 1]int
	)
	for line := 1; len(data) > 0; line++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte("\n"))
		if len(text) == 0 {
			continue
		}
		code, number, _ := bytes.Cut(text, []byte(" "))
		start := len(flat)
		var err error
		if flat, err = base64.StdEncoding.AppendDecode(flat, code); err != nil {
			return nil, fmt.Errorf("line %d: token: %w", line, err)
		}
		n := len(flat) - start
		if n == 0 || n > maxSize || len(flat) > maxBlob {
			return nil, fmt.Errorf("line %d: token of %d bytes; want 1 to %d, and %d in all", line, n, maxSize, maxBlob)
		}
		rank, err := strconv.ParseUint(string(number), 10, 24)
		if err != nil {
			return nil, fmt.Errorf("line %d: rank: %w", line, err)
		}
		if n == 1 {
			single[flat[start]] = true
		}
		sizes[n]++
		list = append(list, token{len(flat), uint32(rank)})
	}
	for b, ok := range single {
		if !ok {
			return nil, fmt.Errorf("byte %#02x is no token", b)
		}
	}

	var short, long int
	for n, count := range sizes {
		switch {
		case n > 8:
			long += count
		case n > 2:
			short += count
		}
	}
	v := &vocabulary{pairs: make([]uint32, 1<<16), short: newTable(short), long: newTable(long), blob: string(flat)}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	start := 0
	for _, t := range list {
		s := v.blob[start:t.end]
		switch n := len(s); {
		case n == 1: // never asked for
		case n == 2:
			v.pairs[int(s[0])|int(s[1])<<8] = t.rank
		case n <= 8:
			key := load(s, 0, n)
			v.short.add(spread(key), slot{key, t.rank, uint32(n)})
		default:
			key := hash(s)
			v.long.add(key, slot{key, t.rank, uint32(start<<sizeBits | n)})
		}
		v.longest = max(v.longest, len(s))
		v.ranks = max(v.ranks, int(t.rank)+1)
		start = t.end
	}
	return v, nil
}
