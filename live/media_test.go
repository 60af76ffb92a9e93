package live_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
)

// A photo, a PDF, audio or a video of any size that the window has room for reaches the vendor, in every API and
// wherever it is in a conversation.
func TestPhotoThroughConverseIsNotDropped(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for i, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{10_000, 675_001, 5_000_000} {
				if size > 1<<20 && i%3 > 0 && !testkit.Night() {
					continue
				}
				v := newVendor(t)
				g, s := serveWith(t, v.URL, withWindow(200_000), onEveryUpstream)
				messages, _ := m.With(size)
				for _, at := range []int{5, 2} { // the newest, then an older one
					body := m.Request(5, 100, map[int]string{at: messages})
					if res, got := send(t, http.MethodPost, s.URL+m.Path(), nil, body); res.StatusCode != http.StatusOK {
						t.Fatalf("%s: %s", res.Status, got)
					}
					if got := v.last(t).body; !bytes.Equal(got, body) {
						t.Fatalf("%d bytes after round %d: the vendor got %d bytes of %d", size, at, len(got), len(body))
					}
				}
				if st := g.Stats(); st.EpochCount > 0 {
					t.Errorf("%d bytes: %d epochs", size, st.EpochCount)
				}
			}
		})
	}
}

// When a conversation is due, the newest medium stays, and an older one that is dropped leaves a line that says what it was,
// whoever drops it.
func TestDroppedMediaLeaveALine(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for n, by := range []string{"smart", condense.Truncation} {
		for i, m := range testkit.Media {
			t.Run(by+"/"+m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
				t.Parallel()
				v := newVendor(t)
				host := withWindow(40_000)
				ats := []int{40, 36, 20}
				if !testkit.Night() { // the media and the strategies take turns
					at := (n + i) % len(ats)
					ats = ats[at : at+1]
				}
				host.Values.Chain = []string{by}
				_, s := serveWith(t, v.URL, host, onEveryUpstream)
				old, gone := m.With(100_001)
				newest, stays := m.With(200_000)
				for _, at := range ats {
					body := m.Request(40, 4_000, map[int]string{3: strings.ReplaceAll(old, "_9", "_8"), at: newest})
					if res, got := send(t, http.MethodPost, s.URL+m.Path(), nil, body); res.StatusCode != http.StatusOK {
						t.Fatalf("%s: %s", res.Status, got)
					}
					got := v.last(t).body
					if len(got) > len(body)-100_000 {
						t.Fatalf("the vendor got %d bytes of %d", len(got), len(body))
					}
					if by == "smart" && !bytes.Contains(got, []byte(stays)) {
						t.Errorf("the newest after round %d is gone", at)
					}
					for data, what := range map[string]string{gone: "older", stays: "newest"} {
						if !bytes.Contains(got, []byte(data)) && !bytes.Contains(got, []byte(m.Label())) {
							t.Errorf("no line says that the %s after round %d was dropped:\n%.3000s", what, at, bytes.ReplaceAll(got, []byte(stays), []byte("DATA")))
						}
					}
				}
			})
		}
	}
}
