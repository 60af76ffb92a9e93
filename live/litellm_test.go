package live_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// What the guardrail imports from LiteLLM: its class, without the hooks, which the proxy calls.
const litellm = `class CustomGuardrail:
    def __init__(self, guardrail_name=None, event_hook=None, default_on=False, **kwargs):
        pass
`

// A conversation of LiteLLM's proxy: turns of a loop, each through the hook. The prefix that was sent stays.
const hooked = `
import asyncio, json, types, condense_guardrail as g
hook = g.Condense(guardrail_name="condense", event_hook="pre_call", default_on=True).async_pre_call_hook
def run(key, history, **more):
    return asyncio.run(hook(types.SimpleNamespace(api_key=key), None, {"model": "gpt-5.1", "messages": list(history), "stream": True, **more}, "completion"))
history, before, epochs, small = [{"role": "user", "content": "Read all the files."}], [], 0, 0
for i in range(30):
    sent = run("a", history, litellm_session_id="s")["messages"]
    if sent[:len(before)] != before:
        epochs += 1
    before = sent
    small += len(json.dumps(sent)) < len(json.dumps(history))
    history += [{"role": "assistant", "content": None, "tool_calls": [{"id": f"c{i}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": f"c{i}", "content": "\n".join(f"{i} line {k} of the file" for k in range(120))}]
print("epochs", 0 < epochs < 8, "shorter", small > 5)
print("other key", run("b", history[:5], litellm_session_id="s")["messages"] == history[:5])
print("passes", run("a", [], input="x") == {"model": "gpt-5.1", "messages": [], "stream": True, "input": "x"})
g.URL = "http://127.0.0.1:9"
print("away", run("a", history)["messages"] == history)
`

// The guardrail for LiteLLM condenses a conversation, in epochs, apart from those of other callers, and passes what it cannot condense.
func TestGuardrailForLiteLLM(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	v := newVendor(t)
	_, s := serveWith(t, v.URL, withWindow(window), func(o *live.Options) { o.Access.Token = "s3cret" })
	dir := t.TempDir()
	for name, text := range map[string]string{
		"litellm/__init__.py": "", "litellm/integrations/__init__.py": "", "litellm/integrations/custom_guardrail.py": litellm,
		"condense_guardrail.py": read(t, "../deploy/litellm/condense_guardrail.py"), "main.py": hooked,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "main.py")
	cmd.Dir, cmd.Env = dir, []string{"CONDENSE_URL=" + s.URL, "CONDENSE_TOKEN=s3cret", "PYTHONDONTWRITEBYTECODE=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "False") || strings.Count(string(out), "True") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
