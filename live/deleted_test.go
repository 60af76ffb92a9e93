package live_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// Another process deletes what a running gateway has stored. The gateway notices it with the next request, and stores the conversation
// again, so that a restart afterwards loses nothing.
func TestDeletedRecordsAreStoredAgain(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "serve.db")
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages, Model: "claude-sonnet-4-5", Session: "s"}, func(o *live.Options) { o.Store.Path = path; o.Recall.Own = true })
	for n := 0; p.Stats().EpochCount == 0 && n < 60; n++ {
		steps(t, p, 1)
	}
	other, err := store.SQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	count := func() int {
		t.Helper()
		all, err := other.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range all {
			if r.Key.API == string(upstream.Messages) {
				n++
			}
		}
		return n
	}
	if n, err := other.Expire(t.Context(), time.Now().Add(time.Hour), 0); err != nil || n == 0 || count() != 0 {
		t.Fatalf("%d deleted, %v, %d left", n, err, count())
	}
	for n := 0; p.Stats().EpochCount < 2 && n < 60; n++ {
		steps(t, p, 1)
	}
	if n := count(); n == 0 {
		t.Error("nothing is stored again")
	}
	next := newPlay(t, upstream.Options{}, *p.client, func(o *live.Options) { o.Store.Path, o.Recall.Own = path, true })
	if c := only(t, next.Controller()); !c.Condensed || len(p.vendor.Refusals()) > 0 {
		t.Errorf("after a restart: %+v", c)
	}
}
