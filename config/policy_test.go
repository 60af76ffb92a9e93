package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit"
)

const pinned = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// underPolicy returns options for a project's file under a policy, and the file of the policy.
func underPolicy(t *testing.T, policy, project string) (config.Options, string) {
	t.Helper()
	file := write(t, "policy.yaml", policy)
	opts := known
	opts.Env = []string{"CONDENSE_POLICY=" + file}
	opts.Path = write(t, "condense.yaml", project)
	return opts, file
}

// A model that a flag or a program names later is withheld as well, and a plugin has the checksum of the policy.
func TestPolicyAtUse(t *testing.T) {
	opts, _ := underPolicy(t, "vendors: [anthropic]\nplugins: {tidy: "+strings.ToUpper(pinned)+"}", "chain: [tidy]\nproviders: {tidy: {plugin: ./tidy}}")
	c := reload(t, opts)
	for name, allowed := range map[string]bool{"openai/gpt-5.1": false, "anthropic/claude-haiku-4-5": true} {
		m, err := c.Model(name)
		if err != nil || (m.Withheld == "") != allowed || (m.API == "") == allowed {
			t.Errorf("%s: got %+v, %v", name, m, err)
		}
	}
	if p, err := c.Provider("tidy"); err != nil || p.SHA256 != pinned {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A window that is larger than the policy's would make a threshold of the policy void.
func TestPolicyOfWindows(t *testing.T) {
	opts, _ := underPolicy(t, "max_threshold: 70\nmax_window: 200k", "default_profile: fine\nprofiles: {fine: {window: 200k}, vast: {window: 100M}}\nmodels: {m: {window: 300k}}")
	_, err := config.Load(opts)
	for _, want := range []string{"profiles.vast.window: a window of 100,000,000 tokens is", "models.m.window: a window of 300,000 tokens is"} {
		if err == nil || !strings.Contains(err.Error(), want+" not allowed by the policy") || strings.Contains(err.Error(), "fine") {
			t.Errorf("got %v, want %s not allowed", err, want)
		}
	}
}

// The addresses of the vendors themselves count as the vendors, and no form of another address does.
func TestPolicyOfAddresses(t *testing.T) {
	for address, allowed := range map[string]bool{
		"https://api.anthropic.com/v1": true, "https://API.anthropic.com": true, "https://llm.example.com:8443/v1": true, "https://a.corp.example": true,
		"http://api.anthropic.com": false, "https://api.anthropic.com.evil.example": false, "https://llm.example.com": false,
		"https://a.b.corp.example/": true, "https://evil.example/.corp.example": false, "https://evil.example?.corp.example": false, "https://api.openai.com/v1": false,
	} {
		opts, _ := underPolicy(t, `vendors: [anthropic, "https://llm.example.com:8443", "https://*.corp.example"]`,
			"models: {m: {api: anthropic, base_url: \""+address+"\"}}\nserve: {upstreams: {m: \"both+"+strings.Replace(address, "http://", "https://", 1)+"\"}}")
		_, err := config.Load(opts)
		if (err == nil) != allowed && !strings.HasPrefix(address, "http://") || allowed == (err != nil && strings.Contains(err.Error(), "models.m.base_url")) {
			t.Errorf("%s: got %v", address, err)
		}
	}
}

// The target of epochs is a target too, and a gateway asks about every address that it would forward to.
func TestPolicyOfGateways(t *testing.T) {
	opts, _ := underPolicy(t, "vendors: [anthropic]\nmin_target: 20", "serve: {epoch: {target: 5}}")
	if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), "serve.epoch.target: 5 % is not allowed") {
		t.Errorf("got %v", err)
	}
	opts, _ = underPolicy(t, "vendors: [anthropic, \"https://eu-aiplatform.googleapis.com\"]", "chain: []")
	c := reload(t, opts)
	for address, allowed := range map[string]bool{
		"https://api.anthropic.com": true, "https://eu-aiplatform.googleapis.com/v1": true, "https://api.openai.com": false, "https://aiplatform.googleapis.com": false,
	} {
		if why := c.Forbids(address); (why == "") != allowed {
			t.Errorf("%s: got %q", address, why)
		}
	}
}

// Lines that are commented out, or are empty, forbid nothing silently.
func TestEmptyPolicy(t *testing.T) {
	for policy, want := range map[string]string{
		"vendors:\n": "vendors: is empty", "plugins:\n  # x\n": "plugins: is empty", "vendors: []": "models.m.base_url: https://x.example is not allowed",
		"plugins: {}": "plugin x is not allowed", "models: []": "models.m.base_url: m is not allowed", "[]": "must be a mapping", "": "forbids nothing", "# vendors: []": "forbids nothing", "threshold: 70": "unknown key; did you mean",
	} {
		opts, _ := underPolicy(t, policy, "models: {m: {api: anthropic, base_url: https://x.example}}\nproviders: {x: {plugin: ./x}}")
		if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", policy, err, want)
		}
	}
}

// A policy that changes is read again, and what it no longer allows is not taken over from a running program's files.
func TestWatchPolicy(t *testing.T) {
	opts, file := underPolicy(t, "max_threshold: 70", "chain: []")
	failed := make(chan error, 9)
	w, err := config.Watch(t.Context(), opts, &config.WatchOptions{Interval: time.Millisecond, Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	threshold := func() float64 { return resolve(t, w.Current(), "", "").Threshold }
	if got := threshold(); got != 70 {
		t.Errorf("the default is %v", got)
	}
	rewrite := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(file, "max_threshold: 60")
	testkit.Eventually(t, "the new policy holds", func() bool { return threshold() == 60 })
	rewrite(opts.Path, "threshold: 65")
	if err := <-failed; !strings.Contains(err.Error(), filepath.Base(file)+":1:1: max_threshold 60") || threshold() != 60 {
		t.Errorf("got %v, and the threshold is %v", err, threshold())
	}
}
