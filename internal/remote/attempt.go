package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// Limits of answers. A stream has some 300 bytes for every token, and no model writes more
// than 200,000 tokens.
const (
	longestStream  = 128 << 20
	longestText    = 4 << 20
	longestToken   = 16       // bytes, on the average of a text
	shortestLimit  = 64 << 10 // bytes, however few tokens were asked for
	longestWhole   = 8 << 20
	longestRefusal = 64 << 10
)

// farewell is how long to wait for the end of a complete stream.
const farewell = 100 * time.Millisecond

// unknownParameter matches the errors of servers that do not know a parameter.
var unknownParameter = plain.Pattern(`(?i)unsupported|not (?:be )?supported|unknown|unrecognized|unexpected|extra (?:inputs|fields)|not permitted|not allowed`)

// names reports whether text has the word.
func names(text, word string) bool {
	return regexp.MustCompile(`(?:^|\W)` + regexp.QuoteMeta(word) + `(?:$|\W)`).MatchString(text)
}

// try sends p once. The reply is nil unless the vendor has begun to answer.
func (c *Client) try(ctx context.Context, p *model.Prompt, key string) (*Reply, *Error) {
	body, err := c.vendor.Body(p, &c.opts, c.hasRefused)
	if err != nil {
		return nil, &Error{Kind: KindRefused, Message: "the request: " + err.Error(), Err: err}
	}
	silence := c.silence(ctx)
	inner, cancel := context.WithCancelCause(ctx)
	var connected atomic.Bool
	inner = httptrace.WithClientTrace(inner, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watch.Stop()

	req, err := http.NewRequestWithContext(inner, http.MethodPost, c.at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: KindRefused, Message: "the request: " + err.Error(), Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "identity") // compressed, a stream comes in lumps
	req.Header.Set("User-Agent", "condense")
	c.vendor.Sign(req.Header, key)
	resp, err := c.http.Do(req)
	if err != nil {
		e := broken(ctx, inner, silence, err, "before an answer")
		if _, standard := c.http.Transport.(*http.Transport); e.Kind == KindCut && !connected.Load() && (standard || c.http.Transport == nil) {
			e.Kind, e.Message = KindUnreachable, e.Err.Error() // no connection: a proxy that refuses, a server that speaks no TLS
		}
		return nil, e
	}
	defer resp.Body.Close() //nolint:errcheck // nothing can be done, and nothing depends on it
	in := &watched{in: resp.Body, watch: watch, silence: silence}

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		text, _ := io.ReadAll(io.LimitReader(in, longestRefusal)) // a part of it is better than nothing
		return nil, refusal(resp.StatusCode, resp.Header, text)
	}
	r := &Reply{sent: len(body)}
	err = c.read(r, resp.Header.Get("Content-Type"), in, textLimit(p))
	if e := (*Error)(nil); errors.As(err, &e) {
		e.Request = cmp.Or(e.Request, resp.Header.Get("request-id"), resp.Header.Get("x-request-id"))
		return r, e
	}
	if err != nil {
		return r, broken(ctx, inner, silence, err, fmt.Sprintf("after %d bytes of the answer", in.n))
	}
	watch.Reset(farewell)
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // to its end, to reuse the connection
	if c.vendor.Clean != nil {
		text := c.vendor.Clean(r.Text.String())
		r.Text.Reset()
		r.Text.WriteString(text)
	}
	return r, nothing(r)
}

func (c *Client) hasRefused(parameter string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused[parameter]
}

func (c *Client) silence(ctx context.Context) time.Duration {
	if c.opts.Silence > 0 {
		return c.opts.Silence
	}
	if end, ok := ctx.Deadline(); ok {
		return max(defaultSilence, time.Until(end)/2)
	}
	return defaultSilence
}

// textLimit returns how many bytes an answer to p may have. Some servers ignore the limit of
// tokens, and a model could write until the deadline.
func textLimit(p *model.Prompt) int {
	if p.MaxOutput <= 0 || p.MaxOutput > longestText/longestToken {
		return longestText
	}
	return max(shortestLimit, p.MaxOutput*longestToken)
}

// read reads an answer with at most limit bytes of text. An error that is not an *Error comes
// from the connection.
func (c *Client) read(r *Reply, contentType string, in io.Reader, limit int) error {
	kind, _, _ := mime.ParseMediaType(contentType) // anything else is read as a stream
	switch kind {
	case "application/json":
		return c.readWhole(r, in)
	case "text/html":
		return &Error{Kind: KindMalformed, Message: "the answer is a web page; is base_url right?"}
	}
	events := newEventReader(in)
	for {
		e, err := events.next()
		switch {
		case errors.Is(err, errLongEvent):
			return &Error{Kind: KindTooLarge, Message: err.Error()}
		case err != nil && r.Ended:
			return nil // the answer is complete
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if err := c.vendor.Event(r, e.name, e.data); err != nil {
			return malformed(err)
		}
		if r.Text.Len() > limit {
			return &Error{Kind: KindTooLarge, Message: fmt.Sprintf("the answer has more than %d bytes, far more than the tokens that it may have", limit)}
		}
		if r.Done {
			return nil
		}
	}
}

func (c *Client) readWhole(r *Reply, in io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(in, longestWhole+1))
	switch {
	case err != nil:
		return err
	case len(data) > longestWhole:
		return &Error{Kind: KindTooLarge, Message: fmt.Sprintf("the answer has more than %d bytes", longestWhole)}
	}
	if err := c.vendor.Whole(r, data); err != nil {
		return malformed(err)
	}
	return nil
}

// malformed returns the error of a vendor's decoder as an *Error.
func malformed(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Kind: KindMalformed, Message: "the answer violates the API's format: " + err.Error(), Err: err}
}

// nothing returns the error of a reply without text, or nil.
func nothing(r *Reply) *Error {
	if !r.Refused && len(strings.TrimSpace(r.Text.String())) > 0 {
		return nil
	}
	why := r.Silence
	switch {
	case why != "":
	case r.Truncated:
		why = "it reached its longest answer before it wrote any"
	default:
		why = "it is empty"
	}
	return &Error{Kind: KindNoText, Message: model.ErrNoText.Error() + ": " + why}
}

// broken returns the error of a connection that failed: because of ctx, because of
// silence, or by itself.
func broken(ctx, inner context.Context, silence time.Duration, err error, when string) *Error {
	switch {
	case ctx.Err() != nil:
		return stopped(ctx, when)
	case errors.Is(context.Cause(inner), errSilent):
		return &Error{Kind: KindSilent, Message: fmt.Sprintf("nothing came for %v %s", silence.Round(time.Millisecond), when)}
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err // without the URL, whose query may contain a secret
	}
	e := &Error{Kind: KindCut, Message: fmt.Sprintf("the connection broke off %s: %v", when, err), Err: err}
	if errors.Is(err, errManyBytes) {
		e.Kind, e.Message = KindTooLarge, err.Error()
		return e
	}
	o := (*net.OpError)(nil)
	if errors.As(err, &o) && (o.Op == "dial" || o.Op == "proxyconnect") || errors.As(err, new(*net.DNSError)) {
		e.Kind, e.Message = KindUnreachable, err.Error()
	}
	if v := (*tls.CertificateVerificationError)(nil); errors.As(err, &v) {
		e.Kind, e.Message = KindUntrusted, err.Error()+"; SSL_CERT_FILE names a file of authorities to trust"
	}
	return e
}

var errManyBytes = fmt.Errorf("the answer has more than %d bytes", longestStream)

// A watched is a stream that fails when it is silent or too long.
type watched struct {
	in      io.Reader
	watch   *time.Timer
	silence time.Duration
	n       int64
}

// Read implements [io.Reader].
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if w.n += int64(n); w.n > longestStream {
		return 0, errManyBytes
	}
	if n > 0 {
		w.watch.Reset(w.silence)
	}
	return n, err
}

// A pattern is how a vendor reports that a conversation exceeds the model's window. All
// fields that are set must match.
type pattern struct {
	Vendor  string
	Status  int            // of HTTP, or given in the body
	Code    string         // of the error, or its type
	Text    *regexp.Regexp // anywhere in the error
	Message *regexp.Regexp // in a message in the body
}

// patterns were taken from the vendors' documentation, from reports of users, and from the
// phrases that agents look for. Case does not matter.
var patterns = sync.OnceValue(func() (all []pattern) {
	if err := json.Unmarshal(patternsJSON, &all); err != nil {
		panic("remote: contextlength.json: " + err.Error()) // embedded and tested
	}
	return all
})

//go:embed contextlength.json
var patternsJSON []byte

// IsContextLength reports whether err, or an error that it wraps, means that the conversation exceeds the model's
// window. Errors of an SDK with a field StatusCode or Status and a method RawJSON, such as OpenAI's and Anthropic's,
// are read through these; for others, the text decides.
func IsContextLength(err error) bool {
	if err == nil {
		return false
	}
	f := failure{}
	f.read([]byte(err.Error()))
	for e := err; e != nil; e = errors.Unwrap(e) {
		if n := HTTPStatus(e); n != 0 && f.status == 0 {
			f.status = n
		}
		if r, ok := e.(interface{ RawJSON() string }); ok {
			f.read([]byte(r.RawJSON()))
		}
	}
	return f.contextLength()
}

// isContextLength reports whether an HTTP response says that the conversation exceeds the
// model's window. The body may be anything.
func isContextLength(status int, body []byte) bool {
	f := failure{status: status}
	f.read(body)
	return f.contextLength()
}

// A failure has the known properties of an error.
type failure struct {
	status   int      // of HTTP; 0 if unknown
	text     string   // the error and its body
	messages string   // in the body
	codes    []string // codes, types and names in the body
	statuses []int    // in the body
}

// read adds the properties in body, however deeply a gateway has wrapped it. Plain text is a message, and may begin with
// a status.
func (f *failure) read(body []byte) {
	f.text += "\n" + string(body)
	var v any
	if json.Unmarshal(body, &v) == nil {
		f.walk(v, 0)
		return
	}
	f.messages += "\n" + string(body)
	if found := statusForm().FindSubmatch(body); found != nil {
		n, _ := strconv.Atoi(string(found[1]))
		f.statuses = append(f.statuses, n)
	}
}

// statusForm matches the beginning of "Error: 400 context length exceeded".
var statusForm = plain.Pattern(`^\s*(?:\w*Error: )?(?:HTTP |[Ss]tatus(?: code)? )?([45]\d\d)\b`)

const deepest = 8 // level of a body that is read

func (f *failure) walk(v any, depth int) {
	if depth > deepest {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			f.walk(e, depth+1)
		}
	case map[string]any:
		for key, e := range v {
			f.member(key, e, depth)
		}
	}
}

func (f *failure) member(key string, value any, depth int) {
	switch v := value.(type) {
	case float64:
		if key == "status" || key == "code" {
			f.statuses = append(f.statuses, int(v))
		}
	case string:
		switch key {
		case "code", "type", "name", "status":
			f.codes = append(f.codes, v)
			if n, err := strconv.Atoi(v); err == nil && v == strconv.Itoa(n) {
				f.statuses = append(f.statuses, n)
			}
		case "message", "raw", "error", "detail":
			f.text += "\n" + v
			f.messages += "\n" + v
			var inner any
			if strings.HasPrefix(strings.TrimSpace(v), "{") && json.Unmarshal([]byte(v), &inner) == nil {
				f.walk(inner, depth+1) // a gateway that quotes the vendor
			}
		}
	case []any: // of messages
		for _, e := range v {
			if depth < deepest {
				f.member(key, e, depth+1)
			}
		}
	default:
		f.walk(v, depth+1)
	}
}

func (f *failure) contextLength() bool {
	switch f.status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden:
		return false // a rate limit or quota: a shorter conversation does not help
	}
	return slices.ContainsFunc(patterns(), f.matches)
}

func (f *failure) matches(p pattern) bool {
	return (p.Status == 0 || p.Status == f.status || slices.Contains(f.statuses, p.Status)) &&
		(p.Code == "" || slices.Contains(f.codes, p.Code)) && (p.Text == nil || p.Text.MatchString(f.text)) &&
		(p.Message == nil || p.Message.MatchString(f.messages))
}

// HTTPStatus returns the HTTP status in a field of an SDK's error, or 0.
func HTTPStatus(err error) int {
	v := reflect.ValueOf(err)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return 0
	}
	for _, name := range []string{"StatusCode", "Status", "HTTPStatusCode"} {
		switch f := v.FieldByName(name); {
		case !f.IsValid():
		case f.CanInt():
			return int(f.Int())
		case f.Kind() == reflect.String:
			digits, _, _ := strings.Cut(f.String(), " ")
			if n, err := strconv.Atoi(digits); err == nil {
				return n
			}
		}
	}
	return 0
}
