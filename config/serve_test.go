package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
)

// serving has a value for every key of the section serve.
const serving = `modes: {plan: default}
serve:
  listen: "[::1]:9000"
  admin: {listen: "127.0.0.1:0"}
  upstreams: {anthropic: "http://localhost:4000/anthropic", gemini: "pass+https://generativelanguage.googleapis.com"}
  compaction: {openai: gateway}
  store: memory
  tls: {cert: tls.crt, key: /run/tls.key}
  behind_proxy: true
  token_env: CONDENSE_TOKEN
  key_file: key
  audit: audit.log
  limits: {requests: 120, bytes: 10Mi, cost: 20}
  tenants: {acme: {requests: 1k, cost: 0}, other: }
  observe: true
  record: sessions
  max_body: 16Mi
  deadline: 2s
  drain: 1m
  drain_delay: 7s
  ingest: {lossless: false, max_result: 8k}
  recall: {mcp: false, tool: true, max_size: 10Mi, max_result: 9k}
  epoch: {target: "30%", cold: false, payback: false, min_size: 5k, risk: 7, prepare: 70}
  modes:
    - {agent: claude-code, system: plan mode, mode: plan}
    - {model: "claude-haiku-*", profile: default}
`

func TestServeDefaults(t *testing.T) {
	opts := known
	opts.Env = []string{"HOME=/home/me"}
	opts.Dir = t.TempDir()
	want := config.Serve{
		Listen:    "127.0.0.1:8765",
		Upstreams: map[string]string{"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"},
		Store:     filepath.FromSlash("/home/me/.local/state/condense/serve.db"),
		MaxBody:   32 << 20, Deadline: config.Duration(5 * time.Second), Drain: config.Duration(30 * time.Second),
	}
	want.Retention.Age, want.Retention.Size = config.Duration(720*time.Hour), 1<<30
	want.Compaction.OpenAI = "auto"
	want.Ingest.Lossless = true
	want.Recall.MCP, want.Recall.Tool, want.Recall.MaxSize, want.Recall.MaxResult = true, true, 1<<30, 8000
	want.Epoch.Cold, want.Epoch.Payback, want.Epoch.Prepare = true, true, 85
	if diff := cmp.Diff(want, reload(t, opts).Serve()); diff != "" {
		t.Error(diff)
	}
	opts.Env = []string{"HOME=/home/me", "XDG_STATE_HOME=/var/me"}
	if got := reload(t, opts).Serve().Store; got != filepath.FromSlash("/var/me/condense/serve.db") {
		t.Errorf("store: %s", got)
	}
	opts.Env = []string{}
	if got := reload(t, opts).Serve().Store; got != "" {
		t.Errorf("without a home: %s", got)
	}
	if diff := cmp.Diff(want.Upstreams, config.Default().Serve().Upstreams); diff != "" {
		t.Error(diff)
	}
}

func TestServeValues(t *testing.T) {
	file := write(t, "condense.yaml", serving)
	got := loadFrom(t, file).Serve()
	want := config.Serve{
		Listen:    "[::1]:9000",
		Upstreams: map[string]string{"anthropic": "http://localhost:4000/anthropic", "openai": "https://api.openai.com", "gemini": "pass+https://generativelanguage.googleapis.com"},
		Store:     config.StoreMemory, TokenEnv: "CONDENSE_TOKEN",
		KeyFile: filepath.Join(filepath.Dir(file), "key"), Proxied: true, Audit: filepath.Join(filepath.Dir(file), "audit.log"),
		Limits: config.ServeLimits{Requests: 120, Bytes: 10 << 20, Cost: 20},
		Tenants: map[string]config.ServeLimits{
			"acme": {Requests: 1000, Bytes: 10 << 20}, "other": {Requests: 120, Bytes: 10 << 20, Cost: 20},
		},
		Observe: true, Record: filepath.Join(filepath.Dir(file), "sessions"),
		MaxBody: 16 << 20, Deadline: config.Duration(2 * time.Second), Drain: config.Duration(time.Minute), DrainDelay: config.Duration(7 * time.Second),
		Modes: []config.ServeRule{{Agent: "claude-code", System: "plan mode", Mode: "plan"}, {Model: "claude-haiku-*", Profile: "default"}},
	}
	want.Admin.Listen = "127.0.0.1:0"
	want.TLS.Cert, want.TLS.Key = filepath.Join(filepath.Dir(file), "tls.crt"), "/run/tls.key"
	want.Retention.Age, want.Retention.Size = config.Duration(720*time.Hour), 1<<30
	want.Compaction.OpenAI = "gateway"
	want.Ingest.MaxResult = 8000
	want.Recall.Tool, want.Recall.MaxSize, want.Recall.MaxResult = true, 10<<20, 9000
	want.Epoch.Target, want.Epoch.MinSize, want.Epoch.Risk, want.Epoch.Prepare = 30, 5000, 7, 70
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Off the loopback a balancer may send requests for a while; for local clients there is no balancer.
func TestServeDrainDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"listen: localhost:1":                    0,
		"listen: 0.0.0.0:1":                      5 * time.Second,
		"listen: 0.0.0.0:1, drain_delay: off":    0,
		"listen: localhost:1, drain_delay: 10ms": 10 * time.Millisecond,
	} {
		if got := load(t, "serve: {tokens: tokens, behind_proxy: true, "+text+"}\n").Serve().DrainDelay; got != config.Duration(want) {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Each layer overrides the one below key by key; the list of rules is replaced as a whole, and
// one source of the token replaces the other.
func TestServeLayers(t *testing.T) {
	opts := known
	opts.Path = write(t, "condense.yaml", serving)
	opts.Env = []string{
		"CONDENSE_SERVE__EPOCH__TARGET=10", "CONDENSE_SERVE__TOKEN_FILE=/run/token", "CONDENSE_TOKEN=not a setting",
		"CONDENSE_SERVE__MODES=[{agent: pi, mode: plan}]", "CONDENSE_SERVE__UPSTREAMS__OPENAI=https://a.example", "CONDENSE_SERVE__UPSTREAMS__GEMINI=pass+https://b.example", "CONDENSE_SERVE__UPSTREAMS__MINE=both+http://localhost:1",
	}
	opts.Flags = map[string]string{"serve.listen": "127.0.0.1:0", "serve.record": "off", "serve.epoch.target": "12", "serve.upstreams.my.proxy": "openai+https://c.example"}
	got := reload(t, opts).Serve()
	if got.Epoch.Target != 12 || got.Listen != "127.0.0.1:0" || got.Record != "" || got.TokenEnv != "" || got.TokenFile != "/run/token" ||
		got.Upstreams["openai"] != "https://a.example" || got.Upstreams["anthropic"] != "http://localhost:4000/anthropic" ||
		got.Upstreams["gemini"] != "pass+https://b.example" || got.Upstreams["mine"] != "both+http://localhost:1" || got.Upstreams["my.proxy"] != "openai+https://c.example" ||
		!slices.Equal(got.Modes, []config.ServeRule{{Agent: "pi", Mode: "plan"}}) {
		t.Errorf("got %+v", got)
	}
	opts.Flags = map[string]string{"serve.lisen": "127.0.0.1:0"}
	if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), `did you mean "serve.listen"?`) {
		t.Errorf("got %v", err)
	}
}

// The merged configuration loads to itself, and every key can be explained.
func TestServeShown(t *testing.T) {
	c := load(t, serving)
	text, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Serve().Modes, load(t, text).Serve().Modes); diff != "" || load(t, text).Serve().Ingest.MaxResult != 8000 {
		t.Errorf("%s\n%s", diff, text)
	}
	all, err := c.ExplainKey("serve")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, e := range all {
		keys = append(keys, e.Key)
	}
	if got := strings.Join(keys, " "); got != "serve.listen serve.admin.listen serve.upstreams.anthropic serve.upstreams.openai serve.upstreams.gemini serve.bedrock.sign serve.compaction.openai serve.store serve.retention.age serve.retention.size serve.token_env serve.tls.cert serve.tls.key serve.behind_proxy serve.key_file serve.audit serve.limits.requests serve.limits.bytes serve.limits.cost serve.tenants.acme.requests serve.tenants.acme.cost serve.tenants.other serve.observe serve.record serve.account serve.max_body serve.deadline serve.drain serve.drain_delay serve.ingest.lossless serve.ingest.max_result serve.recall.mcp serve.recall.tool serve.recall.max_size serve.recall.max_result serve.epoch.target serve.epoch.cold serve.epoch.payback serve.epoch.min_size serve.epoch.risk serve.epoch.prepare serve.modes" {
		t.Errorf("got %s", got)
	}
	one, err := c.ExplainKey("serve.epoch.target")
	if err != nil || len(one) != 1 || !strings.Contains(one[0].String(), "Default: 0.") || !strings.Contains(one[0].String(), "30  from") {
		t.Errorf("%v\n%s", err, one)
	}
	if !slices.Contains(c.Keys(), "serve.upstreams.openai") {
		t.Errorf("completion does not offer serve.upstreams.openai: %q", c.Keys())
	}
}

// The settings are the caller's own: no map and no list of them is the configuration's.
func TestServeIsACopy(t *testing.T) {
	c := load(t, serving)
	v := reflect.ValueOf(c.Serve())
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Map || f.Kind() == reflect.Slice {
			name := v.Type().Field(i).Name
			if f.Len() == 0 {
				t.Errorf("%s is empty: the test proves nothing of it", name)
			}
			if f.Pointer() == reflect.ValueOf(c.Serve()).Field(i).Pointer() {
				t.Errorf("%s is shared", name)
			}
		}
	}
	again, err := config.New(c.Values(), known)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Serve(), again.Serve()); diff != "" {
		t.Errorf("as values of a program (-file +program):\n%s", diff)
	}
}

// The settings that a running gateway does not take over are known by key.
func TestServeReadAtStart(t *testing.T) {
	at, was := load(t, serving).ReadAtStart(), load(t, "").ReadAtStart()
	for key, want := range map[string][2]string{
		"serve.listen": {"127.0.0.1:8765", "[::1]:9000"}, "serve.admin.listen": {"", "127.0.0.1:0"}, "serve.store": {"", "memory"},
		"serve.tls.key": {"", "/run/tls.key"},
	} {
		if got := [2]string{was[key], at[key]}; got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if _, ok := at["serve.deadline"]; ok {
		t.Error("serve.deadline is read again when the file changes")
	}
}

// A project that was cloned chooses neither where conversations and keys go nor who may send them.
func TestCheckoutCannotRedirectTheGateway(t *testing.T) {
	project := "serve:\n" +
		"  listen: 0.0.0.0:80\n  upstreams: {anthropic: \"https://evil.example\", more: \"pass+https://evil.example\"}\n  store: ./evil.db\n  token_env: PATH\n  record: ./all\n" +
		"  behind_proxy: true\n  observe: true\n  admin: {listen: \"127.0.0.1:1\"}\n  deadline: 1s\n  epoch: {target: 40}\n"
	c, opts := checkout(t, project, "serve: {token_file: /run/mine, upstreams: {openai: \"https://mine.example\"}}\n")
	want := "serve.listen serve.admin.listen serve.upstreams.anthropic serve.upstreams.more serve.store serve.token_env serve.behind_proxy serve.record"
	if got := strings.Join(keys(c), " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := c.Serve()
	if s.Listen != "127.0.0.1:8765" || s.Upstreams["anthropic"] != "https://api.anthropic.com" || s.Upstreams["openai"] != "https://mine.example" || len(s.Upstreams) != 2 ||
		strings.Contains(s.Store, "evil") || s.TokenEnv != "" || s.TokenFile != "/run/mine" || s.Record != "" || s.Admin.Listen != "" {
		t.Errorf("in force without trust: %+v", s)
	}
	if !s.Observe || s.Deadline != config.Duration(time.Second) || s.Epoch.Target != 40 {
		t.Errorf("numbers of a gateway that does not start: %+v", s)
	}
	claims := c.Claims()[0].Skipped()
	if got := strings.Join(claims.Names(), ", "); got != "serve.listen, serve.admin.listen, serve.upstreams.anthropic, serve.upstreams.more, serve.store, serve.token_env, serve.behind_proxy, serve.record" {
		t.Errorf("got %s", got)
	}
	agree(t, c)
	s = reload(t, opts).Serve()
	if s.Listen != "0.0.0.0:80" || s.Upstreams["anthropic"] != "https://evil.example" || s.TokenEnv != "PATH" || s.TokenFile != "" || s.Record == "" {
		t.Errorf("not in force although it is trusted: %+v", s)
	}
	// Nothing that keeps as much, and shortens less, needs trust.
	if c, _ := checkout(t, "serve: {record: off, account: off, max_body: 1M}\n", ""); len(c.Claims()) > 0 {
		t.Errorf("got %+v", c.Claims())
	}
}

// The value that used the login of a plan says what to use in its place.
func TestServeAccountOfAPlanIsGone(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Options{Flags: map[string]string{"serve.account": "client-plan"}, Env: []string{}})
	if err == nil || !strings.Contains(err.Error(), "set client for agents with an API key, or a model") {
		t.Errorf("got %v", err)
	}
}

// A project cannot have the keys of the user's agents used without trust, which says what it is asked for.
func TestServeAccountOfTheClientNeedsTrust(t *testing.T) {
	t.Parallel()
	for value, does := range map[string]string{"off": "", "client": "with your agents' API keys$", "cheap": "has this model read"} {
		file := filepath.Join(t.TempDir(), "condense.yaml")
		if err := os.WriteFile(file, []byte("serve: {account: "+value+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, trusted := range []bool{false, true} {
			c, err := config.Load(config.Options{Path: file, Env: []string{}, Serving: true, Trust: func(config.Claims) bool { return trusted }})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if trusted && value != "off" {
				want = value
			}
			if got := c.Serve().Account; got != want {
				t.Errorf("%s, trusted %v: the account is by %q", value, trusted, got)
			}
			var said []string
			for _, claims := range c.Claims() {
				for _, p := range claims.Parts {
					said = append(said, p.Key+" "+p.Does)
				}
			}
			if text := strings.Join(said, "\n"); (does == "") != (text == "") || !regexp.MustCompile(does).MatchString(text) {
				t.Errorf("%s: trust is asked for %q", value, text)
			}
		}
	}
}

// TestServeAccount: the chains of a gateway begin with the account, but for those that have none or one of their own; other commands
// do not see it.
func TestServeAccount(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "condense.yaml")
	text := `
default_profile: a
profiles:
  a: {window: 100000, chain: [tidy]}
  b: {window: 100000, chain: []}
  c: {window: 100000, chain: [own, tidy]}
providers:
  tidy: {strategy: smart}
  own: {strategy: handover, settings: {model: cheap}}
models:
  cheap: {api: openai, model: small, base_url: "http://localhost:1/v1"}
serve: {account: cheap}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		serving bool
		trusted bool
		profile string
		want    string
	}{
		{true, true, "a", "serve.account tidy"}, {true, true, "b", ""}, {true, true, "c", "own tidy"}, {false, true, "a", "tidy"}, {true, false, "a", "tidy"},
	} {
		c, err := config.Load(config.Options{Path: file, Env: []string{}, Serving: tt.serving, Trust: func(config.Claims) bool { return tt.trusted }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Resolve(tt.profile, "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range r.Chain {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%+v: the chain is %q", tt, got)
		}
	}
}
