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

// A sender sends a request and watches the answer.
type sender struct{ x *exchange }

// RoundTrip sends r. If the vendor refuses the gateway's version of the request, RoundTrip repairs it and sends it
// once more.
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
			x.stats.Fault("retry_" + why)
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

// noted returns r with a trace that sets x.written once the whole request has been written to the vendor.
func (x *exchange) noted(r *http.Request) *http.Request {
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
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), res.Body), Closer: res.Body}
	return w.Answer().Overflow
}

// mostRefusal limits the bytes read of a refusal, which are needed to understand it.
const mostRefusal = 64 << 10

// repair returns the request to send in place of a refused one, and the reason. again is nil if the client should get
// the refusal; res can then be read as before.
func (x *exchange) repair(r *http.Request, res *http.Response) (again *http.Request, why string) {
	head, err := io.ReadAll(io.LimitReader(res.Body, mostRefusal))
	original := res.Body
	res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(head), original), Closer: original}
	if err != nil {
		return nil, ""
	}
	text, err := payload.Decode(head, res.Header.Get("Content-Encoding"), mostRefusal)
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
	case (x.altered || x.equipped != nil || x.claim.Unread || x.claim.Lost) && bytes.Contains(text, []byte("thinking")) && aboutThinking(string(text)):
		why = thinking
	case x.altered && x.claim.State.Scale(x.original) <= x.policy.Window:
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
	payload.Replace(again, x.sent)
	x.announceBlock(again)
	return again, why
}

// thinking is the reason to send a request again without older thinking.
const thinking = "thinking"

// refused is the reason to send a request again after an unexplained refusal: the vendor may not accept the gateway's
// changes.
const refused = "refused"

// own returns the state of the conversation without the gateway's changes. On a model that binds its thinking to the
// messages before it, all thinking is left out: some was written after messages that are no longer sent.
func (x *exchange) own() *lineage.State {
	s := *x.claim.State
	s.Epoch, s.Ingest, s.Counts, s.Vendor = nil, nil, nil, 0
	if x.caching.Bound {
		s.Strip(x.r, x.rolling)
	}
	return &s
}

// forget discards the gateway's changes: from now on the view is the client's own messages, which the vendor has
// accepted.
func (x *exchange) forget(ctx context.Context) error {
	if err := x.take(ctx, x.claim.Session); err != nil {
		return err
	}
	c := x.claim
	defer c.Release()
	c.State = x.own()
	c.State.Sent(x.r, x.rolling, x.start)
	c.Tried(x.policy.RetryAfter(x.tokens))
	return c.Save(ctx, x.store, true, x.s.Now())
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

// again makes another view after a refusal.
func (x *exchange) again(ctx context.Context, why string) error {
	if err := x.take(ctx, x.claim.Session); err != nil {
		return err
	}
	c := x.claim
	defer func() { x.claim.Release() }()
	before := *c.State
	x.epoch, x.next, x.kept, x.ingested, x.repairs, x.undone = nil, nil, nil, 0, true, false
	x.plan = x.planOf(c.State)
	size := len(x.r.With(x.view))
	if why == thinking {
		c.State.Strip(x.r, x.rolling)
		x.plan = x.planOf(c.State)
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

// turn returns the profile and mode of the request, for calls of the host.
func (x *exchange) turn() condense.Turn { return condense.Turn{Profile: x.profile, Mode: x.mode} }

// learn adds the vendor's report to the statistics and the state.
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

// measured adds the vendor's report to the state.
func (x *exchange) measured(ctx context.Context, a wire.Answer) error {
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
	x.claim.State.Paid(u, a.Output, rates)
	x.claim.State.Measured(x.ours, u)
	err := x.claim.Save(ctx, x.store, true, x.s.Now())
	if errors.Is(err, store.ErrConflict) { // another gateway was faster, with the next request
		if err = x.claim.Again(ctx, x.store); err == nil {
			x.claim.State.Paid(u, a.Output, rates)
			x.claim.State.Measured(x.ours, u)
			err = x.claim.Save(ctx, x.store, true, x.s.Now())
		}
	}
	if session.Unstored(err) {
		x.claim.Late(err)
		err = errors.Join(err, x.claim.Save(ctx, x.store, false, x.s.Now()))
	}
	return err
}

// A watcher is the body of an answer that also passes each byte read to a [wire.Watcher].
type watcher struct {
	io.ReadCloser
	sink     *wire.Watcher
	encoding string
	packed   bytes.Buffer // the part of a compressed answer read so far, up to mostPacked
	bytes    int          // number of bytes read
}

// mostPacked limits the bytes kept of a compressed answer. A longer one is not interpreted.
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
		if from, err := payload.Decoder(w.packed.Bytes(), w.encoding, ratio*mostPacked); err == nil && from != nil {
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
// that they do not get.
func (x *exchange) holds() string {
	if x.r.API == wire.Messages && x.subscribed {
		return ""
	}
	return messages.Formats[x.r.API]
}

// compactionBeta is the value that Anthropic requires in the Anthropic-Beta header of a request that contains its own
// compactions.
const compactionBeta = "compact-2026-09-04"

// announceBlock sets that header if the view begins with a compaction that the client does not know of.
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
