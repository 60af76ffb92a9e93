package live

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/upstream"
)

const (
	// mostLooked limits the total bytes of large requests that are inspected at a time. Condensing a request
	// temporarily takes many times its size.
	mostLooked = 16 << 20
	// largeBody is the size in bytes from which a request counts towards mostLooked. Smaller requests do not wait.
	largeBody = payload.Small
	// unpacking is the weight of a decompression in mostLooked: the memory of its window.
	unpacking = mostLooked / 2
	// Bytes of requests that are held from their arrival until the vendor answers: heldBodies times the largest body,
	// at least leastHeld.
	heldBodies, leastHeld = 4, 128 << 20
)

// mostHeld returns the bytes of requests that may be held at the same time.
func (s *settings) mostHeld() int64 { return max(heldBodies*s.Bounds.MaxBody, leastHeld) }

// payerOf identifies who sends a request: the tenant, or without tokens the credential.
func (g *Gateway) payerOf(r *http.Request, t *target) string {
	return cmp.Or(t.who.Tenant, g.secrets.tenantOf(t.who, credentials(t, r.Header), nil))
}

// takeBody reads the body of a request up to most bytes. A large one waits for room to be inspected: leave is never nil, and must be
// called after that; further calls do nothing. The caller closes the body's Hold.
func (g *Gateway) takeBody(w http.ResponseWriter, r *http.Request, s *settings, t *target, most int64) (b *payload.Body, leave func(), err error) {
	nothing := func() {}
	payer := g.payerOf(r, t)
	room := func(size int64) func() { //nolint:contextcheck // that of the request
		if size < largeBody {
			return nothing
		}
		ctx, cancel := context.WithTimeout(r.Context(), job.LongestWait)
		defer cancel()
		leave, err := g.runner.Bodies.Enter(ctx, payer, size)
		if err != nil {
			return nothing // the client has gone, or has waited long enough
		}
		return leave
	}
	var hold *payload.Hold
	if laneOf(r.Context()) == nil { // otherwise its socket counts it
		in := http.NewResponseController(w)
		hold = g.bodies.Open(payer, func() { _ = in.SetReadDeadline(time.Unix(1, 0)) })
	}
	b, err = payload.Read(r, s.Bounds.MaxBody, most, hold, func(unpack func()) { //nolint:contextcheck // that of the request
		defer room(unpacking)()
		unpack()
	})
	if err != nil {
		hold.Close()
		return nil, nothing, err
	}
	return b, room(int64(len(b.Decoded))), nil
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
