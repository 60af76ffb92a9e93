package online_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func watch(t *testing.T, file string) *online.Watch {
	t.Helper()
	w, err := online.New(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// turn is one of a conversation of acme's, with an epoch that began at noon if that is new.
func turn(at time.Time, begins bool) *live.Turn {
	t := &live.Turn{Time: at, Conversation: "C1", Tenant: "acme:1234", Agent: "claude", Model: "m", Mode: "plan", Messages: 1, Tokens: 100}
	if begins {
		t.Epoch = &live.Epoch{Time: at, Agent: "claude", Model: "m", Lineage: "C1", Reason: "window", Before: 1000, After: 300, Turns: 2}
	}
	return t
}

func answer(at time.Time, saved float64) *live.Used {
	return &live.Used{Time: at, Epoch: noon, Input: 300, Read: 200, Cost: 1, Saved: saved, Priced: true}
}

// A reader of the pages sees who condensed, why not the first of the chain, which provider failed, and which vendor
// was away.
func TestPagesNameWhatFailed(t *testing.T) {
	w := watch(t, "")
	defer func() { _ = w.Close() }()
	begins := turn(noon, true)
	begins.Profile, begins.Mode = "main", ""
	begins.Epoch.Provider, begins.Epoch.Fallback, begins.Epoch.Cause = "truncation", true, "y failed: exit status 7"
	begins.Epoch.WordsLost = 1240
	w.Turn(begins)
	w.Later("C1", noon, live.Finding{Truth: &live.Truth{Sentences: 1200, SentencesGone: 2, Claims: 9, Lines: 8, Superseded: 1}})
	pages := httptest.NewServer(w.Pages("", func() live.Stats {
		return live.Stats{
			Attempts:    []live.Attempt{{Provider: "y", Outcome: "failed", Mode: "main", Count: 3, Reason: "exit status 7", Last: noon}},
			Unreachable: []live.Unreachable{{Upstream: "anthropic", Address: "http://127.0.0.1:9", Count: 8, Reason: "connection refused", Last: noon}},
			Failures:    []live.Failure{{Kind: "vendor_4xx", Count: 7, Reason: "401 invalid x-api-key", Status: 401, Since: noon, Last: noon}},
		}
	}))
	defer pages.Close()
	defer http.DefaultClient.CloseIdleConnections()
	_, _, data := get(t, pages.URL+"/condense/data?conversation=C1")
	for _, has := range []string{
		`"provider":"truncation","fallback":true,"cause":"y failed: exit status 7","words_lost":1240`,
		`{"provider":"y","outcome":"failed","mode":"main","count":3,"reason":"exit status 7","last":"2026-11-23T12:00:00Z"}`,
		`{"upstream":"anthropic","address":"http://127.0.0.1:9","count":8,"reason":"connection refused","last":"2026-11-23T12:00:00Z"}`,
		`"faults":[["2 of 1,200 sentences of the user are gone","1 of 8 lines of files were replaced since"]]`,
		`"advice":["check the key"]`, `"window":"the window was nearly full"`, `"profile":"main"`,
	} {
		if !strings.Contains(data, has) {
			t.Errorf("no %s in:\n%s", has, data)
		}
	}
}

// TestEvidenceIsKept: what was measured survives the process, is the sum over those that served a conversation, and
// goes with its tenant.
func TestEvidenceIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.db")
	a, b := watch(t, file), watch(t, file)
	a.Turn(turn(noon, true))
	a.Answer("C1", answer(noon, -1))
	a.Later("C1", noon, live.Finding{Recalled: 50})
	truth := live.Truth{Sentences: 1200, SentencesGone: 2, Claims: 9, Lines: 8, Superseded: 1}
	a.Later("C1", noon, live.Finding{Truth: &truth})
	a.Later("C2", noon, live.Finding{Truth: &truth}) // forgotten meanwhile
	b.Turn(turn(noon.Add(time.Minute), false))
	b.Answer("C1", answer(noon.Add(time.Minute), 3))
	b.Later("C1", noon, live.Finding{Recalled: 10})
	a.Turn(turn(noon.Add(2*time.Minute), false))
	a.Answer("C1", answer(noon.Add(2*time.Minute), 0.5))
	for _, w := range []*online.Watch{a, b} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := online.Stored(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || len(all[0].Epochs) != 1 {
		t.Fatalf("stored %+v", all)
	}
	c, e := all[0], all[0].Epochs[0]
	if c.Tenant != "acme" || c.Turns != 3 || c.Cost != 3 || c.Saved != 2.5 || !c.First.Equal(noon) || !c.Last.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("conversation %+v", c)
	}
	if e.Before != 1000 || e.Answers != 3 || e.Saved != 2.5 || e.PaidAt != 3 || e.Recalls != 2 || e.Recalled != 60 || e.CacheRead != 200 || e.Truth == nil || *e.Truth != truth {
		t.Errorf("epoch %+v", e)
	}
	modes := online.Modes(all)
	if len(modes) != 2 || modes[0].Mode != "" || modes[1].Mode != "plan" {
		t.Fatalf("modes %+v", modes)
	}
	one := modes[1]
	if one.Mode = ""; !reflect.DeepEqual(one, modes[0]) || one.Epochs != 1 || one.Conversations != 1 || one.Paid != 1 || one.Recalls != 2 || one.Predicted != 2 {
		t.Errorf("modes %+v", modes)
	}

	// The pages of another process show it.
	w := watch(t, file)
	pages := httptest.NewServer(w.Pages("", func() live.Stats { return live.Stats{} }))
	defer pages.Close()
	defer http.DefaultClient.CloseIdleConnections()
	testkit.Eventually(t, "the stored epoch is on the page", func() bool {
		_, _, data := get(t, pages.URL+"/condense/data")
		return strings.Contains(data, `{"mode":"plan","conversations":1,"epochs":1,"before":1000,"after":300,`)
	})
	if status, _, _ := get(t, pages.URL+"/condense/conversations/C1"); status != http.StatusOK {
		t.Errorf("a stored conversation: %d", status)
	}

	// What is deleted does not come back from a process that knows it.
	w.Turn(turn(noon.Add(time.Hour), true))
	w.Save(t.Context())
	db, err := store.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if n, err := db.Forget(t.Context(), "acme"); err != nil || n != 3 {
		t.Errorf("forgot %d records: %v", n, err)
	}
	w.Answer("C1", answer(noon, 1))
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if all, err = online.Stored(t.Context(), file); err != nil || len(all) != 0 {
		t.Errorf("after it was forgotten: %+v %v", all, err)
	}
}

// What was only observed is summed up apart: it has saved nothing.
func TestObservedEpochsAreNoSavings(t *testing.T) {
	epoch := func() []*online.Epoch {
		return []*online.Epoch{{Epoch: live.Epoch{Time: time.Unix(1, 0), Before: 1000, After: 100}, Saved: 2, PaidAt: 1, Answers: 3}}
	}
	modes := online.Modes([]*online.Evidence{{ID: "made", Epochs: epoch()}, {ID: "seen", Observe: true, Epochs: epoch()}, {ID: "too", Observe: true, Epochs: epoch()}})
	if len(modes) != 2 || modes[0].Observed || modes[0].Saved != 2 || modes[0].Epochs != 1 || !modes[1].Observed || modes[1].Epochs != 2 || modes[1].Saved != 4 {
		t.Errorf("%+v", modes)
	}
}
