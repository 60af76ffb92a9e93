package servecmd

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
)

// An attacked gateway runs in a folder of a repository, whose file anyone can edit.
type attacked struct {
	t         *testing.T
	g         *gateway
	url, file string
	log       testkit.Log
	evil      atomic.Int64 // requests that came to the address of an edit
	private   atomic.Int64
}

const (
	goodToken = "a-token-of-tests-0123"
	evilToken = "a-token-of-evil-0123"
)

func attack(t *testing.T, started string) (a *attacked, contents map[string]string) {
	a = &attacked{t: t}
	count := func(n *atomic.Int64) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			_, _ = io.WriteString(w, `{"data":[]}`)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	evil, private := count(&a.evil), count(&a.private)
	home, repo := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "GOOD_TOKEN": goodToken, "EVIL_TOKEN": evilToken} {
		t.Setenv(name, value)
	}
	for _, dir := range []string{".git", "sub"} {
		if err := os.Mkdir(filepath.Join(repo, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(filepath.Join(repo, "sub"))
	a.file = filepath.Join(repo, "condense.yaml")
	both := func(to string) string { return "upstreams: {anthropic: \"" + to + "\", openai: \"" + to + "\"}" }
	contents = map[string]string{
		"good":      "serve: {token_env: GOOD_TOKEN, " + both(private) + "}\n",
		"also good": "threshold: 70\nserve: {token_env: GOOD_TOKEN, " + both(private) + ", limits: {requests: 1M}}\n",
		// None of these is ever agreed to.
		"program":       "serve: {token_env: GOOD_TOKEN, " + both(private) + "}\nmodels: {m: {api: openai, base_url: \"" + evil + "\"}}\n",
		"other vendor":  "serve: {token_env: GOOD_TOKEN, " + both(evil) + "}\n",
		"open":          "serve: {" + both(private) + "}\n",
		"open and evil": "serve: {" + both(evil) + "}\n",
		"other token":   "serve: {token_env: EVIL_TOKEN, " + both(private) + "}\n",
		"one vendor":    "serve: {token_env: GOOD_TOKEN, upstreams: {anthropic: \"" + private + "\"}}\n",
		"nothing":       "threshold: 60\n",
		"empty section": "serve: {}\n",
		"inherits":      "threshold: -1\n",
		"empty":         "",
		"broken":        "serve: {token_env: [\n",
		"invalid":       "serve: {token_evn: GOOD_TOKEN}\n",
	}
	a.put(a.file, contents[started])
	a.agree()
	strategies, err := resolver.Strategies()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	flags := gatewayFlags{store: config.StoreMemory, log: "info", logAs: "text", every: time.Millisecond}
	if a.g, err = flags.open(cmd, &cli.App{Stderr: &a.log, Strategies: strategies}, map[string]string{}, nil); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(a.g)
	a.url = s.URL
	t.Cleanup(func() {
		s.Close()
		if err := a.g.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, contents
}

func (a *attacked) put(file, text string) {
	a.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// agree is the user's agreement to what the file says now.
func (a *attacked) agree() {
	a.t.Helper()
	all := func(config.Claims) bool { return true }
	c, err := config.Load(config.Options{Path: a.file, Trust: all, Require: required(false)})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, claims := range c.Claims() {
		kind, parts := trust.Config, []trust.Claim{}
		if claims.Gateway {
			kind = trust.Gateway
		}
		for _, p := range claims.Parts {
			parts = append(parts, trust.Claim{Key: p.Key, Value: p.Value, Does: p.Does})
		}
		if err := trust.Open(c.TrustDir()).Add(trust.ConfigEntry(kind, claims.File, parts)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// ask sends a request with a token, or without, and returns the status.
func (a *attacked) ask(path, token string) int {
	r, err := http.NewRequestWithContext(context.WithoutCancel(a.t.Context()), http.MethodGet, a.url+path, nil)
	if err != nil {
		a.t.Error(err)
		return 0
	}
	r.Header.Set("X-Condense-Token", token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Error(err)
		return 0
	}
	_, err = io.Copy(io.Discard, res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		a.t.Error(err)
	}
	return res.StatusCode
}

// TestNoEditOpensTheGateway edits the files of a running gateway at random, gives and withdraws trust, and asks
// meanwhile: a request without the token is never accepted, and the private upstream is never replaced.
func TestNoEditOpensTheGateway(t *testing.T) {
	a, contents := attack(t, "good")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	names := make([]string, 0, len(contents))
	for name := range contents {
		names = append(names, name)
	}
	nearer, second := filepath.Join(filepath.Dir(a.file), "sub", "condense.yaml"), filepath.Join(filepath.Dir(a.file), "condense.json")
	dir := config.Default().TrustDir()
	var stop atomic.Bool
	var asked atomic.Int64
	var group sync.WaitGroup
	for _, as := range []struct {
		token string
		want  int
	}{{"", http.StatusUnauthorized}, {evilToken, http.StatusUnauthorized}, {goodToken, http.StatusOK}} {
		group.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if got := a.ask([]string{"/anthropic/v1/models", "/openai/v1/models"}[i%2], as.token); got != as.want {
					t.Errorf("with the token %q: %d", as.token, got)
					return
				}
				asked.Add(1)
			}
		})
	}
	const steps = 80
	enough := func() bool { // on a busy machine the requests are few in the time of the steps
		return asked.Load() >= 3*steps && a.private.Load() >= steps && strings.Contains(a.log.String(), "waits for trust")
	}
	end := time.Now().Add(testkit.Patience(t) / 2)
	for n := 0; n < steps || !enough() && !t.Failed() && time.Now().Before(end); n++ {
		text := contents[names[random.IntN(len(names))]]
		switch random.IntN(10) {
		case 0: // in two pieces
			a.put(a.file, text[:random.IntN(len(text)+1)])
			time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond)
			a.put(a.file, text)
		case 1:
			_ = os.Remove(a.file)
		case 2:
			a.put(nearer, text)
		case 3:
			_ = os.Remove(nearer)
		case 4:
			a.put(second, "{}")
			time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond)
			_ = os.Remove(second)
		case 5:
			if _, err := trust.Open(dir).Remove(a.file); err != nil {
				t.Fatal(err)
			}
		case 6:
			a.put(a.file, contents[[]string{"good", "also good"}[random.IntN(2)]])
			a.agree()
		default:
			a.put(a.file+".new", text)
			if err := os.Rename(a.file+".new", a.file); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(random.IntN(8)) * time.Millisecond)
	}
	_ = os.Remove(nearer)
	a.put(a.file, contents["also good"])
	a.agree()
	testkit.Eventually(t, "what is agreed to is in use", func() bool {
		return a.g.Stats().Pending == "" && *a.g.host.Config().Values().Threshold == 70
	})
	stop.Store(true)
	group.Wait()
	if n := a.evil.Load(); n > 0 {
		t.Errorf("%d requests went to the address of an edit", n)
	}
	if !enough() {
		t.Errorf("%d requests and %d passed on, with or without a change that waited: they prove little", asked.Load(), a.private.Load())
	}
}

// TestReloadIsSaid: the log says which keys a reload has changed.
func TestReloadIsSaid(t *testing.T) {
	a, contents := attack(t, "good")
	a.put(a.file, contents["also good"])
	a.agree()
	testkit.Eventually(t, "the change is in the log", func() bool {
		return strings.Contains(a.log.String(), `msg="the configuration has changed" keys="serve.limits.requests, threshold"`)
	})
}
