package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/transcript"
)

// Recall are the settings for giving back what was condensed.
type Recall struct {
	// Off writes no handles, keeps no originals and answers nothing at /mcp.
	Off bool
	// Own makes requests that carry no recall secret carry that of [Gateway.RecallSecret]: for a gateway
	// with one user. Without it, what a request without a secret brings can be recalled by no one.
	Own bool
	// Tool adds a tool to requests from the first one of a conversation on, with which the model reads what was condensed; the
	// gateway answers its calls, and the client does not see them. It is for agents that have no other way to recall. Requests
	// without tools, with the login of a plan, with a tool of that kind already, or whose answers the vendor stores never get it.
	Tool bool
	// MaxSize is how many bytes the kept originals may have, compressed. When it is reached, no more are kept, and
	// condensed views have no handles. Default 1 GB.
	MaxSize int64
	// MaxResult is Ingest.MaxResult for clients that can recall, if that is 0. 0 means no limit.
	MaxResult int
}

const defaultMaxKept = 1 << 30

// RecallSecret returns a secret with which /mcp gives back what requests brought that carried it: in the header
// X-Condense-Recall or in the path, /recall/SECRET/… It is the same for all gateways with this store. All who
// know it can read those conversations.
func (g *Gateway) RecallSecret() string { return g.ownRecall }

// shortestSecret is the length in bytes below which a recall secret could be guessed.
const shortestSecret = 16

// readerOf returns who can recall what a request brings: a keyed hash of the secret that it carries. It is empty
// if no one can.
func (g *Gateway) readerOf(s *settings, t *target) string {
	secret := t.recall
	if secret == "" && s.Recall.Own && !t.mcp {
		secret = g.ownRecall
	}
	if s.Recall.Off || len(secret) < shortestSecret {
		return ""
	}
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte("recall\x00" + secret))
	const size = 16
	return hex.EncodeToString(mac.Sum(nil)[:size])
}

// canCall reports whether the tool recall of an MCP server named condense is among the tools of a request. Agents write its name
// as mcp__condense__recall or condense_recall, or put the server's tools into one of their own.
func canCall(tools []byte) bool { return toolIn(tools, "", 0) }

func toolIn(tools []byte, within string, depth int) bool {
	const deepest = 2
	if !rawjson.IsArray(tools) || depth > deepest {
		return false
	}
	for tool := range rawjson.Elements(tools) {
		if !rawjson.IsObject(tool) {
			continue
		}
		f := tool
		if function := rawjson.Field(tool, "function"); rawjson.IsObject(function) {
			f = function
		}
		name := within + rawjson.Text(rawjson.Field(f, "name"))
		if isRecallTool(name) || toolIn(rawjson.Field(tool, "tools"), name, depth+1) {
			return true
		}
	}
	return false
}

// Kinds of kept originals.
const (
	clients = "client" // messages of the client
	sents   = "sent"   // messages that were sent in place of some, and condensed again
)

// errPromise means that a handle in a condensed view leads nowhere.
var errPromise = errors.New("a handle in the condensed view leads to nothing that can be kept")

// keep returns what must be kept for the epoch of next: the client's messages that it replaces and, if a handle in it leads to what
// was only sent in their place, that too. Sent is the view that was condensed. It is nil if the view has no handles.
func (x *exchange) keep(ctx context.Context, next *lineage.State, sent [][]byte) (*store.Kept, error) {
	e := next.Epoch
	promised, err := promises(x.r.API, slices.AppendSeq(slices.Clone(e.Block), maps.Values(next.Ingest)))
	if err != nil || len(promised) == 0 {
		return nil, err
	}
	own := make([][]byte, len(x.r.Messages))
	is := make(map[string]bool, len(own))
	for i := range x.r.Messages {
		own[i] = wire.Unmark(x.r.Messages[i].Raw)
		is[string(own[i])] = true
	}
	var others [][]byte
	for _, raw := range sent {
		if raw = wire.Unmark(raw); !is[string(raw)] {
			others = append(others, raw)
		}
	}
	before, err := x.store.Kept(ctx, x.key.Tenant, x.claim.state.Originals)
	if err != nil {
		return nil, err
	}
	for _, o := range before {
		if o.Kind == sents {
			others = append(others, o.Data)
		}
	}
	history, err := conversation(x.r.API, own)
	if err != nil {
		return nil, err
	}
	replaced, err := conversation(x.r.API, others)
	if err != nil {
		return nil, err
	}
	k, needsOthers := &store.Kept{}, false
	said := recall.Mentioned(history.Own.Journal.View()) // in texts of the client: not our promise
	for h := range promised {
		switch {
		case history.Own.Has(h):
		case replaced.Own.Has(h):
			needsOthers = true
		case said[h]:
			continue
		default:
			return nil, errPromise
		}
		k.Handles = append(k.Handles, h)
	}
	if len(k.Handles) == 0 {
		return nil, nil
	}
	if len(next.Ingest) == 0 {
		own = own[:e.Cut] // the others are sent as they are
	}
	for _, raw := range own {
		k.Originals = append(k.Originals, store.Original{Kind: clients, Data: raw})
	}
	if needsOthers {
		for _, raw := range others {
			k.Originals = append(k.Originals, store.Original{Kind: sents, Data: raw})
		}
	}
	next.Originals = rand.Text()
	return k, nil
}

// keepRound prepares to keep a round of tools, from a message on, of which results were shortened.
func (x *exchange) keepRound(from int, shortened [][]byte) error {
	promised, err := promises(x.r.API, shortened)
	if err != nil || len(promised) == 0 {
		return err
	}
	k := &store.Kept{}
	var own [][]byte
	for i := range x.r.Messages[from:] {
		own = append(own, wire.Unmark(x.r.Messages[from+i].Raw))
		k.Originals = append(k.Originals, store.Original{Kind: clients, Data: own[i]})
	}
	round, err := conversation(x.r.API, own)
	if err != nil {
		return err
	}
	said := recall.Mentioned(round.Own.Journal.View())
	for h := range promised {
		if round.Own.Has(h) {
			k.Handles = append(k.Handles, h)
			x.passes.add(map[string]string{h: "ingest"})
		} else if !said[h] {
			return errPromise
		}
	}
	if len(k.Handles) > 0 {
		s := x.claim.state
		s.Originals = cmp.Or(s.Originals, rand.Text())
		x.kept = k
	}
	return nil
}

// promises returns the handles that messages name.
func promises(api wire.API, messages [][]byte) (map[string]bool, error) {
	j, err := read(api, messages)
	if err != nil {
		return nil, err
	}
	return recall.Mentioned(j.View()), nil
}

// read returns the journal of messages.
func read(api wire.API, messages [][]byte) (*history.Journal, error) {
	body := append(append([]byte("["), bytes.Join(messages, []byte(","))...), ']')
	doc, err := transcript.Read(bytes.NewReader(body), &transcript.ReadOptions{Format: formats[api]})
	if err != nil {
		return nil, err
	}
	return doc.Journal, nil
}

// conversation returns messages that are not in the view any more.
func conversation(api wire.API, messages [][]byte) (*recall.Conversation, error) {
	j, err := read(api, messages)
	if err != nil {
		return nil, err
	}
	c := recall.New(j)
	c.Own.Hidden = true
	return c, nil
}

// memory returns what can be recalled of the conversation of a request: what its own messages have, and what was kept. The
// request must not have been let go.
func (x *exchange) memory(_ context.Context) (*mcpserver.State, error) {
	s := &lineage.State{}
	id := ""
	if x.claim != nil && x.claim.state != nil {
		s, id = x.claim.state, x.claim.id
	}
	own := make([][]byte, len(x.r.Messages))
	for i := range x.r.Messages {
		own[i] = x.r.Messages[i].Raw
	}
	all, err := conversation(x.r.API, own)
	if err != nil {
		return nil, err
	}
	hidden := all
	if s.Epoch != nil && s.Epoch.Cut < len(own) {
		if hidden, err = conversation(x.r.API, own[:s.Epoch.Cut]); err != nil {
			return nil, err
		}
	}
	st := x.state(x.key, id, hidden, s.Last)
	st.Find = func(ctx context.Context, handle string) ([]recall.Piece, error) {
		if pieces := all.Handle(handle); pieces != nil {
			return pieces, nil
		}
		if pieces, err := x.find(ctx, x.key, s.Originals, handle); err != nil || pieces != nil {
			return pieces, err
		}
		return x.findAnywhere(ctx, x.reads, handle)
	}
	return st, nil
}

// errNothing is for the agent's model.
var errNothing = errors.New("nothing of a conversation was condensed yet: all of it is still in view")

// memory returns what was kept of the latest conversation of a reader, and of a session if that is not empty. Handles of the reader's other
// conversations lead to their content.
func (g *Gateway) memory(ctx context.Context, reader, session string) (*mcpserver.State, error) {
	found, err := g.store.Readable(ctx, reader, session, "", 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNothing
	}
	r := &found[0]
	kept, err := g.store.Kept(ctx, r.Key.Tenant, r.Set)
	if err != nil {
		return nil, err
	}
	c, err := conversation(wire.API(r.Key.API), ofKind(kept, clients))
	if err != nil {
		return nil, err
	}
	st := g.state(r.Key, r.ID, c, r.Updated)
	st.Find = func(ctx context.Context, handle string) ([]recall.Piece, error) {
		if pieces, err := g.find(ctx, r.Key, r.Set, handle); err != nil || pieces != nil {
			return pieces, err
		}
		return g.findAnywhere(ctx, reader, handle)
	}
	return st, nil
}

func (g *Gateway) state(key store.Key, id string, c *recall.Conversation, changed time.Time) *mcpserver.State {
	return &mcpserver.State{
		Conversation: c, Name: "this conversation", Format: formats[wire.API(key.API)], Changed: changed, Records: true,
		Recalled: func(pieces []recall.Piece, bytes int) { g.recalled(key, id, pieces, bytes) },
	}
}

// find returns what a handle leads to in a set; nil if nothing.
func (g *Gateway) find(ctx context.Context, key store.Key, set, handle string) ([]recall.Piece, error) {
	if set == "" {
		return nil, nil
	}
	kept, err := g.store.Kept(ctx, key.Tenant, set)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{clients, sents} {
		c, err := conversation(wire.API(key.API), ofKind(kept, kind))
		if err != nil {
			return nil, err
		}
		if pieces := c.Handle(handle); pieces != nil {
			return pieces, nil
		}
	}
	return nil, nil
}

// findAnywhere returns what a handle in some view of a reader leads to; nil if nothing.
func (g *Gateway) findAnywhere(ctx context.Context, reader, handle string) ([]recall.Piece, error) {
	if reader == "" {
		return nil, nil
	}
	found, err := g.store.Readable(ctx, reader, "", handle, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return g.find(ctx, found[0].Key, found[0].Set, handle)
}

func ofKind(kept []store.Original, kind string) [][]byte {
	var all [][]byte
	for _, o := range kept {
		if o.Kind == kind {
			all = append(all, o.Data)
		}
	}
	return all
}

// An asked recall is what a request to /mcp may read. It is in the context.
type asked struct{ reader, session string }

type askedKey struct{}

// What requests to /mcp may cost.
const (
	mostAsking     = 4       // at the same time; others wait
	mostAskedBytes = 1 << 20 // of a request
)

// newMCP returns the handler of /mcp. It keeps nothing between requests.
func (g *Gateway) newMCP() http.Handler {
	server := mcpserver.New("", func(ctx context.Context) (*mcpserver.State, error) {
		a, ok := ctx.Value(askedKey{}).(asked)
		if !ok {
			return nil, errNothing
		}
		st, err := g.memory(ctx, a.reader, a.session)
		if err != nil && !errors.Is(err, errNothing) {
			g.fault("recall", err)
			err = errors.New("what was kept cannot be read now")
		}
		return st, err
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: mostAskedBytes,
		DisableLocalhostProtection: true, // refuse checks the name and the origin
	})
}

// serveMCP answers a request to /mcp.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	a := asked{reader: g.readerOf(s, t), session: r.URL.Query().Get("session")}
	if id := r.Header.Get(agents.SessionHeader); id != "" {
		a.session = id
	}
	switch {
	case s.Recall.Off:
		t.refuse(w, http.StatusNotFound, "condense: recall is off")
		return
	case a.reader == "":
		t.refuse(w, http.StatusUnauthorized, fmt.Sprintf("condense: recall needs the secret that the agent's requests carry, of at least %d characters: in the path, /recall/SECRET/mcp, or in the header X-Condense-Recall", shortestSecret))
		return
	case !store.ValidID(a.session):
		t.refuse(w, http.StatusBadRequest, "condense: the session is no ID")
		return
	}
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-r.Context().Done():
		return
	}
	g.mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, a)))
}
