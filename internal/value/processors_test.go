package value_test

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same conversation is shortened to the same on every machine, however many processors
// share the work.
func TestProcessors(t *testing.T) {
	messages := session(150)
	room := tokensOf(messages) / 5
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	want := shorten(t, messages, room)
	for _, n := range []int{2, 5} {
		runtime.GOMAXPROCS(n)
		if diff := cmp.Diff(want, shorten(t, messages, room)); diff != "" {
			t.Errorf("%d processors (-1 +%[1]d):\n%s", n, diff)
		}
	}
}
