package live

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/upstream"
)

// settings are Options after validation, with defaults filled in.
type settings struct {
	Options
	door      access.Door
	upstreams map[string]*upstream.Upstream
}

// usual are the defaults of the configuration.
var usual = sync.OnceValue(func() config.Serve { return config.Default().Serve() })

// or sets a value to its default if it is zero.
func or[T comparable](value *T, byDefault T) {
	if *value == *new(T) {
		*value = byDefault
	}
}

func newSettings(opts *Options) (*settings, error) {
	s := &settings{upstreams: map[string]*upstream.Upstream{}}
	if opts != nil {
		s.Options = *opts
	}
	or(&s.Reports.Logger, slog.New(slog.DiscardHandler))
	or(&s.Reports.Audit, slog.New(slog.DiscardHandler))
	s.Reports.Meter = cmp.Or[metric.MeterProvider](s.Reports.Meter, metricnoop.NewMeterProvider())
	s.Reports.Tracer = cmp.Or[trace.TracerProvider](s.Reports.Tracer, tracenoop.NewTracerProvider())
	if s.Now == nil {
		s.Now = time.Now
	}
	c := usual()
	or(&s.Bounds.MaxBody, c.MaxBody)
	or(&s.Bounds.Deadline, time.Duration(c.Deadline))
	or(&s.Store.KeepFor, time.Duration(c.Retention.Age))
	or(&s.Store.KeepBytes, c.Retention.Size)
	or(&s.Recall.MaxSize, c.Recall.MaxSize)
	var err error
	if !slices.Contains([]Account{AccountOff, AccountModel, AccountClient}, s.Account) {
		err = fmt.Errorf("live: Account: %q is none of %s and %s", s.Account, AccountModel, AccountClient)
	}
	return s, errors.Join(append(s.checkNumbers(), err, s.admission(), s.open(), s.compactions(), s.checkRules())...)
}

// checkNumbers returns an error for each number that is out of range.
func (s *settings) checkNumbers() (errs []error) {
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"Bounds.MaxBody", s.Bounds.MaxBody},
		{"Store.KeepFor", int64(s.Store.KeepFor)},
		{"Store.KeepBytes", s.Store.KeepBytes},
		{"Bounds.Deadline", int64(s.Bounds.Deadline)},
		{"Epoch.ExpectedTurns", int64(s.Epoch.ExpectedTurns)},
		{"Ingest.MaxResult", int64(s.Ingest.MaxResult)},
		{"Epoch.MinSize", int64(s.Epoch.MinSize)},
		{"Recall.MaxSize", s.Recall.MaxSize},
		{"Recall.MaxResult", int64(s.Recall.MaxResult)},
	} {
		if limit.value < 0 {
			errs = append(errs, fmt.Errorf("live: %s: %d is negative", limit.name, limit.value))
		}
	}
	if s.Store.Key != nil && len(s.Store.Key) < sha256.Size {
		errs = append(errs, fmt.Errorf("live: Store.Key: it has %d bytes; use at least %d random ones", len(s.Store.Key), sha256.Size))
	}
	if p := s.Epoch.Target; !(p >= 0 && p < 100) { // NaN too
		errs = append(errs, fmt.Errorf("live: Epoch.Target: %v is not a percentage", p))
	}
	for name, p := range map[string]float64{"Risk": s.Epoch.Risk, "Prepare": s.Epoch.Prepare} {
		if !(p >= 0 && p <= 100) {
			errs = append(errs, fmt.Errorf("live: Epoch.%s: %v is not a percentage", name, p))
		}
	}
	return errs
}

// admission sets the door from the token or the file of tokens.
func (s *settings) admission() error {
	s.door = access.Door{Token: s.Access.Token, Names: s.Access.Names, Now: s.Now}
	if s.Access.Tokens == "" {
		return nil
	}
	var err error
	unused := func(err error) { s.Reports.Logger.Warn("the changed tokens are not used", "err", err) }
	if s.door.Tokens, err = access.OpenTokens(s.Access.Tokens, unused); err != nil {
		err = fmt.Errorf("live: tokens: %w", err)
	} else {
		s.warnOfTokens()
	}
	if s.Access.Token != "" {
		err = errors.Join(err, errors.New("live: Access.Token and Access.Tokens: set one of the two"))
	}
	return err
}

// open makes the upstreams.
func (s *settings) open() error {
	var errs []error
	all := maps.Clone(upstream.Vendors)
	maps.Copy(all, s.Upstreams.URLs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u, err := upstream.New(name, all[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("live: upstream %s: %w", name, err))
			continue
		}
		if s.Upstreams.Signer != nil && u.Speaks == upstream.SpeaksBedrock {
			if u.Sign, err = s.Upstreams.Signer(u.Base.Hostname()); err != nil {
				errs = append(errs, fmt.Errorf("live: upstream %s: %w", name, err))
			}
		}
		u.Host.Unversioned = u.Host.Unversioned || slices.Contains(s.Upstreams.Unversioned, name)
		s.upstreams[name] = u
	}
	return errors.Join(errs...)
}

func (s *settings) checkRules() error {
	var errs []error
	for i := range s.Choice.Rules {
		if err := s.Choice.Rules[i].check(); err != nil {
			errs = append(errs, fmt.Errorf("live: rules[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

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
