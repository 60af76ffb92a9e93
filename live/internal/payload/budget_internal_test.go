package payload

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/testkit"
)

// However many bodies come at the same time, each comes to its end, and no more is held than the capacity and one body.
func TestBodiesThatComeTogetherAllArrive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const capacity = 4 * Small
		b := NewBudget(capacity, LongestWait)
		most := int64(rapid.IntRange(1, 3*capacity).Draw(rt, "largest"))
		sizes := rapid.SliceOfN(rapid.Int64Range(0, most), 1, 12).Draw(rt, "sizes")
		var all sync.WaitGroup
		for i, size := range sizes {
			h := b.Open([]string{"a", "b"}[i%2], func() { t.Error("a body that moves is cut") })
			all.Go(func() {
				defer h.Close()
				r := &http.Request{Body: io.NopCloser(bytes.NewReader(make([]byte, size))), ContentLength: size - int64(rand.IntN(2))*(size+1)}
				body, _, err := Read(r.WithContext(t.Context()), 4*capacity, 4*capacity, h, func(int64) func() { return func() {} })
				if err != nil || int64(len(body.Raw)) != size {
					t.Errorf("%v", err)
				}
				if held, _ := b.Held(); held > capacity+2*most+int64(len(sizes))*Small {
					t.Errorf("%d bytes are held", held)
				}
			})
		}
		all.Wait()
		if held, n := b.Held(); held != 0 || n != 0 || len(b.owned) != 0 || b.over != nil {
			rt.Fatalf("%d bytes of %d bodies are held at the end", held, n)
		}
	})
}

// A body that has stalled is cut when another one needs its capacity, and not before.
func TestStalledBodyMakesRoom(t *testing.T) {
	b := NewBudget(4*Small, LongestWait)
	b.stall = 0
	var cut atomic.Bool
	stalls := b.Open("a", nil)
	stalls.stop = func() {
		cut.Store(true)
		stalls.Close()
	}
	if err := stalls.Grow(t.Context(), 3*Small); err != nil {
		t.Fatal(err)
	}
	first := b.Open("b", func() {})
	defer first.Close()
	if err := first.Grow(t.Context(), Small); err != nil || cut.Load() {
		t.Fatalf("%v, cut %t", err, cut.Load())
	}
	first.arrived(true)
	b.over = first // nobody may exceed the capacity
	next := b.Open("b", func() {})
	defer next.Close()
	if err := next.Grow(t.Context(), 2*Small); err != nil || !cut.Load() {
		t.Errorf("%v, cut %t", err, cut.Load())
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := next.Grow(ended, 4*Small); !errors.Is(err, ErrFull) {
		t.Errorf("there is capacity for everything: %v", err)
	}
}

// The memory of a body is that of the bytes that have come, whatever was announced; reading is linear.
func TestMemoryGrowsWithWhatHasArrived(t *testing.T) {
	for _, size := range []int64{-1, 30 << 20} {
		body, err := ReadUpTo(iotest.ErrReader(io.ErrUnexpectedEOF), 32<<20, size)
		if err == nil || cap(body) > 8<<10 {
			t.Errorf("%d bytes for none of %d", cap(body), size)
		}
	}
	body, err := ReadUpTo(bytes.NewReader(make([]byte, 1<<20)), 32<<20, 1<<20)
	if err != nil || len(body) != 1<<20 || cap(body) != 1<<20+1 {
		t.Errorf("%d of %d bytes, %v", len(body), cap(body), err)
	}
}

// A body whose first bytes ask for a large window is not decompressed.
func TestCompressedBodyAsksForNoMemory(t *testing.T) {
	for window, want := range map[int]bool{maxWindow: true, 4 * maxWindow: false} {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // in two parts, so that the size is not known
			if _, err := z.Write([]byte(`{"model":"m"}`)); err != nil {
				t.Fatal(err)
			}
			if err := z.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := Decode(out.Bytes(), "zstd", 32<<20); (err == nil) != want {
			t.Errorf("a window of %d bytes: %q, %v", window, text, err)
		}
	}
}

// A compressed body takes the memory of its text and no more, whatever the first bytes say; one that becomes too large takes none.
func TestDecompressionTakesWhatTheTextNeeds(t *testing.T) {
	const usual = 1 << 20
	for size, want := range map[int]bool{usual: true, 64 << 20: false} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		if _, err := z.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		b := NewBudget(128<<20, LongestWait)
		h := b.Open("a", func() {})
		var waits []int64
		enter := func(n int64) func() {
			waits = append(waits, n)
			return func() { waits = append(waits, -n) }
		}
		r := &http.Request{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(&packed), ContentLength: int64(packed.Len())}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, _, err := Read(r.WithContext(t.Context()), usual, 8*usual, h, enter)
		runtime.ReadMemStats(&after)
		if err != nil || (body.Decoded != nil) != want || want == (body.Weight != nil) {
			t.Fatalf("%d bytes: %v, decoded %t", size, err, body.Decoded != nil)
		}
		held, _ := b.Held()
		if most := int64(cap(body.Raw) + cap(body.Decoded)); held < most-bytes.MinRead || held > most+16<<10 || cap(body.Decoded) > usual+bytes.MinRead {
			t.Errorf("%d bytes: %d are counted for %d", size, held, most)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > usual*3/2 {
			t.Errorf("%d bytes: %d were allocated", size, used)
		}
		// It is measured, then filled, each in a turn that ends before the next wait: nobody waits for capacity inside a turn.
		if turns := []int64{maxWindow, -maxWindow, maxWindow, -maxWindow, usual}; want && !slices.Equal(waits, turns) || !want && len(waits) != 4 {
			t.Errorf("%d bytes: turns %v", size, waits)
		}
	}
}

// While an announced body comes, no more is copied than its size.
func TestAnnouncedBodyIsCopiedOnce(t *testing.T) {
	const size = 5 << 20
	capacity, all := int64(0), int64(0)
	body, err := readUpTo(bytes.NewReader(make([]byte, size)), 32<<20, size, func(n int64) error {
		capacity += n
		all += capacity
		return nil
	})
	if err != nil || len(body) != size || all > size*2 {
		t.Errorf("%d bytes were allocated for %d, %v", all, len(body), err)
	}
}

// A frame that has come already is not copied, and counts once.
func TestFrameIsNotCopied(t *testing.T) {
	text := []byte(`{"model":"m"}`)
	h := NewBudget(4*Small, LongestWait).Open("a", func() {})
	r := &http.Request{Body: Once(text), ContentLength: int64(len(text))}
	r.Body = Patiently(r, nil, time.Minute)
	body, _, err := Read(r.WithContext(t.Context()), 1<<20, 1<<20, h, func(int64) func() { return func() {} })
	if err != nil || &body.Decoded[0] != &text[0] || h.size != 0 {
		t.Errorf("%v, %q, %d bytes more", err, body.Decoded, h.size)
	}
}

// Room is given in the order in which bodies have come, between those that wait for the same; a caller that has used up its own
// share does not keep others from theirs. Nobody gives up while others come to their end.
func TestRoomIsGivenInOrder(t *testing.T) {
	b := NewBudget(8*Small, LongestWait)
	holder := b.Open("a", func() {})
	if err := holder.Grow(t.Context(), 6*Small); err != nil { // all that one caller may have
		t.Fatal(err)
	}
	b.over = holder
	got := make(chan int, 3)
	var bodies []*Hold
	for i := range 3 {
		h := b.Open("a", func() {})
		bodies = append(bodies, h)
		go func() {
			if err := h.Grow(t.Context(), int64(6-i)*Small); err != nil {
				t.Error(err)
			}
			got <- i
		}()
		testkit.Eventually(t, "it waits", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return h.wants > 0
		})
	}
	if other := b.Open("b", func() {}); !b.admits(other, 2*Small) {
		t.Error("another caller waits for the share of the first")
	}
	b.patience = time.Nanosecond
	for i, h := range append([]*Hold{holder}, bodies...) {
		b.mu.Lock()
		b.given = time.Now().Add(time.Hour)
		b.mu.Unlock()
		if h.Close(); i < len(bodies) {
			if next := <-got; next != i {
				t.Fatalf("body %d has capacity before body %d", next, i)
			}
		}
	}
}

// Garbage waits less long during a burst, and as long as usual afterwards.
func TestBurstPressesTheCollector(t *testing.T) {
	percent := func() int {
		pressed.Lock()
		defer pressed.Unlock()
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	testkit.Eventually(t, "the bursts of other tests are over", func() bool {
		pressed.Lock()
		defer pressed.Unlock()
		return !pressed.on
	})
	usual := percent()
	b := NewBudget(128<<20, LongestWait)
	h := b.Open("a", func() {})
	if err := h.Grow(t.Context(), 32<<20); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it is collected more often", func() bool { return percent() < usual })
	h.Close()
	testkit.Eventually(t, "it is collected as usual", func() bool { return percent() == usual })
}
