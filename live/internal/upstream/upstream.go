// Package upstream sends requests to the APIs of vendors and model servers.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// An Upstream is an API to which requests are forwarded.
type Upstream struct {
	Name      string
	Speaks    string    // one of spoken
	Host      wire.Host // of base
	Base      *url.URL
	Transport *http.Transport
	// After this idle time, the vendor may have closed a connection without the gateway's knowledge.
	Stale time.Duration

	IsVendors bool // the address is a vendor's own
	// Sign signs a request in place of its client: it sets headers. The hash is that of the body, a SHA-256 in hexadecimal. It is
	// called for every request, from several goroutines. Nil: requests are sent as their clients have signed them.
	Sign func(r *http.Request, hash string) error
}

// The protocols of upstreams.
const (
	SpeaksAnthropic = "anthropic"
	SpeaksOpenAI    = "openai"
	speaksBoth      = "both" // the path decides
	speaksGemini    = "gemini"
	speaksVertex    = "vertex"
	speaksAzure     = "azure"
	SpeaksBedrock   = "bedrock"
	SpeaksPass      = "pass" // another API, which the gateway does not interpret
)

var spoken = []string{SpeaksAnthropic, SpeaksOpenAI, speaksBoth, speaksGemini, speaksVertex, speaksAzure, SpeaksBedrock, SpeaksPass}

// vendorsOf are the vendors whose paths an upstream takes, by its protocol.
var vendorsOf = map[string][]wire.Vendor{
	SpeaksAnthropic: {wire.Anthropic},
	SpeaksOpenAI:    {wire.OpenAI},
	speaksBoth:      {wire.Anthropic, wire.OpenAI},
	speaksGemini:    {wire.Google},
	speaksVertex:    {wire.Vertex},
	speaksAzure:     {wire.Azure, wire.OpenAI},
	SpeaksBedrock:   {wire.Amazon},
}

// fixed holds the protocols of the upstreams that exist without configuration; usual the protocols that names suggest.
var (
	fixed = map[string]string{"anthropic": SpeaksAnthropic, "openai": SpeaksOpenAI, ChatGPT: SpeaksOpenAI}
	usual = map[string]string{"gemini": speaksGemini, "vertex": speaksVertex, "azure": speaksAzure, "bedrock": SpeaksBedrock}
)

// NameRule matches names of upstreams, profiles and modes.
var NameRule = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// reserved are first path elements that have a meaning already, so no upstream can have these names.
var reserved = []string{
	"condense", "mcp", "mode", "profile", "recall", "token", "v1", "api", "backend-api", "health", "livez", "readyz", "stats",
}

// New returns the upstream of a name at an address, which may begin with a protocol and a +.
func New(name, address string) (*Upstream, error) {
	if !NameRule().MatchString(name) || slices.Contains(reserved, name) {
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
	const dial, idle, parallel, silent, stale = 30 * time.Second, 90 * time.Second, 64, 30 * time.Second,
		4 * time.Second // servers in Node and Python close after 5 s
	return &Upstream{Name: name, Speaks: speaks, Host: wire.HostOf(u.Hostname()), Base: u, Stale: stale, Transport: &http.Transport{
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
// if that has a GetBody: the vendor has not seen all of the first attempt. The body is held until the answer begins.
func (u *Upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.Signs(r.Header) {
		var err error
		if r, err = u.signed(r); err != nil {
			return nil, err
		}
	}
	res, err := u.send(r)
	if err == nil && res.StatusCode < http.StatusContinue { // ReverseProxy cannot forward such a status
		err = fmt.Errorf("it answered with the status %03d, which HTTP does not have", res.StatusCode)
		return nil, errors.Join(err, res.Body.Close())
	}
	return res, err
}

func (u *Upstream) send(r *http.Request) (*http.Response, error) {
	whole := r.GetBody
	if whole == nil {
		return u.Transport.RoundTrip(r)
	}
	var old, answered atomic.Bool
	traced := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn:              func(c httptrace.GotConnInfo) { old.Store(c.Reused && c.IdleTime >= u.Stale) },
		GotFirstResponseByte: func() { answered.Store(true) },
	}))
	traced.GetBody = func() (io.ReadCloser, error) { return whole() }
	start := time.Now()
	res, err := u.Transport.RoundTrip(traced)
	if err != nil && old.Load() && !answered.Load() && time.Since(start) < soon && r.Context().Err() == nil {
		u.Transport.CloseIdleConnections() // they are just as old
		next := *traced                    // a copy: the first attempt may still read the original
		if next.Body, err = whole(); err == nil {
			res, err = u.Transport.RoundTrip(&next)
		}
	}
	whole = gone
	return res, err
}

// gone replaces the GetBody of an answered request: the transport keeps the request, and would keep its body in
// memory.
func gone() (io.ReadCloser, error) { return nil, errors.New("the request was answered") }

// Address returns the URL at the upstream of a request for a path, which is escaped and described by e.
func (u *Upstream) Address(path string, e *wire.Endpoint, query string) (*url.URL, error) {
	below := path
	switch {
	case u.Speaks == SpeaksPass:
	case u.Name == ChatGPT || strings.HasSuffix(u.Base.Path, "/v1"): // a base URL in the form of OpenAI's SDKs
		below = strings.TrimPrefix(below, "/v1")
	case e.Unversioned && u.Base.Path == "" && !u.Host.Unversioned: // the client's base URL lacks the /v1
		below = "/v1" + below
	}
	out := *u.Base
	if u.Speaks == speaksVertex && u.Base.Host == wire.VertexHost("") {
		out.Host = wire.VertexHost(e.Location)
	}
	if u.Speaks == SpeaksBedrock && e.Control && u.Host.Of == wire.Amazon {
		out.Host = strings.Replace(out.Host, "bedrock-runtime", "bedrock", 1)
	}
	out.RawPath = u.Base.EscapedPath() + below
	out.RawQuery = query
	var err error
	out.Path, err = url.PathUnescape(out.RawPath)
	return &out, err
}

// Vendors are the upstreams that exist without configuration.
var Vendors = map[string]string{
	"anthropic": "https://api.anthropic.com",
	"openai":    "https://api.openai.com",
	ChatGPT:     "https://chatgpt.com/backend-api/codex",
	"gemini":    "https://generativelanguage.googleapis.com",
	"vertex":    "https://aiplatform.googleapis.com", // the region in the path names another host
}

// chatGPT is the upstream for clients of OpenAI's API that log in with a ChatGPT plan: the same paths, without /v1.
const (
	ChatGPT   = "chatgpt"
	CodexPath = "/backend-api/codex" // at its host
)

// Takes reports whether a path belongs to an upstream. Unknown paths do: the client chose the upstream on purpose.
func (u *Upstream) Takes(e *wire.Endpoint) bool {
	switch {
	case u.Speaks == SpeaksPass:
		return true
	case e.Foreign != "":
		return u.Host.Of != "" && e.Owner == u.Host.Of
	case (u.Host.Of == wire.Anthropic || u.Host.Of == wire.OpenAI) && !e.Has(u.Host.Of):
		return false
	case len(e.Of) == 0:
		return true
	}
	return slices.ContainsFunc(vendorsOf[u.Speaks], e.Has) || u.Host.Of == wire.Azure && e.Has(wire.Azure)
}

// Refuses reports whether a credential must not reach an upstream. A vendor's own host gets no key of another vendor.
// Other hosts, such as the user's own gateways, accept all keys except credentials that work only with a cloud's API.
func (u *Upstream) Refuses(c wire.Credential) bool {
	switch {
	case c.Of == u.Host.Of:
		return false
	case u.Host.Of != "":
		return true
	}
	return c.Cloud && u.Speaks != SpeaksPass && !slices.Contains(issuers[u.Speaks], c.Of)
}

// issuers lists, by protocol, the vendors whose cloud credentials an upstream on the user's own host accepts.
var issuers = map[string][]wire.Vendor{speaksGemini: {wire.Google}, speaksVertex: {wire.Google}, SpeaksBedrock: {wire.Amazon}}

// Reason returns an error of the transport without the URL, which may hold a key, and without data from the vendor,
// which may be conversation text.
func Reason(err error) string {
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
	return plain.Clip(strings.TrimSpace(text))
}

// ofCalls are the headers of a signed request that are the client's. All others stay here: its own signature holds only for the
// host that it called, and who signs must know what is asked.
var ofCalls = []string{"Accept", "Accept-Encoding", "Content-Encoding", "Content-Type", "User-Agent", "Anthropic-Beta", "Traceparent", "Tracestate"}

// maxSigned is the most bytes of a body that is signed: Amazon Bedrock takes 25,000,000.
const maxSigned = 32 << 20

// Signs reports whether the gateway signs a request: with its own credentials, so that the client needs no key. One with a key needs no
// signature.
func (u *Upstream) Signs(h http.Header) bool {
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	return u.Sign != nil && !strings.EqualFold(scheme, "Bearer")
}

// Unsignable returns why a request is not signed, which has this escaped path at the upstream; nil if it is. The machine's account
// may do more than call models, and its owner has agreed to no more.
func (u *Upstream) Unsignable(method, path, query string) error {
	if wire.MayOwn(method, path, query) {
		return nil
	}
	return fmt.Errorf("%w: with the credentials of this machine (serve.bedrock.sign) only models are called (POST /model/ID/invoke, "+
		"invoke-with-response-stream, converse, converse-stream, count-tokens) and listed (GET /foundation-models, "+
		"/inference-profiles); this is %s %s", ErrUnsigned, plain.Clip(method), plain.Clip(path))
}

// signed returns a copy of a request with the gateway's signature in place of the client's.
func (u *Upstream) signed(r *http.Request) (*http.Request, error) {
	if err := u.Unsignable(r.Method, strings.TrimPrefix(r.URL.EscapedPath(), u.Base.EscapedPath()), r.URL.RawQuery); err != nil {
		return nil, err
	}
	out := r.WithContext(r.Context())
	out.Header = http.Header{}
	for name, values := range r.Header {
		if slices.Contains(ofCalls, name) || strings.HasPrefix(name, "X-Amzn-Bedrock-") || strings.HasPrefix(name, "Amz-Sdk-") {
			out.Header[name] = slices.Clone(values)
		}
	}
	hash := sha256.New()
	switch {
	case r.Body == nil || r.Body == http.NoBody:
	case r.GetBody != nil:
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(hash, body); err != nil {
			return nil, err
		}
		if err := body.Close(); err != nil {
			return nil, err
		}
	default:
		body, err := io.ReadAll(io.LimitReader(r.Body, maxSigned+1))
		if err != nil {
			return nil, err
		}
		if len(body) > maxSigned {
			return nil, fmt.Errorf("a body of more than %d MB cannot be signed", maxSigned>>20)
		}
		_, _ = hash.Write(body)
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if err := u.Sign(out, hex.EncodeToString(hash.Sum(nil))); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	return out, nil
}

// ErrUnsigned is the error of a request that was not sent because it could not be signed.
var ErrUnsigned = errors.New("the request could not be signed")
