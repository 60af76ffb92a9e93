package lab

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// Payback is the payback of a condensation from 100,000 to 20,000 tokens, without a head or a model, in a session that a
// model answered.
func Payback(name string) float64 {
	turns, _ := ratiosOf(&score.Session{Usage: map[int]score.Usage{1: {Model: "claude-sonnet-4-5"}, 9: {Model: name}, 12: {}}}).payback(100_000, 20_000, 0, core.Usage{})
	return turns
}

// ConcludedReplay derives the rest of a replay from its plays.
func ConcludedReplay(r *ReplayReport) *ReplayReport {
	r.conclude()
	return r
}

// Concluded returns a report on the results of r, with everything derived anew.
func Concluded(r *Report) *Report {
	out := &Report{Format: r.Format, Seed: r.Seed, Encoding: r.Encoding, Repeat: r.Repeat, ByFolder: r.ByFolder, Peers: r.Peers, Strategies: r.Strategies, Budgets: r.Budgets, Unverified: r.Unverified}
	out.Sessions, out.Skipped, out.Rows = slices.Clone(r.Sessions), slices.Clone(r.Skipped), slices.Clone(r.Rows)
	out.Rounds, out.Canaries, out.Evidence = slices.Clone(r.Rounds), slices.Clone(r.Canaries), slices.Clone(r.Evidence)
	out.conclude()
	return out
}
