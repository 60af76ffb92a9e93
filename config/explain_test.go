package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/config"
)

// golden compares got with a file, or writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale; run go test ./config -update (-want +got):\n%s", file, diff)
	}
}

func TestExplain(t *testing.T) {
	root := tree(t, map[string]string{
		"xdg/condense/condense.yaml": "threshold: 70\nmin_gain: 3\n",
		"repo/.git/HEAD":             "",
		"repo/condense.yaml": example + "  big: {api: openai, window: 1M, max_output: 64k}\n" +
			"max_context_tokens: 50%\n",
	})
	opts := known
	opts.Dir = filepath.Join(root, "repo")
	opts.Env = []string{"XDG_CONFIG_HOME=" + filepath.Join(root, "xdg"), "CONDENSE_PROFILES__LOCAL__THRESHOLD=55"}
	opts.Flags = map[string]string{"modes.ask.target": "20"}
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, q := range []struct {
		profile, mode string
		window        int
	}{{"", "code", 0}, {"", "ask", 0}, {"sonnet", "ask", 1_000_000}} {
		e, err := c.Explain(q.profile, q.mode, q.window)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.String() + "\n---\n")
	}
	for _, key := range []string{"threshold", "profiles.local.threshold", "modes.code", "providers.summary", "models.cheap.price"} {
		list, err := c.ExplainKey(key)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("# " + key + "\n")
		for _, e := range list {
			b.WriteString(e.String() + "\n")
		}
	}
	golden(t, "testdata/explain.golden", strings.ReplaceAll(b.String(), root+string(filepath.Separator), ""))

	if _, err := c.ExplainKey("profiles.lcoal.threshold"); err == nil || !strings.Contains(err.Error(), `did you mean "profiles.local.threshold"?`) {
		t.Errorf("got %v, want a suggestion", err)
	}
}

// The arithmetic of an explanation agrees with the resolved numbers.
func TestExplainFormula(t *testing.T) {
	tests := []struct {
		text                     string
		threshold, limit, target float64
		trigger                  float64
	}{
		{"threshold: 80", 160_000, 171_808, 80_000, 160_000},
		{"threshold: 100", 200_000, 171_808, 85_904, 171_808},
		{"max_output: 64000\nthreshold: 80", 160_000, 116_000, 58_000, 116_000},
		{"max_context_tokens: 50k", 160_000, 171_808, 25_000, 50_000},
		{"auto: false", 160_000, 171_808, 85_904, 171_808},
	}
	for _, tt := range tests {
		e, err := load(t, tt.text).Explain("", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, term := range e.Formula {
			got[term.Name] = term.Tokens
		}
		want := map[string]float64{"used": 0, "threshold": tt.threshold, "limit": tt.limit, "target": tt.target, "trigger": tt.trigger}
		delete(got, "cap")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
}

// The output of Show loads to the same configuration.
func TestShowLoads(t *testing.T) {
	for _, text := range []string{
		"", example, config.Init("", known),
		// The built-in profile of this name has a window; it must not override the model's.
		"profiles:\n  default: {model: openai/gpt-4.1}\n",
	} {
		c := load(t, text)
		shown, err := c.Show()
		if err != nil {
			t.Fatal(err)
		}
		again := load(t, shown)
		if diff := cmp.Diff(c.Values(), again.Values()); diff != "" {
			t.Errorf("(-first +again):\n%s\n%s", diff, shown)
		}
		if a, b := resolve(t, c, "", ""), resolve(t, again, "", ""); a.Window != b.Window {
			t.Errorf("a window of %d became %d:\n%s", a.Window, b.Window, shown)
		}
	}
}

func TestInit(t *testing.T) {
	text := config.Init("./condense.schema.json", known)
	if !strings.HasPrefix(text, "# yaml-language-server: $schema=./condense.schema.json\n") {
		t.Errorf("the first line does not name the schema:\n%s", text)
	}
	golden(t, "testdata/init.golden.yaml", text)
	c := load(t, text)
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %v", w)
	}
	code, architect := chainNames(resolve(t, c, "", "code")), chainNames(resolve(t, c, "", "architect"))
	if code != "tidy" || architect != "lossless,summary" {
		t.Errorf("got %s and %s", code, architect)
	}
	// With every setting uncommented it is still valid, and sets the defaults.
	var all []string
	for line := range strings.SplitSeq(text, "\n") {
		rest, commented := strings.CutPrefix(strings.TrimLeft(line, " "), "# ")
		key, _, isSetting := strings.Cut(rest, ": ")
		if commented && isSetting && !strings.ContainsAny(key, " -") || commented && key == "local:" {
			line = strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + rest
		}
		if strings.HasPrefix(line, "  #   ") {
			line = strings.Replace(line, "# ", "", 1)
		}
		all = append(all, line)
	}
	opts := known
	opts.Path = write(t, "condense.yaml", strings.Join(all, "\n"))
	full, err := config.Load(opts)
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(all, "\n"))
	}
	if len(full.Profiles()) != len(c.Profiles())+1 || len(full.Providers()) != len(c.Providers())+1 {
		t.Errorf("not everything was uncommented:\n%s", strings.Join(all, "\n"))
	}
	before, after := resolve(t, c, "", "code"), resolve(t, full, "", "code")
	if before.Target != after.Target || before.MinNewTokens != after.MinNewTokens || before.Buffer != after.Buffer {
		t.Errorf("a commented default is not the default: %+v, %+v", before, after)
	}
}
