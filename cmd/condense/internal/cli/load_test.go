package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/testkit"
)

// many are configurations of n of something, which a stranger's repository may have.
var many = map[string]func(w *strings.Builder, n int){
	"profiles": func(w *strings.Builder, n int) {
		repeat(w, "default_profile: p0\nprofiles:\n", n, "  p%d: {window: 100000, chain: [smart]}\n")
	},
	"providers": func(w *strings.Builder, n int) { repeat(w, "providers:\n", n, "  p%d: {strategy: native}\n") },
	"providers and profiles": func(w *strings.Builder, n int) {
		repeat(w, "providers:\n", n, "  q%d: {strategy: native}\n")
		repeat(w, "default_profile: p0\nprofiles:\n", n, "  p%[1]d: {window: 100000, chain: [q%[1]d]}\n")
	},
	"a chain of extends": func(w *strings.Builder, n int) {
		w.WriteString("default_profile: p0\nprofiles:\n  p0: {window: 100000}\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(w, "  p%d: {extends: p%d, threshold: %d}\n", i, i-1, 50+i%20)
		}
	},
	"a circle of extends": func(w *strings.Builder, n int) {
		w.WriteString("default_profile: p0\nprofiles:\n")
		for i := range n {
			fmt.Fprintf(w, "  p%d: {window: 100000, extends: p%d}\n", i, (i+1)%n)
		}
	},
	"models": func(w *strings.Builder, n int) {
		repeat(w, "models:\n", n, "  m%d: {api: anthropic, model: claude-haiku-4-5}\n")
		repeat(w, "default_profile: p0\nprofiles:\n", n, "  p%[1]d: {model: m%[1]d, chain: [native]}\n")
	},
	"modes": func(w *strings.Builder, n int) { repeat(w, "modes:\n", n, "  m%d: {threshold: 60}\n") },
	"unknown names": func(w *strings.Builder, n int) {
		repeat(w, "default_profile: p0\nprofiles:\n", n, "  p%[1]d: {window: 100000, chain: [nope%[1]d]}\n")
	},
	"unknown models": func(w *strings.Builder, n int) {
		repeat(w, "providers:\n", n, "  p%[1]d: {strategy: native, settings: {model: nope%[1]d}}\n")
	},
}

func repeat(w *strings.Builder, head string, n int, format string) {
	w.WriteString(head)
	for i := range n {
		fmt.Fprintf(w, format, i)
	}
}

// A configuration is read and checked in time that grows with its size, not with its square: every command and every hook of an agent
// in that folder waits for it.
func TestThousandsOfNamesAreReadInLinearTime(t *testing.T) {
	testkit.Slow(t)
	reg, err := resolver.Strategies()
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range many {
		t.Run(name, func(t *testing.T) {
			testkit.Linear(t, 2000, func(n int) func() {
				var b strings.Builder
				write(&b, n)
				file := filepath.Join(t.TempDir(), "condense.yaml")
				if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return func() {
					checker := &cli.Checker{Registry: reg}
					c, err := config.Load(resolver.Names(reg, config.Options{Path: file, Env: []string{}, CheckProvider: checker.Declared}))
					if err != nil {
						if len(err.Error()) > 1000*n { // nor do the faults list each other
							t.Errorf("%d bytes of faults", len(err.Error()))
						}
						return
					}
					if faults, err := checker.Chains(c); err != nil || len(faults) > 0 {
						t.Error(faults, err)
					}
					_ = checker.Warnings(c)
				}
			})
		})
	}
}
