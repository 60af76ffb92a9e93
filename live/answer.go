package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/remote"
)

// RoundTrip sends r. If the vendor refuses the gateway's version of the request, RoundTrip repairs it and sends it
// once more.
func (x *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	send := x.sender(r.Context()).RoundTrip
	if x.compacts && x.seen != nil {
		send = x.compaction
	}
	x.announceBlock(r)
	x.asks(r.Context())
	if x.postponed != nil {
		x.postponed.url, x.postponed.header = r.URL, r.Header.Clone()
	}
	res, err := send(x.noted(r))
	if err != nil {
		return nil, err
	}
	x.free = x.free || res.Header.Get(ownCompaction) != ""
	if x.claim != nil && !x.s.Observe && (refusal(res.StatusCode) || x.late(res)) {
		if res, err = x.retry(r, res); err != nil {
			return nil, err
		}
	}
	x.sayUnread(res)
	x.watcher, x.status = watch(x.r.API, res), res.StatusCode
	x.watcher.more = func(w *watcher) { x.reserve(w.size(), w.sink.Seen()) }
	res.Body = x.watcher
	if x.spliceable(res) {
		return x.answerCalls(r, res)
	}
	x.letGo()
	return res, nil
}

// sender returns the transport of the request.
func (x *known) sender(ctx context.Context) http.RoundTripper {
	if x.chain != nil {
		return x.chain
	}
	return x.t.sender(ctx)
}

// retry sends a second plan after a refusal, if there is one, and returns the answer for the client.
func (x *sending) retry(r *http.Request, res *http.Response) (*http.Response, error) {
	x.cancelLater()
	text, why := x.reason(res)
	if why == "" {
		return res, nil
	}
	var second *plan
	ctx := r.Context()
	err := x.safely("repair", func() (err error) {
		second, err = x.second(ctx, why)
		return err
	})
	if err != nil {
		x.fault("repair", err)
		if why == tooLong {
			x.failed(ctx, x.r.Model, err, true)
		}
		return res, nil
	}
	_ = text.Close()
	x.plan = second
	again := r.Clone(r.Context())
	x.body = x.r.With(x.messages)
	payload.Replace(again, x.body)
	x.announceBlock(again)
	x.s.Reports.Logger.WarnContext(r.Context(), "the vendor refused a request, which is repaired and sent again", "why", why, "model",
		x.r.Model, "agent", x.agent.Name)
	x.stats.Fault("retry_" + why)
	next, err := x.sender(ctx).RoundTrip(again)
	if err != nil {
		return nil, err
	}
	next.Header.Set("X-Condense-Retry", why)
	if why == refused && !refusal(next.StatusCode) {
		if err := x.safely("forget", func() error { return x.forget(ctx) }); err != nil {
			x.fault("forget", err)
		}
	} else if why == thinking && !refusal(next.StatusCode) {
		x.bound.add(x.known)
	}
	return next, nil
}

// noted returns r with a trace that sets x.written once the whole request has been written to the vendor.
func (x *sending) noted(r *http.Request) *http.Request {
	written := new(atomic.Bool)
	x.written = written
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { written.Store(i.Err == nil) },
	}))
}

// refusal reports whether a status can mean that the vendor refused the history.
func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// late reports whether a stream begins with the error that the prompt is too long, as OpenAI's Responses API sends it.
// It reads the first event, which announces the answer, and the event after it; res can be read as before. To avoid
// delaying other answers, it looks only at prompts that fill at least a quarter of the known window.
func (x *sending) late(res *http.Response) bool {
	if x.r.API != wire.Responses || !x.r.Stream || res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "" ||
		x.tokens < x.policy.Window/4 {
		return false
	}
	w := wire.Watch(x.r.API)
	var head []byte
	buf := make([]byte, 4<<10)
	for err := error(nil); err == nil && !w.Said() && len(head) < mostRefusal; {
		var n int
		n, err = res.Body.Read(buf)
		head = append(head, buf[:n]...)
		_, _ = w.Write(buf[:n])
	}
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), res.Body), Closer: res.Body}
	return w.Answer().Overflow
}

// mostRefusal limits the bytes read of a refusal, which are needed to understand it.
const mostRefusal = 64 << 10

// The reasons to send a request again: it is too long; older thinking is refused; the refusal is not explained, and the
// vendor may not accept the gateway's changes.
const (
	tooLong  = "overflow"
	thinking = "thinking"
	refused  = "refused"
)

// reason returns why a refused request is sent again, or an empty text if the client should get the refusal. res can be
// read as before; its original body is returned.
func (x *sending) reason(res *http.Response) (original io.Closer, why string) {
	head, err := io.ReadAll(io.LimitReader(res.Body, mostRefusal))
	body := res.Body
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), body), Closer: body}
	if err != nil {
		return body, ""
	}
	text, err := payload.Decode(head, res.Header.Get("Content-Encoding"), mostRefusal)
	if err != nil {
		return body, ""
	}
	status := res.StatusCode
	if status == http.StatusOK { // a stream
		w := wire.Watch(x.r.API)
		_, _ = w.Write(text)
		status, text = http.StatusBadRequest, w.Answer().ErrorBody()
	}
	overflow, err := x.host.Overflow(x.turn(), remote.Reported(status, text))
	switch {
	case err != nil:
		return body, ""
	case overflow:
		return body, tooLong
	case (x.altered || x.tool.session != nil || x.claim.Unread || x.claim.Lost) && bytes.Contains(text, []byte("thinking")) &&
		aboutThinking(string(text)):
		return body, thinking
	case x.altered && x.claim.State.Scale(x.original) <= x.policy.Window:
		return body, refused
	}
	return body, ""
}

// second returns the plan to send after the vendor has refused x.
func (x *plan) second(ctx context.Context, why string) (*plan, error) {
	if why == refused {
		return &plan{known: x.known, view: x.viewOf(own(x.known)), handles: x.handles, ingested: x.ingested}, nil
	}
	if err := x.take(ctx, x.claim.Session); err != nil {
		return nil, err
	}
	c := x.claim
	defer c.Release()
	mark := c.Mark()
	p := &plan{known: x.known, view: x.viewOf(c.State), handles: x.handles, repairs: true, refused: x.made}
	if p.refused == nil {
		p.refused = x.refused
	}
	size := len(x.r.With(p.messages))
	if why == thinking {
		c.State.Strip(x.r, x.rolling)
		p.view = x.viewOf(c.State)
	} else if err := p.epochIfDue(ctx, true); err != nil {
		return nil, err
	}
	if len(x.r.With(p.messages)) >= size {
		return nil, errUnchanged
	}
	if err := x.check(&p.view); err != nil {
		return nil, err
	}
	p.durable = true
	p, err := x.conclude(ctx, p, mark, true)
	if err == nil && !p.durable {
		err = errUnchanged
	}
	return p, err
}

// forget discards the gateway's changes: from now on the view is the client's own messages, which the vendor has
// accepted.
func (x *plan) forget(ctx context.Context) error {
	if err := x.take(ctx, x.claim.Session); err != nil {
		return err
	}
	c := x.claim
	defer c.Release()
	c.State = own(x.known)
	c.State.Sent(x.r, x.rolling, x.start)
	c.Tried(x.policy.RetryAfter(x.tokens))
	return c.Save(ctx, x.store, true, x.s.Now())
}

// own returns the state of the conversation without the gateway's changes. On a model that binds its thinking to the
// messages before it, all thinking is left out: some was written after messages that are no longer sent.
func own(x *known) *lineage.State {
	s := *x.claim.State
	s.Epoch, s.Ingest, s.Counts, s.Vendor = nil, nil, nil, 0
	if s.Bound {
		s.Strip(x.r, x.rolling)
	}
	return &s
}

// aboutThinking reports whether a vendor's error text is about thinking: the messages before it have changed, or the
// thinking itself has.
func aboutThinking(text string) bool {
	for _, phrase := range []string{"signature", "bound to a different conversation", "cannot be modified"} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// errUnchanged means that a refused request cannot be made shorter.
var errUnchanged = errors.New("the request could not be repaired")

// turn returns the profile and mode of the request, for calls of the host.
func (x *known) turn() condense.Turn { return condense.Turn{Profile: x.profile, Mode: x.mode} }

// learn adds the vendor's report to the statistics and the state.
func (x *sending) learn(ctx context.Context) error {
	var a wire.Answer
	if x.watcher != nil {
		a = x.watcher.answer()
	}
	x.count(x.once(a))
	if x.claim == nil || x.t.count {
		return nil
	}
	return x.measured(ctx, a)
}

// measured adds the vendor's report to the state.
func (x *sending) measured(ctx context.Context, a wire.Answer) error {
	if a.Overflow {
		x.claim.SetRefused(true)
	}
	// If the prompt was cut, the vendor's count says nothing about its full size.
	if a.Input == 0 || x.truncated(a) || !x.claim.Latest(ctx) {
		return nil
	}
	defer x.claim.Release()
	x.claim.Storing.Store(true)
	defer x.claim.Storing.Store(false) // before the release
	x.claim.SetRefused(false)
	u, rates := lineage.Usage{Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite}, x.rates(a.Input)
	if x.s.Observe && x.original > 0 { // the vendor has seen the original
		share := float64(x.ours) / float64(x.original)
		u = lineage.Usage{Input: int(share * float64(u.Input)), Read: int(share * float64(u.Read)), Write: int(share * float64(u.Write))}
	}
	x.heed(u, a.Output, rates)
	err := x.claim.Save(ctx, x.store, true, x.s.Now())
	if errors.Is(err, store.ErrConflict) { // another gateway was faster, with the next request
		if err = x.claim.Again(ctx, x.store); err == nil {
			x.heed(u, a.Output, rates)
			err = x.claim.Save(ctx, x.store, true, x.s.Now())
		}
	}
	if session.Unstored(err) {
		x.claim.Late(err)
		err = errors.Join(err, x.claim.Save(ctx, x.store, false, x.s.Now()))
	}
	return err
}

// heed changes the state by the vendor's report.
func (x *sending) heed(u lineage.Usage, output int, rates lineage.Rates) {
	s := x.claim.State
	if wire.Marks(x.r.API) { // others count cached tokens as a part of the input
		u = s.Once(x.ours, u, x.twice.has(x.known))
	}
	s.Paid(u, output, rates)
	s.Measured(x.ours, u)
	if s.CountsTwice() && !x.twice.has(x.known) {
		x.twice.add(x.known)
		x.s.Reports.Logger.Warn("a vendor counts the tokens that it reads from its cache twice: from now on only its input_tokens count",
			"model", x.r.Model, "upstream", x.t.upstream.Name, "input", u.Input, "cache_read", u.Read)
	}
}

// once returns a vendor's report without tokens that are counted twice.
func (x *sending) once(a wire.Answer) wire.Answer {
	if x.claim != nil && x.claim.State != nil && wire.Marks(x.r.API) {
		s := *x.claim.State
		a.Input = s.Once(x.ours, lineage.Usage{Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite}, x.twice.has(x.known)).Input
	}
	return a
}

// A watcher is the body of an answer that also passes each byte read to a [wire.Watcher].
type watcher struct {
	io.ReadCloser
	sink     *wire.Watcher
	encoding string
	packed   bytes.Buffer // the part of a compressed answer read so far, up to mostPacked
	bytes    int          // number of bytes read
	more     func(*watcher)
}

// mostPacked limits the bytes kept of a compressed answer. A longer one is not interpreted.
const mostPacked = 4 << 20

func watch(api wire.API, res *http.Response) *watcher {
	w := &watcher{ReadCloser: res.Body, sink: wire.Watch(api), encoding: res.Header.Get("Content-Encoding")}
	if kind := res.Header.Get("X-Amzn-Errortype"); kind != "" && res.StatusCode != http.StatusOK {
		w.sink.Refused(kind)
	}
	return w
}

// Read reads from the vendor.
func (w *watcher) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n == 0 {
		return n, err
	}
	w.bytes += n
	switch {
	case w.encoding == "":
		_, _ = w.sink.Write(p[:n])
	case w.packed.Len() <= mostPacked:
		w.packed.Write(p[:n])
	}
	if w.more != nil {
		w.more(w)
	}
	return n, err
}

// size returns the bytes that the model has written so far. For a compressed answer that exceeds mostPacked it is a
// lower bound.
func (w *watcher) size() int {
	if size := w.sink.Size(); size > 0 {
		return size
	}
	return w.bytes
}

// answer returns the vendor's report so far.
func (w *watcher) answer() wire.Answer {
	if w.encoding != "" && w.packed.Len() <= mostPacked {
		const ratio = 32
		if from, err := payload.Decoder(w.packed.Bytes(), w.encoding); err == nil && from != nil {
			_, _ = io.Copy(w.sink, io.LimitReader(from, ratio*mostPacked))
			_ = from.Close()
		} else if err == nil {
			_, _ = w.sink.Write(w.packed.Bytes())
		}
		w.packed.Reset()
	}
	return w.sink.Answer()
}

// holds returns the API whose requests may carry content in the view that only its vendor can read; see
// [condense.Turn]. It is empty for requests to Anthropic with the login of a plan, because Anthropic requires a header
// that they do not get, and to Amazon, which has no such content.
func (x *known) holds() string {
	if x.r.API == wire.Messages && (x.subscribed || x.t.framed()) {
		return ""
	}
	return messages.Formats[x.r.API]
}

// compactionBeta is the value that Anthropic requires in the Anthropic-Beta header of a request that contains its own
// compactions.
const compactionBeta = "compact-2026-09-04"

// announceBlock sets that header if the view begins with a compaction that the client does not know of.
func (x *sending) announceBlock(r *http.Request) {
	said := strings.Join(r.Header.Values("Anthropic-Beta"), ",")
	if !x.altered || x.r.API != wire.Messages || len(x.messages) == 0 || !wire.Signed(x.messages[0]) ||
		strings.Contains(said, compactionBeta) {
		return
	}
	if said != "" {
		said += ","
	}
	r.Header.Set("Anthropic-Beta", said+compactionBeta)
}
