package tokens

import "fmt"

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
