package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Names of files, modes and strategies come from outside and appear in tables and errors.
func TestNamesInComparisonsCannotActOnATerminal(t *testing.T) {
	alone(t)
	const name = "x\n" + forged + "\x1b[2J\u202e\u009b31m\u2028" + forged + "\t%s"
	var b strings.Builder
	b.WriteString(`[{"role":"user","content":"Please look at alpha_beta."}`)
	for i := range 20 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":"I look at item_%d of alpha_beta."},{"role":"user","content":"Go on with item_%d."}`, i, i+1)
	}
	b.WriteString("]")
	must(t, os.WriteFile(name+".json", []byte(b.String()), 0o600))
	must(t, os.WriteFile(name+"short.json", []byte(`[{"role":"user","content":"Hello"}]`), 0o600))
	base := []string{"compare", ".", "--cache", "none", "--quiet", "--budgets", "50", "--strategies", name + "=slidingwindow", "--mode-of", "*=" + name}
	for _, more := range [][]string{
		{"--per-mode"},
		{"--per-mode", "-o", "md"},
		{"-o", "json"},
		{"--modes", name, "--save", "base.json"},
		{"--against", "base.json"},
		{"--modes", "none"},
		{"--strategies", name},
		{"--mode-of", name},
		{"--write-modes", "modes.yaml"},
	} {
		args := append(append([]string(nil), base...), more...)
		got := in(t, args...)
		wantHarmless(t, fmt.Sprintf("%q", args), got)
		if more[0] == "--per-mode" && !strings.Contains(got, "budget 50%, mode x condensation FORGED") {
			t.Errorf("%q: the mode is not in %s", args, got)
		}
	}
	fragment, err := os.ReadFile("modes.yaml")
	must(t, err)
	wantHarmless(t, "modes.yaml", string(fragment))
	if got := in(t, "config", "check", "modes.yaml"); strings.Contains(got, "invalid") {
		t.Errorf("the modes that were written do not load: %s\n%s", got, fragment)
	}
}
