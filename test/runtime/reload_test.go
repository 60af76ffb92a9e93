package runtime_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// TestWatch changes the configuration while conversations are managed: every turn uses one
// complete configuration, an invalid file changes nothing and is reported, and the last valid
// file is used in the end.
func TestWatch(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	file := filepath.Join(t.TempDir(), "condense.yaml")
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Threshold and window belong together, so that a mixture is detected.
	valid := func(n int) string {
		return "threshold: " + []string{"20", "40"}[n%2] + "\nprofiles: {p: {window: " + []string{"20000", "40000"}[n%2] +
			", chain: [half]}}\nproviders: {half: {strategy: slidingwindow, settings: {mode: half}}}\n"
	}
	put(valid(0))
	reloads := make(chan error, 1000)
	h, err := condense.Open(t.Context(), &condense.Options{
		Load: &config.Options{Path: file, Env: []string{}}, Watch: &config.WatchOptions{Interval: time.Millisecond},
		Observe: func(e condense.Event) {
			if e.Kind == condense.EventReloaded {
				reloads <- e.Err
			}
		},
	})
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
		if err := h.Reload(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	// A setting that only the strategy can reject, and one that no configuration may have: both
	// leave the last valid file in use.
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

// TestOptionsContradict: a host has one configuration, and only files can be watched.
func TestOptionsContradict(t *testing.T) {
	for want, opts := range map[string]*condense.Options{
		"set only one of Load, Values and Config": {Values: &config.Values{}, Load: &config.Options{}},
		"Watch needs Load":                        {Watch: &config.WatchOptions{}},
		"registered twice":                        {Strategies: []registry.Strategy{smart.Strategy()}},
	} {
		if _, err := condense.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestReloadWithoutWatching: a host that does not watch its files reads them again when it
// is asked to, and keeps its configuration if they are invalid.
func TestReloadWithoutWatching(t *testing.T) {
	load := loadText(t, "profiles: {p: {window: 20000}}\n")
	h := start(t, &condense.Options{Load: load})
	window := func() int {
		t.Helper()
		d, err := h.Check(talk(1), condense.Turn{})
		if err != nil {
			t.Fatal(err)
		}
		return d.Budget.Window
	}
	replace(t, load.Path, "profiles: {p: {window: 40000}}\n", 0o600)
	if got := window(); got != 20000 {
		t.Errorf("the window is %d before the files are read again", got)
	}
	if err := h.Reload(t.Context(), nil); err != nil || window() != 40000 {
		t.Errorf("the window is %d (%v), want 40000", window(), err)
	}
	replace(t, load.Path, "profiles: {p: {window: 2}}\nno: 1\n", 0o600)
	if err := h.Reload(t.Context(), nil); err == nil || window() != 40000 {
		t.Errorf("the window is %d (%v), want 40000 and an error", window(), err)
	}
}

// TestNothingIsReadBySurprise: without options no file, and no variable, has an effect.
func TestNothingIsReadBySurprise(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("CONDENSE_THRESHOLD", "20")
	replace(t, filepath.Join(dir, "condense.yaml"), "profiles: {p: {window: 20000}}\n", 0o600)
	h := start(t, nil)
	d, err := h.Check(talk(1), condense.Turn{})
	if err != nil || d.Budget.Window != 200000 || d.Threshold != 80 {
		t.Errorf("window %d, threshold %v (%v)", d.Budget.Window, d.Threshold, err)
	}
	if chain := h.Config().Values().Chain; !slices.Equal(chain, providers.Chain()) {
		t.Errorf("the chain is %q", chain)
	}
}

func TestOpenReportsEveryWrongProvider(t *testing.T) {
	v := config.Values{
		Tuning: config.Tuning{Chain: []string{"a", "b"}},
		Providers: map[string]config.ProviderValues{
			"a": {Strategy: "slidingwindow", Settings: []byte(`{"mode":"haf"}`)},
			"b": {Strategy: "slidingwindow", Settings: []byte(`{"kepe":1}`)},
		},
	}
	_, err := condense.Open(t.Context(), &condense.Options{Values: &v})
	if err == nil || strings.Count(err.Error(), "\n") != 1 ||
		!strings.Contains(err.Error(), `provider a: open slidingwindow: settings: mode: "haf"`) ||
		!strings.Contains(err.Error(), `provider b: open slidingwindow: settings: unknown setting "kepe"`) {
		t.Errorf("got %v", err)
	}
}

// TestCheckoutIsNotTrustedByAHost: a host that loads a project's file does not start the
// programs that the file names and sends nothing to its addresses; the rest of the chain is
// used, also after the file has changed while it is watched.
func TestCheckoutIsNotTrustedByAHost(t *testing.T) {
	testkit.Process(t)
	var asked atomic.Int32
	spy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer spy.Close()
	t.Setenv("OPENAI_API_KEY", "secret")
	dir := t.TempDir()
	file, ran := filepath.Join(dir, "condense.yaml"), filepath.Join(dir, "ran")
	write := func(path, text string, mode os.FileMode) { t.Helper(); replace(t, path, text, mode) }
	write(filepath.Join(dir, "evil"), "#!/bin/sh\nenv >"+ran+"\n", 0o700)
	write(file, "profiles: {p: {window: 20000}}\n", 0o600)
	h, reloaded := follow(t, config.Options{Path: file, Env: []string{"XDG_CONFIG_HOME=" + t.TempDir()}})
	write(file, "profiles: {p: {window: 20000, chain: [evil, summary]}}\n"+
		"providers:\n  evil: {plugin: ./evil, sha256: "+strings.Repeat("a", 64)+"}\n  summary: {strategy: native, settings: {model: m}}\n"+
		"models: {m: {api: openai, base_url: \""+spy.URL+"\", api_key_env: OPENAI_API_KEY}}\n", 0o600)
	reloaded()
	r, err := h.Manage(t.Context(), talk(400), condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Attempts[:2] {
		if a.Outcome != core.OutcomeSkipped || !strings.Contains(a.Reason, "is not trusted ('condense trust')") {
			t.Errorf("%s %s %s", a.Provider, a.Outcome, a.Reason)
		}
	}
	if _, err := os.Stat(ran); err == nil || asked.Load() != 0 {
		t.Errorf("the program ran (%v), the address was asked %d times", err == nil, asked.Load())
	}

	// With the user's trust both are used, without a change of the file.
	claims := h.Config().Claims()[0]
	if err := trust.Open(h.Config().TrustDir()).Add(trust.Entry{Kind: trust.Config, Path: claims.File, Digest: claims.Digest}); err != nil {
		t.Fatal(err)
	}
	for !h.Config().Claims()[0].Trusted {
		reloaded() // also after its folder is created
	}
	r, err = h.Manage(t.Context(), talk(400), condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Attempts[0]; !strings.Contains(a.Reason, "is not the plugin that was pinned") {
		t.Errorf("trusted: %s %s %s", a.Provider, a.Outcome, a.Reason)
	}
	if asked.Load() == 0 {
		t.Error("the address that is trusted is not asked")
	}
}

// "configuration changed" is not said before the change holds: an administrator who reads it would find the former settings.
func TestAChangeIsSaidWhenItHolds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "condense.yaml")
	replace(t, file, "threshold: 20\n", 0o600)
	var holds atomic.Bool
	early := make(chan bool, 10)
	h := start(t, &condense.Options{
		Load:  &config.Options{Path: file, Env: []string{}},
		Watch: &config.WatchOptions{Interval: time.Millisecond, Changed: func(_, _ *config.Config) { holds.Store(true) }},
		Observe: func(e condense.Event) {
			if e.Kind == condense.EventReloaded {
				early <- !holds.Load()
			}
		},
	})
	replace(t, file, "threshold: 40\n", 0o600)
	select {
	case e := <-early:
		if e {
			t.Error("it is said first")
		}
	case <-time.After(testkit.Patience(t)):
		t.Fatal("the change was not noticed")
	}
	if r, err := h.Manage(t.Context(), talk(1), condense.Turn{}); err != nil || r.Budget.ThresholdPercent != 40 {
		t.Errorf("%+v, %v", r, err)
	}
}
