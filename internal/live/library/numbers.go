package library

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/recall"
)

// Numbers returns the client's messages of the reader's conversation with a key or, without one, of the only one that has numbers, nil if
// none has. The error is for a model.
func (l *Library) Numbers(ctx context.Context, reader, session, key string) (*recall.Source, error) {
	if key != "" {
		session = "" // a key can be from another one
	}
	found, err := l.store.Readable(ctx, reader, session, "", 16*maxRecords)
	if err != nil {
		return nil, err
	}
	sets := map[string]bool{}
	older := map[string]int{} // by set: how many later ones its conversation has
	found = slices.DeleteFunc(found, func(r store.Record) bool {
		conversation, its := Named(r.Set)
		if sets[r.Set] || its == "" || key != "" && its != key {
			return true
		}
		sets[r.Set] = true // branches share one
		older[r.Set] = older[conversation]
		older[conversation]++
		return false
	})
	slices.SortStableFunc(found, func(a, b store.Record) int { return older[a.Set] - older[b.Set] })
	var all []numbered
	for _, r := range found[:min(len(found), maxSets)] {
		kept, err := l.store.Kept(ctx, r.Key.Tenant, r.Set)
		if err != nil {
			return nil, err
		}
		one := numbered{r, OfKind(kept, FromClient)}
		if i := slices.IndexFunc(all, one.agrees); i < 0 {
			all = append(all, one)
		} else if len(one.own) > len(all[i].own) {
			all[i] = one
		}
	}
	switch {
	case len(all) == 1:
		k, err := l.kept(ctx, all[0].Key, all[0].Set)
		if err != nil {
			return nil, err
		}
		return k.client.Own, nil
	case len(all) == 0 && key == "":
		return nil, nil //nolint:nilnil // nothing has numbers
	case len(all) == 0:
		if c := recall.First(l.Beside(), func(c *recall.Conversation) bool { return recall.Key(c.Own.Journal.View()) == key }); c != nil {
			return c.Own, nil
		}
		return nil, fmt.Errorf("no conversation has the contents %+q: of is what the first line of the contents says", key)
	}
	which := []string{"several conversations have such numbers, say which one is meant with of, as the first line of its contents does"}
	for _, n := range all {
		_, its := Named(n.Set)
		which = append(which, fmt.Sprintf("of %s: %s", its, l.title(ctx, n.Key, n.ID)))
	}
	return nil, errors.New(strings.Join(which, "; "))
}

// A numbered is a record with the client's messages that are kept of its conversation.
type numbered struct {
	store.Record
	own [][]byte
}

// agrees reports whether the numbers of n and o lead to the same content, as far as both have them.
func (n numbered) agrees(o numbered) bool {
	most := min(len(n.own), len(o.own))
	return slices.EqualFunc(n.own[:most], o.own[:most], func(a, b []byte) bool {
		return bytes.Equal(a, b) || slices.Equal(n.content(a), o.content(b))
	})
}

// content returns the handles of all parts of a message but the model's thinking.
func (n numbered) content(raw []byte) (all []string) {
	c, err := Conversation(wire.API(n.Key.API), [][]byte{raw})
	if err != nil {
		return []string{rand.Text()}
	}
	for _, p := range c.Own.All() {
		if _, thinks := p.Part.(core.Reasoning); !thinks {
			all = append(all, p.Handle)
		}
	}
	return all
}
