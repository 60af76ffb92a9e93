package core

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestOpenCalls compares with a plain list: whatever is asked, and however many calls are
// open, the answer is the oldest of the ID.
func TestOpenCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SampledFrom([]int{1, 2, 8, 100}).Draw(t, "ids")
		calls := rapid.IntRange(5, 9).Draw(t, "calls in ten")
		type entry struct {
			id  string
			key int
		}
		var list []entry
		var open openCalls
		for key := range rapid.IntRange(0, 120).Draw(t, "steps") {
			id := strconv.Itoa(rapid.IntRange(1, ids).Draw(t, "id"))
			if rapid.IntRange(0, 9).Draw(t, "step") < calls {
				open.call(id, key)
				list = append(list, entry{id, key})
				continue
			}
			want := slices.IndexFunc(list, func(e entry) bool { return e.id == id })
			got, ok := open.result(id)
			if ok != (want >= 0) || ok && got != list[want].key {
				t.Fatalf("%d calls are open; the result of %s answers %d, %v; want entry %d of %v", len(list), id, got, ok, want, list)
			}
			if ok {
				list = slices.Delete(list, want, want+1)
			}
		}
		for _, e := range list { // what is still open, and nothing else
			if got, ok := open.result(e.id); !ok || got != e.key {
				t.Fatalf("open is %d, %v, want %v", got, ok, e)
			}
		}
		for _, e := range list {
			if got, ok := open.result(e.id); ok {
				t.Fatalf("%d is open, and was answered", got)
			}
		}
	})
}
