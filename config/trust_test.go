package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		for _, p := range claims.Parts {
			all = append(all, p.Key)
		}
	}
	return all
}

// TestCheckoutMayChooseStrategiesAndNumbers: what starts nothing and sends nothing elsewhere
// needs no trust.
func TestCheckoutMayChooseStrategiesAndNumbers(t *testing.T) {
	for _, text := range []string{
		"threshold: 70\nprompt: Keep everything.\n",
		"chain: [tidy]\nproviders: {tidy: {strategy: smart, timeout: 3s, settings: {preset: balanced}}}\n",
		"models: {m: {api: anthropic, model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY, window: 1000}}\n",
		"models: {m: {model: claude-haiku-4-5, api_key_env: ANTHROPIC_API_KEY}}\n",
		"models: {gpt-4.1: {api_key_env: OPENAI_API_KEY}}\n",
	} {
		if c, _ := checkout(t, text, ""); len(c.Claims()) > 0 {
			t.Errorf("%s needs trust: %+v", text, c.Claims())
		}
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
		"models: {x: {api: anthropic, model: claude-haiku-4-5, base_url: \"http://evil\"}}":                                  "models.x.api models.x.base_url",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, api_key_env: AWS_SECRET_ACCESS_KEY}}":                         "models.x.api models.x.api_key_env",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, api_key_env: OPENAI_API_KEY}}":                                "models.x.api models.x.api_key_env",
		"models: {x: {model: claude-haiku-4-5, api_key_env: OPENAI_API_KEY}}":                                                "models.x.api_key_env",
		"models: {x: {api: anthropic, model: claude-haiku-4-5, price: {input: 0, output: 0}}}":                               "models.x.api models.x.price",
		"models: {x: {api: openai, model: m, api_key_file: ~/.ssh/id_rsa}}":                                                  "models.x.api models.x.api_key_file",
		"models: {x: {api: openai, base_url: \"https://evil\", api_key_env: OPENAI_API_KEY}}":                                "models.x.api models.x.base_url models.x.api_key_env",
		"models: {anthropic/claude-haiku-4-5: {api: anthropic, base_url: \"https://evil\", api_key_env: ANTHROPIC_API_KEY}}": `models."anthropic/claude-haiku-4-5".api models."anthropic/claude-haiku-4-5".base_url models."anthropic/claude-haiku-4-5".api_key_env`,
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
	if claims := c.Claims(); len(claims) != 1 || claims[0].Trusted {
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
	opts.Require = func(p config.Claim) bool { return strings.HasPrefix(p.Key, "serve.") }
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
	overwrite(t, nearer, "threshold: 50\n")
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
