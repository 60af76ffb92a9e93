package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
)

// checkout loads a project's file for a user who has trusted nothing yet. Users is the content
// of the user's own file, or empty.
func checkout(t *testing.T, project, users string) (*config.Config, config.Options) {
	t.Helper()
	opts := known
	opts.Trust = nil
	home := t.TempDir()
	opts.Env = []string{"XDG_CONFIG_HOME=" + home}
	if users != "" {
		if err := os.Mkdir(filepath.Join(home, "condense"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "condense", "condense.yaml"), []byte(users), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts.Dir = filepath.Dir(write(t, "condense.yaml", project))
	return reload(t, opts), opts
}

func reload(t *testing.T, opts config.Options) *config.Config {
	t.Helper()
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agree trusts all that a configuration asks for.
func agree(t *testing.T, c *config.Config) {
	t.Helper()
	for _, claims := range c.Claims() {
		kind, parts := trust.Config, []trust.Claim{}
		if claims.Gateway {
			kind = trust.Gateway
		}
		for _, p := range claims.Parts {
			parts = append(parts, trust.Claim{Key: p.Key, Value: p.Value, Does: p.Does})
		}
		e := trust.ConfigEntry(kind, claims.File, parts)
		if err := trust.Open(c.TrustDir()).Add(e); err != nil || e.Digest != claims.Digest {
			t.Fatal(err, e.Digest, claims.Digest)
		}
	}
}

func keys(c *config.Config) []string {
	var all []string
	for _, claims := range c.Claims() {
		for _, p := range claims.Skipped().Parts {
			all = append(all, p.Key)
		}
	}
	return all
}

// TestCheckoutMayChooseStrategiesAndNumbers: what starts nothing, sends nothing elsewhere and asks no model is used without trust
// by all commands but the gateways, which do not start with it. A file that the user names with --config has the user's numbers.
func TestCheckoutMayChooseStrategiesAndNumbers(t *testing.T) {
	for _, text := range []string{
		"threshold: 70\nprompt: Keep everything.\n",
		"chain: [tidy]\nproviders: {tidy: {strategy: smart, timeout: 3s, settings: {preset: balanced}}}\n",
		"models: {m: {window: 1000}}\nprofiles: {p: {model: m}}\n",
		"serve: {epoch: {target: 1}}\n", "serve: {deadline: 1ms}\n", "serve: {ingest: {max_result: 10}}\n", "serve: {recall: {mcp: false}}\n",
	} {
		c, opts := checkout(t, text, "")
		for _, claims := range c.Claims() {
			if left := claims.Skipped().Parts; len(left) > 0 {
				t.Errorf("%s needs trust: %+v", text, left)
			}
		}
		if _, err := required(opts); !errors.As(err, new(*config.UntrustedError)) {
			t.Errorf("%s: a gateway starts: %v", text, err)
		}
		named := opts
		named.Path = filepath.Join(opts.Dir, "condense.yaml")
		if _, err := required(named); err != nil {
			t.Errorf("%s, named: %v", text, err)
		}
		agree(t, c)
		if _, err := required(opts); err != nil {
			t.Errorf("%s, trusted: %v", text, err)
		}
	}
	for _, text := range []string{"", "threshold: 95\nauto: false\n", "serve: {observe: true, deadline: 30s, epoch: {cold: false}}\n", "threshold: -1\n"} {
		c, opts := checkout(t, text, "")
		if _, err := required(opts); len(c.Claims()) > 0 || err != nil {
			t.Errorf("%s shortens less, and needs trust: %+v %v", text, c.Claims(), err)
		}
	}
	// Other numbers of a trusted file need no new trust: teams change them.
	c, opts := checkout(t, "threshold: 60\n", "")
	agree(t, c)
	overwrite(t, filepath.Join(opts.Dir, "condense.yaml"), "threshold: 40\n")
	if _, err := required(opts); err != nil {
		t.Error(err)
	}
}

// TestStrangersFileAsksNoModel: a model that a project names has read a conversation, with the user's key, only after the user has agreed,
// in whatever command. A model of the user's own configuration may be named.
func TestStrangersFileAsksNoModel(t *testing.T) {
	for text, want := range map[string]string{
		"models: {x: {api: openai, model: gpt-5}}":                                                      "models.x.api models.x.model",
		"models: {m: {model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}}":                        "models.m.api_key_env models.m.model",
		"models: {gpt-4.1: {api_key_env: OPENAI_API_KEY}}":                                              `models."gpt-4.1".api_key_env models."gpt-4.1".model`,
		"models: {gpt-4.1: {window: 5000}}":                                                             `models."gpt-4.1".model`,
		"providers: {acc: {strategy: native, settings: {model: openai/gpt-4.1}}}":                       "providers.acc.settings.model",
		"providers: {acc: {strategy: native, settings: {model: client}}}":                               "providers.acc.settings.model",
		"providers: {acc: {strategy: native, settings: {model: mine}}}":                                 "",
		"providers: {acc: {strategy: native, settings: {model: extractive}}}":                           "",
		"models: {mine: {window: 9000}}\nproviders: {acc: {strategy: native, settings: {model: mine}}}": "",
	} {
		c, _ := checkout(t, text+"\n", "models: {mine: {api: anthropic, model: claude-haiku-4-5}}\n")
		var got []string
		for _, claims := range c.Claims() {
			for _, p := range claims.Skipped().Parts {
				got = append(got, p.Key)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
		for _, name := range c.Models() {
			if m, err := c.Model(name); err == nil && name != "mine" && m.Withheld == "" {
				t.Errorf("%s: %s is in force", text, name)
			}
		}
		if p, err := c.Provider("acc"); err == nil && (p.Withheld != "") != (want != "") {
			t.Errorf("%s: %+v", text, p)
		}
	}
}

// TestStrangersFileDeletesNothing: how long the user's store keeps conversations of all projects is not for a project to say, with trust
// neither; of a store of its own it may say it, and no less than a day.
func TestStrangersFileDeletesNothing(t *testing.T) {
	month := config.Duration(30 * 24 * time.Hour)
	c, opts := checkout(t, "serve: {retention: {age: 1ms, size: 1Mi}}\n", "")
	if r := c.Serve().Retention; r.Age != month || r.Size != 1<<30 || len(c.Warnings()) == 0 || !strings.Contains(c.Warnings().Error(), "serve.retention") {
		t.Errorf("got %+v, %v", r, c.Warnings())
	}
	agree(t, c)
	if r := reload(t, opts).Serve().Retention; r.Age != month {
		t.Errorf("trusted, it deletes from the user's store: %+v", r)
	}
	c, opts = checkout(t, "serve: {store: ./own.db, retention: {age: 48h}}\n", "")
	if r := c.Serve().Retention; r.Age != month {
		t.Errorf("without trust: %+v", r)
	}
	if _, err := required(opts); err == nil || !strings.Contains(err.Error(), "serve.retention.age") {
		t.Errorf("a gateway starts: %v", err)
	}
	agree(t, c)
	if s := reload(t, opts).Serve(); s.Retention.Age != config.Duration(48*time.Hour) || !strings.HasSuffix(s.Store, "own.db") {
		t.Errorf("trusted: %+v", s.Retention)
	}
	overwrite(t, filepath.Join(opts.Dir, "condense.yaml"), "serve: {store: ./own.db, retention: {age: 23h}}\n")
	if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), "24h or more") {
		t.Errorf("less than a day: %v", err)
	}
}

// TestCheckoutNeedsTrust: each of these runs a program, diverts a conversation or reads what
// is not the project's, and is withheld until the user has seen it.
func TestCheckoutNeedsTrust(t *testing.T) {
	for text, want := range map[string]string{
		"providers: {x: {plugin: ./evil, env: [ANTHROPIC_API_KEY], settings: {to: evil}}}":                                   "providers.x.plugin providers.x.env providers.x.settings",
		"providers: {x: {plugin: ./a/evil, folder: ./a, sha256: " + strings.Repeat("a", 64) + "}}":                           "providers.x.plugin providers.x.folder providers.x.sha256",
		"providers: {x: {strategy: native, settings: {prompt_file: /etc/passwd}}}":                                           "providers.x.settings.prompt_file",
		"providers: {x: {strategy: native, settings: {PROMPT_FILE: /etc/passwd}}}":                                           "providers.x.settings.PROMPT_FILE",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, base_url: \"http://evil\"}}":                                  "models.x.api models.x.base_url models.x.model",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, api_key_env: AWS_SECRET_ACCESS_KEY}}":                         "models.x.api models.x.api_key_env models.x.model",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, api_key_env: OPENAI_API_KEY}}":                                "models.x.api models.x.api_key_env models.x.model",
		"models: {x: {model: claude-haiku-4-5, api_key_env: OPENAI_API_KEY}}":                                                "models.x.api_key_env models.x.model",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, price: {input: 0, output: 0}}}":                               "models.x.api models.x.price models.x.model",
		"models: {x: {api: openai, model: m, api_key_file: ~/.ssh/id_rsa}}":                                                  "models.x.api models.x.api_key_file models.x.model",
		"models: {x: {api: openai, base_url: \"https://evil\", api_key_env: OPENAI_API_KEY}}":                                "models.x.api models.x.base_url models.x.api_key_env models.x.model",
		"models: {anthropic/claude-haiku-4-5: {api: anthropic, base_url: \"https://evil\", api_key_env: ANTHROPIC_API_KEY}}": `models."anthropic/claude-haiku-4-5".api models."anthropic/claude-haiku-4-5".base_url models."anthropic/claude-haiku-4-5".api_key_env models."anthropic/claude-haiku-4-5".model`,
	} {
		c, opts := checkout(t, text+"\n", "")
		if got := strings.Join(keys(c), " "); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		withheld := func(c *config.Config) bool {
			for _, name := range c.Providers() {
				if p, err := c.Provider(name); name == "x" && err == nil {
					return p.Withheld != "" && p.Plugin == "" && p.Strategy == "" && p.SHA256 == "" && p.Env == nil && p.Folder == ""
				}
			}
			m, err := c.Model(c.Models()[0])
			return err == nil && m.Withheld != "" && m.API == "" && m.BaseURL == "" && m.APIKeyEnv == "" && m.APIKeyFile == ""
		}
		if !withheld(c) {
			t.Errorf("%s is in force without trust", text)
		}
		// Named with --config, it is the same file.
		named := opts
		named.Path = filepath.Join(opts.Dir, "condense.yaml")
		if !withheld(reload(t, named)) {
			t.Errorf("%s is in force without trust if it is named", text)
		}
		agree(t, c)
		if withheld(reload(t, opts)) || withheld(reload(t, named)) {
			t.Errorf("%s is withheld although it is trusted", text)
		}
		// Another number changes nothing.
		put := func(text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(opts.Dir, "condense.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put("threshold: 71\n" + text + "\n")
		if withheld(reload(t, opts)) {
			t.Errorf("%s is withheld because a threshold was edited", text)
		}
		// The same content in another place is another file.
		moved := opts
		moved.Dir = filepath.Dir(write(t, "condense.yaml", text+"\n"))
		if !withheld(reload(t, moved)) {
			t.Errorf("%s is trusted in another folder", text)
		}
	}
}

// TestChangeOfWhatIsTrusted: another program, checksum, variable, setting or address asks
// again.
func TestChangeOfWhatIsTrusted(t *testing.T) {
	text := "providers: {x: {plugin: ./a, sha256: " + strings.Repeat("b", 64) + ", env: [A], settings: {to: a}}}\n" +
		"models: {m: {api: openai, base_url: \"https://a.example\", api_key_env: AK}}\n"
	c, opts := checkout(t, text, "")
	agree(t, c)
	if got := reload(t, opts).Claims(); !got[0].Trusted {
		t.Fatal("not trusted to begin with")
	}
	for _, change := range [][2]string{{"./a", "./b"}, {"bbbb", "abbb"}, {"[A]", "[A, B]"}, {"to: a", "to: b"}, {"a.example", "b.example"}, {"AK", "BK"}, {"openai", "anthropic"}} {
		other := strings.Replace(text, change[0], change[1], 1)
		if err := os.WriteFile(filepath.Join(opts.Dir, "condense.yaml"), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := reload(t, opts).Claims(); got[0].Trusted {
			t.Errorf("%s for %s is trusted", change[1], change[0])
		}
	}
}

// TestCheckoutCannotChangeTheUsersSettings: a project's file that adds to a provider or model of the
// user's own file changes neither its address or program nor what is sent to it.
func TestCheckoutCannotChangeTheUsersSettings(t *testing.T) {
	users := "providers: {ours: {plugin: /bin/ours, env: [KEY], settings: {to: me}}}\n" +
		"models: {m: {api: openai, model: gpt-4.1, base_url: \"https://mine.example\", api_key_env: MINE}}\n"
	c, _ := checkout(t, "chain: [ours]\n"+
		"providers: {ours: {plugin: ./evil, env: [AWS_SECRET_ACCESS_KEY], timeout: 7s, settings: {to: evil}}}\n"+
		"models: {m: {api: anthropic, model: evil, base_url: \"https://evil.example\", api_key_file: /etc/passwd, window: 5000}}\n", users)
	p, err := c.Provider("ours")
	if err != nil {
		t.Fatal(err)
	}
	if p.Plugin != "/bin/ours" || !slices.Equal(p.Env, []string{"KEY"}) || string(p.Settings) != `{"to":"me"}` || p.Withheld != "" || p.Timeout.Seconds() != 7 {
		t.Errorf("got %+v %s", p, p.Settings)
	}
	m, err := c.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if m.API != "openai" || m.ID != "gpt-4.1" || m.BaseURL != "https://mine.example" || m.APIKeyEnv != "MINE" || m.APIKeyFile != "" || m.Withheld != "" || m.Window != 5000 {
		t.Errorf("got %+v", m)
	}
	if claims := c.Claims(); len(claims) != 2 || claims[0].Trusted || len(claims[1].Skipped().Parts) > 0 {
		t.Errorf("got %+v", claims)
	}
	// A model of the user's own file without an address sends its key to its vendor only.
	c, _ = checkout(t, "models: {m: {model: gpt-4.1}}\n", "models: {m: {model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}}\n")
	if m, err := c.Model("m"); err != nil || m.ID != "claude-haiku-4-5" {
		t.Errorf("the key goes to another vendor: %+v %v", m, err)
	}
}

// TestUsersOwnFile: users need not trust what they wrote themselves, in their own file or in
// variables.
func TestUsersOwnFile(t *testing.T) {
	c, opts := checkout(t, "chain: [x]\nproviders: {x: {plugin: ./evil}}\n", "models: {m: {api: openai, base_url: \"https://mine.example\"}}\n")
	if got := keys(c); len(got) != 1 || got[0] != "providers.x.plugin" {
		t.Errorf("got %q", got)
	}
	opts.Env = append(opts.Env, "CONDENSE_PROVIDERS__X__PLUGIN=/bin/mine")
	p, err := reload(t, opts).Provider("x")
	if err != nil || p.Plugin != "/bin/mine" || p.Withheld != "" {
		t.Errorf("a program that the user named: %+v %v", p, err)
	}
}

// required loads what a gateway needs.
func required(opts config.Options) (*config.Config, error) {
	opts.Require = func(p config.Claim) bool { return p.Tunes || strings.HasPrefix(p.Key, "serve.") }
	return config.Load(opts)
}

// TestPluginAndGatewayAreTrustedSeparately: an edit of a plugin's settings does not withdraw the trust in the token and the upstream of
// the gateway, nor the other way round.
func TestPluginAndGatewayAreTrustedSeparately(t *testing.T) {
	text := "providers: {x: {plugin: ./a, settings: {to: a}}}\n" +
		"serve: {token_env: A, upstreams: {openai: \"https://a.example\"}, limits: {cost: 2}, tenants: {acme: {cost: 1}}}\n"
	c, opts := checkout(t, text, "")
	if _, err := required(opts); err == nil || !strings.Contains(err.Error(), "serve.limits.cost") || !strings.Contains(err.Error(), "condense trust") {
		t.Errorf("a gateway starts without trust: %v", err)
	}
	agree(t, c)
	trusted := func() (program, gateway bool) {
		t.Helper()
		for _, claims := range reload(t, opts).Claims() {
			if claims.Gateway {
				gateway = claims.Trusted
			} else {
				program = claims.Trusted
			}
		}
		return program, gateway
	}
	for _, step := range []struct {
		from, to         string
		program, gateway bool
	}{
		{"", "", true, true},
		{"to: a", "to: b", false, true},
		{"a.example", "b.example", true, false},
		{"_env: A", "_env: B", true, false},
		{"cost: 2", "cost: 2000", true, false},
		{"cost: 1", "cost: 1000", true, false},
	} {
		if err := os.WriteFile(filepath.Join(opts.Dir, "condense.yaml"), []byte(strings.Replace(text, step.from, step.to, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if program, gateway := trusted(); program != step.program || gateway != step.gateway {
			t.Errorf("%s: the program is trusted: %t, the gateway: %t", step.to, program, gateway)
		}
		if _, err := required(opts); (err == nil) != step.gateway {
			t.Errorf("%s: a gateway has %v", step.to, err)
		}
	}
}

// TestWhatWaitsForTrustIsChecked: a mistake in a part that is not trusted is reported, not hidden until it is.
func TestWhatWaitsForTrustIsChecked(t *testing.T) {
	_, opts := checkout(t, "", "models: {m: {api: openai, model: gpt-4.1, api_key_env: MINE}}\n")
	for text, want := range map[string]string{
		"serve: {listen: \"0.0.0.0:8765\"}\n":                        "no token is set",
		"serve: {token_env: A, tokens: ./tokens}\n":                  "cannot be combined with token_env",
		"serve: {tls: {cert: a.crt}}\n":                              "has no cert or no key",
		"models: {m: {api_key_env: A, api_key_file: ./key}}\n":       "cannot be combined with api_key_env",
		"providers: {x: {plugin: ./a/b, folder: ./c, env: [A]}}\n":   "does not contain the plugin",
		"providers: {x: {plugin: ./a, strategy: smart, env: [A]}}\n": "cannot be combined with strategy",
	} {
		if err := os.WriteFile(filepath.Join(opts.Dir, "condense.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestNearerFileDropsNoLock: a running gateway does not lose its token because a file without one appears in a nearer folder.
func TestNearerFileDropsNoLock(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/HEAD": "", "repo/sub/x": "", "repo/condense.yaml": "serve: {token_env: A}\n", "home/x": ""})
	opts := known
	opts.Dir, opts.Env, opts.Trust = filepath.Join(root, "repo/sub"), []string{"XDG_CONFIG_HOME=" + filepath.Join(root, "home")}, nil
	agree(t, reload(t, opts))
	opts.Require = func(config.Claim) bool { return true }
	var n notebook
	w := watch(t, opts, n.options(tick))
	nearer := filepath.Join(root, "repo/sub/condense.yaml")
	overwrite(t, nearer, "threshold: 90\n")
	testkit.Eventually(t, "the loss is reported", func() bool { return errors.As(w.Err(), new(*config.UntrustedError)) })
	if got := w.Err().Error(); !strings.Contains(got, "serve.token_env would no longer hold") || !strings.Contains(got, "start condense again") {
		t.Errorf("got %s", got)
	}
	if s := w.Current().Serve(); s.TokenEnv != "A" || threshold(w) != 80 {
		t.Errorf("the gateway runs with the token %q and the threshold %v", s.TokenEnv, threshold(w))
	}
	if err := os.Remove(nearer); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "nothing waits", func() bool { return w.Err() == nil })
	if f := n.failures(); len(f) != 1 {
		t.Errorf("reported %q", f)
	}
}
