package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/live/internal/payload"
)

// RoundTrip sends r. If the vendor refuses the gateway's version of the request, RoundTrip repairs it and sends it
// once more.
func (e *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	send := e.req.sender(r.Context()).RoundTrip
	if e.req.compacts && e.req.seen != nil {
		send = e.compaction
	}
	e.announceBlock(r)
	e.asks(r.Context())
	if e.plan.postponed != nil {
		e.plan.postponed.url, e.plan.postponed.header = r.URL, r.Header.Clone()
	}
	res, err := send(e.traceWrite(r))
	if err != nil {
		e.unsent = err
		return nil, err
	}
	e.free = e.free || res.Header.Get(ownCompaction) != ""
	if e.req.lease != nil && !e.req.s.Observe && (refusal(res.StatusCode) || e.startsWithOverflow(res)) {
		if res, err = e.retry(r, res); err != nil {
			return nil, err
		}
	}
	e.sayUnread(res)
	e.watcher, e.status = watch(e.req.parsed.API, res), res.StatusCode
	e.watcher.more = func(w *watcher) { e.reserve(w.size(), w.sink.Seen()) }
	res.Body = e.watcher
	if e.spliceable(res) {
		return e.answerCalls(r, res)
	}
	e.plan.letGo()
	return res, nil
}

// sender returns the transport of the request.
func (r *request) sender(ctx context.Context) http.RoundTripper {
	if r.in.chain != nil {
		return r.in.chain
	}
	return r.t.sender(ctx)
}

// retry sends a second plan after a refusal, if there is one, and returns the answer for the client.
func (e *exchange) retry(r *http.Request, res *http.Response) (*http.Response, error) {
	if e.plan.postponed != nil {
		e.plan.postponed.leave()
	}
	e.plan.postponed = nil
	text, why := e.reason(res)
	if why == "" {
		return res, nil
	}
	var second *plan
	ctx := r.Context()
	err := e.req.g.safely("repair", func() (err error) {
		second, err = e.plan.second(ctx, why)
		return err
	})
	if err != nil {
		e.req.g.fault("repair", err)
		if why == tooLong {
			e.req.failed(ctx, e.req.parsed.Model, err, true)
		}
		return res, nil
	}
	_ = text.Close()
	e.plan = second
	again := r.Clone(r.Context())
	e.body = e.req.parsed.With(e.plan.messages)
	payload.Replace(again, e.body)
	e.announceBlock(again)
	e.req.s.Reports.Logger.WarnContext(r.Context(), "the vendor refused a request, which is repaired and sent again", "why", why, "model",
		e.req.parsed.Model, "agent", e.req.from.agent.Name)
	e.req.g.stats.Fault("retry_" + why)
	next, err := e.req.sender(ctx).RoundTrip(again)
	if err != nil {
		return nil, err
	}
	next.Header.Set("X-Condense-Retry", why)
	if why == refused && !refusal(next.StatusCode) {
		if err := e.req.g.safely("forget", func() error { return e.plan.forget(ctx) }); err != nil {
			e.req.g.fault("forget", err)
		}
	} else if why == thinking && !refusal(next.StatusCode) {
		e.req.g.bound.add(e.req)
	}
	return next, nil
}

// traceWrite returns r with a trace that sets e.written once the whole request has been written to the vendor.
func (e *exchange) traceWrite(r *http.Request) *http.Request {
	written := new(atomic.Bool)
	e.written = written
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { written.Store(i.Err == nil) },
	}))
}

// refusal reports whether a status can mean that the vendor refused the history.
func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// startsWithOverflow reports whether a stream begins with the error that the prompt is too long, as some APIs send it.
// It reads the first event, which announces the answer, and the event after it; res can be read as before. To avoid
// delaying other answers, it looks only at prompts that fill at least a quarter of the known window.
func (e *exchange) startsWithOverflow(res *http.Response) bool {
	r := e.req
	if !wire.Of(r.parsed.API).Announces || !r.parsed.Stream || res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "" ||
		e.plan.tokens < r.limits.policy.Window/4 {
		return false
	}
	w := wire.Watch(r.parsed.API)
	var head []byte
	buf := make([]byte, 4<<10)
	for err := error(nil); err == nil && !w.Said() && len(head) < maxRefusal; {
		var n int
		n, err = res.Body.Read(buf)
		head = append(head, buf[:n]...)
		_, _ = w.Write(buf[:n])
	}
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), res.Body), Closer: res.Body}
	return w.Answer().Overflow
}

// maxRefusal limits the bytes read of a refusal, which are needed to understand it.
const maxRefusal = 64 << 10

// refusalOf returns the text of a refusal, decompressed. res can be read as before.
func refusalOf(res *http.Response) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), res.Body), Closer: res.Body}
	if err != nil {
		return nil, err
	}
	return payload.Decode(head, res.Header.Get("Content-Encoding"), maxRefusal)
}

// The reasons to send a request again: it is too long; older thinking is refused; the refusal is not explained, and the
// vendor may not accept the gateway's changes.
const (
	tooLong  = "overflow"
	thinking = "thinking"
	refused  = "refused"
)

// reason returns why a refused request is sent again, or an empty text if the client should get the refusal. res can be
// read as before; its original body is returned.
func (e *exchange) reason(res *http.Response) (original io.Closer, why string) {
	body := res.Body
	text, err := refusalOf(res)
	if err != nil {
		return body, ""
	}
	status := res.StatusCode
	if status == http.StatusOK { // a stream
		w := wire.Watch(e.req.parsed.API)
		_, _ = w.Write(text)
		status, text = http.StatusBadRequest, w.Answer().ErrorBody()
	}
	overflow, err := e.req.g.host.Overflow(e.req.turn(), remote.Reported(status, text))
	n, absurd := 0, false
	if overflow {
		n, absurd = named(string(text), e.plan.tokens, e.req.media, e.req.limits.policy.Window)
		remember(e.plan, n, absurd, string(text))
	}
	switch {
	case err != nil, absurd:
		return body, ""
	case overflow:
		return body, tooLong
	case (e.plan.altered || e.req.tool.session != nil || e.req.lease.Unread || e.req.lease.Lost) && bytes.Contains(text, []byte("thinking")) &&
		slices.ContainsFunc(aboutThinking, func(s string) bool { return bytes.Contains(text, []byte(s)) }):
		return body, thinking
	case e.plan.altered && e.plan.state.Scale(e.plan.original) <= e.req.limits.policy.Window:
		return body, refused
	}
	return body, ""
}

// second returns the plan to send after the vendor has refused p.
func (p *plan) second(ctx context.Context, why string) (*plan, error) {
	if why == refused {
		next := p.req.planned(own(p.req, p.state))
		next.handles, next.durable, next.ingested = p.handles, false, p.ingested
		return next, nil
	}
	if err := p.req.take(ctx, p.req.lease.Session); err != nil {
		return nil, err
	}
	c := p.req.lease
	defer c.Release()
	next := p.req.planned(p.req.current())
	next.handles, next.durable, next.repairs, next.refused = p.handles, false, true, cmp.Or(p.made, p.refused)
	size := len(p.req.parsed.With(next.messages))
	if why == thinking {
		next.state.Strip(p.req.parsed, p.req.rolling)
		next.view = p.req.viewOf(next.state)
	} else if err := next.epochIfDue(ctx, true); err != nil {
		return nil, err
	}
	if len(p.req.parsed.With(next.messages)) >= size {
		return nil, errUnchanged
	}
	if err := p.req.check(&next.view); err != nil {
		return nil, err
	}
	next.durable = true
	next, err := p.req.conclude(ctx, next, true)
	if err == nil && !next.durable {
		err = errUnchanged
	}
	return next, err
}

// forget discards the gateway's changes: from now on the view is the client's own messages, which the vendor has
// accepted.
func (p *plan) forget(ctx context.Context) error {
	if err := p.req.take(ctx, p.req.lease.Session); err != nil {
		return err
	}
	defer p.req.lease.Release()
	p.req.lease.Tried(p.req.limits.policy.RetryAfter(p.tokens))
	return p.req.planned(own(p.req, p.req.lease.State)).write(ctx, true)
}

// own returns a state without the gateway's changes. On a model that binds its thinking to the messages before it, all thinking is left
// out: some was written after messages that are no longer sent.
func own(r *request, of *lineage.State) *lineage.State {
	s := *of
	s.Epoch, s.Ingest, s.Counts, s.Vendor = nil, nil, nil, 0
	if s.Bound {
		s.Strip(r.parsed, r.rolling)
	}
	return &s
}

// aboutThinking are in a vendor's errors about thinking: the messages before it have changed, or the thinking itself has.
var aboutThinking = []string{"signature", "bound to a different conversation", "cannot be modified"}

// errUnchanged means that a refused request cannot be made shorter.
var errUnchanged = errors.New("the request could not be repaired")

// turn returns the profile and mode of the request, for calls of the host.
func (r *request) turn() condense.Turn {
	return condense.Turn{Profile: r.limits.profile, Mode: r.limits.mode}
}

// learn adds the vendor's report to the statistics and the state.
func (e *exchange) learn(ctx context.Context) error {
	var a wire.Answer
	if e.watcher != nil {
		a = e.watcher.answer()
	}
	e.count(e.once(a))
	if e.req.lease == nil || e.req.t.count {
		return nil
	}
	return e.measured(ctx, a)
}

// measured adds the vendor's report to the state.
func (e *exchange) measured(ctx context.Context, a wire.Answer) error {
	r := e.req
	if a.Overflow {
		n, absurd := named(a.ErrorText, e.plan.tokens, r.media, r.limits.policy.Window)
		remember(e.plan, n, absurd, a.ErrorText)
		if a.Overflow = !absurd; a.Overflow {
			r.lease.SetRefused(true)
		}
	}
	if a.ErrorType != "" && e.status >= http.StatusBadRequest && !a.Overflow {
		return e.unanswered(ctx, refusedWith(e.status, a))
	}
	// If the prompt was cut, the vendor's count says nothing about its full size.
	if a.Input == 0 || e.truncated(a) || !r.lease.Latest(ctx) {
		return nil
	}
	defer r.lease.Release()
	r.lease.Storing.Store(true)
	r.lease.SetRefused(false)
	r.lease.Refuse(job.Cause{}, r.s.Now())
	u, rates := lineage.Usage{Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite}, r.tariff.rates(a.Input)
	if r.s.Observe && e.plan.original > 0 { // the vendor has seen the original
		share := float64(e.plan.ours) / float64(e.plan.original)
		u = lineage.Usage{Input: int(share * float64(u.Input)), Read: int(share * float64(u.Read)), Write: int(share * float64(u.Write))}
	}
	err := r.save(ctx, e.heed(u, a.Output, rates), true, r.s.Now())
	if errors.Is(err, store.ErrConflict) { // another gateway was faster, with the next request
		if err = r.lease.Again(ctx, r.g.store); err == nil {
			err = r.save(ctx, e.heed(u, a.Output, rates), true, r.s.Now())
		}
	}
	if session.Unstored(err) {
		r.lease.Late(err)
		err = errors.Join(err, r.save(ctx, r.lease.State, false, r.s.Now()))
	}
	return err
}

// unanswered notes, in the description of a conversation that has had answers, that its vendor does not answer.
func (e *exchange) unanswered(ctx context.Context, why job.Cause) error {
	r := e.req
	if r.lease == nil || r.t.count || !r.lease.Latest(ctx) {
		return nil
	}
	defer r.lease.Release()
	if r.lease.Based == 0 || !r.lease.Refuse(why, r.s.Now()) {
		return nil
	}
	return r.save(ctx, r.current(), true, r.s.Now())
}

// heed returns the state with the vendor's report.
func (e *exchange) heed(u lineage.Usage, output int, rates lineage.Rates) *lineage.State {
	s := e.req.current()
	if wire.Marks(e.req.parsed.API) { // others count cached tokens as a part of the input
		u = s.Once(e.plan.ours, u, e.req.g.twice.has(e.req))
	}
	s.Paid(u, output, rates)
	s.Measured(e.plan.ours, u)
	if s.CountsTwice() && !e.req.g.twice.has(e.req) {
		e.req.g.twice.add(e.req)
		e.req.s.Reports.Logger.Warn("a vendor counts the tokens that it reads from its cache twice: from now on only its input_tokens count",
			"model", e.req.parsed.Model, "upstream", e.req.t.upstream.Name, "input", u.Input, "cache_read", u.Read)
	}
	return s
}

// once returns a vendor's report without tokens that are counted twice.
func (e *exchange) once(a wire.Answer) wire.Answer {
	if e.plan.state != nil && wire.Marks(e.req.parsed.API) {
		s := *e.plan.state
		a.Input = s.Once(e.plan.ours, lineage.Usage{Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite}, e.req.g.twice.has(e.req)).Input
	}
	return a
}

// A watcher is the body of an answer that also passes each byte read to a [wire.Watcher].
type watcher struct {
	io.ReadCloser
	sink     *wire.Watcher
	encoding string
	packed   bytes.Buffer // the part of a compressed answer read so far, up to maxPacked
	bytes    int          // number of bytes read
	more     func(*watcher)
}

// maxPacked limits the bytes kept of a compressed answer. A longer one is not interpreted.
const maxPacked = 4 << 20

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
	case w.packed.Len() <= maxPacked:
		w.packed.Write(p[:n])
	}
	if w.more != nil {
		w.more(w)
	}
	return n, err
}

// size returns the bytes that the model has written so far. For a compressed answer that exceeds maxPacked it is a
// lower bound.
func (w *watcher) size() int {
	if size := w.sink.Size(); size > 0 {
		return size
	}
	return w.bytes
}

// answer returns the vendor's report so far.
func (w *watcher) answer() wire.Answer {
	if w.encoding != "" && w.packed.Len() <= maxPacked {
		const ratio = 32
		if from, err := payload.Decoder(w.packed.Bytes(), w.encoding); err == nil && from != nil {
			_, _ = io.Copy(w.sink, io.LimitReader(from, ratio*maxPacked))
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
func (r *request) holds() string {
	api := wire.Of(r.parsed.API)
	if api.Signs && (r.from.subscribed || r.t.framed()) {
		return ""
	}
	return api.Format
}

// compactionBeta is the value that Anthropic requires in the Anthropic-Beta header of a request that contains its own
// compactions.
const compactionBeta = "compact-2026-09-04"

// announceBlock sets that header if the view begins with a compaction that the client does not know of.
func (e *exchange) announceBlock(r *http.Request) {
	said := strings.Join(r.Header.Values("Anthropic-Beta"), ",")
	if !e.plan.altered || !wire.Of(e.req.parsed.API).Signs || len(e.plan.messages) == 0 || !wire.Signed(e.plan.messages[0]) ||
		strings.Contains(said, compactionBeta) {
		return
	}
	if said != "" {
		said += ","
	}
	r.Header.Set("Anthropic-Beta", said+compactionBeta)
}
