package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// RecallSecret returns the secret that unlocks, at /mcp, the originals of the requests that carried it, in the header
// X-Condense-Recall or in the path, /recall/SECRET/… All gateways with this store have the same one. Anyone who knows
// it can read those conversations.
func (g *Gateway) RecallSecret() string { return g.secrets.recall }

// shortestSecret is the length in bytes below which a recall secret could be guessed.
const shortestSecret = 16

// asked identifies the agent whose originals a request to /mcp may read. It is passed in the context.
type asked struct{ reader, session string }

type askedKey struct{}

// Limits of requests to /mcp.
const (
	maxAsking     = 4           // at the same time; further ones wait
	maxAskedBytes = 1 << 20     // size of a request
	maxAsked      = time.Minute // time until the answer is sent
)

// newMCP returns the handler of /mcp for a library. It keeps no state between requests.
func (g *Gateway) newMCP(of *library.Library) http.Handler {
	server := mcpserver.New("", func(ctx context.Context) (*mcpserver.State, error) {
		a, ok := ctx.Value(askedKey{}).(asked)
		if !ok {
			return nil, library.ErrNothing
		}
		st, err := of.Memory(ctx, a.reader, a.session)
		if err != nil && !errors.Is(err, library.ErrNothing) {
			g.fault("recall", err)
			err = errors.New("what was kept cannot be read now")
		}
		return st, err
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxAskedBytes,
		DisableLocalhostProtection: true, // refuse checks the name and the origin
	})
}

// serveMCP checks a request to /mcp, waits for one of maxAsking places, and answers it.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	a := asked{reader: g.secrets.readerOf(&s.Recall, t), session: r.URL.Query().Get("session")}
	if id := r.Header.Get(agents.SessionHeader); id != "" {
		a.session = id
	}
	switch {
	case s.Recall.Off || s.Recall.NoMCP:
		t.refuse(w, http.StatusNotFound, "condense: recall by MCP is off")
		return
	case a.reader == "":
		t.refuse(w, http.StatusUnauthorized, fmt.Sprintf("condense: recall needs the secret that the agent's requests carry, of at least %d characters: in the path, /recall/SECRET/mcp, or in the header X-Condense-Recall", shortestSecret))
		return
	case !store.ValidID(a.session):
		t.refuse(w, http.StatusBadRequest, "condense: the session is no ID")
		return
	}
	// The body is read before the request takes a place, so that a slow client blocks no other.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAskedBytes))
	if err != nil {
		status := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status = http.StatusRequestEntityTooLarge
		}
		t.refuse(w, status, "condense: the request could not be read: "+upstream.Reason(err))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-r.Context().Done():
		return
	}
	whole := http.NewResponseController(w)
	// A client that does not read the answer must give its place back.
	_ = whole.SetWriteDeadline(time.Now().Add(maxAsked))
	defer func() { _ = whole.SetWriteDeadline(time.Time{}) }()
	g.mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, a)))
}

// keep collects the originals that the epoch of next must store; nil if its view has no handles. sent is the view that
// was condensed.
func (p *plan) keep(ctx context.Context, next *lineage.State, sent [][]byte) (*store.Kept, error) {
	before := func() ([]store.Original, error) {
		return p.req.g.store.Kept(ctx, p.req.from.key.Tenant, p.state.Originals)
	}
	c := library.Change{API: p.req.parsed.API, Own: p.req.unmarked(0), Sent: sent, Before: before}
	k, err := c.Epoch(next)
	if k != nil {
		next.Originals, err = library.Name(p.req.parsed.API, next.Family, next.Epoch.Block)
	}
	return k, err
}

// keepRound prepares the change that stores the messages from index from on: a round of tools whose results shortened replaces.
// A handle may lead to a message that stood between the two.
func (p *plan) keepRound(from int, shortened, between [][]byte) error {
	c := library.Change{API: p.req.parsed.API, Own: p.req.unmarked(from), Sent: between}
	k, err := c.Round(shortened)
	if err != nil || k == nil {
		return err
	}
	for _, h := range k.Handles {
		p.req.g.passes.Add(map[string]string{h: "ingest"})
	}
	if len(k.Handles) > 0 {
		p.state.Originals, p.kept = cmp.Or(p.state.Originals, rand.Text()), k
	}
	return nil
}

// unmarked returns the client's messages from index from on, without cache markers.
func (r *request) unmarked(from int) [][]byte {
	own := make([][]byte, len(r.parsed.Messages)-from)
	for i := range own {
		own[i] = wire.Unmark(r.parsed.Messages[from+i].Raw)
	}
	return own
}

// memory returns the recallable state of the request's conversation: the request's own messages and the stored
// originals. It must not be called after letGo.
func (e *exchange) memory(_ context.Context) (*mcpserver.State, error) {
	s := &lineage.State{}
	id := ""
	if e.plan.state != nil {
		s, id = e.plan.state, e.req.lease.ID
	}
	own := messages.Raw(e.req.parsed.Messages)
	all, err := library.Conversation(e.req.parsed.API, own)
	if err != nil {
		return nil, err
	}
	hidden := all
	if s.Epoch != nil && s.Epoch.Cut < len(own) {
		if hidden, err = library.Conversation(e.req.parsed.API, own[:s.Epoch.Cut]); err != nil {
			return nil, err
		}
	}
	st := e.req.g.library.State(e.req.from.key, id, hidden, s.Last)
	st.Numbers = func(ctx context.Context, key string) (*recall.Source, error) {
		if _, own := library.Named(s.Originals); key == "" || key == own {
			return all.Own, nil
		}
		return e.req.g.library.Numbers(ctx, cmp.Or(e.req.reads, "nobody"), "", key)
	}
	st.Find = func(ctx context.Context, r recall.Ref) ([]recall.Piece, error) {
		for _, c := range []*recall.Conversation{hidden, all} {
			if pieces := c.Named(r); pieces != nil {
				return pieces, nil
			}
		}
		if pieces, err := e.req.g.library.Find(ctx, e.req.from.key, s.Originals, r); err != nil || pieces != nil {
			return pieces, err
		}
		return e.req.g.library.FindAnywhere(ctx, e.req.reads, r)
	}
	return st, nil
}

// If an agent recalls something, leaving it out was a mistake. The recalled content stays in the view at the next
// condensation, and is counted here.

// recalled counts pieces recalled in the conversation of key. id is the ID of its record; empty if unknown.
func (g *Gateway) recalled(key store.Key, id string, pieces []recall.Piece, bytes int) {
	var kinds, named []Recalled
	for i := range pieces {
		what := pieces[i].What
		kinds = append(kinds, Recalled{
			What: strings.ToValidUTF8(what[:min(len(what), library.LongestTag)], ""),
			Pass: g.passes.Get(pieces[i].Handle), Count: 1,
		})
		named = append(named, kinds[i])
		named[i].Handle = pieces[i].Handle
	}
	if len(kinds) > 0 {
		kinds[0].Tokens = bytes / count.BytesPerToken
	}
	g.stats.Sum(&Stats{Recalls: 1, Tokens: Tokens{Recalled: bytes / count.BytesPerToken}, Recalled: kinds})
	if w := g.current.Load().Reports.Watch; w != nil {
		if s := recordOf(g.life, g.store, key, id); s.State != nil {
			g.watched(func() {
				w.Later(s.Conversation, began(s.State), Finding{Recalled: bytes / count.BytesPerToken, Pieces: named})
			})
		}
	}
	of := telemetry.TenantKey.String(tenantOf(key.Tenant))
	g.measure(&telemetry.Recalls, 1, of)
	g.measure(&telemetry.Tokens, float64(bytes/count.BytesPerToken), of, telemetry.TypeKey.String("recalled"))
	g.current.Load().audit("recall", tenant.Caller{Tenant: tenantOf(key.Tenant)}, "pieces", len(pieces), "bytes", bytes)
	g.current.Load().Reports.Logger.Info("recalled", "pieces", len(pieces), "bytes", bytes)
}

// recordOf returns what is stored of a record; the zero value if nothing can be read.
func recordOf(ctx context.Context, in store.Store, key store.Key, id string) session.Stored {
	records, _ := in.Load(ctx, key) // a recall is then counted without a conversation
	for i := range records {
		var s session.Stored
		if records[i].ID == id && id != "" && json.Unmarshal(records[i].Data, &s) == nil {
			return s
		}
	}
	return session.Stored{}
}

// titled returns the title of a record's conversation.
func (g *Gateway) titled(ctx context.Context, key store.Key, id string) string {
	return plain.Line(cmp.Or(recordOf(ctx, g.store, key, id).About, &session.About{}).Title)
}

// statsKey is the store key of the statistics. It cannot collide with a tenant's key: those are longer.
var statsKey = store.Key{Tenant: "stats"}

// saving periodically saves the statistics, for [StoredStats], and the tenants' usage.
func (g *Gateway) saving(spent *store.Record) {
	const often = time.Minute
	tick := time.NewTicker(often)
	defer tick.Stop()
	r := store.NewOwn(statsKey)
	done := 0
	save := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.life), longestNote)
		defer cancel()
		if err := g.share(ctx, spent); err != nil {
			g.fault("usage", err)
		}
		s := g.Stats()
		if s.Requests+s.Recalls == done {
			return
		}
		done = s.Requests + s.Recalls
		s.Epochs = nil
		var err error
		if r.Data, err = json.Marshal(savedStats{Stats: s}); err == nil {
			r.Updated = g.current.Load().Now()
			err = store.SaveOwn(ctx, g.store, r)
		}
		if err != nil {
			g.fault("stats", err)
		}
	}
	for {
		select {
		case <-tick.C:
			save()
			_ = g.storeReady(g.life) // the error is logged there
		case <-g.life.Done():
			save()
			return
		}
	}
}

// StoredStats returns the stored statistics of all gateways that use the store at address. Each saves them every
// minute and when it ends.
func StoredStats(ctx context.Context, address string) (Stats, error) {
	sum := Stats{Errors: map[string]int{}, Epochs: []Epoch{}, Attempts: []Attempt{}}
	db, err := store.Open(ctx, address)
	if err != nil {
		return sum, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	records, err := db.Load(ctx, statsKey)
	if err != nil {
		return sum, err
	}
	for _, r := range records {
		if r.Damaged {
			continue
		}
		var s savedStats
		if err := json.Unmarshal(r.Data, &s); err != nil {
			return sum, err
		}
		sum.add(&s.Stats)
	}
	return sum, nil
}
