package live

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/seal"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// open returns body with every sealed compaction replaced by its messages. Messages that the client still sends from
// before a compaction were part of the compacted conversation, so they are dropped, except texts that the condensation
// does not contain word for word.
func (g *Gateway) open(s *settings, t *target, h http.Header, body []byte) ([]byte, error) {
	if !wire.Of(wire.API(t.api)).Seals || !bytes.Contains(body, []byte(`"`+seal.Name)) {
		return body, nil
	}
	opts := &wire.Options{Volatile: agents.Of(h, nil).Volatile, Cache: g.parsed}
	r, err := wire.Parse(wire.Responses, body, opts)
	if err != nil {
		return body, nil //nolint:nilerr // the vendor reports the error in the request better
	}
	var view []wire.Message
	left := s.Bounds.MaxBody
	for i := range r.Messages {
		sealed, ok := seal.In(r.Messages[i].Raw)
		if !ok {
			view = append(view, r.Messages[i])
			continue
		}
		messages, err := g.secrets.seals.Unseal(g.secrets.tenantOf(t.who, h, body), sealed, s.Now(), left)
		if err != nil {
			return nil, err
		}
		in, err := wire.Parse(wire.Responses, rawjson.Append(nil, `{"input":?}`, rawjson.Array(messages)), opts)
		if err != nil {
			return nil, err
		}
		left -= int64(len(in.Body))
		has := map[wire.Hash]int{}
		for k := range in.Messages {
			has[in.Messages[k].Hash]++
		}
		view = slices.DeleteFunc(view, func(m wire.Message) bool {
			has[m.Hash]--
			return has[m.Hash] >= 0 || m.Role != "user" && !sentAgain(m.Raw)
		})
		view = append(view, in.Messages...)
	}
	return r.With(messages.Raw(view)), nil
}

// sentAgain reports whether an item is a prompt or the tools, which the client itself puts before a compaction.
func sentAgain(item []byte) bool {
	return slices.Contains([]string{"developer", "system"}, rawjson.Text(rawjson.Field(item, "role"))) ||
		rawjson.Text(rawjson.Field(item, "type")) == "additional_tools"
}

// compaction sends a request to compact the conversation to the upstream, and answers it here if the upstream cannot.
func (e *exchange) compaction(r *http.Request) (*http.Response, error) {
	of, name, send := e.req.s.Upstreams.Compaction, e.req.t.upstream.Name, e.req.sender(r.Context()).RoundTrip
	who := of[name]
	if who == "" && name == upstream.ChatGPT {
		who = of["openai"]
	}
	if e.req.s.Observe || who == CompactUpstream {
		return send(r)
	}
	var res *http.Response
	if who == CompactGateway {
		_ = r.Body.Close()
	} else {
		var err error
		if res, err = send(r); err != nil || e.compacted(res) {
			return res, err
		}
	}
	var answer *http.Response
	err := e.req.g.safely("compaction", func() (err error) {
		answer, err = e.compact(r) //nolint:bodyclose // the client closes this body
		return err
	})
	switch {
	case err == nil && res != nil:
		_ = res.Body.Close()
	case err != nil && r.Context().Err() != nil:
		return nil, r.Context().Err()
	case err != nil:
		e.req.g.fault("compaction", err)
		if res != nil {
			return res, nil
		}
		text := "condense: the conversation could not be compacted: " + plain.Clip(err.Error())
		refusal := wire.Refusal(e.req.parsed.API, http.StatusInternalServerError, text)
		return respond(r, http.StatusInternalServerError, "application/json", refusal), nil
	}
	return answer, nil
}

// compacted reports whether the upstream's answer should reach the client: it contains a compaction, or an error that
// the upstream explains better than the gateway could. res can be read as before.
func (e *exchange) compacted(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusNotImplemented:
		return false // the upstream does not know the item or the path, or the request is too long for it
	default:
		return true
	}
	if e.req.t.upstream.IsVendors {
		return !e.startsWithOverflow(res)
	}
	if res.Header.Get("Content-Encoding") != "" {
		return true
	}
	var seen bytes.Buffer
	lines := bufio.NewReader(io.TeeReader(io.LimitReader(res.Body, e.req.s.Bounds.MaxBody), &seen))
	found := false
	for err := error(nil); err == nil && !found; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			found = seal.IsCompaction(rawjson.Field(bytes.TrimSpace(data), "item"))
		}
	}
	w := wire.Watch(e.req.parsed.API)
	_, _ = w.Write(seen.Bytes())
	for item := range rawjson.Elements(rawjson.Field(seen.Bytes(), "output")) { // an answer that is not a stream
		found = found || seal.IsCompaction(item)
	}
	res.Body = payload.ReadCloser{Reader: io.MultiReader(&seen, res.Body), Closer: res.Body}
	a := w.Answer()
	return found || !a.Complete && !a.Overflow
}

// compactFor limits a condensation that the client requested and waits for. Codex gives up after five minutes without
// a byte.
const compactFor = 2 * time.Minute

// minCompacted is the least share of a history that a compaction of the gateway's own saves. Otherwise the client would ask
// for the next one at once, and each would add to the conversation.
const minCompacted = 0.1

// compactJob returns the job to compact the items for the client, to fit a window in which they take the share that makes
// clients ask: the window of the model is the client's to know, and it need not be ours. Half is left, because the client
// keeps nothing else of the work.
func (e *exchange) compactJob(items [][]byte) *job.Job {
	const full, left = 0.9, 0.5
	of := *e.req
	of.lease = e.req.seen // for the size of the part that is not condensed
	p := &plan{req: &of, state: e.req.seen.State, view: e.plan.view, handles: e.plan.handles}
	j := p.job(epoch.Decision{}, false)
	// Leave no handles: the client drops the originals, so nothing could be recalled.
	j.Body, j.Turn.NoRecall, j.Turn.Trigger, j.Turn.Cached = e.req.parsed.With(items), true, core.TriggerManual, core.Cached{}
	j.Tokens = e.req.seen.State.Scale(counted(items))
	j.Turn.Window = min(p.req.limits.policy.Window, int(float64(j.Tokens)/full))
	j.Turn.MaxOutput = min(j.Turn.MaxOutput, max(1, j.Turn.Window-j.Tokens))
	j.Target = int(left * float64(j.Tokens))
	return j
}

func counted(items [][]byte) (n int) {
	return plain.Sum(items, count.Tokens)
}

// compact answers a request to compact with a sealed compaction made here, without what the client sends again. The error
// says if that is not shorter.
func (e *exchange) compact(r *http.Request) (*http.Response, error) {
	q := e.req
	items := slices.DeleteFunc(slices.Clone(e.plan.messages), func(item []byte) bool {
		return sentAgain(item) || rawjson.Text(rawjson.Field(item, "type")) == "compaction_trigger"
	})
	before := counted(items)
	j := e.compactJob(items)
	ctx, cancel := context.WithTimeout(r.Context(), compactFor)
	defer cancel()
	p, err := j.Run(ctx, q.g.host, job.Inline)
	if errors.Is(err, job.ErrAsks) {
		if j.Turn.MayAsk() == nil {
			p, err = j.Run(ctx, q.g.host, job.Whole)
		} else {
			p, err = q.g.runner.RunBuiltin(r.Context(), j)
		}
	}
	if err != nil && r.Context().Err() == nil {
		if !j.Named && !errors.Is(err, job.ErrNotDue) {
			q.g.fault("chain", err)
		}
		p, err = q.g.runner.RunBuiltin(r.Context(), j)
	}
	if err != nil {
		return nil, err
	}
	items = messages.Raw(p.After)
	after := counted(items)
	if float64(after) > (1-minCompacted)*float64(before) {
		return nil, fmt.Errorf("%d of %d tokens would be left", after, before)
	}
	if err := q.check(&view{messages: items, altered: true}); err != nil {
		return nil, err
	}
	sealed, err := q.g.secrets.seals.Seal(q.from.key.Tenant, items, q.in.start)
	if err != nil {
		return nil, fmt.Errorf("sealing: %w", err)
	}
	q.g.stats.Add(func(s *Stats) { s.Compactions++ })
	q.g.measure(&telemetry.Compactions, 1, telemetry.TenantKey.String(q.t.who.Tenant))
	q.s.Reports.Logger.InfoContext(r.Context(), "compaction in place of the vendor", "agent", q.from.agent.Name, "model", q.parsed.Model, "upstream",
		q.t.upstream.Name, "before", j.Tokens, "after", q.seen.State.Scale(after), "provider", p.Maker.Provider, "outcome", p.Maker.Outcome, "fallback",
		p.Maker.Cause.Why != "")
	kind, body, err := compactionAnswer(q.t.compact, q.parsed, sealed, q.in.start)
	return respond(r, http.StatusOK, kind, body), err
}

// compactionAnswer returns an answer in the vendor's format with one compaction. It reports no usage, because no model
// was asked.
func compactionAnswer(endpoint bool, r *wire.Request, sealed string, now time.Time) (kind string, body []byte, err error) {
	type object = map[string]any
	id := strings.ToLower(rand.Text())
	item := object{"id": "cmp_" + id, "type": "compaction", "encrypted_content": sealed}
	response := object{
		"id": "resp_" + id, "object": "response", "created_at": now.Unix(), "status": "completed", "model": r.Model, "output": []any{item},
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": object{}, "parallel_tool_calls": true, "tool_choice": "auto",
		"tools": []any{}, "store": false,
		"temperature": nil, "top_p": nil,
		"usage": object{
			"input_tokens": 0, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 0,
			"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 0,
		},
	}
	if endpoint {
		response = object{
			"id": response["id"], "object": "response.compaction", "created_at": response["created_at"],
			"output": response["output"], "usage": response["usage"],
		}
	}
	if endpoint || !r.Stream {
		body, err = json.Marshal(response)
		return "application/json", body, err
	}
	begun := maps.Clone(response)
	begun["status"], begun["output"], begun["usage"] = "in_progress", []any{}, nil
	for n, e := range []object{
		{"type": "response.created", "response": begun},
		{"type": "response.output_item.added", "output_index": 0, "item": item},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": response},
	} {
		e["sequence_number"] = n
		data, err := json.Marshal(e)
		if err != nil {
			return "", nil, err
		}
		body = fmt.Appendf(body, "event: %s\ndata: %s\n\n", e["type"], data)
	}
	return "text/event-stream", body, nil
}

// ownCompaction is the header of an answer of the gateway's own.
const ownCompaction = "X-Condense-Compaction"

// respond returns an answer of the gateway's own to a request that is not sent.
func respond(r *http.Request, status int, kind string, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}, ownCompaction: {"gateway"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)), Request: r,
	}
}

// compactions checks the values of Compaction, and notes which upstreams are a vendor's own.
func (s *settings) compactions() error {
	var errs []error
	for name, c := range s.Upstreams.Compaction {
		if s.upstreams[name] == nil {
			errs = append(errs, fmt.Errorf("live: Compaction: there is no upstream %q", name))
		}
		if !slices.Contains([]Compaction{"", CompactAuto, CompactUpstream, CompactGateway}, c) {
			errs = append(errs, fmt.Errorf("live: Compaction: %s: %q is none of %s, %s and %s", name, c, CompactAuto,
				CompactUpstream, CompactGateway))
		}
	}
	for _, u := range s.upstreams {
		for _, address := range upstream.Vendors {
			u.IsVendors = u.IsVendors || strings.HasPrefix(address+"/", u.Base.Scheme+"://"+u.Base.Host+"/")
		}
	}
	return errors.Join(errs...)
}
