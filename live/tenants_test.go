package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// A tokenFile has a token for each of some tenants.
type tokenFile struct {
	path string
	of   map[string]string // the token, by tenant
}

func tokensFile(t *testing.T, tenants ...string) *tokenFile {
	t.Helper()
	f := &tokenFile{path: filepath.Join(t.TempDir(), "tokens"), of: map[string]string{}}
	for _, name := range tenants {
		f.add(t, &access.Token{Tenant: name, Created: time.Now()})
	}
	return f
}

func (f *tokenFile) add(t *testing.T, token *access.Token) {
	t.Helper()
	f.of[token.Tenant] = token.New()
	if err := access.Add(f.path, token); err != nil {
		t.Fatal(err)
	}
}

// A clock is moved by a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// limited serves two tenants, acme with limits.
func limited(t *testing.T, v *vendor, l live.Limits, change func(*live.Options)) (as func(tenant, path string, body []byte) (answer, []byte), c *clock, audit *lockedBuffer) {
	t.Helper()
	tokens := tokensFile(t, "acme", "other")
	c, audit = &clock{now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}, &lockedBuffer{}
	_, s := serve(t, v, func(o *live.Options) {
		o.Access.Tokens, o.Access.Tenants, o.Now = tokens.path, map[string]live.Limits{"acme": l}, c.Now
		o.Reports.Audit = slog.New(slog.NewJSONHandler(audit, nil))
		if change != nil {
			change(o)
		}
	})
	return func(tenant, path string, body []byte) (answer, []byte) {
		t.Helper()
		return send(t, http.MethodPost, s.URL+path, map[string]string{"X-Condense-Token": tokens.of[tenant], "X-Api-Key": "sk-secret", "Content-Type": "application/json"}, body)
	}, c, audit
}

// A request above a limit gets 429 in the form of its vendor, which says when to try again; after that time it is let through. It never
// reaches the vendor, and other tenants do not notice.
func TestRequestsPerMinute(t *testing.T) {
	for path, form := range map[string]string{
		"/v1/messages":         `{"type":"error","error":{"type":"rate_limit_error","message":"condense: tenant acme has reached its limit of 3 requests per minute;`,
		"/v1/chat/completions": `{"error":{"message":"condense: tenant acme has reached its limit of 3 requests per minute;`,
		"/v1/responses":        `{"error":{"message":"condense: tenant acme has reached its limit of 3 requests per minute;`,
	} {
		t.Run(path, func(t *testing.T) {
			v := newVendor(t)
			as, clock, audit := limited(t, v, live.Limits{Requests: 3}, nil)
			for range 3 {
				if res, body := as("acme", path, []byte(`{}`)); res.StatusCode != http.StatusOK {
					t.Fatalf("%s %s", res.Status, body)
				}
			}
			for range 2 {
				res, body := as("acme", path, []byte(`{}`))
				if res.StatusCode != http.StatusTooManyRequests || !strings.HasPrefix(string(body), form) || res.Header.Get("Retry-After") != "20" || res.Header.Get("X-Should-Retry") != "" {
					t.Fatalf("%s %v %s", res.Status, res.Header, body)
				}
			}
			if res, _ := as("other", path, []byte(`{}`)); res.StatusCode != http.StatusOK {
				t.Errorf("another tenant: %s", res.Status)
			}
			if len(v.got) != 4 {
				t.Errorf("%d requests reached the vendor", len(v.got))
			}
			clock.add(20 * time.Second)
			if res, _ := as("acme", path, []byte(`{}`)); res.StatusCode != http.StatusOK {
				t.Errorf("after the time it was given: %s", res.Status)
			}
			if res, _ := as("acme", path, []byte(`{}`)); res.StatusCode != http.StatusTooManyRequests {
				t.Errorf("one more: %s", res.Status)
			}
			if got := audit.String(); strings.Count(got, `"why":"limit requests"`) != 3 || strings.Contains(got, "sk-secret") || strings.Contains(got, "condense_") {
				t.Errorf("audit:\n%s", got)
			}
		})
	}
}

// Bytes are counted as they are read, whatever the length that was announced.
func TestBytesPerMinute(t *testing.T) {
	v := newVendor(t)
	as, clock, _ := limited(t, v, live.Limits{Bytes: 6000}, nil)
	large := []byte(`{"x":"` + strings.Repeat("x", 11_992) + `"}`)
	if res, _ := as("acme", "/v1/messages", large); res.StatusCode != http.StatusOK { // twice what a minute has
		t.Fatalf("the first: %s", res.Status)
	}
	res, body := as("acme", "/v1/messages", []byte(`{}`))
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "60" || !strings.Contains(string(body), "6000 bytes per minute") {
		t.Fatalf("the second: %s %v %s", res.Status, res.Header, body)
	}
	clock.add(61 * time.Second)
	if res, _ := as("acme", "/v1/messages", []byte(`{}`)); res.StatusCode != http.StatusOK {
		t.Errorf("after the time it was given: %s", res.Status)
	}
}

// A request is over when its answer has ended.
func TestConcurrentRequests(t *testing.T) {
	v := newVendor(t)
	reached, leave := make(chan struct{}, 2), make(chan struct{})
	v.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		reached <- struct{}{}
		<-leave
		_, _ = w.Write([]byte("}"))
	}
	as, _, _ := limited(t, v, live.Limits{Concurrent: 2}, nil)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { as("acme", "/v1/messages", []byte(`{}`)) })
		<-reached
	}
	res, body := as("acme", "/v1/messages", []byte(`{}`))
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "2 requests at the same time") {
		t.Errorf("the third: %s %s", res.Status, body)
	}
	close(leave)
	both.Wait()
	testkit.Eventually(t, "the third is let through", func() bool {
		res, _ := as("acme", "/v1/messages", []byte(`{}`))
		return res.StatusCode == http.StatusOK
	})
}

// Money is that of a day: a restart, another gateway with the same store, and a changed limit count; the next day is new.
func TestMoneyPerDay(t *testing.T) {
	v := newVendor(t)
	v.answer = func(w http.ResponseWriter, _ *http.Request) { // 100,000 tokens of claude-sonnet-4-5 are $0.30 and more
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":100000,"output_tokens":1000}}`))
	}
	body := []byte(`{"model":"claude-sonnet-4-5","max_tokens":10,"tools":[{"name":"t","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`)
	file := filepath.Join(t.TempDir(), "serve.db")
	tokens := tokensFile(t, "acme")
	clock := &clock{now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	start := func(cost float64) (ask func() answer, end func()) {
		g, err := live.New(h, &live.Options{
			Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}},
			Access:    live.Access{Tokens: tokens.path, Limits: live.Limits{Cost: cost}},
			Now:       clock.Now,
			Store:     live.Store{Path: file},
			Bounds:    live.Bounds{Deadline: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(g)
		return func() answer {
				res, _ := send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Condense-Token": tokens.of["acme"], "Content-Type": "application/json"}, body)
				return res
			}, func() {
				s.Close()
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
	}
	ask, end := start(0.5)
	for i, want := range []int{200, 200, 429} {
		res := ask()
		if res.StatusCode != want {
			t.Fatalf("request %d: %s", i+1, res.Status)
		}
		if want == 429 && (res.Header.Get("Retry-After") != "14400" || res.Header.Get("X-Should-Retry") != "false") {
			t.Errorf("until midnight: %v", res.Header)
		}
	}
	end()
	ask, end = start(0.5)
	if res := ask(); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after a restart: %s", res.Status)
	}
	end()
	ask, end = start(0.8)
	if res := ask(); res.StatusCode != http.StatusOK {
		t.Errorf("with a higher limit: %s", res.Status)
	}
	if res := ask(); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("above it: %s", res.Status)
	}
	clock.add(4 * time.Hour)
	if res := ask(); res.StatusCode != http.StatusOK {
		t.Errorf("the next day: %s", res.Status)
	}
	end()
}

// Above the limit of condensations with a model no request is refused: the built-in chain condenses.
func TestModelEpochsPerDay(t *testing.T) {
	testkit.Slow(t)
	asked := 0
	o := faulty(func(_ context.Context, r *core.Request) (*core.Result, error) {
		asked++
		n := len(r.Messages)
		return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
	})
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return &asking{func(_ context.Context, r *core.Request) (*core.Result, error) {
				asked++
				n := len(r.Messages)
				return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
			}}, nil
		})}
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(120, 2200, nil)})
	front := httptest.NewServer(vendor)
	defer front.Close()
	audit := &lockedBuffer{}
	g, s := serveWith(t, front.URL, o, func(o *live.Options) {
		o.Access.Limits = live.Limits{ModelEpochs: 1}
		o.Reports.Audit = slog.New(slog.NewJSONHandler(audit, nil))
	})
	c := claude("s")
	c.URL = s.URL
	if _, err := c.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if n := g.Stats().EpochCount; n < 2 {
		t.Errorf("%d epochs: they should go on without a model", n)
	}
	if err := g.Close(); err != nil { // ends the work in the background
		t.Error(err)
	}
	if asked != 1 {
		t.Errorf("the model was asked %d times", asked)
	}
	for _, r := range vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
	if !strings.Contains(audit.String(), `"limit":"model_epochs"`) {
		t.Error("the limit is not on record")
	}
}

// A lockedBuffer is written by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A bad token is audited as one, over HTTP and in the handshake of a WebSocket.
func TestBadTokenIsAuditedAlike(t *testing.T) {
	audit := &lockedBuffer{}
	tokens := tokensFile(t, "acme")
	_, s := serve(t, newVendor(t), func(o *live.Options) {
		o.Access.Tokens, o.Reports.Audit = tokens.path, slog.New(slog.NewJSONHandler(audit, nil))
	})
	header := map[string]string{"X-Condense-Token": "wrong"}
	send(t, http.MethodPost, s.URL+"/v1/responses", header, []byte("{}"))
	header["Upgrade"], header["Connection"], header["Sec-Websocket-Key"], header["Sec-Websocket-Version"] = "websocket", "Upgrade", "dGhlIHNhbXBsZSBub25jZQ==", "13"
	send(t, http.MethodGet, s.URL+"/v1/responses", header, nil)
	if got := audit.String(); strings.Count(got, `"why":"token"`) != 2 || strings.Contains(got, `"why":"access"`) {
		t.Errorf("audit:\n%s", got)
	}
}

// Nothing that a client says is in the audit log.
func TestAuditHasNoContent(t *testing.T) {
	audit := &lockedBuffer{}
	tokens := tokensFile(t, "acme")
	p := newPlay(t, upstream.Options{Script: upstream.Loop(30, 2200, nil)}, claude("session-of-mine"), func(o *live.Options) {
		o.Access.Tokens, o.Reports.Audit = tokens.path, slog.New(slog.NewJSONHandler(audit, nil))
	})
	p.client.Tools = []string{"mcp__condense__recall"}
	p.client.Header = http.Header{"X-Condense-Token": {tokens.of["acme"]}, "X-Condense-Recall": {secret}, "X-Api-Key": {"sk-secret-key"}}
	if _, err := p.client.Say(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	send(t, "MY-SECRET-METHOD", p.server.URL+"/v1/my-secret-path?key=my-secret-query", map[string]string{"X-Condense-Token": tokens.of["acme"]}, nil)
	send(t, http.MethodGet, p.server.URL+"/token/my-secret-token/v1/models", nil, nil)
	for h := range promises(t, p.vendor.Turns()[len(p.vendor.Turns())-1].Body) {
		ask(t, p.server.URL+"/mcp", map[string]string{"X-Condense-Token": tokens.of["acme"], "X-Condense-Recall": secret}, "recall", object{"handle": h})
		break
	}
	got := audit.String()
	for _, what := range []string{`"msg":"epoch","tenant":"acme"`, `"msg":"request","tenant":"acme"`, `"msg":"refused","tenant":""`, `"msg":"recall","tenant":"acme"`} {
		if !strings.Contains(got, what) {
			t.Errorf("no line has %s", what)
		}
	}
	for _, never := range []string{"my-secret", "MY-SECRET", "sk-secret", secret, "session-of-mine", "condense_", "seq -f", "Read all", "handler"} {
		if strings.Contains(got, never) {
			t.Errorf("the audit log has %s", never)
		}
	}
	known := map[string]bool{}
	for line := range strings.Lines(got) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		for key := range fields {
			known[key] = true
		}
	}
	want := "after agent api before bytes from level lineage method ms msg observed pieces reason status tenant time token why"
	if keys := strings.Join(slices.Sorted(maps.Keys(known)), " "); keys != want {
		t.Errorf("fields: %s", keys)
	}
}

// Tokens of administrators, expired ones, and those of a file that was changed.
func TestTokens(t *testing.T) {
	v := newVendor(t)
	tokens := tokensFile(t, "acme")
	tokens.add(t, &access.Token{Tenant: "ops", Admin: true})
	clock := &clock{now: time.Date(2026, 11, 23, 20, 0, 0, 0, time.UTC)}
	tokens.add(t, &access.Token{Tenant: "guest", Expires: clock.now.Add(time.Hour)})
	g, s := serve(t, v, func(o *live.Options) {
		o.Access.Tokens, o.Now, o.Access.Names = tokens.path, clock.Now, []string{"gateway.example", "*.team.example"}
	})
	admin := adminOf(t, g)
	is := func(name, url, token, host string, want int) {
		t.Helper()
		header := map[string]string{"Host": host}
		if token != "" {
			header["X-Condense-Token"] = token
		}
		if res, body := send(t, http.MethodGet, url, header, nil); res.StatusCode != want {
			t.Errorf("%s: %s %s, want %d", name, res.Status, body, want)
		}
	}
	models, pages := s.URL+"/v1/models", admin+"/condense/status"
	is("acme", models, tokens.of["acme"], "gateway.example", 200)
	is("acme under a name with a wildcard", models, tokens.of["acme"], "eu.team.example:443", 200)
	is("acme, two names below a wildcard", models, tokens.of["acme"], "a.eu.team.example", 403)
	is("acme under the address of a machine", models, tokens.of["acme"], "192.0.2.7:8765", 200)
	is("acme under another name", models, tokens.of["acme"], "evil.example", 403)
	is("guest", models, tokens.of["guest"], "localhost", 200)
	is("ops, models", models, tokens.of["ops"], "localhost", 403)
	is("ops", pages, tokens.of["ops"], "localhost", 200)
	is("acme, pages", pages, tokens.of["acme"], "localhost", 403)
	is("no one, pages", pages, "", "localhost", 401)
	is("the hash is no token", models, strings.Fields(read(t, tokens.path))[1], "localhost", 401)
	clock.add(time.Hour)
	is("guest, later", models, tokens.of["guest"], "localhost", 401)
	first := tokens.of["acme"]
	tokens.add(t, &access.Token{Tenant: "acme"})
	testkit.Eventually(t, "the second token holds", func() bool {
		res, _ := send(t, http.MethodGet, models, map[string]string{"X-Condense-Token": tokens.of["acme"]}, nil)
		return res.StatusCode == http.StatusOK
	})
	is("the first one holds too", models, first, "localhost", 200)
	for _, r := range v.got {
		if r.header.Get("X-Condense-Token") != "" || strings.Contains(r.uri, "condense_") {
			t.Errorf("a token reached the vendor: %s %v", r.uri, r.header)
		}
	}
}

type watched struct {
	io.ReadCloser
	reads func()
}

func (w watched) Read(p []byte) (int, error) {
	w.reads()
	return w.ReadCloser.Read(p)
}

// A request that began before the limits were changed does not bring the old ones back, with a full bucket.
func TestChangedLimitsHold(t *testing.T) {
	v := newVendor(t)
	tokens := tokensFile(t, "acme")
	var opts live.Options
	g, s := serve(t, v, func(o *live.Options) {
		o.Access.Tokens, o.Access.Limits, o.Now = tokens.path, live.Limits{Bytes: 1000}, (&clock{now: time.Now()}).Now
		opts = *o
	})
	entered, handler := make(chan struct{}), s.Config.Handler
	enters := sync.OnceFunc(func() { close(entered) })
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = watched{r.Body, enters} // what a request may send is read when it has entered
		handler.ServeHTTP(w, r)
	})
	header := map[string]string{"X-Condense-Token": tokens.of["acme"]}
	body, more := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/files", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Condense-Token", tokens.of["acme"])
	done := make(chan error, 1)
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			err = res.Body.Close()
		}
		done <- err
	}()
	if _, err := more.Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	<-entered
	opts.Access.Limits.Bytes = 500
	if err := g.Reload(&opts); err != nil {
		t.Fatal(err)
	}
	if res, _ := send(t, http.MethodPost, s.URL+"/v1/files", header, make([]byte, 600)); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if _, err := more.Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(more.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if res, _ := send(t, http.MethodPost, s.URL+"/v1/files", header, nil); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s, after more than the limit", res.Status)
	}
}

// TestTokensThatNobodyHas: a tenant whose name is mistyped in the limits, and a file without tokens, are in the log.
func TestTokensThatNobodyHas(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{tokensFile(t, "acme").path: "tenant=acmee", empty: "condense token new"} {
		log := &lockedBuffer{}
		serve(t, newVendor(t), func(o *live.Options) {
			o.Access.Tokens, o.Access.Tenants, o.Reports.Logger = path, map[string]live.Limits{"acme": {}, "acmee": {}}, slog.New(slog.NewTextHandler(log, nil))
		})
		if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "tenant=acme ") {
			t.Errorf("the log has %q, want %s", got, want)
		}
	}
}
