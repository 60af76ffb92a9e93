package servecmd

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// TestOptionsBeside: a gateway that answers this machine only has the conversations beside the copies that condense resume made, of
// whatever agent; one with tokens or tenants has none.
func TestOptionsBeside(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	whole := history.New()
	if err := whole.Append(core.Message{ID: "a", Role: core.RoleUser, Parts: []core.Part{core.Text("The quokka lives at 7731.")}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := history.Encode(&b, whole); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(home, "projects", "-here", "603ee3d6-0f03-43ce-9b9e-162ca36a6a57.jsonl")
	for path, data := range map[string]string{
		copied: "{}\n", filepath.Join(copied+".history", "whole.jsonl"): b.String(),
		filepath.Join(home, "condense", "copies", "opencode", "ses_277daa810ffe.history", "whole.jsonl"): b.String(),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens := filepath.Join(home, "tokens")
	if err := os.WriteFile(tokens, []byte("a-token-of-tests-0123"), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]int{
		"{}": 2, "{token_file: " + tokens + "}": 0, "{tenants: {a: {}}}": 0,
	} {
		file := filepath.Join(home, "condense.yaml")
		if err := os.WriteFile(file, []byte("serve: "+settings+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Options{Path: file, Trust: func(config.Claims) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		g := &gateway{log: slog.New(slog.DiscardHandler)}
		o, err := g.options(c)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if o.Recall.Beside != nil {
			for j := range o.Recall.Beside() {
				n += len(j.Messages())
			}
		}
		if n != want {
			t.Errorf("%s: %d messages, want %d", settings, n, want)
		}
	}
}
