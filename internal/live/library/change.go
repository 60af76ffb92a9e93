package library

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
)

// originals returns the client's messages up to cut, each followed by the replacements once sent in its place. Sent is the
// view that was condensed; before holds the originals kept earlier.
func originals(own [][]byte, cut int, sent [][]byte, before []store.Original) []store.Original {
	is := plain.Set(plain.Each(own, func(raw []byte) string { return string(raw) }))
	replaced := make([][][]byte, len(own)+1) // replacements, by the number of client messages before them
	add := func(at int, raw []byte) {
		if !is[string(raw)] {
			is[string(raw)] = true
			replaced[at] = append(replaced[at], raw)
		}
	}
	at := 0
	for _, o := range before {
		if o.Kind == fromEpoch {
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
			all = append(all, store.Original{Kind: FromClient, Data: own[i-1]})
		}
		all = append(all, plain.Each(replaced[i], func(raw []byte) store.Original { return store.Original{Kind: fromEpoch, Data: raw} })...)
	}
	return all
}

// A Change is a request whose view leaves something out.
type Change struct {
	API    wire.API
	Own    [][]byte                         // the client's messages, without cache markers
	Sent   [][]byte                         // the view that was condensed
	Before func() ([]store.Original, error) // originals kept earlier
}

// Epoch collects the originals that the epoch of next must store: the client's messages that it replaces and, if a
// handle leads to a message that only an earlier epoch sent, that message too. It returns nil if the view has neither
// handles nor numbers.
func (c *Change) Epoch(next *lineage.State) (*store.Kept, error) {
	view, err := read(c.API, slices.AppendSeq(slices.Clone(next.Epoch.Block), maps.Values(next.Ingest)))
	if err != nil {
		return nil, err
	}
	promised, trailing := recall.Mentioned(view.View()), recall.Trailing(view.View())
	if len(promised)+len(trailing) == 0 {
		return nil, nil //nolint:nilnil // nothing to keep
	}
	before, err := c.Before()
	if err != nil {
		return nil, err
	}
	k, cut := &store.Kept{}, next.Epoch.Cut
	if len(next.Ingest) > 0 {
		cut = len(c.Own)
	}
	for {
		k.Originals = originals(c.Own, cut, c.Sent, before)
		m, err := remember(c.API, k.Originals)
		if err != nil {
			return nil, err
		}
		var fromSent bool
		if k.Handles, fromSent, err = m.keeps(promised); err == nil && !fromSent {
			k.Originals = slices.DeleteFunc(k.Originals, func(o store.Original) bool { return o.Kind == fromEpoch })
		}
		more := slices.ContainsFunc(trailing, func(r recall.Ref) bool { return m.client.Named(r) == nil })
		if cut == len(c.Own) && err != nil {
			return nil, err
		}
		if cut == len(c.Own) || err == nil && !more {
			break
		}
		cut = len(c.Own) // the messages after the cut are sent unchanged, but a handle or number may lead to one
	}
	numbered := func(r recall.Ref) bool { return r.Handle == "" }
	if len(k.Handles) == 0 && !slices.ContainsFunc(slices.AppendSeq(trailing, maps.Keys(promised)), numbered) {
		return nil, nil //nolint:nilnil // nothing to keep
	}
	return k, nil
}

// Round collects the originals of the client's messages that shortened replaces, and those of Sent; nil if these have no handles.
func (c *Change) Round(shortened [][]byte) (*store.Kept, error) {
	promised, err := Promises(c.API, shortened)
	if err != nil || len(promised) == 0 {
		return nil, err
	}
	k := &store.Kept{}
	for _, raw := range c.Own {
		k.Originals = append(k.Originals, store.Original{Kind: fromLater, Data: raw})
	}
	for _, raw := range c.Sent {
		k.Originals = append(k.Originals, store.Original{Kind: fromEpoch, Data: wire.Unmark(raw)})
	}
	m, err := remember(c.API, k.Originals)
	if err != nil {
		return nil, err
	}
	k.Handles, _, err = m.keeps(promised)
	return k, err
}

// Limits of the memory of recalls.
const (
	maxPasses  = 1 << 14 // number of handles
	LongestTag = 80      // bytes
)

// Passes maps each handle left in a view since the gateway was started to the pass that left it.
type Passes struct {
	mu sync.Mutex
	of map[string]string
}

// Add remembers which pass left each handle.
func (p *Passes) Add(of map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) > maxPasses {
		p.of = map[string]string{}
	}
	for handle, pass := range of {
		if _, known := p.of[handle]; !known {
			p.of[handle] = pass
		}
	}
}

// Get returns the pass that left a handle; empty if unknown.
func (p *Passes) Get(handle string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[handle]
}

// unstored returns what is recallable before anything of a conversation was condensed.
func (l *Library) unstored(reader string) (*mcpserver.State, error) {
	if l.Beside() == nil {
		return nil, ErrNothing
	}
	st := l.State(store.Key{}, "", recall.New(history.New()), time.Time{})
	st.Recalled = nil
	st.Find = func(ctx context.Context, r recall.Ref) ([]recall.Piece, error) { return l.FindAnywhere(ctx, reader, r) }
	st.Numbers = func(ctx context.Context, key string) (*recall.Source, error) {
		s, err := l.Numbers(ctx, reader, "", key)
		if s == nil && err == nil {
			err = ErrNothing
		}
		return s, err
	}
	return st, nil
}

// Continues reports whether a handle in the messages, or the key of their numbers, leads to a conversation beside.
func (l *Library) Continues(api wire.API, messages [][]byte) bool {
	if l.Beside() == nil {
		return false
	}
	j, err := read(api, messages)
	if err != nil {
		return false
	}
	key, refs := recall.Key(j.View()), slices.Collect(maps.Keys(recall.Mentioned(j.View())))
	return (key != "" || len(refs) > 0) && recall.First(l.Beside(), func(c *recall.Conversation) bool {
		leads := func(r recall.Ref) bool { return r.Handle != "" && c.Named(r) != nil }
		return key != "" && recall.Key(c.Own.Journal.View()) == key || slices.ContainsFunc(refs, leads)
	}) != nil
}
