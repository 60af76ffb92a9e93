// Package library keeps the originals that condensed views leave out, and finds them again.
package library

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/recall"
)

// CanCall reports whether a request offers the tool recall of an MCP server named condense. Agents name it
// mcp__condense__recall or condense_recall, nest the server's tools in a tool of their own, or have the model find and load them: then
// a developer's message lists the server, after the words deferred, or has the tools themselves.
func CanCall(r *wire.Request, deferred string) bool {
	return toolIn(r.Tools, "", 0) || slices.ContainsFunc(r.Messages, func(m wire.Message) bool {
		if m.Role != "developer" {
			return false
		}
		_, servers, _ := bytes.Cut(m.Raw, []byte(deferred))
		return deferred != "" && bytes.Contains(servers, []byte(`- mcp__condense: `)) || toolIn(rawjson.Field(m.Raw, "tools"), "", 0)
	})
}

func toolIn(tools []byte, within string, depth int) bool {
	const deepest = 2
	if depth > deepest {
		return false
	}
	for tool := range rawjson.Elements(tools) {
		f := tool
		for _, name := range []string{"function", "toolSpec"} {
			if inner := rawjson.Field(tool, name); rawjson.IsObject(inner) {
				f = inner
			}
		}
		name := within + rawjson.Text(rawjson.Field(f, "name"))
		// Codex' tool exec runs programs, and declares the functions that these can call.
		declared := bytes.Contains(rawjson.Field(f, "description"), []byte("mcp__condense__recall("))
		if declared || dialog.IsRecall(name) || toolIn(rawjson.Field(tool, "tools"), name, depth+1) {
			return true
		}
		for _, list := range []string{"functionDeclarations", "function_declarations"} { // of the Gemini API
			if toolIn(rawjson.Field(tool, list), within, depth+1) {
				return true
			}
		}
	}
	return false
}

// Kinds of kept originals.
const (
	FromClient = "client" // messages of the client
	fromEpoch  = "sent"   // messages that an epoch sent in place of the client's, and that were condensed again
	fromLater  = "later"  // messages of the client after some that are not kept
)

// errPromise means that a handle or a number in a condensed view leads to no content.
var errPromise = errors.New("a handle or number in the condensed view leads to nothing that can be kept")

// A keptSet holds the parsed originals that were kept of a conversation.
type keptSet struct {
	api         wire.API
	originals   []store.Original
	client, put *recall.Conversation // the client's messages, and the ones sent in their place
}

func remember(api wire.API, originals []store.Original) (*keptSet, error) {
	k := &keptSet{api: api, originals: originals}
	var err error
	if k.client, err = Conversation(api, OfKind(originals, FromClient, fromLater)); err != nil {
		return nil, err
	}
	k.client.Own.Later += plain.Sum(Places(api, OfKind(originals, fromLater)), func(n int) int { return min(n, 1) })
	if k.put, err = Conversation(api, OfKind(originals, fromEpoch)); err != nil {
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
		if r.Handle == "" && k.client.Named(r) != nil {
			continue // the client's messages are kept
		}
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
		if o.Kind != fromEpoch {
			continue
		}
		one, err := Conversation(k.api, [][]byte{o.Data})
		if err != nil {
			return nil, err
		}
		pieces := one.Named(r)
		if pieces == nil {
			continue
		}
		rest, err := Conversation(k.api, OfKind(k.originals[i:], FromClient, fromLater))
		if err != nil {
			return nil, err
		}
		return append(pieces, slices.DeleteFunc(rest.Own.All(), func(p recall.Piece) bool { return strings.TrimSpace(p.Text()) == "" })...), nil
	}
	return nil, nil
}

// Name returns a new name for the originals of a conversation whose view begins with block. It tells the conversation, and the key of the
// view's contents.
func Name(api wire.API, conversation string, block [][]byte) (string, error) {
	j, err := read(api, block)
	if err != nil {
		return "", err
	}
	key := recall.Key(j.View())
	if key == "" {
		sum := sha256.Sum256([]byte(conversation))
		key = hex.EncodeToString(sum[:3])
	}
	return conversation + "." + rand.Text() + "." + key, nil
}

// Named returns the conversation and the key in a name; empty if the originals have no numbers.
func Named(name string) (conversation, key string) {
	if part := strings.Split(name, "."); len(part) == 3 {
		return part[0], part[2]
	}
	return "", ""
}

// Promises returns the refs that the messages mention.
func Promises(api wire.API, messages [][]byte) (map[recall.Ref]bool, error) {
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

// Conversation parses messages into a conversation that counts as hidden: the model does not see it any more.
func Conversation(api wire.API, messages [][]byte) (*recall.Conversation, error) {
	j, err := read(api, messages)
	if err != nil {
		return nil, err
	}
	c, places := recall.New(j), Places(api, messages)
	c.Own.Hidden = true
	c.Own.Unnumbered(func(i int) bool { return places[i] == 0 })
	return c, nil
}

// Places returns the numbers of messages of a client, 0 for those that have none: what Claude Code sends to some models only. So the
// numbers stay the same when it goes on with another model.
func Places(api wire.API, messages [][]byte) []int {
	places, n := make([]int, len(messages)), 0
	for i, raw := range messages {
		if d := wire.Of(api); d.Unnumbered {
			if _, ok := d.Plain(raw); !ok {
				continue
			}
		}
		n++
		places[i] = n
	}
	return places
}

// ErrNothing is returned to the agent's model when no conversation has been condensed yet.
var ErrNothing = errors.New("nothing of a conversation was condensed yet: all of it is still in view")

// A Library finds originals in a store.
type Library struct {
	store    store.Store
	shelf    shelf
	recalled func(key store.Key, id string, pieces []recall.Piece, bytes int) // called after each recall
	title    func(ctx context.Context, key store.Key, id string) string       // of a record's conversation
	damaged  func(error)                                                      // called when originals cannot be read
	// Beside returns what yields conversations whose views were made elsewhere for the only reader: their handles and numbers lead there.
	// It returns nil while there are none.
	Beside func() Others
}

// Others yield conversations that are not in the store, latest first.
type Others = func() iter.Seq[*history.Journal]

// New returns a library of the originals in a store.
func New(in store.Store, recalled func(key store.Key, id string, pieces []recall.Piece, bytes int), title func(ctx context.Context, key store.Key, id string) string, damaged func(error)) *Library {
	return &Library{store: in, recalled: recalled, title: title, damaged: damaged, Beside: func() Others { return nil }}
}

// Memory returns the stored originals of the reader's latest conversation, restricted to session unless that is empty.
// Handles from the reader's other conversations are resolved too. The error is [errNothing] if there is none.
func (l *Library) Memory(ctx context.Context, reader, session string) (*mcpserver.State, error) {
	found, err := l.store.Readable(ctx, reader, session, "", 1)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return l.unstored(reader)
	}
	r := &found[0]
	k, err := l.kept(ctx, r.Key, r.Set)
	if err != nil {
		return nil, err
	}
	st := l.State(r.Key, r.ID, k.client, r.Updated)
	st.Find = func(ctx context.Context, r recall.Ref) ([]recall.Piece, error) {
		if pieces, err := l.promised(ctx, reader, session, r); r.Onward && (err != nil || pieces != nil) {
			return pieces, err
		}
		if pieces, err := k.named(r); err != nil || pieces != nil {
			return pieces, err
		}
		return l.FindAnywhere(ctx, reader, r)
	}
	st.Numbers = func(ctx context.Context, key string) (*recall.Source, error) {
		s, err := l.Numbers(ctx, reader, session, key)
		if s == nil && err == nil {
			s = k.client.Own
		}
		return s, err
	}
	return st, nil
}

// State returns the recallable content of a record's conversation, for the MCP server. Changed is the time of the last change.
func (l *Library) State(key store.Key, id string, c *recall.Conversation, changed time.Time) *mcpserver.State {
	return &mcpserver.State{
		Conversation: c, Name: "this conversation", Format: wire.Of(wire.API(key.API)).Format, Changed: changed, Records: true,
		Recalled: func(pieces []recall.Piece, bytes int) { l.recalled(key, id, pieces, bytes) },
	}
}

// kept loads and parses a set of originals, or takes it from the shelf.
func (l *Library) kept(ctx context.Context, key store.Key, set string) (*keptSet, error) {
	n, err := l.store.KeptCount(ctx, key.Tenant, set)
	if err != nil {
		return nil, err
	}
	name := setName{key.Tenant, set}
	if k := l.shelf.get(name, n); k != nil {
		return k, nil
	}
	originals, err := l.store.Kept(ctx, key.Tenant, set)
	if err != nil {
		return nil, err
	}
	if len(originals) < n {
		l.damaged(fmt.Errorf("%d of %d originals of a conversation are damaged, and cannot be recalled", n-len(originals), n))
	}
	k, err := remember(wire.API(key.API), originals)
	if err == nil && len(originals) < n { // those after a gap would have the numbers of others
		k.client.Own.Unnumbered(func(int) bool { return true })
	}
	if err == nil {
		l.shelf.put(name, k)
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

const maxShelved = 16 << 20 // bytes of originals; parsed sets take several times as much memory

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
		size += plain.Sum(h.set.originals, func(o store.Original) int { return len(o.Data) })
		if size > maxShelved {
			clear(s.sets[i:])
			s.sets = s.sets[:i]
			return
		}
	}
}

// Find resolves a ref in one set; nil if the set is empty or does not have it.
func (l *Library) Find(ctx context.Context, key store.Key, set string, r recall.Ref) ([]recall.Piece, error) {
	if set == "" {
		return nil, nil
	}
	k, err := l.kept(ctx, key, set)
	if err != nil {
		return nil, err
	}
	return k.named(r)
}

// FindAnywhere resolves a ref in all conversations of a reader, and in those beside; nil if none has it.
func (l *Library) FindAnywhere(ctx context.Context, reader string, r recall.Ref) ([]recall.Piece, error) {
	pieces, err := l.findStored(ctx, reader, r)
	if pieces == nil && err == nil {
		recall.First(l.Beside(), func(c *recall.Conversation) bool {
			pieces = c.Named(r)
			return pieces != nil
		})
	}
	return pieces, err
}

func (l *Library) findStored(ctx context.Context, reader string, r recall.Ref) ([]recall.Piece, error) {
	if reader == "" {
		return nil, nil
	}
	if pieces, err := l.promised(ctx, reader, "", r); r.Onward && (err != nil || pieces != nil) {
		return pieces, err
	}
	found, err := l.store.Readable(ctx, reader, "", r.Handle, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return l.Find(ctx, found[0].Key, found[0].Set, r)
}

// Limits of the search for content onward from a handle, or by a number.
const (
	maxRecords = 64
	maxSets    = 8 // sets that are read
)

// promised looks up an onward ref in the views sent to reader, newest first, preferring session; nil if no view has it.
// Two conversations can begin with the same content: then the result is from both.
func (l *Library) promised(ctx context.Context, reader, session string, r recall.Ref) ([]recall.Piece, error) {
	if !r.Onward {
		return nil, nil
	}
	found, err := l.store.Readable(ctx, reader, session, r.String(), maxRecords)
	if err == nil && len(found) == 0 && session != "" {
		found, err = l.store.Readable(ctx, reader, "", r.String(), maxRecords)
	}
	if err != nil {
		return nil, err
	}
	var pieces []recall.Piece
	done, sets, there := map[store.Key]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range found {
		if f.Key.Session != "" && done[f.Key] || sets[f.Set] || len(sets) == maxSets {
			continue
		}
		done[f.Key], sets[f.Set] = true, true
		more, err := l.Find(ctx, f.Key, f.Set, r)
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

// OfKind returns the originals of some kinds.
func OfKind(kept []store.Original, kinds ...string) [][]byte {
	return plain.Each(plain.Only(kept, func(o store.Original) bool { return slices.Contains(kinds, o.Kind) }),
		func(o store.Original) []byte { return o.Data })
}
