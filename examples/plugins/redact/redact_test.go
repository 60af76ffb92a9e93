package redact_test

import (
	"strings"
	"testing"

	redact "example.com/condense-redact"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/registry"
)

// The same strategy, compiled in and as a plugin.
var ways = map[string]func(t *testing.T, settings string) core.CondensationProvider{
	"compiled in": func(t *testing.T, settings string) core.CondensationProvider {
		p, err := redact.Strategy().Open(t.Context(), []byte(settings), registry.Env{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	},
	"plugin": func(t *testing.T, settings string) core.CondensationProvider {
		return sdktest.Loopback(t, redact.Strategy(), []byte(settings))
	},
}

func TestConformance(t *testing.T) {
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			// A pattern that matches often, so that there is something to do.
			const settings = `{"patterns": {"words": "[a-z]{6,}[a-z ]{20,}"}}`
			coretest.Run(t, func(t *testing.T) core.CondensationProvider { return open(t, settings) })
		})
	}
}

func TestRedacts(t *testing.T) {
	key := "sk-" + strings.Repeat("a1B2", 10)
	thought := core.Reasoning{Text: "the key is " + key, Signature: "c2lnbmVk"}
	messages := coretest.Conversation(
		coretest.User(core.Text("Use "+key+", please.")),
		coretest.Assistant(thought, core.ToolCall{ID: "c1", Name: "shell", Args: `{"env": "KEY=` + key + `"}`}),
		coretest.User(core.ToolResult{CallID: "c1", Content: []core.Part{core.Text("KEY=" + key), coretest.Image(1)}}),
		coretest.Protected(coretest.User(core.Text("Protected: "+key))),
		coretest.User(core.Text("No secret.")),
	)
	want := [][]core.Part{
		{core.Text("Use [redacted], please.")},
		{thought, core.ToolCall{ID: "c1", Name: "shell", Args: `{"env": "KEY=[redacted]"}`}},
		{core.ToolResult{CallID: "c1", Content: []core.Part{core.Text("KEY=[redacted]"), coretest.Image(1)}}},
		{core.Text("Protected: " + key)},
		{core.Text("No secret.")},
	}
	for name, open := range ways {
		t.Run(name, func(t *testing.T) {
			req := coretest.HalfRequest(messages)
			res, err := open(t, "").Condense(t.Context(), req.Clone())
			if err != nil {
				t.Fatal(err)
			}
			if err := core.Verify(req, res); err != nil {
				t.Error(err)
			}
			for i, m := range res.Messages {
				if !core.EqualParts(m.Parts, want[i]) {
					t.Errorf("message %d: got %v, want %v", i, m.Parts, want[i])
				}
			}
		})
	}
}

func TestSettings(t *testing.T) {
	for settings, want := range map[string]string{
		`{"patterns": {"x": "("}}`:  "patterns.x: error parsing regexp",
		`{"patterns": {"x": "a*"}}`: "patterns.x: matches the empty string",
		`{"roles": ["system"]}`:     `roles: unknown role "system"`,
		`{"role": ["user"]}`:        `unknown setting "role"`,
	} {
		_, err := redact.Strategy().Open(t.Context(), []byte(settings), registry.Env{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q in it", settings, err, want)
		}
	}
}
