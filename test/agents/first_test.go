package agents_test

import (
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
	const said = "gpt-5.6-sol is condensed at 217,600 tokens, before Codex does at 244,800 of 272,000, by its catalogue"
	if !strings.Contains(got.out, said) {
		t.Errorf("it does not say who is first\n%s", tail(got.out))
	}
	if n := got.epochs(t); n < 2 || d.count("compaction") > 0 || got.code != 0 {
		t.Errorf("%d epochs, %d compactions of Codex' own, exit code %d\n%s", n, d.count("compaction"), got.code, d.list())
	}
	d.accept(t)
}
