package agents_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// TestCondensesFirst: with a model of whose window Codex uses a quarter, and without any setting, condense condenses before Codex does, and says so.
func TestCondensesFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t, upstream.Options{Script: upstream.Loop(calls, size, nil), Window: 1_050_000, BytesPerToken: 0.5, ByCredential: true})
	codex := all[1]
	codex.base = strings.Replace(codex.base, "gpt-5.1", "gpt-5.6-sol", 1)
	d.at(t, &codex, "")
	program := d.condense(t)
	write(t, filepath.Join(d.home, ".config", "condense", "condense.yaml"), "{}\n")
	args := append([]string{"wrap", "--store", filepath.Join(d.home, "serve.db")}, d.upstreams()...)
	got := d.run(t, codex.env, program, append(append(append(args, codex.name), codex.args...), task)...)
	const said = "gpt-5.6-sol is condensed at 217,600 tokens, before Codex does at 258,400 of 272,000, raised for this run, by its catalogue"
	if !strings.Contains(got.out, said) {
		t.Errorf("it does not say who is first\n%s", tail(got.out))
	}
	if n := got.epochs(t); n < 2 || d.count("compaction") > 0 || got.code != 0 {
		t.Errorf("%d epochs, %d compactions of Codex' own, exit code %d\n%s", n, d.count("compaction"), got.code, d.list())
	}
	d.accept(t)
}

// TestCondensesBeforeTheAgent: a result takes the conversation over the size at which the agent condenses by itself. With the limit that wrap
// gives it for the run condense does that first; with --keep-limit, or the user's own limit, the agent does.
func TestCondensesBeforeTheAgent(t *testing.T) {
	t.Parallel()
	const parallel = 6
	for _, test := range []struct {
		agent         int
		base          [2]string // in the settings
		env           []string
		args          []string // in place of the agent's
		window, usual int      // of the model; size at which the agent condenses without wrap
		own           string   // a limit of the user
		said          string
	}{
		{
			agent: 1, base: [2]string{"model =", "model_context_window = 60000\nmodel ="}, window: 60_000, usual: 54_000, own: "model_auto_compact_token_limit = 53000\n",
			said: "is condensed at 48,000 tokens, before Codex does at 57,000 of 60,000, raised for this run, by its settings",
		},
		{ // its catalogue has such models, of which condense took the larger window
			agent: 2, window: 100_000, usual: 40_000, args: []string{"run", "-m", "openai/gpt-x"}, env: []string{"OPENAI_API_KEY=dummy"},
			base: [2]string{"{", `{"provider": {"openai": {"models": {"gpt-x": {"limit": {"context": 100000, "input": 60000, "output": 32000}}}}}`},
			said: "gpt-x is condensed at 46,800 tokens, before OpenCode does at 52,000 of 60,000, raised for this run, by its catalogue",
		},
	} {
		for _, kept := range []string{"", "--keep-limit", "own"} {
			a := all[test.agent]
			if test.own == "" && kept == "own" {
				continue
			}
			t.Run(a.name+kept, func(t *testing.T) {
				t.Parallel()
				var d *desk
				script := make([]upstream.Step, calls/2)
				for i := range script {
					for j := range parallel { // agents shorten long results
						script[i].Commands = append(script[i].Commands, fmt.Sprintf("sh ./next %d %d", i, j))
					}
				}
				next := func(r upstream.Record) *upstream.Fault { // what the command of the answer prints
					grow := test.window / 50
					if r.Tokens > test.usual*81/100 { // a step more, and condense condenses
						grow = test.usual + test.window/50 - r.Tokens
					}
					lines := grow * 4 / 40 / parallel
					write(t, filepath.Join(d.dir, "next"), fmt.Sprintf("seq -f \"%s\" $((%d + $2 * 100000)) $((%d + $2 * 100000))\n",
						"row %08g of part $2 of step $1 is done", r.N*1000, r.N*1000+lines))
					return nil
				}
				d = newDesk(t, upstream.Options{Script: script, Window: test.window, ByCredential: true, Fault: next})
				a.base = strings.Replace(a.base, test.base[0], test.base[1], 1)
				args := []string{"wrap", "--store", filepath.Join(d.home, "serve.db")}
				if kept == "own" {
					a.base = test.own + a.base
				} else if kept != "" {
					args = append(args, kept)
				}
				if test.args != nil {
					a.args = test.args
				}
				d.at(t, &a, "")
				program := d.condense(t)
				write(t, filepath.Join(d.home, ".config", "condense", "condense.yaml"), "{}\n")
				got := d.run(t, append(a.env, test.env...), program, append(append(append(append(args, d.upstreams()...), a.name), a.args...), task)...)
				own := d.count("compaction")
				for _, r := range d.vendor.Records() {
					own += bytes.Count(r.Body, []byte("You are a context summarization agent")) // OpenCode's
				}
				t.Logf("%d compactions of its own\n%s\n%s", own, tail(got.out), d.list())
				if own == 0 && got.epochs(t) == 0 {
					t.Error("none condensed")
				}
				if (own > 0) != (kept != "") || strings.Contains(got.out, test.said) != (kept == "") || got.code != 0 {
					t.Errorf("the other one condensed first: exit code %d", got.code)
				}
			})
		}
	}
}
