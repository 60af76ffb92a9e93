//go:build linux

package supervise_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/model"
)

// TestAbilities: a process that does what it did not declare is rejected, no model of the host is asked for it, and the next provider
// works on the conversation as it was. One that keeps to its declaration is used.
func TestAbilities(t *testing.T) {
	const onlyHides = `but the provider declares "hides only: cannot put a word into the conversation"`
	for _, tt := range []struct {
		program string
		outcome core.Outcome
		reason  string
	}{
		{"inserts-undeclared", core.OutcomeRejected, "declared-abilities: new message 0 is inserted, " + onlyHides},
		{"asks-undeclared", core.OutcomeRejected, "plugin acme: declared-abilities: asks a language model, " + onlyHides},
		{"hides-declared", core.OutcomeInsufficient, ""},
	} {
		t.Run(tt.program, func(t *testing.T) {
			b := newBench(t, tt.program)
			var asked atomic.Int64
			b.opts.Client.Model = func(*core.Request, string) (model.Generator, error) {
				asked.Add(1)
				return extractive.New(), nil
			}
			out, err := chain(t, b.open(t), time.Minute).Run(t.Context(), request())
			if err != nil {
				t.Fatal(err)
			}
			if att := out.Attempts[0]; att.Outcome != tt.outcome || !strings.HasPrefix(att.Reason, tt.reason) {
				// The rest of a reason is what else is wrong with the answer.
				t.Errorf("got %s, %q\nwant %s, %q", att.Outcome, att.Reason, tt.outcome, tt.reason)
			}
			if out.Provider != "truncation" || asked.Load() != 0 {
				t.Errorf("the conversation was condensed by %q, %d models asked; want truncation, 0", out.Provider, asked.Load())
			}
		})
	}
}

// TestAbilitiesOfApproval: a program that declares more than when it was approved does not start.
func TestAbilitiesOfApproval(t *testing.T) {
	for program, want := range map[string]string{
		"hides-declared":   "",
		"declares-nothing": "it declares abilities that it did not have before",
	} {
		b := newBench(t, program)
		b.spec.Abilities = core.Hides
		err := b.open(t).Ping(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v; want %q", program, err, want)
		}
	}
}
