package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
)

// An upstream is an API that requests are forwarded to.
type upstream struct {
	name      string
	base      *url.URL
	transport *http.Transport
	stale     time.Duration // idle for so long, the vendor may have closed a connection without our knowing

	compaction Compaction
	vendors    bool // the address is a vendor's own
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func newUpstream(name, base string) (*upstream, error) {
	if !nameRule.MatchString(name) || slices.Contains(reserved, name) {
		return nil, fmt.Errorf("live: upstream %q: use letters, digits, dots and dashes, and none of %s", name, strings.Join(reserved, ", "))
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("live: upstream %s: %w", name, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("live: upstream %s: %q must be a URL such as https://api.example.com, without user, query or fragment", name, base)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	const dial, idle, parallel, silent, stale = 30 * time.Second, 90 * time.Second, 64, 30 * time.Second, 4 * time.Second // servers in Node and Python close after 5 s
	return &upstream{name: name, base: u, stale: stale, transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dial}).DialContext,
		TLSHandshakeTimeout:   dial,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // the client decides, and gets the bytes as they are
		MaxIdleConnsPerHost:   parallel,
		IdleConnTimeout:       idle,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: silent}, // or requests would wait on a dead connection for minutes
		// No ResponseHeaderTimeout: a model may think for minutes before its first byte.
	}}, nil
}

// An api is the form of a request, as [wire.API] has it; empty if it has no conversation.
type target struct {
	upstream *upstream
	path     string // escaped, without the parts for the gateway
	api      string
	count    bool // asks for the number of tokens only
	compact  bool // asks for a compaction
	own      bool // a page of the gateway's own
	mcp      bool
	compress bool // asks for messages to send itself
	usage    bool // reports what the vendor said to them
	token    string
	bearer   bool // it is the Authorization
	who      caller
	changed  bool   // what was sent is not what came
	recall   string // the secret of who can recall
	odd      bool   // the path has . or .. as a part, which could lead out of that of the upstream

	profile, mode string // named by the request
}

// conversations are the paths below /v1 whose requests carry a conversation.
var conversations = map[string]target{
	"/messages":               {api: "messages"},
	"/messages/count_tokens":  {api: "messages", count: true},
	"/chat/completions":       {api: "chat"},
	"/responses":              {api: "responses"},
	"/responses/compact":      {api: "responses", compact: true},
	"/responses/input_tokens": {api: "responses", count: true},
}

// route reads the path of a request: parts for the gateway, then the path for the upstream.
func (s *settings) route(r *http.Request) target {
	h := r.Header
	t := target{
		path: r.URL.EscapedPath(), token: h.Get("X-Condense-Token"),
		profile: h.Get("X-Condense-Profile"), mode: h.Get("X-Condense-Mode"), recall: h.Get("X-Condense-Recall"),
	}
	named := ""
	for named == "" {
		first, rest, more := strings.Cut(strings.TrimPrefix(t.path, "/"), "/")
		from := func(rest string) string { return t.path[len(t.path)-len(rest)-1:] } // with the slash before it, and not copied
		value, after, deeper := strings.Cut(rest, "/")
		switch {
		case s.upstreams[first] != nil && more:
			named, t.path = first, from(rest)
			continue
		case first == "token" && deeper:
			t.token = value
		case first == "recall" && deeper:
			t.recall = value
		case first == "mode" && deeper && nameRule.MatchString(value):
			t.mode = value
		case first == "profile" && deeper && nameRule.MatchString(value):
			t.profile = value
		case t.path == "/mcp":
			t.mcp = true
			if secret, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && t.recall == "" {
				t.recall = secret // some agents can be given no other header
			}
			named = "-"
			continue
		case t.path == "/v1/compress" || t.path == "/v1/usage":
			t.compress, t.usage = t.path == "/v1/compress", t.path == "/v1/usage"
			if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && t.token == "" && (s.Token != "" || s.tokens != nil) {
				t.token, t.bearer = token, true // callers of this API can be given no other header
			}
			named = "-"
			continue
		case first == "condense":
			t.own = true
			fallthrough
		default:
			named = "-"
			continue
		}
		t.path = from(after)
	}
	clean := ""
	clean, t.odd = cleaned(t.path)
	c := conversations[strings.TrimPrefix(clean, "/v1")]
	t.api, t.count, t.compact = c.api, c.count, c.compact
	if named == "-" {
		named = owner(&t, h)
	}
	if u := s.upstreams[named]; named == "openai" && h.Get("Chatgpt-Account-Id") != "" && u.base.String() == vendors[named] {
		named = chatGPT
	}
	t.upstream = s.upstreams[named]
	return t
}

// cleaned returns an escaped path as servers may read it, and whether it has . or .. as a part, which none needs.
func cleaned(escaped string) (clean string, odd bool) {
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		return "", true
	}
	for part := range strings.FieldsFuncSeq(decoded, func(r rune) bool { return r == '/' || r == '\\' }) {
		odd = odd || part == "." || part == ".."
	}
	return path.Clean(decoded), odd
}

// owner returns the vendor that a path belongs to. Some, such as /v1/models and /v1/files, exist
// at both: then the headers that only one of them knows decide.
func owner(t *target, h http.Header) string {
	const anthropic, openai = "anthropic", "openai"
	switch {
	case t.api == "messages" || strings.HasPrefix(t.path, "/v1/messages/") || strings.HasPrefix(t.path, "/api/"):
		return anthropic
	case t.api != "" || strings.HasPrefix(t.path, "/v1/responses") || strings.HasPrefix(t.path, "/v1/chat/"):
		return openai
	case h.Get("Anthropic-Version") != "" || h.Get("X-Api-Key") != "":
		return anthropic
	}
	return openai
}

// soon is how fast a connection fails that the vendor has closed. One that fails later may have been used, and the request be paid for.
const soon = 5 * time.Second

// RoundTrip sends a request. One that meets a connection which the vendor has closed for being idle is sent again, if it has a
// GetBody: the vendor has not seen it. What that needs is held until the answer begins.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	whole := r.GetBody
	if whole == nil {
		return u.transport.RoundTrip(r)
	}
	var old, answered atomic.Bool
	traced := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn:              func(c httptrace.GotConnInfo) { old.Store(c.Reused && c.IdleTime >= u.stale) },
		GotFirstResponseByte: func() { answered.Store(true) },
	}))
	traced.GetBody = func() (io.ReadCloser, error) { return whole() }
	start := time.Now()
	res, err := u.transport.RoundTrip(traced)
	if err != nil && old.Load() && !answered.Load() && time.Since(start) < soon && r.Context().Err() == nil {
		u.transport.CloseIdleConnections() // they are as old
		next := *traced                    // which may be read still
		if next.Body, err = whole(); err == nil {
			res, err = u.transport.RoundTrip(&next)
		}
	}
	whole = gone
	return res, err
}

// gone is the body of a request that was answered, for the transport, which keeps the request.
func gone() (io.ReadCloser, error) { return nil, errors.New("the request was answered") }

// address is the URL at the upstream.
func (u *upstream) address(t *target, query string) (*url.URL, error) {
	below := t.path
	if u.name == chatGPT || strings.HasSuffix(u.base.Path, "/v1") { // a base URL as SDKs of OpenAI want it
		below = strings.TrimPrefix(below, "/v1")
	}
	out := *u.base
	out.RawPath = u.base.EscapedPath() + below
	out.RawQuery = query
	var err error
	out.Path, err = url.PathUnescape(out.RawPath)
	return &out, err
}

// forward sends the request on and copies the answer as it comes. Via, if not nil, sends it in
// place of the transport.
func (s *settings) forward(w http.ResponseWriter, r *http.Request, t *target, via http.RoundTripper) {
	u := t.upstream
	to, err := u.address(t, r.URL.RawQuery)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the path of the request is invalid")
		return
	}
	if via == nil {
		via = u
	}
	// A vendor may answer before it has read the request: the rest of it is sent nevertheless.
	// HTTP/2 always does that.
	_ = http.NewResponseController(w).EnableFullDuplex()
	again := r.GetBody
	r.GetBody = nil // ReverseProxy keeps r to the end of the answer
	p := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = to
			p.Out.Host = ""
			p.Out.GetBody, again = again, nil
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := p.In.Header[name]; v != nil { // ReverseProxy removes what it would set
					p.Out.Header[name] = v
				}
			}
			for name := range p.Out.Header {
				if strings.HasPrefix(name, "X-Condense-") {
					p.Out.Header.Del(name) // for the gateway
				}
			}
		},
		Transport:     via,
		FlushInterval: -1, // at once
		BufferPool:    buffers,
		ErrorLog:      slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil { // the client has gone
				panic(http.ErrAbortHandler)
			}
			if o, ok := w.(*outcome); ok {
				o.unsent = reason(err)
			}
			t.refuse(w, http.StatusBadGateway, "condense: upstream "+u.name+" cannot be reached: "+reason(err))
		},
	}
	p.ServeHTTP(w, r)
}

// reason is an error of the transport without the URL, which may hold a key.
func reason(err error) string {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "time-out"
	}
	return clip(err.Error())
}

// refuse answers with an error in the form of the vendor's API, so that the client's own handling
// of errors works.
func (t *target) refuse(w http.ResponseWriter, status int, text string) {
	api := wire.API(t.api)
	if t.upstream != nil && t.upstream.name == "anthropic" {
		api = wire.Messages
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(wire.Refusal(api, status, text)) //nolint:gosec // JSON, with the text encoded
}

// buffers are for copying answers.
var buffers = new(bufferPool)

type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	const size = 8 << 10 // of each stream, in all of its time; events are smaller
	return make([]byte, size)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
