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
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
)

// Recall configures how agents get condensed content back.
type Recall struct {
	// Off writes no handles, keeps no originals and disables /mcp.
	Off bool
	// NoMCP does the same, except for conversations that have the tool added by Tool.
	NoMCP bool
	// Own gives requests without a recall secret the secret of [Gateway.RecallSecret]; it is meant for a gateway with
	// one user. Without Own, nobody can recall content of requests that carry no secret.
	Own bool
	// Tool adds a tool to conversations, from their first request on, with which the model reads condensed content. The
	// gateway answers its calls, and the client does not see them. It is for agents that cannot recall in another way.
	// Requests never get it if they have no tools, use the login of a plan, have such a tool already, or ask the vendor
	// to store the answer.
	Tool bool
	// MaxSize is the most bytes, compressed, that the kept originals may take. Once it is reached, no more are kept,
	// and condensed views get no handles. Default 1 GiB.
	MaxSize int64
	// MaxResult replaces Ingest.MaxResult, if that is 0, for clients that can recall. In tokens; 0 means no limit.
	MaxResult int
}

const defaultMaxKept = 1 << 30

// RecallSecret returns the secret that unlocks, at /mcp, the originals of the requests that carried it, in the header
// X-Condense-Recall or in the path, /recall/SECRET/… All gateways with this store have the same one. Anyone who knows
// it can read those conversations.
func (g *Gateway) RecallSecret() string { return g.ownRecall }

// shortestSecret is the length in bytes below which a recall secret could be guessed.
const shortestSecret = 16

// readerOf returns the identity that can recall the content of a request: a keyed hash of its recall secret. It is
// empty if nobody can.
func (g *Gateway) readerOf(s *settings, t *target) string {
	secret := t.recall
	if secret == "" && s.Recall.Own && !t.mcp {
		secret = g.ownRecall
	}
	if s.Recall.Off || len(secret) < shortestSecret {
		return ""
	}
	mac := hmac.New(sha256.New, g.secret)
	if t.who.Tenant == "" {
		mac.Write([]byte("recall\x00" + secret))
	} else { // so that another tenant with the same secret reads nothing
		mac.Write([]byte("recall of a tenant\x00" + t.who.Tenant + "\x00" + secret))
	}
	const size = 16
	return hex.EncodeToString(mac.Sum(nil)[:size])
}

// canCall reports whether a request's tools include the tool recall of an MCP server named condense. Agents name it
// mcp__condense__recall or condense_recall, or nest the server's tools in a tool of their own.
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
		if recall.IsTool(name) || toolIn(rawjson.Field(tool, "tools"), name, depth+1) {
			return true
		}
	}
	return false
}

// Kinds of kept originals.
const (
	clients = "client" // messages of the client
	sents   = "sent"   // messages that an epoch sent in place of the client's, and that were condensed again
)

// errPromise means that a handle in a condensed view leads to no content.
var errPromise = errors.New("a handle in the condensed view leads to nothing that can be kept")

// keep collects the originals that the epoch of next must store: the client's messages that it replaces and, if a
// handle leads to a message that only an earlier epoch sent, that message too. sent is the view that was condensed.
// keep returns nil if the view has no handles.
func (x *plan) keep(ctx context.Context, next *lineage.State, sent [][]byte) (*store.Kept, error) {
	e := next.Epoch
	promised, err := promises(x.r.API, slices.AppendSeq(slices.Clone(e.Block), maps.Values(next.Ingest)))
	if err != nil || len(promised) == 0 {
		return nil, err
	}
	own := make([][]byte, len(x.r.Messages))
	for i := range x.r.Messages {
		own[i] = wire.Unmark(x.r.Messages[i].Raw)
	}
	before, err := x.store.Kept(ctx, x.key.Tenant, x.claim.State.Originals)
	if err != nil {
		return nil, err
	}
	k, cut := &store.Kept{}, e.Cut
	if len(next.Ingest) > 0 {
		cut = len(own)
	}
	for {
		k.Originals = originals(own, cut, sent, before)
		m, err := remember(x.r.API, k.Originals)
		if err != nil {
			return nil, err
		}
		var fromSent bool
		if k.Handles, fromSent, err = m.keeps(promised); err == nil && !fromSent {
			k.Originals = slices.DeleteFunc(k.Originals, func(o store.Original) bool { return o.Kind == sents })
		}
		if err == nil {
			break
		}
		if cut == len(own) {
			return nil, err
		}
		cut = len(own) // the messages after the cut are sent unchanged, but a handle may lead to one
	}
	if len(k.Handles) == 0 {
		return nil, nil
	}
	next.Originals = rand.Text()
	return k, nil
}

// keepRound prepares to store the messages from index from on, the round of tools whose results shortened replaces.
func (x *plan) keepRound(from int, shortened [][]byte) error {
	promised, err := promises(x.r.API, shortened)
	if err != nil || len(promised) == 0 {
		return err
	}
	k := &store.Kept{}
	for i := range x.r.Messages[from:] {
		k.Originals = append(k.Originals, store.Original{Kind: clients, Data: wire.Unmark(x.r.Messages[from+i].Raw)})
	}
	m, err := remember(x.r.API, k.Originals)
	if err != nil {
		return err
	}
	if k.Handles, _, err = m.keeps(promised); err != nil {
		return err
	}
	for _, h := range k.Handles {
		x.passes.add(map[string]string{h: "ingest"})
	}
	if len(k.Handles) > 0 {
		s := x.claim.State
		s.Originals = cmp.Or(s.Originals, rand.Text())
		x.kept = k
	}
	return nil
}

// originals returns the client's messages up to cut, each followed by the replacements that were once sent at its
// place: those in sent, the view that was condensed, and those in before, the originals kept earlier.
func originals(own [][]byte, cut int, sent [][]byte, before []store.Original) []store.Original {
	is := make(map[string]bool, len(own))
	for _, raw := range own {
		is[string(raw)] = true
	}
	replaced := make([][][]byte, len(own)+1) // replacements, by the number of client messages before them
	add := func(at int, raw []byte) {
		if !is[string(raw)] {
			is[string(raw)] = true
			replaced[at] = append(replaced[at], raw)
		}
	}
	at := 0
	for _, o := range before {
		if o.Kind == sents {
			add(at, o.Data)
		} else {
			at = min(at+1, len(own))
		}
	}
	at = 0
	for _, raw := range sent {
		raw = wire.Unmark(raw)
		if i := slices.IndexFunc(own[at:], func(o []byte) bool { return bytes.Equal(o, raw) }); i >= 0 {
			at += i + 1
		} else {
			add(at, raw)
		}
	}
	var all []store.Original
	for i := range replaced {
		if i > 0 && i <= cut {
			all = append(all, store.Original{Kind: clients, Data: own[i-1]})
		}
		for _, raw := range replaced[i] {
			all = append(all, store.Original{Kind: sents, Data: raw})
		}
	}
	return all
}

// A keptSet holds the parsed originals that were kept of a conversation.
type keptSet struct {
	api         wire.API
	originals   []store.Original
	client, put *recall.Conversation // the client's messages, and the ones sent in their place
}

func remember(api wire.API, originals []store.Original) (*keptSet, error) {
	k := &keptSet{api: api, originals: originals}
	var err error
	if k.client, err = conversation(api, ofKind(originals, clients)); err != nil {
		return nil, err
	}
	if k.put, err = conversation(api, ofKind(originals, sents)); err != nil {
		return nil, err
	}
	return k, nil
}

// keeps returns the handles among promised that lead to an original, and whether one leads only to a message that an
// epoch sent. The error is [errPromise] if one leads nowhere, unless the client's own text mentions it: then the
// gateway has not promised it.
func (k *keptSet) keeps(promised map[recall.Ref]bool) (handles []string, fromSent bool, err error) {
	own, put := leads(k.client), leads(k.put)
	var said map[recall.Ref]bool
	for r := range promised {
		if !own[r] && !put[r] {
			if said == nil {
				said = recall.Mentioned(k.client.Own.Journal.View())
			}
			if !said[r] {
				return nil, false, errPromise
			}
			continue
		}
		fromSent = fromSent || !own[r]
		handles = append(handles, r.Handle, r.String())
	}
	slices.Sort(handles)
	return slices.Compact(handles), fromSent, nil
}

// leads returns all refs that a conversation can resolve.
func leads(c *recall.Conversation) map[recall.Ref]bool {
	all := map[recall.Ref]bool{}
	for _, m := range c.Own.Journal.Messages() {
		for _, p := range m.Parts {
			onward := true // only a whole part, the first handle, can be read onward
			for h := range history.Handles([]core.Part{p}) {
				all[recall.Ref{Handle: h}] = true
				if onward {
					all[recall.Ref{Handle: h, Onward: true}] = true
				}
				onward = false
			}
		}
	}
	return all
}

// named returns the content that a ref names, or nil. A ref onward from a message that only an epoch sent continues
// with the client's messages after the replaced ones.
func (k *keptSet) named(r recall.Ref) ([]recall.Piece, error) {
	if pieces := k.client.Named(r); pieces != nil {
		return pieces, nil
	}
	if pieces := k.put.Named(r); pieces == nil || !r.Onward {
		return pieces, nil
	}
	for i, o := range k.originals {
		if o.Kind != sents {
			continue
		}
		one, err := conversation(k.api, [][]byte{o.Data})
		if err != nil {
			return nil, err
		}
		pieces := one.Named(r)
		if pieces == nil {
			continue
		}
		rest, err := conversation(k.api, ofKind(k.originals[i:], clients))
		if err != nil {
			return nil, err
		}
		return append(pieces, slices.DeleteFunc(rest.Own.All(), func(p recall.Piece) bool { return strings.TrimSpace(p.Text()) == "" })...), nil
	}
	return nil, nil
}

// promises returns the refs that the messages mention.
func promises(api wire.API, messages [][]byte) (map[recall.Ref]bool, error) {
	j, err := read(api, messages)
	if err != nil {
		return nil, err
	}
	return recall.Mentioned(j.View()), nil
}

// read parses messages into a journal.
func read(api wire.API, all [][]byte) (*history.Journal, error) {
	doc, err := messages.Read(api, all)
	if err != nil {
		return nil, err
	}
	return doc.Journal, nil
}

// conversation parses messages into a conversation that counts as hidden: the model does not see it any more.
func conversation(api wire.API, messages [][]byte) (*recall.Conversation, error) {
	j, err := read(api, messages)
	if err != nil {
		return nil, err
	}
	c := recall.New(j)
	c.Own.Hidden = true
	return c, nil
}

// memory returns the recallable state of the request's conversation: the request's own messages and the stored
// originals. It must not be called after letGo.
func (x *sending) memory(_ context.Context) (*mcpserver.State, error) {
	s := &lineage.State{}
	id := ""
	if x.claim != nil && x.claim.State != nil {
		s, id = x.claim.State, x.claim.ID
	}
	own := messages.Raw(x.r.Messages)
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
	st.Find = func(ctx context.Context, r recall.Ref) ([]recall.Piece, error) {
		for _, c := range []*recall.Conversation{hidden, all} {
			if pieces := c.Named(r); pieces != nil {
				return pieces, nil
			}
		}
		if pieces, err := x.find(ctx, x.key, s.Originals, r); err != nil || pieces != nil {
			return pieces, err
		}
		return x.findAnywhere(ctx, x.reads, r)
	}
	return st, nil
}

// errNothing is returned to the agent's model when no conversation has been condensed yet.
var errNothing = errors.New("nothing of a conversation was condensed yet: all of it is still in view")

// memory returns the stored originals of the reader's latest conversation, restricted to session unless that is empty.
// Handles from the reader's other conversations are resolved too. The error is [errNothing] if there is none.
func (g *Gateway) memory(ctx context.Context, reader, session string) (*mcpserver.State, error) {
	found, err := g.store.Readable(ctx, reader, session, "", 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNothing
	}
	r := &found[0]
	k, err := g.kept(ctx, r.Key, r.Set)
	if err != nil {
		return nil, err
	}
	st := g.state(r.Key, r.ID, k.client, r.Updated)
	st.Find = func(ctx context.Context, r recall.Ref) ([]recall.Piece, error) {
		if pieces, err := g.promised(ctx, reader, session, r); r.Onward && (err != nil || pieces != nil) {
			return pieces, err
		}
		if pieces, err := k.named(r); err != nil || pieces != nil {
			return pieces, err
		}
		return g.findAnywhere(ctx, reader, r)
	}
	return st, nil
}

func (g *Gateway) state(key store.Key, id string, c *recall.Conversation, changed time.Time) *mcpserver.State {
	return &mcpserver.State{
		Conversation: c, Name: "this conversation", Format: messages.Formats[wire.API(key.API)], Changed: changed, Records: true,
		Recalled: func(pieces []recall.Piece, bytes int) { g.recalled(key, id, pieces, bytes) },
	}
}

// kept loads and parses a set of originals, or takes it from the shelf.
func (g *Gateway) kept(ctx context.Context, key store.Key, set string) (*keptSet, error) {
	n, err := g.store.KeptCount(ctx, key.Tenant, set)
	if err != nil {
		return nil, err
	}
	name := setName{key.Tenant, set}
	if k := g.shelf.get(name, n); k != nil {
		return k, nil
	}
	originals, err := g.store.Kept(ctx, key.Tenant, set)
	if err != nil {
		return nil, err
	}
	if len(originals) < n {
		g.fault("store_damaged", fmt.Errorf("%d of %d originals of a conversation are damaged, and cannot be recalled", n-len(originals), n))
	}
	k, err := remember(wire.API(key.API), originals)
	if err == nil {
		g.shelf.put(name, k)
	}
	return k, err
}

// A shelf caches the sets that were parsed last, the latest first. A set only grows, so a cached one with the same
// number of originals is up to date.
type shelf struct {
	mu   sync.Mutex
	sets []shelved
}

type setName struct{ tenant, set string }

type shelved struct {
	name setName
	set  *keptSet
}

const mostShelved = 16 << 20 // bytes of originals; parsed sets take several times as much memory

func (s *shelf) get(name setName, n int) *keptSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sets, func(h shelved) bool { return h.name == name && len(h.set.originals) == n })
	if i < 0 {
		return nil
	}
	found := s.sets[i]
	s.sets = slices.Insert(slices.Delete(s.sets, i, i+1), 0, found)
	return found.set
}

func (s *shelf) put(name setName, k *keptSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = slices.DeleteFunc(s.sets, func(h shelved) bool { return h.name == name })
	s.sets = slices.Insert(s.sets, 0, shelved{name, k})
	size := 0
	for i, h := range s.sets {
		for _, o := range h.set.originals {
			size += len(o.Data)
		}
		if size > mostShelved {
			clear(s.sets[i:])
			s.sets = s.sets[:i]
			return
		}
	}
}

// find resolves a ref in one set; nil if the set is empty or does not have it.
func (g *Gateway) find(ctx context.Context, key store.Key, set string, r recall.Ref) ([]recall.Piece, error) {
	if set == "" {
		return nil, nil
	}
	k, err := g.kept(ctx, key, set)
	if err != nil {
		return nil, err
	}
	return k.named(r)
}

// findAnywhere resolves a ref in all conversations of a reader; nil if none has it.
func (g *Gateway) findAnywhere(ctx context.Context, reader string, r recall.Ref) ([]recall.Piece, error) {
	if reader == "" {
		return nil, nil
	}
	if pieces, err := g.promised(ctx, reader, "", r); r.Onward && (err != nil || pieces != nil) {
		return pieces, err
	}
	found, err := g.store.Readable(ctx, reader, "", r.Handle, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return g.find(ctx, found[0].Key, found[0].Set, r)
}

// Limits of the search for content onward from a handle.
const (
	mostRecords = 64
	mostSets    = 8 // sets that are parsed
)

// promised looks up an onward ref in the views sent to reader, newest first, preferring session; nil if no view has it.
// Two conversations can begin with the same content: then the result is from both.
func (g *Gateway) promised(ctx context.Context, reader, session string, r recall.Ref) ([]recall.Piece, error) {
	if !r.Onward {
		return nil, nil
	}
	found, err := g.store.Readable(ctx, reader, session, r.String(), mostRecords)
	if err == nil && len(found) == 0 && session != "" {
		found, err = g.store.Readable(ctx, reader, "", r.String(), mostRecords)
	}
	if err != nil {
		return nil, err
	}
	var pieces []recall.Piece
	done, sets, there := map[store.Key]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range found {
		if f.Key.Session != "" && done[f.Key] || sets[f.Set] || len(sets) == mostSets {
			continue
		}
		done[f.Key], sets[f.Set] = true, true
		more, err := g.find(ctx, f.Key, f.Set, r)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if len(sets) == 1 || !there[p.Handle] {
				pieces = append(pieces, p)
			}
			there[p.Handle] = true
		}
	}
	return pieces, nil
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

// asked says whose originals a request to /mcp may read. It is passed in the context.
type asked struct{ reader, session string }

type askedKey struct{}

// Limits of requests to /mcp.
const (
	mostAsking     = 4           // at the same time; further ones wait
	mostAskedBytes = 1 << 20     // size of a request
	mostAsked      = time.Minute // time until the answer is sent
)

// newMCP returns the handler of /mcp. It keeps no state between requests.
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

// serveMCP checks a request to /mcp, waits for one of mostAsking places, and answers it.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	a := asked{reader: g.readerOf(s, t), session: r.URL.Query().Get("session")}
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
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostAskedBytes))
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
	_ = whole.SetWriteDeadline(time.Now().Add(mostAsked))
	defer func() { _ = whole.SetWriteDeadline(time.Time{}) }()
	g.mcp.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, a)))
}
