package servecmd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// setbacks describe the outcomes of a provider that did not condense.
var setbacks = map[string]string{
	string(core.OutcomeFailed): "failed", string(core.OutcomeRejected): "broke a rule for results", string(core.OutcomeSkipped): "could not work",
	live.Replaced: "was replaced",
}

// lastLines are wrap's last lines, about the history and about failures.
func lastLines(s *live.Stats, record string) []string {
	failed, away := failures(s.Attempts), unreachable(s.Unreachable)
	line, others := "the history was never too long", failed
	switch {
	case s.EpochCount > 0 || s.Observed != nil && s.Observed.Epochs > 0:
		line = condensed(s)
	case len(failed) > 0:
		line, others = "the history was not condensed: "+failed[0], failed[1:]
	case len(away) > 0 && s.Tokens.Received == 0:
		line = "no request was answered"
	case total(s.Errors) > 0 || len(away) > 0:
		line = "the history was not condensed"
	}
	if s.Ingested > 0 {
		line += "; " + size.Plural(s.Ingested, "tool result") + " shortened"
	}
	if s.Accounts != nil {
		line += "; " + accounts(s.Accounts)
	}
	causes, n := causes(s)
	if n > 0 {
		line += "; " + size.Plural(n, "error") + ", see --log info"
	}
	lines := slices.Concat([]string{line}, others, causes, away, unsure(s.Windows))
	switch {
	case s.EpochCount == 0 || s.Observe:
	case record != "":
		lines = append(lines, "to see what was removed: condense view --all FILE, with a file of "+record)
	default:
		lines = append(lines, "to see what is removed: run it with --record DIR before the agent's name, then condense view --all with a file of DIR")
	}
	return lines
}

// condensed says how often the history was condensed, by which providers, how far and why.
func condensed(s *live.Stats) string {
	const shown = 3
	var parts []string
	explained, made := map[string]bool{}, map[string]int{}
	for i := range s.Epochs {
		e := &s.Epochs[i]
		if made[e.Provider]++; i >= shown {
			continue
		}
		why := e.Reason
		if words := epoch.Reasons[epoch.Reason(why)]; words != "" && !explained[why] {
			explained[why] = true
			why += ": " + words
		}
		parts = append(parts, fmt.Sprintf("%s to %s tokens (%s)", size.Group(e.Before), size.Group(e.After), why))
	}
	if len(s.Epochs) > shown {
		parts = append(parts, "…")
	}
	text, n := "history condensed ", s.EpochCount
	if s.EpochCount == 0 {
		text, n = "history would have been condensed ", s.Observed.Epochs
	}
	return text + size.Plural(n, "time") + makers(made) + ": " + strings.Join(parts, ", ")
}

// accounts describes the requests to clients' own models, with their expected and actual costs.
func accounts(n *live.Accounts) string {
	text := size.Plural(n.Asked, "account") + " by the agent's own model"
	if n.Failed > 0 {
		text += fmt.Sprintf(", %s failed", size.Group(n.Failed))
	}
	text += fmt.Sprintf(": %s, at most %s was expected", size.Dollars(n.Cost, 2), size.Dollars(n.Expected, 2))
	if n.Input > 0 {
		text += fmt.Sprintf("; %d %% of %s tokens were read from the cache", 100*n.CacheRead/n.Input, size.Group(n.Input))
	}
	if n.Estimated > 0 {
		text += fmt.Sprintf("; %s estimated", size.Group(n.Estimated))
	}
	return text
}

// makers says how many of the newest epochs each provider has made.
func makers(made map[string]int) string {
	delete(made, "") // of a guess
	names := slices.SortedFunc(maps.Keys(made), func(a, b string) int { return cmp.Or(made[b]-made[a], cmp.Compare(a, b)) })
	for i, name := range names {
		if len(names) == 1 {
			return " by " + name
		}
		names[i] = fmt.Sprintf("%d by %s", made[name], name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// failures are sentences on the providers that did not condense, the most frequent first.
func failures(attempts []live.Attempt) []string {
	var all []live.Attempt
	for i := range attempts {
		a := attempts[i]
		if !a.Failed() {
			continue
		}
		if k := slices.IndexFunc(all, func(o live.Attempt) bool { return o.Provider == a.Provider && o.Outcome == a.Outcome }); k >= 0 { // of another mode
			all[k].Count += a.Count
			continue
		}
		all = append(all, a)
	}
	slices.SortStableFunc(all, func(a, b live.Attempt) int { return b.Count - a.Count })
	var lines []string
	for i := range all {
		a := &all[i]
		line := a.Provider + " " + setbacks[a.Outcome] + " " + size.Plural(a.Count, "time")
		if a.Reason != "" {
			line += ": " + a.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

// causes are sentences on the most frequent errors, and the number of all others.
func causes(s *live.Stats) (lines []string, rest int) {
	const shown = 3
	all := slices.SortedStableFunc(slices.Values(s.Failures), func(a, b live.Failure) int { return b.Count - a.Count })
	rest = total(s.Errors)
	for i := range all[:min(shown, len(all))] {
		f := &all[i]
		what := "failed at " + f.Kind
		if strings.HasPrefix(f.Kind, "vendor_") {
			what = "the vendor refused"
		}
		line := fmt.Sprintf("%s: %s, %s", what, f.Reason, size.Plural(f.Count, "time"))
		if advice := control.Advice(f.Status); advice != "" {
			line += ": " + advice
		}
		lines = append(lines, line)
		rest -= f.Count
	}
	return lines, max(0, rest)
}

// unreachable are sentences on the upstreams to which requests could not be sent.
func unreachable(all []live.Unreachable) []string {
	return plain.Each(all, func(u live.Unreachable) string {
		return fmt.Sprintf("%s at %s could not be reached %s: %s", u.Upstream, u.Address, size.Plural(u.Count, "time"), u.Reason)
	})
}

// unsure returns a sentence for each model whose window the user has to set.
func unsure(all []live.Window) []string {
	var lines []string
	for i := range all {
		switch w := &all[i]; {
		case w.Truncated > 0:
			line := fmt.Sprintf("the server of %s has cut %s without a word: it took %s of about %s tokens, and the model does not see the rest",
				w.Model, size.Plural(w.Truncated, "prompt"), size.Group(w.Taken), size.Group(w.Counted))
			if w.Holds > 0 {
				line += "; to condense for its window: " + w.Remedy()
			}
			lines = append(lines, line)
		case w.From == live.WindowNotKnown:
			lines = append(lines, fmt.Sprintf("the window of %s is not known, and %s tokens are assumed; to set it: %s", w.Model, size.Group(w.Tokens), w.Remedy()))
		}
	}
	return lines
}

// talks reports whether a command with these arguments may have a conversation.
func talks(agent *agents.Agent, args []string) bool {
	return len(args) == 0 || !slices.Contains(pointOf(agent).Without, args[0]) && !slices.Contains([]string{"--version", "-v", "-V", "--help", "-h", "mcp"}, args[0])
}
