package servecmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

const codexModels = `{"models": [
  {"slug": "gpt-6-sol", "priority": 6, "context_window": 272000},
  {"slug": "gpt-9-new", "priority": 1, "context_window": 700000},
  {"slug": "gpt-6.2-sol", "priority": 2, "context_window": 300000}]}`

// TestReadOwn: what an agent knows about its models comes from its catalogue and its settings, then from the table of agents.
func TestReadOwn(t *testing.T) {
	for name, test := range map[string]struct {
		agent  string
		files  map[string]string
		prints string // what the agent prints when it is asked for its models
		args   []string
		env    map[string]string
		starts string
		model  string
		window int // of the table
		want   live.AgentLimit
		// A provider whose requests do not come through the gateway.
		elsewhere string
		notes     []string
	}{
		"its own list": {
			agent: "codex", prints: codexModels, starts: "gpt-9-new", model: "gpt-9-new",
			want: live.AgentLimit{Window: 700_000, Compacts: 630_000},
		},
		"its own list, before the table of agents": {
			agent: "codex", prints: codexModels, starts: "gpt-9-new", model: "gpt-6.2-sol", window: 1_050_000,
			want: live.AgentLimit{Window: 300_000, Compacts: 270_000},
		},
		"the list that the vendor sent it": {
			agent: "codex", prints: "{", files: map[string]string{".codex/models_cache.json": codexModels}, starts: "gpt-9-new", model: "gpt-6-sol", window: 1_050_000,
			want: live.AgentLimit{Window: 272_000, Compacts: 244_800},
		},
		"an older one, which prints no list": {
			agent: "codex", model: "gpt-5.6-sol", window: 1_050_000, want: live.AgentLimit{Window: 272_000, Compacts: 244_800},
		},
		"settings": {
			agent: "codex", prints: codexModels, files: map[string]string{".codex/config.toml": "model = \"gpt-6-sol\"\nmodel_context_window = 100_000\nmodel_auto_compact_token_limit = 60_000"},
			starts: "gpt-6-sol", model: "gpt-6-sol", want: live.AgentLimit{Window: 100_000, Compacts: 60_000},
		},
		"a limit that it does not take": {
			agent: "codex", prints: codexModels, args: []string{"-c", "model_auto_compact_token_limit=271000", "-m", "gpt-6-sol"},
			starts: "gpt-6-sol", model: "gpt-6-sol", want: live.AgentLimit{Window: 272_000, Compacts: 244_800},
		},
		"Codex's other ways to write": {
			agent: "codex", prints: codexModels, args: []string{"-c", "model_context_window = 100000", "-cmodel_auto_compact_token_limit=60000", "-mgpt-6-sol"},
			starts: "gpt-6-sol", model: "gpt-6-sol", want: live.AgentLimit{Window: 100_000, Compacts: 60_000},
		},
		"models without names": {
			agent: "codex", prints: `{"models": [{"slug": "", "priority": 1, "context_window": 5000}, {"priority": 0.5, "context_window": 6000}, {"slug": "gpt-9-new", "priority": 2, "context_window": 700000}]}`,
			starts: "gpt-9-new", model: "models-x",
		},
		"Claude Code's window": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "500000", "ANTHROPIC_MODEL": "claude-opus-5-5"}, starts: "claude-opus-5-5",
			model: "claude-opus-5-5", window: 1_000_000, want: live.AgentLimit{Window: 500_000, Compacts: 467_000},
		},
		"OpenCode's models": {
			agent: "opencode", starts: "claude-x", args: []string{"run", "-m", "anthropic/claude-x"}, model: "claude-x",
			files: map[string]string{
				".cache/opencode/models.json":         `{"anthropic": {"models": {"claude-x": {"id": "claude-x", "limit": {"context": 400000}}}}, "other": {"models": {"claude-x": {"id": "claude-x", "limit": {"context": 9}}}}}`,
				".config/opencode/opencode.json":      `{"provider": {"anthropic": {"models": {"claude-x": {"limit": {"context": 300000}}}}}}`,
				".local/share/opencode/anything.json": `{}`,
			},
			want: live.AgentLimit{Window: 300_000, Compacts: 268_000},
		},
		"OpenCode's model with a window for the input": {
			agent: "opencode", model: "gpt-x", want: live.AgentLimit{Window: 272_000, Compacts: 252_000}, files: map[string]string{
				"opencode.json": `{"provider": {"openai": {"models": {"gpt-x": {"limit": {"context": 400000, "input": 272000}}}}}}`,
			},
		},
		"OpenCode's settings with comments": {
			agent: "opencode", model: "claude-x", files: map[string]string{"opencode.jsonc": "{ // mine\n\"provider\": {\"anthropic\": {\"models\": {\"claude-x\": {\"limit\": {\"context\": 300000,},},},},},}"},
			want: live.AgentLimit{Window: 300_000, Compacts: 268_000},
		},
		"a provider that OpenCode asks by itself": {
			agent: "opencode", files: map[string]string{"opencode.json": `{"model": "openrouter/anthropic/claude-x"}`},
			starts: "anthropic/claude-x", elsewhere: "openrouter", model: "claude-y", window: 200_000, want: live.AgentLimit{Compacts: 168_000},
		},
		"a model of the user's provider": {
			agent: "opencode", args: []string{"-m", "corp/claude-x"}, starts: "claude-x", elsewhere: "corp", model: "claude-x",
			files: map[string]string{"opencode.json": `{"model": "anthropic/claude-x", "provider": {"anthropic": {}, "corp": {"models": {"claude-x": {"limit": {"context": 100000}}}}, "other": {"models": {"claude-x": {"limit": {"context": 90000}}}}}}`},
			want:  live.AgentLimit{Window: 100_000, Compacts: 68_000},
		},
		"pi's provider": {
			agent: "pi", args: []string{"--provider", "openrouter", "--model=anthropic/claude-x"}, starts: "anthropic/claude-x", elsewhere: "openrouter",
		},
		"pi's provider in the settings": {
			agent: "pi", files: map[string]string{".pi/agent/settings.json": `{"defaultProvider": "openrouter", "defaultModel": "anthropic/claude-x"}`},
			starts: "anthropic/claude-x", elsewhere: "openrouter",
		},
		"pi's provider in the settings, and a model of another": {
			agent: "pi", files: map[string]string{".pi/agent/settings.json": `{"defaultProvider": "openrouter", "defaultModel": "anthropic/claude-x"}`},
			args: []string{"--model", "anthropic/claude-y"}, starts: "claude-y",
		},
		"a window larger than any": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1e308"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window large": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1e15"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window small": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "0.5"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window without end": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "inf"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window of one token": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window of a part of a token": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000.5"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window that is none": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "NaN"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a window below zero": {
			agent: "claude", env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "-5000"}, model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 167_000},
		},
		"a limit above every window": {
			agent: "codex", prints: codexModels, args: []string{"-c", "model_auto_compact_token_limit=1e308"}, starts: "gpt-9-new", model: "gpt-9-new",
			want: live.AgentLimit{Window: 700_000, Compacts: 630_000},
		},
		"a catalogue with absurd windows": {
			agent: "opencode", files: map[string]string{"opencode.json": `{"provider": {"anthropic": {"models": {"claude-x": {"limit": {"context": 1e308}}, "claude": {"limit": {"context": 0.5}}}}}}`},
			model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 168_000},
		},
		"a share above all": {
			agent: "gemini", files: map[string]string{".gemini/settings.json": `{"model": {"compressionThreshold": 2}}`}, model: "gemini-x", window: 1_000_000,
			want: live.AgentLimit{Compacts: 500_000},
		},
		"an absurd reserve": {
			agent: "pi", files: map[string]string{".pi/agent/settings.json": `{"compaction": {"reserveTokens": 1e15}}`}, model: "claude-x", window: 200_000,
			want: live.AgentLimit{Compacts: 200_000 - 16_384},
		},
		"no reserve": {
			agent: "pi", files: map[string]string{".pi/agent/settings.json": `{"compaction": {"reserveTokens": 0}}`}, model: "claude-x", window: 200_000,
			want: live.AgentLimit{Compacts: 199_999},
		},
		"OpenCode, which does not": {
			agent: "opencode", files: map[string]string{".config/opencode/opencode.json": `{"compaction": {"auto": false}}`}, model: "claude-x", window: 200_000,
		},
		"pi's reserve": {
			agent: "pi", files: map[string]string{".pi/agent/settings.json": `{"defaultModel": "claude-x", "compaction": {"reserveTokens": 50000}}`}, starts: "claude-x",
			model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 150_000},
		},
		"Gemini CLI": {agent: "gemini", model: "gemini-x", window: 1_000_000, want: live.AgentLimit{Compacts: 500_000}},
		"Gemini CLI's threshold": {
			agent: "gemini", files: map[string]string{".gemini/settings.json": `{"model": {"name": "gemini-x", "compressionThreshold": 0.2}}`}, starts: "gemini-x",
			model: "gemini-x", window: 1_000_000, want: live.AgentLimit{Compacts: 200_000},
		},
		"links to what has no end, and a pipe": {
			agent: "opencode", files: map[string]string{
				"opencode.json": "-> /dev/zero", ".cache/opencode/models.json": "-> /dev/zero", "opencode.jsonc": "|", ".config/opencode/opencode.json": `{"model": "anthropic/claude-x"}`,
			},
			starts: "claude-x", model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 168_000},
			notes: []string{
				"~/.cache/opencode/models.json: is a device or a socket, not a file; its settings are not known",
				"~/opencode.json: is a device or a socket, not a file; its settings are not known",
				"~/opencode.jsonc: is a pipe, not a file; its settings are not known",
			},
		},
		"a file that is too large": {
			agent: "pi", files: map[string]string{".pi/agent/models.json": `{"providers": {"anthropic": {"models": [{"id": "claude-x", "contextWindow": 9999}]}}}` + strings.Repeat(" ", 8<<20)},
			model: "claude-x", window: 200_000, want: live.AgentLimit{Compacts: 200_000 - 16_384}, notes: []string{"~/.pi/agent/models.json: larger than 8 MiB; its settings are not known"},
		},
		"an agent without rules": {agent: "aider", model: "m", window: 200_000},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for _, v := range []string{"CODEX_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PI_CODING_AGENT_DIR", "CLAUDE_CONFIG_DIR", "ANTHROPIC_MODEL", "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "GEMINI_MODEL"} {
				t.Setenv(v, "")
			}
			t.Setenv("HOME", home)
			t.Chdir(home)
			for v, value := range test.env {
				t.Setenv(v, value)
			}
			for path, text := range test.files {
				path = filepath.Join(home, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
					t.Fatal(err)
				}
				target, isLink := strings.CutPrefix(text, "-> ")
				var err error
				switch {
				case isLink:
					err = os.Symlink(target, path)
				case text == "|":
					err = exec.Command("mkfifo", path).Run()
				default:
					err = os.WriteFile(path, []byte(text), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			program := filepath.Join(home, "program")
			script := "#!/bin/sh\nexit 1\n"
			if test.prints != "" {
				script = "#!/bin/sh\ncat <<'END'\n" + test.prints + "\nEND\n"
			}
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			agent := agents.Find(test.agent)
			if _, err := ownAddresses(agent, nil); err != nil {
				t.Error(err)
			}
			k := readOwn(t.Context(), agent, program, test.args)
			if !slices.Equal(k.unread, test.notes) {
				t.Errorf("notes %q, want %q", k.unread, test.notes)
			}
			if k.starts != test.starts || k.elsewhere != test.elsewhere {
				t.Errorf("it starts with %q of %q, want %q of %q", k.starts, k.elsewhere, test.starts, test.elsewhere)
			}
			if got := k.of(test.model, test.window); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestListThatHangs: an agent that does not print its models in time, by a child that outlives it, does not hold wrap up.
func TestListThatHangs(t *testing.T) {
	testkit.Slow(t)
	t.Setenv("CODEX_HOME", t.TempDir())
	dir := t.TempDir()
	program, ended := filepath.Join(dir, "program"), filepath.Join(dir, "ended")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n(sleep 60; touch "+ended+") &\nwait\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	readOwn(t.Context(), agents.Find("codex"), program, nil)
	if _, err := os.Stat(ended); err == nil {
		t.Error("it waits for the child")
	}
}

// TestLater: wrap gives an agent a later limit for the run, in its arguments, variables or a file of its own, unless the user has set one.
func TestLater(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for name, test := range map[string]struct {
		args []string
		env  string // the user's own, NAME=VALUE
		want string // in what the agent is started with; empty: nothing is set
		at   int    // it condenses by itself then, of 200,000
		file string // of the project, with the text
		text string
		home bool // the folder is the home
	}{
		"claude":                    {want: "CLAUDE_CODE_AUTO_COMPACT_WINDOW=1000000", at: 167_000},
		"claude with a window":      {env: "CLAUDE_CODE_AUTO_COMPACT_WINDOW=300000"},
		"claude with a share":       {env: "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=50"},
		"claude with a flag":        {args: []string{"--settings", `{"autoCompactWindow": 150000}`}},
		"claude with a window each": {args: []string{"--settings", `{"modelSettings": {"claude-x": {"autoCompactWindow": 150000}}}`}},
		"claude with a setting":     {args: []string{"--settings", `{"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}}`}},
		"claude that never does":    {args: []string{"--settings", `{"env": {"DISABLE_AUTO_COMPACT": "1"}}`}},
		"codex in a project":        {file: ".codex/config.toml", text: "model_auto_compact_token_limit = 90000"},
		"opencode in a project":     {file: ".opencode/opencode.json", text: `{"compaction": {"reserved": 9000}}`},
		"codex with = after -c":     {args: []string{"-c=model_auto_compact_token_limit=90000"}},
		"codex":                     {want: `model_auto_compact_token_limit_scope="body_after_prefix"`, at: 190_000},
		"codex with a window":       {args: []string{"-c", "model_context_window=200000"}, want: "model_auto_compact_token_limit=100000000", at: 190_000},
		"codex with a limit":        {args: []string{"-c", "model_auto_compact_token_limit=90000"}},
		"codex with a profile":      {file: ".codex/deep.config.toml", text: "model_auto_compact_token_limit = 90000", args: []string{"exec", "--profile", "deep"}, home: true},
		"codex with no profile":     {file: ".codex/deep.config.toml", text: "model_auto_compact_token_limit = 90000", args: []string{"exec", "-p", "../deep"}, home: true, want: "model_auto_compact_token_limit=100000000", at: 190_000},
		"opencode":                  {want: `"reserved": 8000`, at: 168_000},
		"opencode with null":        {env: `OPENCODE_CONFIG_CONTENT={"compaction": null}`, want: `"reserved":8000`, at: 168_000},
		"opencode with a reserve":   {env: `OPENCODE_CONFIG_CONTENT={"compaction": {"reserved": 9000}}`},
		"opencode that never does":  {env: `OPENCODE_CONFIG_CONTENT={"compaction": {"auto": false}}`},
		"pi":                        {},
		"gemini":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			environ := []string{}
			t.Chdir(t.TempDir())
			if test.home {
				t.Setenv("CODEX_HOME", filepath.Join(t.TempDir(), ".codex"))
				t.Chdir(filepath.Dir(os.Getenv("CODEX_HOME")))
			}
			if test.file != "" {
				if err := errors.Join(os.Mkdir(filepath.Dir(test.file), 0o700), os.WriteFile(test.file, []byte(test.text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if v, value, ok := strings.Cut(test.env, "="); ok {
				t.Setenv(v, value)
				environ = []string{test.env}
			}
			name, _, _ = strings.Cut(name, " ")
			agent := agents.Find(name)
			k := readOwn(t.Context(), agent, "/nowhere", test.args)
			before := k.of("model", 200_000).Compacts
			later := k.later()
			l, err := launch(agent, test.args, addresses{}, pointing{base: "http://127.0.0.1:1", later: later}, environ)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.remove() })
			given := strings.Join(append(l.env, l.args...), "\n")
			switch at := k.of("model", 200_000).Compacts; {
			case test.want == "" && (later != nil || k.raised != "" || at != before):
				t.Errorf("the limit is %d, and was %d: %s", at, before, given)
			case test.want != "" && (at != test.at || at < before || !strings.Contains(given, test.want)):
				t.Errorf("the limit is %d, and was %d: %s", at, before, given)
			}
		})
	}
}

// TestFirstLine: who condenses first is said with numbers, where the model is known.
func TestFirstLine(t *testing.T) {
	codex := &knowing{agent: agents.Find("codex"), starts: "gpt-6.2-sol", source: "its catalogue"}
	long := &knowing{agent: codex.agent, starts: strings.Repeat("m", 5000), source: "its catalogue"}
	for _, test := range []struct {
		k     *knowing
		due   int
		known bool
		want  string
	}{
		{codex, 400_000, true, "gpt-6.2-sol is condensed at 400,000 tokens, before Codex does at 450,000 of 500,000, by its catalogue"},
		{long, 400_000, true, strings.Repeat("m", 80) + "… is condensed at 400,000 tokens, before Codex does at 180,000 of 200,000, by its catalogue"},
		{codex, 0, true, "Codex condenses by itself before condense, which only does what the vendor would refuse (auto: false)"},
		{&knowing{agent: agents.Find("opencode"), starts: "claude-x", elsewhere: "openrouter"}, 160_000, true, "requests to openrouter do not come through condense"},
		{&knowing{agent: agents.Find("gemini")}, 160_000, false, "conversations are condensed before Gemini CLI does it by itself, at about 45 % of the window of the model"},
		{&knowing{agent: agents.Find("copilot")}, 160_000, false, "conversations are condensed at about 80 % of the window of the model, unless GitHub Copilot CLI does it by itself before: when is not known"},
	} {
		if got := test.k.said(test.due, 200_000, test.known); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}
