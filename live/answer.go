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
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/remote"
)

// A sender sends a request and watches the answer.
type sender struct{ x *exchange }

// RoundTrip sends r. If the vendor refuses what we made of it, it is repaired and sent once
// more.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	x := s.x
	send := x.t.upstream.RoundTrip
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
	x.free = res.Header.Get(ownCompaction) != ""
	if x.claim != nil && !x.s.Observe && (refusal(res.StatusCode) || x.late(res)) {
		x.cancelLater()
		again, why := x.repair(r, res)
		if again != nil {
			x.s.Logger.WarnContext(r.Context(), "the vendor refused a request, which is repaired and sent again", "why", why, "model", x.r.Model, "agent", x.agent.Name)
			x.stats.fault("retry_" + why)
			second, err := x.t.upstream.RoundTrip(again)
			if err != nil {
				return nil, err
			}
			second.Header.Set("X-Condense-Retry", why)
			if ctx := r.Context(); why == refused && !refusal(second.StatusCode) {
				if err := x.safely("forget", func() error { return x.forget(ctx) }); err != nil {
					x.fault("forget", err)
				}
			} else if why == thinking && !refusal(second.StatusCode) {
				x.bound.add(x)
			}
			res = second
		}
	}
	x.watcher, x.status = watch(x.r.API, res), res.StatusCode
	res.Body = x.watcher
	if x.spliceable(res) {
		return x.answerCalls(r, res)
	}
	x.letGo()
	return res, nil
}

// noted returns the request so that it is known when the vendor has got it whole.
func (x *exchange) noted(r *http.Request) *http.Request {
	written := new(atomic.Bool)
	x.written = written
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(i httptrace.WroteRequestInfo) { written.Store(i.Err == nil) },
	}))
}

// refusal reports whether a status can mean that the history was refused.
func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// late reports whether the vendor says in a stream, before anything else, that the prompt is too long, as OpenAI's Responses
// API does. It reads the announcement of the answer and the event after it; res can be read as before. To delay no other answers, it
// looks only at those to prompts that fill a quarter of the window that we know.
func (x *exchange) late(res *http.Response) bool {
	if x.r.API != wire.Responses || !x.r.Stream || res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "" || x.tokens < x.policy.Window/4 {
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
	res.Body = readCloser{io.MultiReader(bytes.NewReader(head), res.Body), res.Body}
	return w.Answer().Overflow
}

// mostRefusal is how much of a refusal is read to understand it.
const mostRefusal = 64 << 10

// repair returns the request to send in place of one that was refused, and why; nil if the client gets the
// refusal. Res can be read as before in that case.
func (x *exchange) repair(r *http.Request, res *http.Response) (again *http.Request, why string) {
	head, err := io.ReadAll(io.LimitReader(res.Body, mostRefusal))
	original := res.Body
	res.Body = readCloser{io.MultiReader(bytes.NewReader(head), original), original}
	if err != nil {
		return nil, ""
	}
	text, err := decode(head, res.Header.Get("Content-Encoding"), mostRefusal)
	if err != nil {
		return nil, ""
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
		return nil, ""
	case overflow:
		why = "overflow"
	case (x.altered || x.equipped != nil || x.claim.unread || x.claim.lost) && bytes.Contains(text, []byte("thinking")) && aboutThinking(string(text)):
		why = thinking
	case x.altered && x.claim.state.Scale(x.original) <= x.policy.Window:
		why = refused
	default:
		return nil, ""
	}
	ctx := r.Context()
	err = x.safely("repair", func() error {
		if why == refused {
			x.epoch, x.next, x.kept, x.undone = nil, nil, nil, false
			x.plan = x.planOf(x.own())
			return nil
		}
		return x.again(ctx, why)
	})
	if err != nil {
		x.fault("repair", err)
		return nil, ""
	}
	_ = original.Close()
	again = r.Clone(ctx)
	x.sent = x.r.With(x.view)
	replaceBody(again, x.sent)
	x.announceBlock(again)
	return again, why
}

// thinking is why a request is sent again without older thinking.
const thinking = "thinking"

// refused is why a request is sent again for no reason that we know: the vendor may not like what we made of it.
const refused = "refused"

// own returns the state of the conversation without what we made of it. On a model that binds its thinking, none is sent: some of it
// was written after messages that are not sent any more.
func (x *exchange) own() *lineage.State {
	s := *x.claim.state
	s.Epoch, s.Ingest, s.Counts, s.Vendor = nil, nil, nil, 0
	if x.caching.Bound {
		s.Strip(x.r, x.rolling)
	}
	return &s
}

// forget makes the client's own messages, which the vendor has taken, the view from now on.
func (x *exchange) forget(ctx context.Context) error {
	if err := x.take(ctx, x.claim.session); err != nil {
		return err
	}
	c := x.claim
	defer c.release()
	c.state = x.own()
	c.state.Sent(x.r, x.rolling, x.start)
	c.tried(x.policy.RetryAfter(x.tokens))
	return c.save(ctx, x.store, true, x.s.Now())
}

// aboutThinking reports whether a vendor refused thinking because of what was sent before it, or because it is
// not what the model wrote.
func aboutThinking(text string) bool {
	for _, phrase := range []string{"signature", "bound to a different conversation", "cannot be modified"} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// again makes another view after a refusal.
func (x *exchange) again(ctx context.Context, why string) error {
	if err := x.take(ctx, x.claim.session); err != nil {
		return err
	}
	c := x.claim
	defer func() { x.claim.release() }()
	before := *c.state
	x.epoch, x.next, x.kept, x.ingested, x.repairs, x.undone = nil, nil, nil, 0, true, false
	x.plan = x.planOf(c.state)
	size := len(x.r.With(x.view))
	if why == thinking {
		c.state.Strip(x.r, x.rolling)
		x.plan = x.planOf(c.state)
	} else if err := x.epochIfDue(ctx, true); err != nil {
		return err
	}
	if len(x.r.With(x.view)) >= size {
		return errUnchanged
	}
	if err := x.check(&x.plan); err != nil {
		return err
	}
	x.durable = true
	if err := x.commit(ctx, &before); err != nil {
		return err
	}
	if !x.durable {
		return errUnchanged
	}
	return nil
}

// errUnchanged means that a refused request cannot be made shorter.
var errUnchanged = errors.New("the request could not be repaired")

// turn names the profile for questions to the host.
func (x *exchange) turn() condense.Turn { return condense.Turn{Profile: x.profile, Mode: x.mode} }

// learn takes what the vendor reports into the statistics and the state.
func (x *exchange) learn(ctx context.Context) error {
	var a wire.Answer
	if x.watcher != nil {
		a = x.watcher.answer()
	}
	x.count(a)
	if x.claim == nil || x.t.count {
		return nil
	}
	return x.measured(ctx, a)
}

// measured takes what the vendor reports into the state.
func (x *exchange) measured(ctx context.Context, a wire.Answer) error {
	if a.Overflow {
		x.claim.session.mu.Lock()
		x.claim.refused = true
		x.claim.session.mu.Unlock()
	}
	if a.Input == 0 || x.truncated(a) || !x.claim.latest(ctx) { // the size of what was cut says nothing about the rest
		return nil
	}
	defer x.claim.release()
	x.claim.storing.Store(true)
	defer x.claim.storing.Store(false) // before the release
	x.claim.session.mu.Lock()
	x.claim.refused = false
	x.claim.session.mu.Unlock()
	u, rates := lineage.Usage{Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite}, x.rates(a.Input)
	if x.s.Observe && x.original > 0 { // the vendor has seen the original
		share := float64(x.ours) / float64(x.original)
		u = lineage.Usage{Input: int(share * float64(u.Input)), Read: int(share * float64(u.Read)), Write: int(share * float64(u.Write))}
	}
	x.claim.state.Paid(u, a.Output, rates)
	x.claim.state.Measured(x.ours, u)
	err := x.claim.save(ctx, x.store, true, x.s.Now())
	if errors.Is(err, store.ErrConflict) { // with the next request, another gateway was faster
		if err = x.claim.again(ctx, x.store); err == nil {
			x.claim.state.Paid(u, a.Output, rates)
			x.claim.state.Measured(x.ours, u)
			err = x.claim.save(ctx, x.store, true, x.s.Now())
		}
	}
	if unstored(err) {
		x.claim.late(err)
		err = errors.Join(err, x.claim.save(ctx, x.store, false, x.s.Now()))
	}
	return err
}

// A watcher is the body of an answer. Each byte that is read through it is seen by a [wire.Watcher] too.
type watcher struct {
	io.ReadCloser
	sink     *wire.Watcher
	encoding string
	packed   bytes.Buffer // what was read of a compressed answer
	bytes    int          // that were read
}

// mostPacked limits what is kept of a compressed answer. What is longer is not understood.
const mostPacked = 4 << 20

func watch(api wire.API, res *http.Response) *watcher {
	return &watcher{ReadCloser: res.Body, sink: wire.Watch(api), encoding: res.Header.Get("Content-Encoding")}
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
	return n, err
}

// size is how much the model wrote so far, in bytes. Of a compressed answer that is too long it is at least that.
func (w *watcher) size() int {
	if size := w.sink.Size(); size > 0 {
		return size
	}
	return w.bytes
}

// answer is what the vendor has reported so far.
func (w *watcher) answer() wire.Answer {
	if w.encoding != "" && w.packed.Len() <= mostPacked {
		const ratio = 32
		if from, err := decoder(w.packed.Bytes(), w.encoding, ratio*mostPacked); err == nil && from != nil {
			_, _ = io.Copy(w.sink, io.LimitReader(from, ratio*mostPacked))
			_ = from.Close()
		} else if err == nil {
			_, _ = w.sink.Write(w.packed.Bytes())
		}
		w.packed.Reset()
	}
	return w.sink.Answer()
}

// holds names the API in whose requests a view can have what only its vendor reads; see [condense.Turn]. Anthropic wants a header with it, and
// requests with the login of a plan get none.
func (x *exchange) holds() string {
	if x.r.API == wire.Messages && x.subscribed {
		return ""
	}
	return formats[x.r.API]
}

// compactionBeta is the version that Anthropic wants in the header of a request with a compaction of its own.
const compactionBeta = "compact-2026-09-04"

// announceBlock tells the vendor of a compaction in the view that the client does not know of.
func (x *exchange) announceBlock(r *http.Request) {
	said := strings.Join(r.Header.Values("Anthropic-Beta"), ",")
	if !x.altered || x.r.API != wire.Messages || len(x.view) == 0 || !wire.Signed(x.view[0]) || strings.Contains(said, compactionBeta) {
		return
	}
	if said != "" {
		said += ","
	}
	r.Header.Set("Anthropic-Beta", said+compactionBeta)
}
