package live

import (
	"cmp"
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
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
)

// An upstream is an API to which requests are forwarded.
type upstream struct {
	name      string
	speaks    string    // one of spoken
	host      wire.Host // of base
	base      *url.URL
	transport *http.Transport
	// After this idle time, the vendor may have closed a connection without the gateway's knowledge.
	stale time.Duration

	compaction Compaction
	vendors    bool // the address is a vendor's own
}

// The protocols of upstreams.
const (
	speaksAnthropic = "anthropic"
	speaksOpenAI    = "openai"
	speaksBoth      = "both" // the path decides
	speaksGemini    = "gemini"
	speaksVertex    = "vertex"
	speaksAzure     = "azure"
	speaksOllama    = "ollama"
	speaksPass      = "pass" // another API, which the gateway does not interpret
)

var spoken = []string{speaksAnthropic, speaksOpenAI, speaksBoth, speaksGemini, speaksVertex, speaksAzure, speaksOllama, speaksPass}

// vendorsOf are the vendors whose paths an upstream takes, by its protocol.
var vendorsOf = map[string][]wire.Vendor{
	speaksAnthropic: {wire.Anthropic},
	speaksOpenAI:    {wire.OpenAI},
	speaksBoth:      {wire.Anthropic, wire.OpenAI},
	speaksGemini:    {wire.Google},
	speaksVertex:    {wire.Vertex},
	speaksAzure:     {wire.Azure, wire.OpenAI},
	speaksOllama:    {wire.Ollama, wire.OpenAI, wire.Anthropic}, // newer servers copy both APIs
}

// fixed holds the protocols of the upstreams that exist without configuration, and usual those of names that suggest
// one.
var (
	fixed = map[string]string{"anthropic": speaksAnthropic, "openai": speaksOpenAI, chatGPT: speaksOpenAI}
	usual = map[string]string{"gemini": speaksGemini, "vertex": speaksVertex, "azure": speaksAzure, "ollama": speaksOllama}
)

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// reserved are first path elements that have a meaning already, so no upstream can have these names.
var reserved = []string{
	"condense", "mcp", "mode", "profile", "recall", "token", "v1", "api", "backend-api", "health", "livez", "readyz", "stats",
}

// CheckUpstream returns an error if an entry of [Options].Upstreams is invalid.
func CheckUpstream(name, address string) error {
	_, err := newUpstream(name, address)
	return err
}

func newUpstream(name, address string) (*upstream, error) {
	if !nameRule.MatchString(name) || slices.Contains(reserved, name) {
		return nil, fmt.Errorf("use letters, digits, dots and dashes as name, and none of %s", strings.Join(reserved, ", "))
	}
	if fixed[name] == "" && wire.Begins(name) {
		return nil, errors.New("paths of a vendor's API begin with this name; use another one")
	}
	speaks, base, ok := strings.Cut(address, "+")
	if !ok || !slices.Contains(spoken, speaks) {
		speaks, base = cmp.Or(fixed[name], usual[name], speaksBoth), address
	}
	if own := fixed[name]; own != "" && own != speaks {
		return nil, fmt.Errorf("an upstream of this name speaks %s, not %s; use another name", own, speaks)
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("%q must be a URL such as https://api.example.com, without user, query or fragment; before it can be "+
			"what it speaks: %s, and a +", address, strings.Join(spoken, ", "))
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	const dial, idle, parallel, silent, stale = 30 * time.Second, 90 * time.Second, 64, 30 * time.Second, 4 * time.Second // servers in Node and Python close after 5 s
	return &upstream{name: name, speaks: speaks, host: wire.HostOf(u.Hostname()), base: u, stale: stale, transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dial}).DialContext,
		TLSHandshakeTimeout:   dial,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // the client chooses the compression, and gets the bytes unchanged
		MaxIdleConnsPerHost:   parallel,
		IdleConnTimeout:       idle,
		ExpectContinueTimeout: time.Second,
		// Without pings, requests could wait on a dead connection for minutes.
		HTTP2: &http.HTTP2Config{SendPingTimeout: silent},
		// No ResponseHeaderTimeout: a model may think for minutes before its first byte.
	}}, nil
}

// soon is the time within which a connection that the vendor has closed fails. After a later failure the vendor may
// have processed the request, and charge for it.
const soon = 5 * time.Second

// RoundTrip sends a request. If the connection turns out to be closed because it was idle, it sends the request again,
// if that has a GetBody: the vendor has not seen the first attempt. The body is held until the answer begins.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := u.send(r)
	if err == nil && res.StatusCode < http.StatusContinue { // ReverseProxy cannot forward such a status
		err = fmt.Errorf("it answered with the status %03d, which HTTP does not have", res.StatusCode)
		return nil, errors.Join(err, res.Body.Close())
	}
	return res, err
}

func (u *upstream) send(r *http.Request) (*http.Response, error) {
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
		u.transport.CloseIdleConnections() // they are just as old
		next := *traced                    // a copy: the first attempt may still read the original
		if next.Body, err = whole(); err == nil {
			res, err = u.transport.RoundTrip(&next)
		}
	}
	whole = gone
	return res, err
}

// gone replaces the GetBody of an answered request: the transport keeps the request, and would keep its body in
// memory.
func gone() (io.ReadCloser, error) { return nil, errors.New("the request was answered") }

// address returns the URL of a request at the upstream.
func (u *upstream) address(t *target, query string) (*url.URL, error) {
	below := t.path
	switch {
	case u.speaks == speaksPass:
	case u.name == chatGPT || strings.HasSuffix(u.base.Path, "/v1"): // a base URL in the form of OpenAI's SDKs
		below = strings.TrimPrefix(below, "/v1")
	case t.endpoint.Unversioned && u.base.Path == "" && !u.host.Unversioned: // the client's base URL lacks the /v1
		below = "/v1" + below
	}
	out := *u.base
	if u.speaks == speaksVertex && u.base.Host == wire.VertexHost("") {
		out.Host = wire.VertexHost(t.endpoint.Location)
	}
	out.RawPath = u.base.EscapedPath() + below
	out.RawQuery = query
	var err error
	out.Path, err = url.PathUnescape(out.RawPath)
	return &out, err
}

// forward sends the request on and copies the answer as it arrives. If via is not nil, it sends the request in place
// of the transport.
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
	// A vendor may answer before it has read the whole request: keep sending the rest. HTTP/2 always does.
	_ = http.NewResponseController(w).EnableFullDuplex()
	again := r.GetBody
	r.GetBody = nil // ReverseProxy keeps r until the end of the answer
	p := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = to
			p.Out.Host = ""
			p.Out.GetBody, again = again, nil
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := p.In.Header[name]; v != nil { // ReverseProxy removes these headers; they must pass
					p.Out.Header[name] = v
				}
			}
			for name := range p.Out.Header {
				if strings.HasPrefix(name, "X-Condense-") {
					p.Out.Header.Del(name) // addressed to the gateway
				}
			}
		},
		Transport:     via,
		FlushInterval: -1, // flush at once
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

// reason returns an error of the transport without the URL, which may hold a key, and without data from the vendor,
// which may be conversation text.
func reason(err error) string {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "time-out"
	}
	text, _, _ := strings.Cut(err.Error(), `"`)
	const header = "malformed MIME header"
	if before, _, ok := strings.Cut(text, header); ok {
		text = before + header
	}
	return clip(strings.TrimSpace(text))
}

// buffers are used to copy answers.
var buffers = new(bufferPool)

type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	const size = 8 << 10 // every open stream holds one; events are smaller
	return make([]byte, size)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
