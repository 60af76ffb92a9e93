package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/store"
)

func refuses(t *testing.T, s store.Store) {
	for _, bad := range []string{"a b", "a\x00b", "a'b", "é", "a\nb", strings.Repeat("x", 257), `a\b`, "a*b"} {
		for _, k := range []store.Key{{Tenant: bad}, {API: bad}, {Agent: bad}, {Session: bad}} {
			if _, err := s.Load(t.Context(), k); err == nil {
				t.Errorf("load took the key %q", k)
			}
			if err := s.Save(t.Context(), &store.Record{ID: "r", Key: k}); err == nil {
				t.Errorf("save took the key %q", k)
			}
		}
	}
	if err := s.Save(t.Context(), &store.Record{Key: mine}); err == nil {
		t.Error("save took a record without an ID")
	}
}

func canceled(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Save(ctx, &store.Record{ID: "r", Key: mine}); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if _, err := s.Load(ctx, mine); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	save(t, s, &store.Record{ID: "r", Key: mine, Updated: noon}) // the store goes on
}

func secrets(t *testing.T, s store.Store) {
	seen := map[string]bool{}
	for _, name := range []string{"tenants", "other", "tenants"} {
		b, err := s.Secret(t.Context(), name)
		if err != nil || len(b) != 32 {
			t.Fatalf("got %d bytes, %v", len(b), err)
		}
		seen[string(b)] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d different secrets for two names", len(seen))
	}
}
