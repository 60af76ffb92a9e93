package remote

import (
	"context"
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "", 0},
		{"Retry-After", "30", 30 * time.Second},
		{"Retry-After", " 1.5 ", 1500 * time.Millisecond},
		{"Retry-After", "-3", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "1e300", 1000 * time.Hour},
		{"Retry-After", "Sat, 21 Nov 2026 10:00:45 GMT", 45 * time.Second},
		{"Retry-After", "Sat, 21 Nov 2026 09:00:00 GMT", 0},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
	} {
		h := http.Header{}
		h.Set(tt.name, tt.value)
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%s: %q: got %v, want %v", tt.name, tt.value, got, tt.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	r := Retry{First: 100 * time.Millisecond, Longest: time.Second}
	for _, tt := range []struct {
		attempts int
		asked    time.Duration
		from, to time.Duration
	}{
		{1, 0, 50 * time.Millisecond, 100 * time.Millisecond},
		{2, 0, 100 * time.Millisecond, 200 * time.Millisecond},
		{4, 0, 400 * time.Millisecond, 800 * time.Millisecond},
		{5, 0, 500 * time.Millisecond, time.Second},
		{1000, 0, 500 * time.Millisecond, time.Second},
		{1, time.Minute, time.Minute, time.Minute + 100*time.Millisecond},
	} {
		seen := map[time.Duration]bool{}
		for range 200 {
			d := r.backoff(tt.attempts, tt.asked)
			if d < tt.from || d > tt.to {
				t.Fatalf("after %d attempts: got %v, want %v to %v", tt.attempts, d, tt.from, tt.to)
			}
			seen[d] = true
		}
		if len(seen) < 50 {
			t.Errorf("after %d attempts: got %d different waits of 200, want them spread", tt.attempts, len(seen))
		}
	}
}

func TestSilenceAllowed(t *testing.T) {
	for _, tt := range []struct {
		set, left, want time.Duration
	}{
		{0, 0, defaultSilence},
		{0, 30 * time.Second, defaultSilence},
		{0, 20 * time.Minute, 10 * time.Minute},
		{time.Second, 20 * time.Minute, time.Second},
	} {
		ctx := t.Context()
		if tt.left > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, tt.left)
			defer cancel()
		}
		c := &Client{opts: Options{Silence: tt.set}}
		if got := c.silence(ctx).Round(time.Second); got != tt.want {
			t.Errorf("set to %v with %v left: got %v, want %v", tt.set, tt.left, got, tt.want)
		}
	}
}
