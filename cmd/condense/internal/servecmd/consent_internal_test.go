package servecmd

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/size"
)

var update = flag.Bool("update", false, "write the costs of accounts into docs/handover.md")

// The prices shown before an account is turned on are those of the agent's vendor, by whichever name the agent is called.
func TestAccountCostsAreOfTheAgentsVendor(t *testing.T) {
	for name, never := range map[string]string{"claude": "gpt-", "claude-code": "gpt-", "codex": "claude-"} {
		if got := accountCosts(agents.Find(name).Name); got == "" || strings.Contains(got, never) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := accountCosts(""); !strings.Contains(got, "gpt-") || !strings.Contains(got, "claude-") {
		t.Errorf("any: %q", got)
	}
}

// The costs of accounts in docs/handover.md are those of the price table, in the way that --account client computes them.
func TestAccountCostsInTheDocuments(t *testing.T) {
	const left = accountPrompt / 5 // of a window after a condensation
	fresh := accountPrompt - left + accountAnswer
	var b strings.Builder
	fmt.Fprintf(&b, "| | first, as text | next, as text | each, from the cache |\n|---|---|---|---|\n| tokens in | %s | %s | %s + %s |\n| tokens out, at most | %[5]s | %[5]s | %[5]s |\n",
		size.Group(accountPrompt+accountQuestion), size.Group(fresh+accountQuestion), size.Group(accountPrompt), size.Group(accountQuestion), size.Group(accountAnswer))
	for _, name := range append(append(priced[agents.Anthropic], priced[agents.OpenAI]...), "gemini-3.8-flash") {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, accountCost(name, accountPrompt, 0), accountCost(name, fresh, 0), accountCost(name, accountPrompt, accountPrompt))
	}
	const file, begin, end = "../../../../docs/handover.md", "<!-- costs: generated -->\n", "<!-- end of costs -->"
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(was), begin)
	_, after, found := strings.Cut(rest, end)
	if now := before + begin + b.String() + end + after; !found || now != string(was) && !*update {
		t.Errorf("%s is stale: run go test ./cmd/condense/internal/servecmd -run Documents -update", file)
	} else if now != string(was) {
		if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
