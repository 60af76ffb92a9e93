package live

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/upstream"
)

const (
	// maxLooked limits the total bytes of large requests that are inspected at a time. Condensing a request
	// temporarily takes many times its size.
	maxLooked = 16 << 20
	// largeBody is the size in bytes from which a request counts towards maxLooked. Smaller requests do not wait.
	largeBody = payload.Small
	// Bytes of requests that are held from their arrival until the vendor answers: heldBodies times the largest body,
	// at least minHeld.
	heldBodies, minHeld = 4, 128 << 20
)

// maxHeld returns the bytes of requests that may be held at the same time.
func (s *settings) maxHeld() int64 { return max(heldBodies*s.Bounds.MaxBody, minHeld) }

// tenantBehind identifies who sends a request: the tenant, or without tokens the credential.
func (g *Gateway) tenantBehind(r *http.Request, t *target) string {
	return cmp.Or(t.who.Tenant, g.secrets.tenantOf(t.who, credentials(t, r.Header), nil))
}

// takeBody reads the body of a request up to most bytes. A large one waits for capacity to be inspected: leave is never nil, and must be
// called after that; further calls do nothing. The caller closes the body's Hold.
func (g *Gateway) takeBody(w http.ResponseWriter, r *http.Request, s *settings, t *target, most int64) (b *payload.Body, leave func(), err error) {
	tenant := g.tenantBehind(r, t)
	var hold *payload.Hold
	if l := streamOf(r.Context()); l != nil { // its frame has come
		hold = l.held
	} else {
		in := http.NewResponseController(w)
		hold = g.bodies.Open(tenant, func() { _ = in.SetReadDeadline(time.Unix(1, 0)) })
	}
	b, leave, err = payload.Read(r, s.Bounds.MaxBody, most, hold, func(size int64) func() { //nolint:contextcheck // that of the request
		if size >= largeBody {
			if leave, err := g.runner.Bodies.Enter(r.Context(), tenant, size); err == nil {
				return leave
			}
		}
		return func() {} // it is small, or the client has gone
	})
	if err != nil {
		hold.Close()
	}
	return b, leave, err
}

// unread returns the status and the text for a client whose request could not be read.
func unread(w http.ResponseWriter, err error) (status int, text string) {
	switch {
	case errors.Is(err, payload.ErrFull):
		w.Header().Set("Retry-After", strconv.Itoa(int(tenant.Busy.Seconds())))
		return http.StatusServiceUnavailable, payload.ErrFull.Error() + ", and could not read this one: try again in " + tenant.Busy.String()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the request could not be read: " + upstream.Reason(err)
	}
	return http.StatusBadRequest, "the request could not be read: " + upstream.Reason(err)
}
