package live

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/chain"
	"github.com/condensehq/condense/live/internal/payload"
)

// maxHistories is how many bytes of histories are kept for requests that name an earlier response.
const maxHistories = 128 << 20

// A chained sends a request of the Responses API whose history the gateway knows, or which can be continued by the ID
// of its answer.
type chained struct {
	*chain.Request
	g      *Gateway
	s      *settings
	send   http.RoundTripper
	stream *stream // nil over HTTP
	tool   bool    // the answer for the client may be made of several
	owed   owed    // by this answer
}

// An owed has the results of calls of the gateway's tool in a response with calls of the client, which will send only its own.
type owed struct {
	seen, id string // of the response: as the client names it, and the vendor
	results  [][]byte
}

// pay returns the body of a request whose history is not known, with the results that are owed; nil if none are.
func (o *owed) pay(body []byte) []byte {
	if o.seen == "" || chain.Previous(body) != o.seen {
		return nil
	}
	body = rawjson.SetField(body, "input", rawjson.Array(slices.Concat(o.results, wire.Input(body))))
	return rawjson.SetField(body, "previous_response_id", rawjson.AppendQuote(nil, o.id))
}

// chainOf returns the chain of a request; nil if it has none, or an unknown one. header is the answer's.
func (g *Gateway) chainOf(r *http.Request, s *settings, t *target, b *payload.Body, header http.Header) *chained {
	if !wire.Of(wire.API(t.api)).Chains || t.compact {
		return nil
	}
	owner := g.secrets.credentialOf(t.who, r) + " " + t.upstream.Name
	t.unheard = func(res *http.Response) {
		listen(res, s.Bounds.MaxBody, func(a *chain.Answer) { g.histories.Unknown(owner, a) })
	}
	if len(b.Decoded) == 0 {
		return nil
	}
	l, previous := streamOf(r.Context()), chain.Previous(b.Decoded)
	elsewhere := rawjson.Field(b.Decoded, "conversation")
	stored := !bytes.Equal(rawjson.Field(b.Decoded, "store"), []byte("false"))
	switch {
	case len(elsewhere) > 0 && !rawjson.IsNull(elsewhere):
		g.unknown(s, header, "conversation") // the vendor adds each turn to it, so it cannot begin anew
		return nil
	case previous == "" && l == nil && !stored: // nobody can continue its answer
		return nil
	case r.Header.Get("Content-Encoding") != "":
		if previous != "" {
			g.unknown(s, header, "previous_response_id")
		}
		return nil
	}
	q, known := g.histories.Open(owner, b.Decoded, l != nil)
	if !known {
		if previous != "" {
			g.unknown(s, header, "previous_response_id")
		}
		return nil
	}
	return &chained{Request: q, g: g, s: s, send: t.transport(r.Context()), stream: l}
}

// unknown notes that a request passes because the vendor has its history, and the gateway does not know it.
func (g *Gateway) unknown(s *settings, header http.Header, field string) {
	header.Set("X-Condense-Passed", field)
	g.stats.Fault("history_unknown")
	if g.causes.First("chain", field, s.Now()) {
		s.Reports.Logger.Warn("requests pass as they came: the vendor has the history, and this gateway has not seen its beginning", "field", field)
	}
}

// RoundTrip sends a request with the whole history, as far as the vendor does not have it. If the vendor has forgotten
// the rest, it gets everything.
func (c *chained) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := payload.Bytes(r)
	if err != nil {
		return nil, err
	}
	out, continues := c.Sending(body)
	res, err := c.ask(r, out)
	if err != nil {
		return nil, err
	}
	if continues && c.forgotten(res) {
		_ = res.Body.Close()
		c.s.Reports.Logger.InfoContext(r.Context(), "the vendor has forgotten a response, and gets the whole conversation again")
		c.g.stats.Fault("retry_forgotten")
		if bytes.Equal(body, c.Raw) {
			body = c.Whole
		}
		if res, err = c.ask(r, body); err != nil {
			return nil, err
		}
	}
	if res.StatusCode == http.StatusOK {
		listen(res, c.s.Bounds.MaxBody, c.heard)
	}
	return res, nil
}

// An unheard sends a request as it is, and listens to its answer: to note the ID, as its history is not known, or the windows of models.
type unheard struct {
	send   http.RoundTripper
	listen func(*http.Response)
}

// RoundTrip sends the request as it is.
func (u *unheard) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := u.send.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusOK {
		u.listen(res)
	}
	return res, err
}

// listen gives the answer in a body to a function.
func listen(res *http.Response, most int64, ended func(*chain.Answer)) {
	encoding := res.Header.Get("Content-Encoding")
	if encoding != "" && strings.Contains(res.Header.Get("Content-Type"), "event-stream") {
		return
	}
	res.Body = &listened{ReadCloser: res.Body, to: chain.NewAnswer(most), encoding: encoding, most: most, ended: ended}
}

// heard notes an answer of the vendor.
func (c *chained) heard(a *chain.Answer) {
	c.owed.id, _ = a.Response()
	if c.Heard(a); !c.tool {
		c.answered(a)
	}
}

// answered remembers an answer that the client got.
func (c *chained) answered(a *chain.Answer) {
	if len(c.owed.results) > 0 {
		c.owed.seen, _ = a.Response()
		c.stream.owed = c.owed
	}
	if c.stream != nil && c.stream.disturbed.Load() {
		c.Lost(a)
		return
	}
	c.Answered(a)
}

// letGo frees the memory of a request that cannot be sent again.
func (c *chained) letGo() { c.Raw, c.Whole = nil, nil }

func (c *chained) ask(r *http.Request, body []byte) (*http.Response, error) {
	again := r.Clone(r.Context())
	payload.Replace(again, body)
	return c.send.RoundTrip(again)
}

// forgotten reports whether the vendor does not know the response that a request names. res can be read as before.
func (c *chained) forgotten(res *http.Response) bool {
	if !refusal(res.StatusCode) && res.StatusCode != http.StatusNotFound {
		return false
	}
	text, err := refusalOf(res)
	return err == nil && rawjson.Text(rawjson.Field(rawjson.Field(text, "error"), "code")) == "previous_response_not_found"
}

// A listened is the body of an answer that is also collected.
type listened struct {
	io.ReadCloser
	to       *chain.Answer
	encoding string
	packed   bytes.Buffer
	most     int64
	ended    func(*chain.Answer)
}

// Read reads from the vendor.
func (l *listened) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	switch {
	case l.ended == nil:
		return n, err
	case l.encoding == "":
		_, _ = l.to.Write(p[:n])
	case l.packed.Len() <= maxPacked:
		l.packed.Write(p[:n])
	}
	if err != nil || l.encoding == "" && l.to.Complete() { // the client's next request must find it
		l.end()
	}
	return n, err
}

// Close ends the answer.
func (l *listened) Close() error {
	l.end()
	return l.ReadCloser.Close()
}

func (l *listened) end() {
	if l.ended == nil {
		return
	}
	if l.encoding != "" {
		if text, err := payload.Decode(l.packed.Bytes(), l.encoding, l.most); err == nil && l.packed.Len() <= maxPacked {
			_, _ = l.to.Write(text)
		}
	}
	l.ended(l.to)
	l.ended = nil
}
