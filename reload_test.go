package condense_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
)

// TestWatch rewrites the configuration while conversations are managed: every turn sees
// one whole configuration, a wrong file changes nothing and is reported, and the last
// valid one holds in the end.
func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reg, err := registry.New(providers.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "condense.yaml")
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Threshold and window belong together: a mixture would be noticed.
	valid := func(n int) string {
		return "threshold: " + []string{"20", "40"}[n%2] + "\nprofiles: {p: {window: " + []string{"20000", "40000"}[n%2] +
			", chain: [half]}}\nproviders: {half: {strategy: slidingwindow, settings: {mode: half}}}\n"
	}
	put(valid(0))
	reloads := make(chan error, 1000)
	h, err := condense.Watch(ctx,
		config.Options{Path: file, Env: []string{}, Builtin: reg.Names(), Strategies: reg.Names()}, reg,
		&condense.Options{Observe: func(e condense.Event) {
			if e.Kind == condense.EventReloaded {
				reloads <- e.Err
			}
		}}, &config.WatchOptions{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := h.Manage(t.Context(), talk(100), condense.Turn{Trigger: core.TriggerManual})
				if err != nil {
					t.Error(err)
					return
				}
				if b := r.Budget; float64(b.Window)*20 != b.ThresholdPercent*20000 {
					t.Errorf("a window of %d with a threshold of %v", b.Window, b.ThresholdPercent)
					return
				}
			}
		})
	}
	for n := range 50 {
		put(valid(n))
		if err := h.Refresh(); err != nil {
			t.Error(err)
		}
	}
	// A setting that only the strategy knows to be wrong, and one that no configuration
	// may have: both leave the last valid file in force.
	for _, wrong := range []string{strings.Replace(valid(0), "mode: half", "mode: haf", 1), "threshold: 3\n"} {
		drain(reloads)
		put(wrong)
		if err := wait(t, reloads); err == nil {
			t.Errorf("no report of %q", wrong)
		}
	}
	close(stop)
	wg.Wait()
	d, err := h.Check(talk(1), condense.Turn{})
	if err != nil || d.Budget.Window != 40000 {
		t.Errorf("the window is %d (%v), want that of the last valid file, 40000", d.Budget.Window, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func drain(c chan error) {
	for len(c) > 0 {
		if err := <-c; err != nil {
			continue
		}
	}
}

// wait returns the first error that is reported.
func wait(t *testing.T, reloads chan error) error {
	t.Helper()
	timeout := time.After(testkit.Patience(t))
	for {
		select {
		case err := <-reloads:
			if err != nil {
				return err
			}
		case <-timeout:
			t.Fatal("nothing was reported")
		}
	}
}

func TestRefreshNeedsFiles(t *testing.T) {
	h := open(t, config.Values{}, nil)
	if err := h.Refresh(); err == nil {
		t.Error("no error")
	}
}

func TestOpenReportsEveryWrongProvider(t *testing.T) {
	reg, err := registry.New(providers.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.New(config.Values{
		Tuning: config.Tuning{Chain: []string{"a", "b"}},
		Providers: map[string]config.ProviderValues{
			"a": {Strategy: "slidingwindow", Settings: []byte(`{"mode":"haf"}`)},
			"b": {Strategy: "slidingwindow", Settings: []byte(`{"kepe":1}`)},
		},
	}, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = condense.Open(t.Context(), c, reg, nil)
	if err == nil || strings.Count(err.Error(), "\n") != 1 ||
		!strings.Contains(err.Error(), `provider a: open slidingwindow: settings: mode: "haf"`) ||
		!strings.Contains(err.Error(), `provider b: open slidingwindow: settings: unknown setting "kepe"`) {
		t.Errorf("got %v", err)
	}
}
