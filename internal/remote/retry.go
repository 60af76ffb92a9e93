package remote

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// backoff returns how long to wait after so many attempts. A vendor that asked for a
// wait gets it, and a little more so that not everybody returns in the same moment.
func (r Retry) backoff(attempts int, asked time.Duration) time.Duration {
	d := r.First
	for range attempts - 1 {
		if d *= 2; d >= r.Longest {
			break
		}
	}
	d = min(d, r.Longest)
	half := d / 2
	if half > 0 {
		half += rand.N(half + 1) //nolint:gosec // nobody gains by guessing it
	}
	if asked > 0 {
		return asked + half/2
	}
	return half
}

// retryAfter returns the wait that a header asks for; 0 if it asks for none or is wrong.
// Beside the standard's seconds and date there are OpenAI's milliseconds.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("retry-after-ms"), 64); err == nil {
		return span(ms, time.Millisecond)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return span(s, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func span(n float64, unit time.Duration) time.Duration {
	const longest = 1000 * time.Hour // nobody waits so long, and it does not overflow
	switch {
	case math.IsNaN(n) || n <= 0:
		return 0
	case n >= float64(longest/unit):
		return longest
	}
	return time.Duration(n * float64(unit))
}
