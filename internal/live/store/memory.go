package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Memory returns an empty store that ends with the process.
func Memory() Store { return &memory{records: map[string]Record{}, secrets: map[string][]byte{}} }

type memory struct {
	mu      sync.Mutex
	records map[string]Record // by ID
	secrets map[string][]byte
}

// Load implements [Store].
func (s *memory) Load(ctx context.Context, k Key) ([]Record, error) {
	if err := cmp.Or(ctx.Err(), k.Validate()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Record
	for _, r := range s.records {
		if r.Key == k {
			r.Data = bytes.Clone(r.Data)
			found = append(found, r)
		}
	}
	slices.SortFunc(found, latestFirst)
	return found, nil
}

func latestFirst(a, b Record) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
}

// Save implements [Store].
func (s *memory) Save(ctx context.Context, r *Record) error {
	if err := cmp.Or(ctx.Err(), r.validate()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.records[r.ID]; old.Version != r.Version || old.Version > 0 && old.Key != r.Key {
		return fmt.Errorf("record %s: %w", r.ID, ErrConflict)
	}
	r.Version++
	stored := *r
	stored.Updated = r.Updated.Truncate(time.Millisecond)
	stored.Data = bytes.Clone(r.Data)
	s.records[r.ID] = stored
	return nil
}

// Changes implements [Store]: it has no other users.
func (s *memory) Changes(ctx context.Context) (int64, error) { return 0, ctx.Err() }

// Secret implements [Store].
func (s *memory) Secret(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets[name] == nil {
		s.secrets[name] = newSecret()
	}
	return bytes.Clone(s.secrets[name]), nil
}

func newSecret() []byte {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// Expire implements [Store].
func (s *memory) Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Record, 0, len(s.records))
	for _, r := range s.records {
		all = append(all, r)
	}
	slices.SortFunc(all, latestFirst)
	kept, deleted := int64(0), 0
	for _, r := range all {
		kept += int64(len(r.Data))
		if r.Updated.Before(before) || maxBytes > 0 && kept > maxBytes {
			delete(s.records, r.ID)
			deleted++
		}
	}
	return deleted, nil
}

// Close implements [Store].
func (s *memory) Close() error { return nil }
