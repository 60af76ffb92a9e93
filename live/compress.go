package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
)

// Gateways that send requests to vendors themselves ask /v1/compress for the messages to send. It follows the contract of
// headroom's proxy, which such gateways support:
// https://docs.headroomlabs.ai/docs/proxy. Two points go beyond it: handles are written only if the caller asks for
// retrieve, or for the mode ccr, and can recall; and the system prompt and tools count towards the size if they are
// sent.

// compressed is the answer to a call of /v1/compress.
type compressed struct {
	messages      [][]byte
	changed       bool // messages differ from the caller's
	before, after int
	applied       []string
	handles       []string
	skipped       string // why the messages were not condensed
	session       string // session ID as the caller sent it
	replayed      int    // messages at the front that are the same as in the last answer
}

func (c *compressed) write(w http.ResponseWriter) {
	ratio := 1.0
	if c.before > 0 {
		ratio = float64(c.after) / float64(c.before)
	}
	summary := map[string]int{}
	for _, a := range c.applied {
		summary[a]++
	}
	rest := map[string]any{
		"tokens_before": c.before, "tokens_after": c.after, "tokens_saved": c.before - c.after, "compression_ratio": ratio,
		"transforms_applied": append([]string{}, c.applied...), "transforms_summary": summary, "ccr_hashes": append([]string{}, c.handles...),
	}
	if c.skipped != "" {
		rest["compression_skipped"], rest["skip_reason"] = true, c.skipped
	}
	if c.session != "" {
		rest["session"] = map[string]any{"id": c.session, "frozen_message_count": c.replayed, "cached_prefix_replayed": c.replayed > 0}
	}
	tail, err := json.Marshal(rest)
	if err != nil { // only a NaN could fail, and there is none
		tail = []byte("{}")
	}
	out := append([]byte(`{"messages":`), rawjson.Array(c.messages)...)
	payload.WriteJSON(w, append(append(out, ','), tail[1:]...))
}

// compressFault writes an error in the format of headroom's contract.
func compressFault(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	out := rawjson.Append(nil, `{"error":{"type":?,"message":?}}`, kind, "condense: "+text)
	_, _ = w.Write(out) //nolint:gosec // JSON, with the text encoded
}

const invalidRequest = "invalid_request"

// jsonBody reads the body of a request to the gateway's own API. If it returns nil, it has answered the request with an
// error. The caller must call leave when done with the body.
func (g *Gateway) jsonBody(w http.ResponseWriter, r *http.Request, s *settings, t *target) (text []byte, leave func()) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		compressFault(w, http.StatusMethodNotAllowed, invalidRequest, "use POST")
		return nil, func() {}
	}
	b, left, err := g.takeBody(w, r, s, t, s.Bounds.MaxBody)
	if err != nil {
		status, text := unread(w, err)
		compressFault(w, status, invalidRequest, text)
		return nil, left
	}
	leave = func() {
		left()
		b.Hold.Close()
	}
	switch {
	case b.Rest != nil:
		compressFault(w, http.StatusRequestEntityTooLarge, invalidRequest, "the body has more than "+strconv.FormatInt(s.Bounds.MaxBody,
			10)+" bytes (serve.max_body)")
	case b.Decoded == nil:
		compressFault(w, http.StatusUnsupportedMediaType, invalidRequest,
			"the Content-Encoding is unknown, or does not fit the body; use none, gzip or zstd")
	case !json.Valid(b.Decoded) || !rawjson.IsObject(bytes.TrimSpace(b.Decoded)):
		compressFault(w, http.StatusBadRequest, invalidRequest, "the body is not a JSON object")
	default:
		return bytes.TrimSpace(b.Decoded), leave
	}
	return nil, leave
}

// serveCompress answers /v1/compress, also when it is called as a webhook of Portkey's gateway.
func (g *Gateway) serveCompress(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	body, leave := g.jsonBody(w, r, s, t)
	defer leave()
	if body == nil {
		return
	}
	if rawjson.Field(body, "eventType") == nil {
		if a := g.compress(w, r, s, t, body); a != nil {
			a.write(w)
		}
		return
	}
	// Portkey's gateway has no integration for headroom, so it calls as a guardrail of type webhook:
	// https://portkey.ai/docs/integrations/guardrails/bring-your-own-guardrails
	request := rawjson.Field(rawjson.Field(body, "request"), "json")
	if !rawjson.IsArray(rawjson.Field(request, "messages")) || rawjson.Text(rawjson.Field(body, "eventType")) != "beforeRequestHook" {
		payload.WriteJSON(w, []byte(`{"verdict":true}`))
		return
	}
	asked := request
	if id := rawjson.Field(rawjson.Field(body, "metadata"), "session_id"); id != nil {
		asked = rawjson.SetField(request, "session_id", id)
	}
	if a := g.compress(w, r, s, t, asked); a != nil && len(a.applied) == 0 {
		payload.WriteJSON(w, []byte(`{"verdict":true}`))
	} else if a != nil {
		request = rawjson.SetField(request, "messages", rawjson.Array(a.messages))
		payload.WriteJSON(w, rawjson.Append(nil, `{"verdict":true,"transformedData":{"request":{"json":?}}}`, request))
	}
}

// compress condenses the messages of a call. If it returns nil, it has answered the call with an error, or the client
// has disconnected.
func (g *Gateway) compress(w http.ResponseWriter, r *http.Request, s *settings, t *target, body []byte) *compressed {
	raw := rawjson.Field(body, "messages")
	switch {
	case !rawjson.IsArray(raw):
		compressFault(w, http.StatusBadRequest, invalidRequest, "messages is missing or not an array")
		return nil
	case rawjson.Text(rawjson.Field(body, "model")) == "":
		compressFault(w, http.StatusBadRequest, invalidRequest, "model is missing: name the model that the messages are for")
		return nil
	case len(rawjson.Field(body, "model")) > longestModel:
		compressFault(w, http.StatusBadRequest, invalidRequest, fmt.Sprintf("model: use at most %d bytes", longestModel))
		return nil
	}
	messages := slices.Collect(rawjson.Elements(raw))
	if len(messages) == 0 || strings.EqualFold(r.Header.Get("X-Headroom-Bypass"), "true") {
		return &compressed{messages: messages}
	}
	q, err := questionOf(body)
	if err != nil {
		compressFault(w, http.StatusBadRequest, invalidRequest, err.Error())
		return nil
	}
	// It counts as a plan's request, so that nothing is done that needs a header.
	req := &request{
		g: g, s: s, t: t, in: incoming{header: r.Header, start: s.Now()}, from: origin{agent: agents.Any(), subscribed: true}, calls: true,
	}
	if req.parsed, err = wire.Parse(shapeOf(body), body, &wire.Options{Cache: g.parsed}); err == nil && q.session == "" {
		if all := q.complete(req.parsed.Messages); len(q.added) > 0 {
			req.parsed, err = wire.Parse(req.parsed.API, req.parsed.With(all), nil)
		}
	}
	if err != nil {
		compressFault(w, http.StatusBadRequest, invalidRequest, err.Error())
		return nil
	}
	g.stats.Add(func(s *Stats) { s.Requests++ })
	var answer *compressed
	ctx := r.Context()
	err = g.safely("compress", func() (err error) {
		answer, err = q.answer(ctx, req)
		return err
	})
	if req.lease != nil {
		req.lease.Release()
	}
	if err != nil && r.Context().Err() != nil {
		return nil
	}
	if err != nil {
		g.fault("compress", err)
		// The vendor's cache has the messages returned earlier, so returning these unchanged would miss it.
		if q.session != "" {
			compressFault(w, http.StatusServiceUnavailable, "compression_error",
				"the messages could not be condensed: try again, or send what came with another session_id")
			return nil
		}
		answer = &compressed{messages: messages, skipped: "compression_error"}
		if errors.Is(err, job.ErrQueue) || errors.Is(err, context.DeadlineExceeded) {
			answer.skipped = "compression_timeout"
		}
	}
	if answer.session = q.id; !answer.changed {
		g.stats.Add(func(s *Stats) { s.Passed++ })
	}
	for _, i := range slices.Backward(q.added) {
		if len(answer.messages) > len(messages) {
			n := count.Tokens(answer.messages[i])
			answer.messages = slices.Delete(answer.messages, i, i+1)
			answer.before, answer.after = answer.before-n, answer.after-n
		}
	}
	return answer
}

// answer returns the messages to send in place of the request's.
func (q *question) answer(ctx context.Context, r *request) (*compressed, error) {
	own := messages.Raw(r.parsed.Messages)
	switch {
	case r.s.Observe:
		return &compressed{messages: own, skipped: "observe"}, nil
	case len(own) > maxMessages:
		return &compressed{messages: own, skipped: fmt.Sprintf("more than %d messages", maxMessages)}, nil
	}
	r.from.key = store.Key{Tenant: r.g.secrets.tenantOf(r.t.who, credentials(r.t, r.in.header), nil), API: string(r.parsed.API), Session: q.session}
	r.priced(r.parsed.Model)
	var err error
	if r.limits, err = limitsOf(r); err != nil { //nolint:contextcheck // a server is asked for its window next to the request
		return nil, err
	}
	if wire.Marks(r.parsed.API) {
		r.parsed.HeadMarkers = unknownMarkers
		// The caller need not say how the model thinks, so the rules of older models, which are the strictest, are assumed.
		thinks := slices.ContainsFunc(r.parsed.Messages, func(m wire.Message) bool { return m.Thinking })
		if r.guessed = !r.tariff.caching.Bound && r.parsed.Thinking == "" && thinks; r.guessed {
			r.parsed.Thinking = "enabled"
		}
	}
	r.rolling = lineage.Roll(r.parsed.Messages)
	r.pins = q.pins
	if q.budget > 0 {
		r.limits.policy.Limit = min(r.limits.policy.Limit, q.budget)
	}
	if q.session == "" {
		r.lease = &session.Lease{Entry: &session.Entry{}, Session: &session.Session{}, State: &lineage.State{}}
		return q.alone(ctx, r.planned(r.lease.State))
	}
	q.apply(r)
	return q.resume(ctx, r, own)
}

// apply applies the options of a call that names a session.
func (q *question) apply(r *request) {
	if q.budget > 0 {
		r.limits.policy.Window, r.limits.policy.Threshold = min(r.limits.policy.Window, q.budget), min(r.limits.policy.Threshold, q.budget)
	}
	if q.ratio > 0 && q.ratio < 1 || q.recent > 0 {
		s := *r.s
		if due := cmp.Or(r.limits.policy.Threshold, r.limits.policy.Limit); q.ratio > 0 {
			r.limits.policy.Target = 100 * q.ratio * float64(due) / float64(max(1, r.limits.policy.Window))
		}
		s.Ingest.whole = q.recent > 0
		r.s = &s
	}
	r.from.session = q.session
	r.reads = r.g.secrets.readerOf(&r.s.Recall, r.t)
	r.handles = q.recalls && r.reads != "" && !r.s.Recall.NoMCP
}

// resume returns the messages that continue the session; own are the caller's. The state is stored now: the gateway does
// not see the vendor's answer, which would store it later.
func (q *question) resume(ctx context.Context, r *request, own [][]byte) (*compressed, error) {
	in := r.g.sessions.Of(r.from.key, r.in.start)
	if err := r.g.sessions.Reach(ctx, in, r.parsed, r.rolling); err != nil {
		return nil, err
	}
	if err := r.take(ctx, in); err != nil {
		return nil, err
	}
	before := r.lease.State.Rolling
	if v := r.viewOf(r.lease.State); r.guessed && (v.tokens > r.limits.policy.Limit || r.check(&v) != nil) {
		// A request that is too long is refused in any case. A broken rule means that thinking was assumed off
		// earlier in this turn too.
		r.parsed.Thinking = ""
	}
	p, err := r.decide(ctx)
	if err != nil {
		r.g.fault("compress", err)
		if p = r.frozen(); p.messages == nil {
			return nil, err
		}
	}
	if p.messages == nil { // any other answer would be refused
		p.messages = own
	}
	a := &compressed{messages: p.messages, changed: p.altered, before: p.state.Estimate(p.original), after: p.tokens, applied: applied(p)}
	if p.next == nil {
		a.replayed = replayed(p, before)
	}
	if a.handles, err = handlesIn(p, own); err != nil {
		return nil, err
	}
	p.letGo()
	return a, nil
}

// replayed returns how many messages at the front are the same as in the last answer, whose request had the rolling
// hashes before.
func replayed(p *plan, before []wire.Hash) int {
	n := 0
	for n < min(len(before), len(p.req.rolling)) && before[n] == p.req.rolling[n] {
		n++
	}
	if e := p.state.Epoch; e != nil && n >= e.Cut {
		n += len(e.Block) - e.Cut
	}
	return min(n, len(p.messages))
}

// applied names the changes.
func applied(p *plan) []string {
	var all []string
	switch {
	case p.epoch != nil:
		all = append(all, "condense:"+p.epoch.Reason)
	case p.altered:
		all = append(all, "condense:replay")
	}
	if p.ingested > 0 {
		all = append(all, "condense:results")
	}
	return all
}

// unknownMarkers exceeds the most cache markers that a request may have. The caller adds a system prompt and tools with
// an unknown number of markers, so the gateway must add none.
const unknownMarkers = 1 << 10

// handlesIn returns the handles that the view has and the client's own messages do not mention.
func handlesIn(p *plan, own [][]byte) ([]string, error) {
	if !p.handles || !p.altered {
		return nil, nil
	}
	all, err := library.Promises(p.req.parsed.API, p.messages)
	if err != nil {
		return nil, err
	}
	said, err := library.Promises(p.req.parsed.API, own)
	if err != nil {
		return nil, err
	}
	var handles []string
	for r := range all {
		if !said[r] {
			handles = append(handles, cmp.Or(r.Handle, r.String()))
		}
	}
	slices.Sort(handles)
	return slices.Compact(handles), nil
}

// alone condenses messages without a known conversation, and stores nothing. It asks no language model.
func (q *question) alone(ctx context.Context, p *plan) (*compressed, error) {
	a := &compressed{messages: p.messages, before: p.tokens, after: p.tokens}
	d := epoch.Decision{Before: p.tokens}
	switch {
	case p.tokens > p.req.limits.policy.Limit:
		if d.Reason = epoch.Forced; p.req.guessed {
			p.req.parsed.Thinking = ""
		}
	case p.req.limits.policy.Threshold > 0 && p.tokens >= p.req.limits.policy.Threshold, q.ratio > 0:
		d.Reason = epoch.Threshold
	}
	if d.Reason == epoch.None || q.ratio == 1 && d.Reason != epoch.Forced {
		return a, nil
	}
	j := p.job(d, false)
	target := int(q.ratio * float64(p.tokens))
	if q.budget > 0 && p.tokens > q.budget {
		target = min(cmp.Or(target, q.budget), q.budget)
	}
	if target > 0 {
		j.Turn.Trigger, j.Target = core.TriggerManual, target
	}
	for again := true; ; again = false {
		changed, err := q.once(ctx, p, j, d)
		if err != nil || !changed {
			return a, err
		}
		if q.budget == 0 || p.tokens <= q.budget || !again {
			break
		}
		// The gateway and the chain count differently.
		j.Target = int(0.95 * float64(q.budget) / float64(p.tokens) * float64(target))
	}
	a.messages, a.changed, a.after, a.applied = p.messages, p.altered, p.tokens, []string{"condense:" + string(d.Reason)}
	return a, nil
}

// once replaces the view by a condensation of the messages, and reports whether that changed anything. Each message
// stays one message if the result then fits, because some callers match messages by position.
func (q *question) once(ctx context.Context, p *plan, j *job.Job, d epoch.Decision) (changed bool, err error) {
	made, err := p.req.g.runner.InTurn(ctx, j, d.Reason == epoch.Forced)
	if errors.Is(err, job.ErrAsks) {
		made, err = p.req.g.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) { return p.req.g.runner.RunBuiltin(ctx, j) })
	}
	if err == nil && !sameRoles(made.After, p.req.parsed.Messages) {
		limit := p.req.limits.policy.Limit
		if q.budget > 0 {
			limit = q.budget
		}
		own := *j
		own.Turn.Profile, own.Turn.Mode, own.Target = "", "", min(j.Target, limit)
		const tries = 4 // the gateway and the chain count differently
		for range tries {
			instead, failed := p.req.g.runner.NextTurn(ctx, j, func(ctx context.Context) (*job.Prepared, error) {
				return own.Run(ctx, p.req.g.runner.InPlace, job.Whole)
			})
			if failed != nil || !sameRoles(instead.After, p.req.parsed.Messages) {
				break
			}
			trial, changed, failed := q.freeze(p, instead, d)
			if failed != nil || !changed {
				break
			}
			if trial.tokens <= limit {
				p.view = trial
				return true, nil
			}
			own.Target = int(0.95 * float64(limit) / float64(trial.tokens) * float64(own.Target))
		}
		if len(q.added) > 0 {
			return false, nil
		}
	}
	if errors.Is(err, job.ErrNotDue) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	trial, changed, err := q.freeze(p, made, d)
	if changed && err == nil {
		p.view = trial
	}
	return changed, err
}

// sameRoles reports whether messages have the same roles in the same order as others.
func sameRoles(messages, others []wire.Message) bool {
	return slices.EqualFunc(messages, others, func(a, b wire.Message) bool { return a.Role == b.Role })
}

// freeze returns the plan with a condensation, and whether it is smaller than the request.
func (q *question) freeze(p *plan, made *job.Prepared, d epoch.Decision) (trial view, changed bool, err error) {
	next, err := p.state.Freeze(p.req.parsed, p.req.rolling, lineage.Condensed{
		Basis: made.Basis, After: made.After, Decision: d, Forced: d.Reason == epoch.Forced,
	}, p.req.in.start)
	if errors.Is(err, lineage.ErrNothing) || errors.Is(err, lineage.ErrRound) {
		return view{}, false, nil
	}
	if err != nil {
		return view{}, false, err
	}
	trial = p.req.viewOf(next)
	// Send frozen messages byte for byte: the chain may have encoded them differently.
	for i := range min(q.frozen, next.Epoch.Cut) {
		if i >= len(made.After) || i >= len(trial.messages) || made.After[i].Hash != p.req.parsed.Messages[i].Hash {
			return view{}, false, fmt.Errorf("the chain changed message %d, which is frozen", i)
		}
		trial.messages[i] = p.req.parsed.Messages[i].Raw
	}
	return trial, trial.ours < trial.original, p.req.check(&trial)
}
