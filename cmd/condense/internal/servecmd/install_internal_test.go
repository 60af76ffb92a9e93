package servecmd

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/testkit"
)

// files are settings as people write them, per agent.
var files = map[string][]string{
	"claude": {
		"", "{}", "{\n  \"env\": {\"ANTHROPIC_BASE_URL\": \"https://own.example.com\"}\n}\n", "{\"model\":\"opus\"}", "{\r\n\t// mine\r\n\t\"env\": {},\r\n}\r\n",
		"// head\n{\n    \"permissions\": {\"allow\": [\"Bash\"]}, /* all */\n    \"env\": {\n        \"A\": \"1\" // one\n    }\n}",
	},
	"opencode": {"", "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"provider\": {\n    // the company's\n    \"anthropic\": {\"options\": {\"baseURL\": \"https://own.example.com/v1\"}}\n  }\n}\n", "{\"provider\": {}}"},
	"codex":    {"", "# mine\nmodel = \"m\"\n\n[features]\nx = true", "openai_base_url = 'https://own.example.com/v1' # mine\r\n[tui]\r\n"},
	"pi":       {"", "{\"providers\": {\"ollama\": {\"baseUrl\": \"http://127.0.0.1:11434/v1\"}}}\n"},
}

// Whatever is installed how often, removing gives the file back byte for byte, or takes it away if there
// was none; and if the user has edited it since, everything that the user wrote is there.
func TestInstallAndRemove(t *testing.T) {
	testkit.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"claude", "opencode", "codex", "pi"}).Draw(rt, "agent")
		agent := agents.Find(name)
		t.Setenv("HOME", t.TempDir())
		for _, s := range pointOf(agent).Settings {
			if variable, _, _ := strings.Cut(s.Dir, "/"); variable != "" {
				t.Setenv(variable, "")
			}
		}
		t.Setenv("XDG_STATE_HOME", "")
		s, file, err := userSettings(agent)
		if err != nil {
			rt.Fatal(err)
		}
		text := []byte(rapid.SampledFrom(files[name]).Draw(rt, "file"))
		exists := len(text) > 0 || rapid.Bool().Draw(rt, "exists")
		if exists {
			put(rt, file, text)
		}
		edited := false
		for _, address := range rapid.SliceOfN(rapid.SampledFrom([]string{"http://127.0.0.1:8765", "http://127.0.0.1:9000"}), 1, 3).Draw(rt, "installs") {
			old, err := installed(agent)
			if err != nil {
				rt.Fatal(err)
			}
			e, in, err := planInstall(agent, address, nil, old)
			if err != nil {
				rt.Fatal(err)
			}
			if err := in.save(); err != nil {
				rt.Fatal(err)
			}
			if err := e.write(); err != nil {
				rt.Fatal(err)
			}
			now := read(rt, file)
			for _, k := range s.Keys {
				value, _, err := settings.Get(s.Format, now, k.Path...)
				if err != nil || !strings.HasPrefix(value, address) {
					rt.Fatalf("installed %s, read %q, %v:\n%s", address, value, err, now)
				}
			}
			if !edited && rapid.IntRange(0, 3).Draw(rt, "edit") == 0 {
				edited = true
				put(rt, file, append(now, comment(s.Format)...))
			}
		}
		in, err := installed(agent)
		if err != nil {
			rt.Fatal(err)
		}
		e, err := planRemove(in)
		if err != nil {
			rt.Fatal(err)
		}
		if err := e.write(); err != nil {
			rt.Fatal(err)
		}
		switch got, err := os.ReadFile(file); {
		case !edited && exists && (err != nil || !bytes.Equal(got, text)):
			rt.Fatalf("not the same bytes, %v:\n%q\n%q", err, text, got)
		case !edited && !exists && !os.IsNotExist(err):
			rt.Fatalf("the file was not taken away: %v, %q", err, got)
		case edited:
			for _, line := range strings.FieldsFunc(string(text)+comment(s.Format), func(r rune) bool { return r == '\n' || r == '\r' }) {
				if !strings.Contains(string(got), strings.Trim(line, "{} ,\t")) {
					rt.Fatalf("%q is gone:\n%q\n%q", line, text, got)
				}
			}
			if bytes.Contains(got, []byte("127.0.0.1:8765")) || bytes.Contains(got, []byte("127.0.0.1:9000")) {
				rt.Fatalf("the address remains:\n%q\n%q", text, got)
			}
		}
	})
}

func comment(format string) string {
	if format == settings.TOML {
		return "\n# later\n"
	}
	return "\n// later\n"
}

func put(t *rapid.T, file string, text []byte) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *rapid.T, file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The difference shows what is removed and added, with lines around it.
func TestDifference(t *testing.T) {
	got := difference([]byte("a\nb\nc\nd\ne\nf\n"), []byte("a\nb\nc\nX\nd\ne\nf\n"))
	if want := "  b\n  c\n+ X\n  d\n  e\n"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestEveryAgentIsPointed: the gateway knows each agent that can be pointed, and wrap each that the gateway knows.
func TestEveryAgentIsPointed(t *testing.T) {
	for _, name := range agents.Names() {
		if a := agents.Find(name); reflect.DeepEqual(pointOf(a), Point{}) {
			t.Errorf("points has no row for %s", a.Name)
		}
	}
	for name := range points() {
		if a := agents.Find(name); a == nil || a.Name != name {
			t.Errorf("points has a row for %s, which the gateway does not know", name)
		}
	}
}
