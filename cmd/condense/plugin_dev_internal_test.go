package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

func TestEveryRuleHasARepair(t *testing.T) {
	rules := append(core.Rules(), coretest.Contract()...)
	for _, r := range rules {
		if repairs[r.Name] == "" {
			t.Errorf("%s: no repair", r.Name)
		}
	}
	if len(repairs) != len(rules) {
		t.Errorf("%d repairs for %d rules", len(repairs), len(rules))
	}
}

// Whatever rule is broken, the author is told which, where and what to do.
func TestFaultsNameTheRepair(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for _, sin := range coretest.Misbehaving(release) {
		if sin.Outcome != core.OutcomeRejected {
			continue
		}
		req := coretest.HalfRequest(coretest.Session())
		res, err := sin.Provider.Condense(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", sin.Name, err)
		}
		var b bytes.Buffer
		printFaults(&b, fmt.Errorf("plugin x: %w", core.Verify(req, res)))
		if !strings.Contains(b.String(), "    "+sin.Rule+": ") || !strings.Contains(b.String(), repairs[sin.Rule]) {
			t.Errorf("%s breaks %s; printed:\n%s", sin.Name, sin.Rule, b.String())
		}
	}
}

func TestOtherFaultsAreQuoted(t *testing.T) {
	var b bytes.Buffer
	printFaults(&b, errors.New("plugin x: no wish to work"))
	if got, want := b.String(), "    plugin x: no wish to work\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
