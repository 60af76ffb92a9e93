package sessions

import (
	"fmt"
	"strconv"
	"strings"
)

// A Fold is every Nth session from number K on, in the order of the names of their files.
// The zero Fold has none.
type Fold struct{ K, N int }

// ParseFold reads "K/N", K from 0 to N-1, N at least 2; "" is the zero Fold.
func ParseFold(s string) (Fold, error) {
	if s == "" {
		return Fold{}, nil
	}
	k, n, _ := strings.Cut(s, "/")
	var f Fold
	var err error
	if f.K, err = strconv.Atoi(k); err == nil {
		f.N, err = strconv.Atoi(n)
	}
	if err != nil || f.K < 0 || f.K >= f.N || f.N < 2 {
		return Fold{}, fmt.Errorf("fold %q: want K/N, K from 0 to N-1, N at least 2", s)
	}
	return f, nil
}

// Has reports whether session i is in the fold.
func (f Fold) Has(i int) bool { return f.N > 0 && i%f.N == f.K }
