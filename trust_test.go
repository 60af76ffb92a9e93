package condense_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
)

// TestCheckoutIsNotTrustedByAHost: a program that loads a project's file with the zero
// options neither starts what that names nor sends anything to its addresses; the chain goes
// on, and a file that changes while it is watched gains nothing.
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

	// With the user's trust both are in force, without a change of the file.
	claims := h.Config().Claims()[0]
	if err := trust.Open(h.Config().TrustDir()).Add(trust.Entry{Kind: trust.Config, Path: claims.File, Digest: claims.Digest}); err != nil {
		t.Fatal(err)
	}
	for !h.Config().Claims()[0].Trusted {
		reloaded() // when its folder is made, too
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
