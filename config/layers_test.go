package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
)

// tree makes files in a new folder and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLayers(t *testing.T) {
	root := tree(t, map[string]string{
		"home/.config/condense/condense.json": `{"threshold": 51, "buffer": 11, "min_gain": 3, "tokenizer": "cl100k_base",
  "providers": {"tidy": {"strategy": "smart", "settings": {"preset": "balanced", "keep": 1}}},
  "profiles": {"code": {"window": 100000, "threshold": 41}}}`,
		"repo/.git/HEAD":       "",
		"repo/condense.yaml":   "buffer: 12\nmin_gain: 4\ntokenizer: p50k_base\nproviders: {tidy: {settings: {keep: 2}}}\nprofiles: {code: {threshold: 42}}\nchain: [tidy, native]\n",
		"repo/a/b/c/.gitkeep":  "",
		"condense.yaml":        "threshold: 99\n", // above the repository: not the project's
		"home/condense.yaml":   "threshold: 98\n",
		"other/empty/.gitkeep": "",
	})
	opts := known
	opts.Dir = filepath.Join(root, "repo/a/b/c")
	opts.Env = []string{
		"HOME=" + filepath.Join(root, "home"),
		"CONDENSE_MIN_GAIN=6", "CONDENSE_TOKENIZER=r50k_base",
	}
	opts.Flags = map[string]string{"tokenizer": "o200k_base", "profiles.code.threshold": "44", "chain": "tidy"}
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	r := resolve(t, c, "code", "")
	tests := []struct {
		key, origin string
		got, want   any
	}{
		{"auto", "default", r.Auto, true},
		{"buffer", "condense.yaml:1:9", r.Buffer, 12.0},
		{"min_gain", "environment CONDENSE_MIN_GAIN", r.MinGain, 6.0},
		{"tokenizer", "flag tokenizer", r.Tokenizer, "o200k_base"},
		{"threshold", "flag profiles.code.threshold", r.Threshold, 44.0},
		{"window", "condense.json:3:35", r.Window, 100_000},
		{"chain", "flag chain", len(r.Chain), 1},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.key, tt.got, tt.want)
		}
		if got := r.Origin(tt.key).String(); !strings.HasSuffix(got, tt.origin) {
			t.Errorf("origin of %s: got %s, want %s", tt.key, got, tt.origin)
		}
	}
	// Settings of a provider merge key by key, each with its own origin.
	if got, want := string(r.Chain[0].Settings), `{"keep":2,"preset":"balanced"}`; got != want {
		t.Errorf("settings: got %s, want %s", got, want)
	}
	for key, want := range map[string]string{"keep": "condense.yaml:4:37", "preset": "condense.json:2:70"} {
		o, ok := c.Origin("providers", "tidy", "settings", key)
		if !ok || !strings.HasSuffix(o.String(), want) {
			t.Errorf("origin of the setting %s: got %s, want %s", key, o, want)
		}
	}
	// A list is replaced, not merged, and its old elements leave no origins.
	if o, ok := c.Origin("chain", "1"); ok {
		t.Errorf("chain[1] is gone, but has the origin %s", o)
	}
	if got := len(c.Files()); got != 2 {
		t.Errorf("got %d files, want 2: %v", got, c.Files())
	}
}

func TestFind(t *testing.T) {
	root := tree(t, map[string]string{
		"xdg/condense/config.yaml":   "threshold: 10\n",
		"xdg2/condense/condense.yml": "threshold: 11\n",
		"repo/.git":                  "gitdir: elsewhere\n", // a worktree: a file
		"repo/condense.json":         `{"threshold": 20}`,
		"repo/deep/condense.yml":     "threshold: 30\n",
		"repo/deep/er/x":             "",
		"bare/condense.yaml":         "threshold: 40\n",
		"bare/sub/x":                 "",
		"named.yaml":                 "threshold: 50\n",
		"twice/condense.yaml":        "",
		"twice/condense.json":        "",
		"dir/condense.yaml/x":        "", // a directory of that name
		"empty/x":                    "",
		"wrong.ini":                  "threshold: 50\n",
		"former/condense.toml":       "threshold = 50\n",
	})
	at := func(name string) string { return filepath.Join(root, name) }
	tests := []struct {
		name, dir string
		env       []string
		path      string
		want      float64
		err       string
	}{
		{name: "nothing", dir: "empty", want: 80},
		{name: "user", dir: "empty", env: []string{"XDG_CONFIG_HOME=" + at("xdg")}, want: 10},
		{name: "user, other name", dir: "empty", env: []string{"XDG_CONFIG_HOME=" + at("xdg2")}, want: 11},
		{name: "relative XDG directory is ignored", dir: "empty", env: []string{"XDG_CONFIG_HOME=xdg"}, want: 80},
		{name: "project beats user", dir: "repo", env: []string{"XDG_CONFIG_HOME=" + at("xdg")}, want: 20},
		{name: "nearest project file", dir: "repo/deep/er", want: 30},
		{name: "here without a repository", dir: "bare", want: 40},
		{name: "not above without a repository", dir: "bare/sub", want: 80},
		{name: "variable", dir: "repo", env: []string{"CONDENSE_CONFIG=" + at("named.yaml")}, want: 50},
		{name: "flag beats variable", dir: "repo", env: []string{"CONDENSE_CONFIG=" + at("absent.yaml")}, path: at("named.yaml"), want: 50},
		{name: "named file does not exist", dir: "repo", path: at("absent.yaml"), err: "absent.yaml: no such file"},
		{name: "named file is a directory", dir: "repo", path: at("dir/condense.yaml"), err: "is a directory"},
		{name: "a directory in place of the file", dir: "dir", err: "dir/condense.yaml: is a directory, not a file"},
		{name: "named file of another format", dir: "repo", path: at("wrong.ini"), err: "name the file .yaml or .json"},
		{name: "a format of earlier versions", dir: "former", err: "former/condense.toml: TOML is not read any more; convert it, as with 'yq -p toml -o yaml "},
		{name: "two files in one place", dir: "twice", err: "keep one of them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := known
			opts.Dir, opts.Path = at(tt.dir), tt.path
			opts.Env = append(opts.Env, tt.env...)
			c, err := config.Load(opts)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := resolve(t, c, "", "").Threshold; got != tt.want {
				t.Errorf("got %v, want %v from %v", got, tt.want, c.Files())
			}
		})
	}
}

func TestEnvironmentAndFlags(t *testing.T) {
	const file = `
default_profile: Code
profiles:
  Code: {window: 100000}
  gpt-4.1: {model: openai/gpt-4.1}
  architect/mode: {window: 50000}
  a__b: {window: 60000}
  twin: {window: 70000}
  TWIN: {window: 70000}
modes:
  code: Code
  ask: {profile: Code, threshold: 50}
providers:
  tidy: {strategy: smart, settings: {keepFirst: 3}}
models:
  cheap: {api: anthropic, model: claude-haiku-4-5, price: {input: 1}}
`
	tests := []struct {
		env, flag, value string
		key              []string // where the value must be
		err              string
	}{
		{env: "THRESHOLD", flag: "threshold", value: "70", key: []string{"threshold"}},
		{env: "THRESHOLD", flag: "threshold", value: "70%", key: []string{"threshold"}},
		{env: "PROFILES__CODE__THRESHOLD", flag: "profiles.Code.threshold", value: "70", key: []string{"profiles", "Code", "threshold"}},
		{env: "PROFILES__GPT_4_1__MAX_CONTEXT_TOKENS", flag: "profiles.gpt-4.1.max_context_tokens", value: "90k", key: []string{"profiles", "gpt-4.1", "max_context_tokens"}},
		{env: "PROFILES__GPT_4_1__MIN_GAIN", flag: `profiles."gpt-4.1".min_gain`, value: "9", key: []string{"profiles", "gpt-4.1", "min_gain"}},
		{env: "PROFILES__ARCHITECT_MODE__MODEL", flag: "profiles.architect/mode.model", value: "gpt-4o", key: []string{"profiles", "architect/mode", "model"}},
		{env: "PROFILES__A__B__WINDOW", flag: "profiles.a__b.window", value: "32Ki", key: []string{"profiles", "a__b", "window"}},
		{env: "MODES__CODE", flag: "modes.code", value: "gpt-4.1", key: []string{"modes", "code", "profile"}},
		{env: "MODES__ASK__CHAIN", flag: "modes.ask.chain", value: "tidy, native", key: []string{"modes", "ask", "chain"}},
		{env: "MODES__ASK__CHAIN", flag: "modes.ask.chain", value: "[]", key: []string{"modes", "ask", "chain"}},
		{env: "CHAIN", flag: "chain", value: "[tidy, native]", key: []string{"chain"}},
		{env: "PROVIDERS__TIDY__TIMEOUT", flag: "providers.tidy.timeout", value: "45s", key: []string{"providers", "tidy", "timeout"}},
		{env: "PROVIDERS__TIDY__SETTINGS__KEEPFIRST", flag: "providers.tidy.settings.keepFirst", value: "7", key: []string{"providers", "tidy", "settings", "keepFirst"}},
		{env: "PROVIDERS__TIDY__SETTINGS__DEEP__ER", flag: "providers.tidy.settings.deep.er", value: "{a: 1}", key: []string{"providers", "tidy", "settings", "deep", "er"}},
		{env: "MODELS__CHEAP__PRICE__OUTPUT", flag: "models.cheap.price.output", value: "5", key: []string{"models", "cheap", "price", "output"}},
		{env: "PROMPT", flag: "prompt", value: "Keep: everything [that] matters", key: []string{"prompt"}},
		{env: "AUTO", flag: "auto", value: "false", key: []string{"auto"}},

		{env: "THRESHOLD", flag: "threshold", value: "3", err: "threshold: is 3; must be a percentage from 5 to 100"},
		{env: "THRESHOLD", flag: "threshold", value: "", err: "threshold: is empty"},
		{env: "AUTO", flag: "auto", value: "ja", err: `auto: is the string "ja"; must be true or false`},
		{env: "AUTO", flag: "auto", value: "{", err: "cannot be read: not valid YAML"},
		{env: "CHAIN", flag: "chain", value: "tydy", err: `chain[0]: there is no provider "tydy"`},
		{env: "TRESHOLD", flag: "treshold", value: "70", err: "unknown setting; did you mean"},
		{env: "PROFILES__COED__THRESHOLD", flag: "profiles.Coed.threshold", value: "70", err: "no setting of a profile that exists; profiles: Code, TWIN, a__b, architect/mode, default, gpt-4.1, twin; did you mean"},
		{env: "CHAIN", flag: "chain", value: "-1", err: "is -1, with which only numbers inherit; must be a list of names of providers, as in [lossless, summary]; unset it to inherit"},
		{env: "PROVIDERS__MINE__TIMEOUT", flag: "providers.mine.timeout", value: "1s", err: "no setting of a provider that exists; providers: tidy; did you mean"},
		{env: "MODES__PLAN", flag: "modes.plan", value: "Code", err: "no setting of a mode that exists"},
		{env: "MODELS__CHEAP__API_KEY", flag: "models.cheap.api_key", value: "sk-ant-api03-abcdefghijklmnopqrstuvwxyz", err: "no setting of a model that exists"},
		{env: "PROVIDERS__TIDY__SETTINGS__TOKEN", flag: "providers.tidy.settings.token", value: "hunter2", err: "is a literal secret"},
		{env: "PROFILES__CODE__WINDOW", flag: "profiles.Code.window", value: "0x", err: "profiles.Code.window: is the string"},
	}
	path := write(t, "condense.yaml", file)
	check := func(t *testing.T, opts config.Options, key []string, origin, wantErr string) {
		t.Helper()
		opts.Path = path
		c, err := config.Load(opts)
		if wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Fatalf("got %v, want an error with %q", err, wantErr)
			}
			if !strings.HasPrefix(err.Error(), origin+": ") {
				t.Errorf("got %v, want it to begin with %s", err, origin)
			}
			if strings.Contains(err.Error(), "sk-ant") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message repeats a secret: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := c.Origin(key...); !ok || o.String() != origin {
			t.Errorf("origin of %v: got %s, want %s", key, o, origin)
		}
	}
	for _, tt := range tests {
		t.Run(tt.flag+"="+tt.value, func(t *testing.T) {
			opts := known
			opts.Env = []string{"CONDENSE_" + tt.env + "=" + tt.value}
			check(t, opts, tt.key, "environment CONDENSE_"+tt.env, tt.err)
			opts = known
			opts.Flags = map[string]string{tt.flag: tt.value}
			check(t, opts, tt.key, "flag "+tt.flag, tt.err)
		})
	}
	t.Run("the suggestion is what to type", func(t *testing.T) {
		opts := known
		opts.Path, opts.Env = path, []string{"CONDENSE_TRESHOLD=70"}
		_, err := config.Load(opts)
		if err == nil || !strings.Contains(err.Error(), `did you mean "CONDENSE_THRESHOLD"?`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("ambiguous", func(t *testing.T) {
		opts := known
		opts.Env = []string{"CONDENSE_PROFILES__TWIN__THRESHOLD=70"}
		check(t, opts, nil, "environment CONDENSE_PROFILES__TWIN__THRESHOLD",
			"ambiguous: could be profiles.TWIN.threshold or profiles.twin.threshold")
		opts = known
		opts.Flags = map[string]string{"profiles.twin.threshold": "70"} // exact, not ambiguous
		check(t, opts, []string{"profiles", "twin", "threshold"}, "flag profiles.twin.threshold", "")
	})
	t.Run("not ours", func(t *testing.T) {
		opts := known
		opts.IgnoreEnv = []string{"CONDENSE_OURS"}
		opts.Env = []string{
			"CONDENSE_GOLDEN_DIR=/x", "CONDENSE_RECALL=/x", "CONDENSE_STATUSLINE=/x",
			"CONDENSE_OURS=1", "CONDENSER=x", "XCONDENSE_THRESHOLD=1",
		}
		check(t, opts, []string{"threshold"}, "default", "")
	})
	t.Run("flag beats environment", func(t *testing.T) {
		opts := known
		opts.Env = []string{"CONDENSE_THRESHOLD=70"}
		opts.Flags = map[string]string{"threshold": "71"}
		check(t, opts, []string{"threshold"}, "flag threshold", "")
	})
}

// A layer with another strategy, or another source of an API key, replaces the choice of the
// layers below and is not merged with it.
func TestLayersReplaceChoices(t *testing.T) {
	root := tree(t, map[string]string{
		"xdg/condense/condense.yaml": "chain: [a]\nproviders:\n  a: {strategy: smart, settings: {preset: balanced}}\n" +
			"models:\n  m: {api: openai, api_key_env: KEY}\n",
		"repo/.git/HEAD":     "",
		"repo/condense.yaml": "providers:\n  a: {plugin: ./a}\nmodels:\n  m: {api_key_file: ./key}\n",
	})
	opts := known
	opts.Dir, opts.Env = filepath.Join(root, "repo"), []string{"XDG_CONFIG_HOME=" + filepath.Join(root, "xdg")}
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Provider("a")
	if err != nil {
		t.Fatal(err)
	}
	if p.Strategy != "" || p.Plugin != filepath.Join(root, "repo/a") || string(p.Settings) != "{}" {
		t.Errorf("provider: got %+v, want the plugin alone", p)
	}
	m, err := c.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	if m.APIKeyEnv != "" || m.APIKeyFile != filepath.Join(root, "repo/key") || m.API != "openai" {
		t.Errorf("model: got %+v, want the file alone", m)
	}
}

// A fraction of a percentage is as exact as the percentage: the host divides it by 100.
func TestBufferFractions(t *testing.T) {
	for text, want := range map[string]float64{"0.1": 10, "0.07": 7, "0.29": 29, "7": 7, "7%": 7, "0.5%": 0.5, "1": 1, "0": 0, "12.5": 12.5} {
		if got := resolve(t, load(t, "buffer: "+text+"\n"), "", "").Buffer; got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// -1 in the environment inherits from the layers below: the file's value, or the default.
func TestMinusOneInTheEnvironmentInheritsTheFile(t *testing.T) {
	for _, tt := range []struct {
		file, env string
		want      float64
		explained string
	}{
		{"threshold: 70\n", "CONDENSE_THRESHOLD=-1", 70, "  70  from condense.yaml:1:12, this counts\n  -1  from environment CONDENSE_THRESHOLD, inherits\n"},
		{"auto: true\n", "CONDENSE_THRESHOLD=-1", 80, "  80  from default, this counts\n  -1  from environment CONDENSE_THRESHOLD, inherits\n"},
		{"threshold: -1\n", "CONDENSE_AUTO=true", 80, "  80  from default, this counts\n  -1  from condense.yaml:1:12, inherits\n"},
		{"threshold: 70\n", "CONDENSE_THRESHOLD=60", 60, "  70  from condense.yaml:1:12, overridden\n  60  from environment CONDENSE_THRESHOLD, this counts\n"},
	} {
		opts := known
		opts.Path, opts.Env = write(t, "condense.yaml", tt.file), []string{tt.env}
		c, err := config.Load(opts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Resolve("", "")
		if err != nil || r.Threshold != tt.want {
			t.Errorf("%q and %s: got %v, %v, want %v", tt.file, tt.env, r.Threshold, err, tt.want)
		}
		list, err := c.ExplainKey("threshold")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		text := strings.ReplaceAll(list[0].String(), filepath.Dir(opts.Path)+string(filepath.Separator), "")
		if !strings.Contains(text, tt.explained) {
			t.Errorf("%q and %s: got\n%s\nwant\n%s", tt.file, tt.env, text, tt.explained)
		}
	}
	opts := known
	opts.Path = write(t, "condense.yaml", "profiles: {code: {window: 100000, threshold: 60}}\n")
	opts.Env = []string{"CONDENSE_PROFILES__CODE__THRESHOLD=-1"}
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Resolve("code", ""); err != nil || r.Threshold != 60 {
		t.Errorf("of a profile: got %v, %v, want 60", r.Threshold, err)
	}
}

// TestMinusOneOfAProjectInheritsTheUsersFile: -1 at the top level of a project's file is as if it were absent, and the explanation
// says where it is.
func TestMinusOneOfAProjectInheritsTheUsersFile(t *testing.T) {
	for project, want := range map[string]float64{"threshold: -1\n": 60, "auto: true\n": 60, "threshold: 70\n": 70} {
		c, _ := checkout(t, project+"profiles: {p: {window: 100000}}\n", "threshold: 60\n")
		if got := resolve(t, c, "", "").Threshold; got != want {
			t.Errorf("%s: got %v, want %v", project, got, want)
		}
		if !strings.Contains(project, "-1") {
			continue
		}
		list, err := c.ExplainKey("threshold")
		if err != nil || !strings.Contains(list[0].String(), ", this counts\n  -1  from ") || !strings.Contains(list[0].String(), "condense.yaml:1:12, inherits\n") {
			t.Errorf("%v\n%s", err, list)
		}
		e, err := c.Explain("", "", 0)
		if err != nil || !strings.Contains(e.String(), "top level: -1, inherits") {
			t.Errorf("%v\n%s", err, e)
		}
	}
	// Without a lower file it is the default.
	if got := resolve(t, load(t, "threshold: -1\n"), "", "").Threshold; got != 80 {
		t.Errorf("got %v", got)
	}
}
