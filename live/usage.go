package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
)

// A relay is the last call of a session, for which the caller may report the vendor's usage.
type relay struct {
	x        *sending
	returned int // number of messages returned
	told     bool
}

// relays is an LRU of recent sessions.
type relays struct {
	mu sync.Mutex
	of map[string]*relay // keyed by tenant and session
}

func (r *relays) add(one *relay) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*relay{}
	}
	for len(r.of) >= session.MostSessions {
		oldest := ""
		for k, o := range r.of {
			if oldest == "" || o.x.start.Before(r.of[oldest].x.start) {
				oldest = k
			}
		}
		delete(r.of, oldest)
	}
	r.of[one.x.key.Tenant+" "+one.x.key.Session] = one
}

// take returns the last call of a session, and whether its usage is reported for the first time.
func (r *relays) take(tenant, session string) (one *relay, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one = r.of[tenant+" "+session]; one != nil {
		fresh, one.told = !one.told, true
	}
	return one, fresh
}

// A told is a vendor's usage report, in any of the shapes of the APIs.
type told struct {
	Input, Output *int // input_tokens, output_tokens: Anthropic, and OpenAI's Responses
	Read          *int // cache_read_input_tokens
	Write         *int // cache_creation_input_tokens
	Cached        *int // part of the input; OpenAI
	openAI        bool
}

// mostTokens exceeds the prompt of any model. Sums of larger numbers could overflow.
const mostTokens = 100_000_000

// usageOf parses a vendor's usage report.
func usageOf(raw []byte) (u told, err error) {
	if nested := rawjson.Field(raw, "usage"); rawjson.IsObject(nested) {
		raw = nested
	}
	type details struct {
		Cached *int `json:"cached_tokens"`
	}
	var got struct {
		Input      *int     `json:"input_tokens"`
		Output     *int     `json:"output_tokens"`
		Read       *int     `json:"cache_read_input_tokens"`
		Write      *int     `json:"cache_creation_input_tokens"`
		Prompt     *int     `json:"prompt_tokens"`
		Completion *int     `json:"completion_tokens"`
		Cached     *int     `json:"cached_tokens"`
		OfPrompt   *details `json:"prompt_tokens_details"`
		OfInput    *details `json:"input_tokens_details"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return u, fmt.Errorf("usage: %w", err)
	}
	u = told{
		Input: cmp.Or(got.Input, got.Prompt), Output: cmp.Or(got.Output, got.Completion), Read: got.Read, Write: got.Write,
		Cached: got.Cached,
	}
	for _, d := range []*details{got.OfPrompt, got.OfInput} {
		if d != nil {
			u.Cached = cmp.Or(u.Cached, d.Cached)
		}
	}
	u.openAI = u.Cached != nil || got.Prompt != nil
	for _, n := range []*int{u.Input, u.Output, u.Read, u.Write, u.Cached} {
		switch {
		case n == nil:
		case *n < 0:
			return u, fmt.Errorf("usage: %d is negative", *n)
		case *n > mostTokens:
			return u, fmt.Errorf("usage: %d tokens are more than any model takes", *n)
		}
	}
	if u.Input == nil && u.Read == nil && u.Write == nil && u.Cached == nil {
		return u, errors.New("usage: none of input_tokens, cache_read_input_tokens, cache_creation_input_tokens, prompt_tokens and cached_tokens is there")
	}
	return u, nil
}

// answer converts the report to a [wire.Answer]. Input is 0 if the size of the prompt is missing.
func (u *told) answer() wire.Answer {
	n := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	a := wire.Answer{Input: n(u.Input), Output: n(u.Output), CacheRead: n(u.Read) + n(u.Cached), CacheWrite: n(u.Write), Complete: true}
	if u.Input != nil && !u.openAI { // Anthropic's input excludes cached tokens
		a.Input += a.CacheRead + a.CacheWrite
	}
	return a
}

// serveUsage answers /v1/usage.
func (g *Gateway) serveUsage(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	body, leave := g.jsonBody(w, r, s, t)
	defer leave()
	if body == nil {
		return
	}
	id, raw := rawjson.Text(rawjson.Field(body, "session_id")), rawjson.Field(body, "usage")
	if id == "" || len(id) > longestSession {
		compressFault(w, http.StatusBadRequest, invalidRequest, fmt.Sprintf("session_id is missing, or longer than %d bytes", longestSession))
		return
	}
	if !rawjson.IsObject(raw) {
		compressFault(w, http.StatusBadRequest, invalidRequest, "usage is missing or not an object: send what the vendor reported")
		return
	}
	u, err := usageOf(raw)
	if err != nil {
		compressFault(w, http.StatusBadRequest, invalidRequest, err.Error())
		return
	}
	one, fresh := g.relays.take(g.secrets.tenantOf(t.who, credentials(t, r.Header), nil), sessionKey(id))
	if one == nil {
		compressFault(w, http.StatusNotFound, "unknown_session",
			"this gateway remembers no call of /v1/compress with this session_id; of several with one database, only the one that answered the last call takes its usage")
		return
	}
	if fresh {
		a := u.answer()
		if err := g.safely("usage", func() error { return one.x.report(r.Context(), a) }); err != nil {
			g.fault("usage", err)
		}
	}
	out := rawjson.Append(nil, `{"session_id":?,"frozen_message_count":?,"applied":?}`, id, strconv.AppendInt(nil, int64(one.returned), 10),
		strconv.AppendBool(nil, fresh))
	payload.WriteJSON(w, out)
}

// report adds the vendor's report about the messages returned by x to the statistics and, if the size of the whole
// prompt is known, to the state.
func (x *sending) report(ctx context.Context, a wire.Answer) error {
	if a.Input == 0 {
		x.stats.Add(func(s *stats.Stats) {
			s.Tokens.CacheRead += a.CacheRead
			s.Tokens.CacheWrite += a.CacheWrite
			s.Tokens.Output += a.Output
		})
		return nil
	}
	x.count(x.once(a))
	if x.claim.State.HeadOur == 0 { // the vendor also counted a system prompt and tools that the gateway has not seen
		return nil
	}
	return x.measured(ctx, a)
}
