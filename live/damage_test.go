package live_test

import (
	"database/sql"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A disk that returns another byte than was written never reaches a vendor: the conversation goes on as after a lost store.
func TestDamagedStoreTellsVendorNothingElse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.db")
	p := newPlay(t, upstream.Options{}, recalls(claude("s")), func(o *live.Options) { o.Store.Path = file })
	p.begin(t)
	p.untilEpoch(t, 1)
	handles := promises(t, p.lastBody())
	for p.step(t); len(p.client.Body) < 3*window; { // without its views the conversation is condensed at once
		p.step(t)
	}
	p.server.Close()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{
		"UPDATE lineage SET data = CAST(replace(CAST(data AS TEXT), 'IHRo', 'IHRp') AS BLOB)", // the in base64: tie
		"UPDATE kept SET kind = 'sent' WHERE n = 1",
		"UPDATE original SET data = substr(data, 1, 9) || x'00' || substr(data, 11) WHERE id = (SELECT original FROM kept WHERE n = 2)",
	} {
		if _, err := db.ExecContext(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	var log testkit.Log
	g, s := serveWith(t, v.URL, withWindow(window), func(o *live.Options) {
		o.Store.Path, o.Reports.Logger = file, slog.New(slog.NewTextHandler(&log, nil))
	})
	p.Gateway, p.server, p.client.URL = g, s, s.URL
	before := len(p.vendor.Records())
	for range 12 {
		p.step(t)
	}
	for i, r := range p.vendor.Records()[before:] {
		if strings.Contains(string(r.Body), " tie ") {
			t.Errorf("request %d has a text that nobody wrote: %.300s", i, r.Body)
		}
	}
	if got := g.Stats(); got.Errors["store_damaged"] != 1 || got.EpochCount == 0 || got.Errors["commit"] > 0 {
		t.Errorf("got %d epochs, faults %v; want one damaged record, and new epochs", got.EpochCount, got.Errors)
	}
	if n := strings.Count(log.String(), "damaged"); n != 1 {
		t.Errorf("said %d times in the log:\n%s", n, log.String())
	}
	for h := range handles { // what is recalled is what was said, or nothing
		texts, failed, _ := ask(t, s.URL+"/recall/"+secret+"/mcp?session=s", nil, "recall", object{"handle": h})
		if text := strings.Join(texts, "\n"); !failed && strings.Contains(text, " tie ") {
			t.Errorf("recalled %.300s", text)
		}
	}
}

// A full disk costs recall, but no answer: what the vendor forces is condensed. If the gateway ends when the disk has space, a restart
// costs nothing.
func TestFullDiskStillCondensesForVendor(t *testing.T) {
	testkit.Slow(t)
	for name, c := range map[string]upstream.Client{"with recall": recalls(claude("s")), "without": claude("s")} {
		t.Run(name, func(t *testing.T) {
			vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(90, 2200, nil)})
			v := httptest.NewServer(vendor)
			t.Cleanup(v.Close)
			h, err := condense.Open(t.Context(), withWindow(window))
			if err != nil {
				t.Fatal(err)
			}
			broken := &brokenStore{Store: inMemory(t)}
			g, err := live.NewWith(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}}}, broken)
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(g)
			t.Cleanup(func() { s.Close(); _ = g.Close(); _ = h.Close() })
			c.URL = s.URL
			p := &play{Gateway: g, vendor: vendor, server: s, client: &c}
			broken.full.Store(true)
			p.begin(t)
			for range 40 { // each fails if the agent sees a refusal
				p.step(t)
			}
			if got := p.Stats(); got.EpochCount == 0 || got.Errors["commit"] == 0 {
				t.Errorf("got %d epochs and faults %v", got.EpochCount, got.Errors)
			}
			if h := promises(t, p.lastBody()); len(h) > 0 {
				t.Errorf("the view promises %v, and nothing is kept", h)
			}
			if got := vendor.Breaks(); len(got) > p.Stats().EpochCount {
				t.Errorf("%d breaks of the prefix in %d epochs", len(got), p.Stats().EpochCount)
			}
			broken.full.Store(false)
			p.step(t)
			if records, err := broken.List(t.Context(), ""); err != nil || len(records) == 0 {
				t.Errorf("%d records (%v) after the disk had space again", len(records), err)
			}
			p.untilEpoch(t, p.Stats().EpochCount+1)
			broken.full.Store(true) // the next gateway knows what this one has sent meanwhile, and leaves no thinking out
			for range 3 {
				p.step(t)
			}
			broken.full.Store(false)
			breaks := len(vendor.Breaks())
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			if g, err = live.NewWith(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}}}, broken); err != nil {
				t.Fatal(err)
			}
			s.Config.Handler = live.Settled(g)
			p.step(t)
			p.step(t)
			if got := vendor.Breaks()[breaks:]; len(got) > 0 {
				t.Errorf("after the restart: breaks of the prefix %v", got)
			}
		})
	}
}

// A store file that is deleted while the gateway serves is noticed: after a restart nothing of what is condensed now would be known.
func TestDeletedStoreIsNoticed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.db")
	var log testkit.Log
	p := newPlay(t, upstream.Options{}, claude("s"), func(o *live.Options) {
		o.Store.Path, o.Reports.Logger = file, slog.New(slog.NewTextHandler(&log, nil))
	})
	admin := adminOf(t, p.Gateway)
	if res, body := send(t, http.MethodGet, admin+"/readyz", nil, nil); res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", res.Status, body)
	}
	if err := os.Remove(file); err != nil {
		t.Skip("a file that is open cannot be deleted here")
	}
	for range 3 {
		if res, body := send(t, http.MethodGet, admin+"/readyz", nil, nil); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s %s", res.Status, body)
		}
	}
	if n := strings.Count(log.String(), "deleted or replaced"); n != 1 {
		t.Errorf("said %d times in the log:\n%s", n, log.String())
	}
	p.begin(t)
}
