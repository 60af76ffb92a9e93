package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// A Client is a model that is reached over HTTP. It is safe for concurrent use.
type Client struct {
	vendor *Vendor
	opts   Options
	info   model.Info
	at     *url.URL
	http   *http.Client

	mu      sync.Mutex
	refused map[string]bool // of the vendor's optional parameters
}

var (
	_ model.Checker   = (*Client)(nil)
	_ model.Compactor = (*Client)(nil)
	_ model.Embedder  = (*Client)(nil)
)

// New returns the client of a model. It makes no request, and a missing key is an error only
// when one is made. The error reports all faults of the options.
func New(v *Vendor, o Options) (*Client, error) {
	at, err := o.check(v)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", cmp.Or(o.Name, o.ID, "without a name"), err)
	}
	o.Retry = o.Retry.orDefault()
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Client{vendor: v, opts: o, info: o.info(), at: at, refused: map[string]bool{}}
	c.http = &http.Client{}
	if o.HTTPClient != nil {
		own := *o.HTTPClient
		c.http = &own
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// local reports whether a host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Info implements [model.Generator].
func (c *Client) Info() model.Info { return c.info }

// String names the model and where it is.
func (c *Client) String() string { return c.info.Name + " at " + c.at.Host }

// GoString is String, so that no format prints the fields.
func (c *Client) GoString() string { return c.String() }

// Generate implements [model.Generator]. Errors are [*Error]s. A request that may succeed
// the next time is repeated as [Options] say, within the deadline of ctx. Usage is the sum of
// all attempts that the vendor began to answer, including interrupted ones; if an error comes
// without an answer, there was none.
func (c *Client) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	began := time.Now()
	answer, attempts, e := c.generate(ctx, p)
	if e != nil {
		e.Model, e.Attempts = c.info.Name, attempts
		c.opts.Logger.DebugContext(ctx, "the model gave no answer", "model", c.info.Name, "kind", string(e.Kind), "error", e.Error())
		if answer.Usage.Calls == 0 {
			return nil, e
		}
		return answer, e
	}
	c.opts.Logger.DebugContext(ctx, "the model answered", "model", c.info.Name, "attempts", attempts,
		"input_tokens", answer.Usage.InputTokens, "output_tokens", answer.Usage.OutputTokens, "duration", time.Since(began))
	return answer, nil
}

// Compacts implements [model.Compactor].
func (c *Client) Compacts() string { return c.vendor.Compacts }

// Compact implements [model.Compactor].
func (c *Client) Compact(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	compactor, err := c.as(c.vendor.Compaction, "compaction", core.ErrUnavailable)
	if err != nil {
		return nil, err
	}
	return compactor.Generate(ctx, p)
}

// as returns a client of another request of the vendor; the error is lacking if it has none.
func (c *Client) as(v *Vendor, what string, lacking error) (*Client, error) {
	if v == nil {
		return nil, &Error{Kind: KindRefused, Model: c.info.Name, Message: "the vendor's API has no " + what, Err: lacking}
	}
	at, err := c.opts.check(v)
	if err != nil {
		return nil, &Error{Kind: KindRefused, Model: c.info.Name, Message: err.Error(), Err: err}
	}
	return &Client{vendor: v, opts: c.opts, info: c.info, at: at, http: c.http, refused: map[string]bool{}}, nil
}

// Texts of one request for vectors: answers of the largest models then have some 5 MB.
const embedBatch = 64

// Embed implements [model.Embedder].
func (c *Client) Embed(ctx context.Context, texts []string) (vectors [][]float32, usage core.Usage, _ error) {
	e, err := c.as(c.vendor.Embedding, "embeddings", errors.ErrUnsupported)
	if err != nil {
		return nil, usage, err
	}
	for part := range slices.Chunk(texts, embedBatch) {
		p := &model.Prompt{Messages: plain.Each(part, func(text string) core.Message {
			return core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
		})}
		answer, err := e.Generate(ctx, p)
		if answer != nil {
			usage = usage.Add(answer.Usage)
		}
		if err != nil {
			return nil, usage, err
		}
		var got [][]float32
		err = json.Unmarshal([]byte(answer.Text), &got)
		if err != nil || len(got) != len(part) || strings.Contains(answer.Text, "null") { // as some servers write NaN
			return nil, usage, &Error{Kind: KindMalformed, Message: fmt.Sprintf("no vectors of numbers for %d texts", len(part)), Err: err}
		}
		vectors = append(vectors, got...)
	}
	return vectors, usage, nil
}

func (c *Client) generate(ctx context.Context, p *model.Prompt) (answer *model.Answer, attempts int, e *Error) {
	answer = &model.Answer{}
	if err := ctx.Err(); err != nil {
		return answer, 0, stopped(ctx, "before the model was asked")
	}
	for failures := 1; ; failures++ {
		key, err := c.key()
		if err != nil {
			return answer, attempts, &Error{Kind: KindDenied, Message: err.Error()}
		}
		attempts++
		reply, e := c.try(ctx, p, key)
		if reply != nil {
			c.disbelieve(ctx, p, reply)
			answer.Usage = answer.Usage.Add(c.charge(reply))
		}
		if e == nil {
			answer.Text, answer.Truncated = reply.Text.String(), reply.Truncated
			if p.Schema != "" && !json.Valid([]byte(answer.Text)) {
				return answer, attempts, &Error{Kind: KindMalformed, Message: "the answer is not JSON, as the schema demands"}
			}
			c.doubt(ctx, p, reply)
			return answer, attempts, nil
		}
		e.Message, e.Code, e.Request = tidy(e.Message, key), tidy(e.Code, key), tidy(e.Request, key)
		if e.Kind == KindRefused && c.learn(e) {
			failures-- // not a failed attempt; the number of parameters limits this
			continue
		}
		if e.Kind == KindRefused && (p.Schema != "" || p.Temperature != nil || p.Effort != "") && lacking().MatchString(e.Param+" "+e.Message) &&
			(strings.Contains(e.Message, "support") || unknownParameter().MatchString(e.Message)) {
			e.Err = errors.ErrUnsupported
		}
		if !kinds[e.Kind].repeat || failures >= c.opts.Retry.Attempts {
			return answer, attempts, c.advise(e)
		}
		wait := c.opts.Retry.backoff(failures, e.Wait)
		if end, ok := ctx.Deadline(); e.Wait > c.opts.Retry.Patience || ok && time.Until(end) <= wait {
			return answer, attempts, c.advise(e) // says more than a timeout
		}
		c.opts.Logger.DebugContext(ctx, "the model is asked again", "model", c.info.Name, "kind", string(e.Kind), "error", e.Error(), "wait", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, attempts, stopped(ctx, "while waiting to ask again after "+e.Error())
		}
	}
}

// lacking matches the errors of models without a schema, a temperature or an effort.
var lacking = plain.Pattern(`(?is)output_config|output.format|response_format|json_schema|structured.output|temperature|effort`)

// disbelieve drops a vendor's impossible numbers: they would distort costs in reports and use
// up the user's budget. The bounds are generous, because images, reasoning and text added by
// servers count too.
func (c *Client) disbelieve(ctx context.Context, p *model.Prompt, r *Reply) {
	const more = 100_000
	u := r.Usage
	input, output := 4*r.sent+more, 4*max(p.MaxOutput, c.info.MaxOutput, r.Text.Len())+more
	if u.InputTokens >= 0 && u.InputTokens <= input && u.OutputTokens >= 0 && u.OutputTokens <= output &&
		u.CachedTokens >= 0 && u.CachedTokens <= u.InputTokens && r.Written >= 0 && r.Written <= u.InputTokens {
		return
	}
	c.opts.Logger.WarnContext(ctx, "the vendor reports a usage that is impossible for this request; it is ignored, and the cost of the call is unknown",
		"model", c.info.Name, "input_tokens", u.InputTokens, "output_tokens", u.OutputTokens, "cached_tokens", u.CachedTokens, "bytes_sent", r.sent)
	r.Usage, r.Written, r.Metered = core.Usage{}, 0, false
}

// charge returns the usage and cost of a reply.
func (c *Client) charge(r *Reply) core.Usage {
	u := r.Usage
	u.Calls = 1
	u = c.info.Charge(u)
	if c.info.Free {
		return u
	}
	if !r.Metered { // something was used, but not reported
		u.USD, u.Unpriced = 0, 1
		return u
	}
	if p := c.info.PriceFor(u.InputTokens); p.CacheWrite > 0 && u.Unpriced == 0 {
		u.USD += float64(r.Written) * (p.CacheWrite - p.Input) / 1e6
	}
	return u
}

// doubt warns of a server that seems to have read less than it was sent. Ollama, for example,
// silently cuts off the beginning of a prompt that exceeds its num_ctx. No common text has so
// many bytes per token. It is no error, because some servers do not count cached tokens.
func (c *Client) doubt(ctx context.Context, p *model.Prompt, r *Reply) {
	const (
		enough = 16 << 10 // bytes of text below which there is no warning
		most   = 10       // bytes per token
	)
	text := len(p.System)
	text += plain.Sum(p.Messages, func(m core.Message) int { return textBytes(m.Parts) })
	if r.Metered && text >= enough && text > most*r.Usage.InputTokens {
		c.opts.Logger.WarnContext(ctx, "the server reports far fewer tokens than the prompt must have; it may have cut it: compare its context length with the window configured",
			"model", c.info.Name, "input_tokens", r.Usage.InputTokens, "bytes", text)
	}
}

func textBytes(parts []core.Part) (n int) {
	for _, part := range parts {
		switch part := part.(type) {
		case core.Text:
			n += len(part)
		case core.ToolResult:
			n += textBytes(part.Content)
		case core.ToolCall:
			n += len(part.Args)
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return n
}

// learn reports whether e refuses a parameter that can be left out, and remembers it.
func (c *Client) learn(e *Error) bool {
	if !unknownParameter().MatchString(e.Message) && !unknownParameter().MatchString(e.Code) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.vendor.Optional, func(name string) bool { return e.Param == name && !c.refused[name] })
	if at < 0 {
		at = slices.IndexFunc(c.vendor.Optional, func(name string) bool { return !c.refused[name] && names(e.Message, name) })
	}
	if at < 0 {
		return false
	}
	c.refused[c.vendor.Optional[at]] = true
	return true
}

// advise adds advice to e.
func (c *Client) advise(e *Error) *Error {
	file, variable := c.opts.keyPlace(c.vendor)
	source := cmp.Or(file, variable)
	switch {
	case e.Status == http.StatusUnauthorized && source == "":
		e.Message += "; name the key with api_key_env or api_key_file"
	case e.Status == http.StatusUnauthorized:
		e.Message += "; the key is from " + source
	case e.Status == http.StatusNotFound:
		e.Message += fmt.Sprintf("; asked for the model %s at %s", c.opts.ID, withoutQuery(c.at))
	}
	return e
}

// withoutQuery returns a URL without parts that may hold a secret.
func withoutQuery(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// stopped returns the error of a context that has ended.
func stopped(ctx context.Context, when string) *Error {
	return &Error{Kind: KindStopped, Message: ctx.Err().Error() + " " + when, Err: ctx.Err()}
}

// An event of a stream, in the sense of the HTML standard, section 9.2 "Server-sent
// events", without IDs, which no vendor of models uses.
type event struct {
	name string
	data []byte // valid until the next one is read
}

// An eventReader reads a stream of events. Lines end with LF, CR LF or CR.
type eventReader struct {
	in    *bufio.Reader
	data  []byte
	line  []byte
	begun bool // a byte order mark, if any, has been read
	cr    bool // the last line ended with CR; an LF that follows belongs to it
}

// longestLine and longestEvent are limits in bytes. Vendors send a few words in each.
const (
	longestLine  = 4 << 20
	longestEvent = 8 << 20
)

var errLongEvent = errors.New("an event of the stream is too long")

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// next returns the next event with data. It drops an incomplete event at the end of the stream. The error is the
// reader's, [io.EOF] at the end.
func (r *eventReader) next() (event, error) {
	var e event
	r.data = r.data[:0]
	has := false
	for {
		line, err := r.readLine()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if has {
				e.data = r.data
				return e, nil
			}
			e = event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if has {
				r.data = append(r.data, '\n')
			}
			if has = true; len(r.data)+len(value) > longestEvent {
				return event{}, errLongEvent
			}
			r.data = append(r.data, value...)
		}
	}
}

// readLine returns the next line without its end. An incomplete last line is dropped.
func (r *eventReader) readLine() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if mark, err := r.in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
			_, _ = r.in.Discard(3) // it is buffered
		}
	}
	r.line = r.line[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		some, _ := r.in.Peek(r.in.Buffered()) // never blocks, never fails
		if r.cr && some[0] == '\n' {
			r.cr = false
			_, _ = r.in.Discard(1)
			continue
		}
		r.cr = false
		end := bytes.IndexAny(some, "\r\n")
		part := some
		if end >= 0 {
			part = some[:end]
			r.cr = some[end] == '\r'
		}
		if len(r.line)+len(part) > longestLine {
			return nil, errLongEvent
		}
		r.line = append(r.line, part...)
		if end >= 0 {
			_, _ = r.in.Discard(end + 1)
			return r.line, nil
		}
		_, _ = r.in.Discard(len(part))
	}
}
