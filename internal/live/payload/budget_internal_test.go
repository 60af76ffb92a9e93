package payload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// However many bodies come at the same time, each comes to its end, and no more is held than the room and one body.
func TestBodiesThatComeTogetherAllArrive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const room = 4 * Small
		b := NewBudget(room)
		most := int64(rapid.IntRange(1, 3*room).Draw(rt, "largest"))
		sizes := rapid.SliceOfN(rapid.Int64Range(0, most), 1, 12).Draw(rt, "sizes")
		var all sync.WaitGroup
		for i, size := range sizes {
			h := b.Open([]string{"a", "b"}[i%2], func() { t.Error("a body that moves is cut") })
			all.Go(func() {
				defer h.Close()
				r := &http.Request{Body: io.NopCloser(bytes.NewReader(make([]byte, size))), ContentLength: size - int64(rand.IntN(2))*(size+1)}
				body, _, err := Read(r.WithContext(t.Context()), 4*room, 4*room, h, func(int64) func() { return func() {} })
				if err != nil || int64(len(body.Raw)) != size {
					t.Errorf("%v", err)
				}
				if held, _ := b.Held(); held > room+2*most+int64(len(sizes))*Small {
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

// A body that has stalled is cut when another one needs its room, and not before.
func TestStalledBodyMakesRoom(t *testing.T) {
	b := NewBudget(4 * Small)
	b.stall = 0
	var cut atomic.Bool
	stalls := b.Open("a", nil)
	stalls.cut = func() {
		cut.Store(true)
		stalls.Close()
	}
	if err := stalls.Grow(t.Context(), 3*Small); err != nil {
		t.Fatal(err)
	}
	first := b.Open("b", func() {})
	if err := first.Grow(t.Context(), Small); err != nil || cut.Load() {
		t.Fatalf("%v, cut %t", err, cut.Load())
	}
	first.arrived(true)
	b.over = first // nobody may exceed the room
	next := b.Open("b", func() {})
	if err := next.Grow(t.Context(), 2*Small); err != nil || !cut.Load() {
		t.Errorf("%v, cut %t", err, cut.Load())
	}
	ended, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := next.Grow(ended, 4*Small); !errors.Is(err, ErrFull) {
		t.Errorf("there is room for everything: %v", err)
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
	for window, want := range map[int]bool{mostWindow: true, 4 * mostWindow: false} {
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
