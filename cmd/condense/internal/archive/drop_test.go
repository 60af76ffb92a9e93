package archive_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// After sessions were added, rewritten and forgotten in any order, the index has the words of those that are left, in any
// of its shards, and no others.
func TestWordsOfDeleted(t *testing.T) {
	t.Parallel()
	x, file := open(t)
	x.SetShard(16)
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	dir := t.TempDir()
	live, words := map[string][]string{}, map[string]bool{}
	text := func() string {
		w := fmt.Sprintf("quetzalcoatl%c%c%c", 'a'+r.IntN(3), 'a'+r.IntN(26), 'a'+r.IntN(26))
		words[w] = true
		return "popocatepetl " + w
	}
	put := func(path string, results ...string) {
		live[path] = results
		session(t, path, results...)
		update(t, x, slices.Sorted(maps.Keys(live))...)
	}
	for range 20 {
		put(filepath.Join(dir, fmt.Sprint("s", r.IntN(6), ".json")), text(), text(), text())
		some := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
		switch {
		case r.IntN(2) == 0:
			put(some, live[some][0], text(), live[some][2])
		case len(live) > 1:
			delete(live, some)
			if n, err := x.Forget(t.Context(), some); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if err := os.Remove(some); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := strings.Join(slices.Concat(slices.Collect(maps.Values(live))...), " ")
	for w := range words {
		if is := strings.Contains(all, w); !is && has(t, file, w) {
			t.Errorf("%s is left", w)
		} else if hits := find(t, x, w+" popocatepetl"); is != (len(hits) > 0 && strings.Contains(fmt.Sprint(hits[0].Best), w)) {
			t.Errorf("%s: found %v", w, hits)
		}
	}
	if hits := find(t, x, "popocatepetl"); len(hits) != min(10, 3*len(live)) {
		t.Errorf("got %d hits of %d sessions", len(hits), len(live))
	}
}
