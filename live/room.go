package live

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/payload"
)

const (
	// mostLooked limits the total bytes of large requests that are inspected at a time. Condensing a request
	// temporarily takes many times its size.
	mostLooked = 16 << 20
	// largeBody is the size in bytes from which a request counts towards mostLooked. Smaller requests do not wait.
	largeBody = 256 << 10
	// slowBody is the time after which a body that still arrives makes room for others.
	slowBody = 10 * time.Second
)

// takeBody reads the body of a request up to most bytes; a large one waits for room. leave is never nil, and must be called after the
// body was inspected; further calls do nothing.
func (g *Gateway) takeBody(r *http.Request, s *settings, t *target, most int64) (b *payload.Body, leave func(), err error) {
	nothing := func() {}
	room := func(size int64) func() {
		if size < largeBody {
			return nothing
		}
		ctx, cancel := context.WithTimeout(r.Context(), job.LongestWait)
		defer cancel()
		leave, err := g.runner.Bodies.Enter(ctx, cmp.Or(t.who.Tenant, g.secrets.tenantOf(t.who, credentials(t, r.Header), nil)), size)
		if err != nil {
			return nothing // the client has gone, or has waited long enough
		}
		return leave
	}
	inTime, leave := false, nothing
	if e := r.Header.Get("Content-Encoding"); r.ContentLength > 0 && (e == "" || strings.EqualFold(e, "identity")) {
		leave = room(min(r.ContentLength, most))
		slow := time.AfterFunc(slowBody, leave)
		defer slow.Stop()
		b, err = payload.Read(r, s.Bounds.MaxBody, most)
		inTime = slow.Stop()
	} else { // the size is known only after reading
		b, err = payload.Read(r, s.Bounds.MaxBody, most)
	}
	if err == nil && !inTime {
		leave()
		leave = room(int64(len(b.Decoded)))
	}
	return b, leave, err
}
