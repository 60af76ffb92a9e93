package library

import (
	"context"
	"time"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/recall"
)

// unstored returns what is recallable before anything of a conversation was condensed.
func (l *Library) unstored(reader string) (*mcpserver.State, error) {
	if l.Beside == nil {
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

// beside returns the first of the conversations beside that has what is looked for; nil if none has.
func (l *Library) beside(has func(*recall.Conversation) bool) *recall.Conversation {
	if l.Beside != nil {
		for j := range l.Beside() {
			if c := recall.New(j); has(c) {
				return c
			}
		}
	}
	return nil
}

// Continues reports whether a handle in the messages, or the key of their numbers, leads to a conversation beside.
func (l *Library) Continues(api wire.API, messages [][]byte) bool {
	if l.Beside == nil {
		return false
	}
	j, err := read(api, messages)
	if err != nil {
		return false
	}
	key, refs := recall.Key(j.View()), recall.Mentioned(j.View())
	return l.beside(func(c *recall.Conversation) bool {
		if key != "" && recall.Key(c.Own.Journal.View()) == key {
			return true
		}
		for r := range refs {
			if r.Handle != "" && c.Named(r) != nil {
				return true
			}
		}
		return false
	}) != nil
}
