package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory returns an empty store that ends with the process.
func Memory() Store {
	return &memory{records: map[string]Record{}, secrets: map[string][]byte{}, sets: map[setKey]*set{}, originals: map[originalKey][]byte{}}
}

type memory struct {
	mu        sync.Mutex
	records   map[string]Record // by ID
	secrets   map[string][]byte
	sets      map[setKey]*set
	originals map[originalKey][]byte // compressed
	bytes     int64                  // of originals
}

type setKey struct{ tenant, name string }

type originalKey struct {
	tenant string
	hash   [sha256.Size]byte
}

type set struct {
	originals []packed // without data
	handles   map[string]bool
}

// Load implements [Store].
func (s *memory) Load(ctx context.Context, k Key) ([]Record, error) {
	if err := cmp.Or(ctx.Err(), k.Validate()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.those(true, func(r *Record) bool { return r.Key == k }), nil
}

// those returns records, the latest first, with their data or without.
func (s *memory) those(data bool, are func(*Record) bool) []Record {
	var found []Record
	for _, r := range s.records {
		if !are(&r) {
			continue
		}
		if !data {
			r.Data = nil
		}
		r.Data = bytes.Clone(r.Data)
		found = append(found, r)
	}
	slices.SortFunc(found, latestFirst)
	return found
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
	return s.save(r)
}

func (s *memory) save(r *Record) error {
	for _, of := range []*Record{r, r.From} {
		if of == nil {
			continue
		}
		if old := s.records[of.ID]; old.Version != of.Version || old.Version > 0 && old.Key != r.Key {
			return fmt.Errorf("record %s: %w", of.ID, ErrConflict)
		}
	}
	r.saved(nil)
	if r.From != nil {
		from := s.records[r.From.ID]
		from.Version = r.From.Version
		s.records[from.ID] = from
	}
	stored := *r
	stored.From = nil
	stored.Updated = r.Updated.Truncate(time.Millisecond)
	stored.Data = append(s.records[r.ID].Data[:0], r.Data...)
	s.records[r.ID] = stored
	return nil
}

// Keep implements [Store].
func (s *memory) Keep(ctx context.Context, r *Record, k *Kept, maxBytes int64) error {
	if err := cmp.Or(ctx.Err(), k.validate(r)); err != nil {
		return err
	}
	all, err := pack(k.Originals)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added, more := map[originalKey][]byte{}, int64(0)
	for _, p := range all {
		at := originalKey{r.Key.Tenant, p.hash}
		if _, ok := s.originals[at]; !ok && added[at] == nil {
			added[at] = p.data
			more += int64(len(p.data))
		}
	}
	if maxBytes > 0 && more > 0 && s.bytes+more > maxBytes {
		return fmt.Errorf("record %s: %w", r.ID, ErrFull)
	}
	if err := s.save(r); err != nil {
		return err
	}
	maps.Copy(s.originals, added)
	s.bytes += more
	at := setKey{r.Key.Tenant, r.Set}
	if s.sets[at] == nil {
		s.sets[at] = &set{handles: map[string]bool{}}
	}
	for _, p := range all {
		p.data = nil
		s.sets[at].originals = append(s.sets[at].originals, p)
	}
	for _, h := range k.Handles {
		s.sets[at].handles[h] = true
	}
	return nil
}

// Kept implements [Store].
func (s *memory) Kept(ctx context.Context, tenant, name string) ([]Original, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.sets[setKey{tenant, name}]
	if in == nil {
		return nil, nil
	}
	all := make([]Original, 0, len(in.originals))
	for _, p := range in.originals {
		data, err := unpack(s.originals[originalKey{tenant, p.hash}])
		if err != nil {
			return nil, err
		}
		all = append(all, Original{p.kind, data})
	}
	return all, nil
}

// KeptCount implements [Store].
func (s *memory) KeptCount(ctx context.Context, tenant, name string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.sets[setKey{tenant, name}]; in != nil {
		return len(in.originals), ctx.Err()
	}
	return 0, ctx.Err()
}

// KeptBytes implements [Store].
func (s *memory) KeptBytes(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, ctx.Err()
}

// Readable implements [Store].
func (s *memory) Readable(ctx context.Context, reader, session, handle string, limit int) ([]Record, error) {
	if err := cmp.Or(ctx.Err(), readable(reader)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.those(false, func(r *Record) bool {
		in := s.sets[setKey{r.Key.Tenant, r.Set}]
		return r.Reader == reader && in != nil && (session == "" || r.Key.Session == session) && (handle == "" || in.handles[handle])
	})
	return found[:min(len(found), limit)], nil
}

// Changes implements [Store]: it has no other users.
func (s *memory) Changes(ctx context.Context, _ Key) (int64, error) { return 0, ctx.Err() }

// Ready implements [Store].
func (s *memory) Ready(ctx context.Context) error { return ctx.Err() }

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
	kept, deleted := int64(0), 0
	for _, r := range slices.SortedFunc(maps.Values(s.records), latestFirst) {
		kept += int64(len(r.Data))
		if r.Updated.Before(before) || maxBytes > 0 && kept > maxBytes {
			delete(s.records, r.ID)
			deleted++
		}
	}
	s.tidy()
	return deleted, nil
}

// List implements [Store].
func (s *memory) List(ctx context.Context, tenant string) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.those(false, func(r *Record) bool { return tenant == "" || isOf(r.Key.Tenant, tenant) }), ctx.Err()
}

// Since implements [Store].
func (s *memory) Since(ctx context.Context, api string, since time.Time, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.those(true, func(r *Record) bool { return r.Key.API == api && !r.Updated.Before(since) })
	return found[:min(len(found), limit)], ctx.Err()
}

// Forget implements [Store].
func (s *memory) Forget(ctx context.Context, tenant string) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.records)
	maps.DeleteFunc(s.records, func(_ string, r Record) bool { return isOf(r.Key.Tenant, tenant) })
	s.tidy()
	return before - len(s.records), nil
}

// tidy deletes originals that no record refers to.
func (s *memory) tidy() {
	needed := map[setKey]bool{}
	for _, r := range s.records {
		needed[setKey{r.Key.Tenant, r.Set}] = true
	}
	maps.DeleteFunc(s.sets, func(k setKey, _ *set) bool { return !needed[k] })
	used := map[originalKey]bool{}
	for k, in := range s.sets {
		for _, p := range in.originals {
			used[originalKey{k.tenant, p.hash}] = true
		}
	}
	for k, data := range s.originals {
		if !used[k] {
			delete(s.originals, k)
			s.bytes -= int64(len(data))
		}
	}
}

// Close implements [Store].
func (s *memory) Close() error { return nil }
