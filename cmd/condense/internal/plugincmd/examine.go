package plugincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/size"
)

// testPlugin runs the whole test. The error is errPluginTest if the plugin has faults.
func testPlugin(ctx context.Context, a *cli.App, trial *plugins.Trial, t *pluginTest) (err error) {
	plugin, err := trial.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	begun := time.Now()
	d, err := plugin.Describe(ctx)
	if err != nil {
		return err
	}
	trial.Remember(d)
	l := &judge.Examination{Name: d.Name, Version: d.Version, SDK: d.SDK, Doc: d.Doc, Settings: d.Settings, Abilities: d.Abilities, ReadyMS: judge.Millis(time.Since(begun))}
	if t.json {
		out, quiet := a.Stdout, *a
		defer func() { err = errors.Join(term.PrintJSON(out, l), err) }()
		quiet.Stdout = io.Discard
		a = &quiet
	}
	term.Printf(a.Stdout, "%s %s (%s), ready after %s ms\n", d.Name, d.Version, d.SDK, size.Number(l.ReadyMS))
	printAbout(a.Stdout, d.Doc, d.Abilities, d.Settings)

	var asked core.CondensationProvider = plugin
	if t.ingest {
		asked = coretest.Ingest(plugin)
	}
	begun = time.Now()
	report := coretest.Examine(ctx, asked)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	findings := judge.Findings(report)
	if report.Stopped == nil {
		findings = append(findings, l.Tell(ctx, asked)...)
		longer, err := trial.WorkAfterCancel(ctx, coretest.HalfRequest(longSession()))
		if err != nil {
			return err
		}
		if longer > 0 {
			findings = append(findings, judge.NewFinding(
				"heed-context", fmt.Sprintf("it still worked %.1f s after its call was cancelled", longer.Seconds()),
				"a call that is cancelled", "a long session; then the plugin is asked to exit",
			))
		}
	}
	printVerdicts(a.Stdout, report, findings, time.Since(begun), t.verbose)
	for _, u := range l.Untrue {
		term.Printf(a.Stdout, "  untrue    %s (a warning): %s\n", u.Case, u.Text)
	}
	l.Add(report, findings)

	tried, faulty, err := tryTraces(ctx, a, asked, d.Name, t)
	l.Conversations = append(l.Conversations, tried...)
	if err != nil {
		return err
	}
	l.Passed = len(findings) == 0 && report.Stopped == nil && !faulty
	if !l.Passed {
		if !t.verbose {
			term.Printf(a.Stdout, "\n-v prints what the plugin logs, and every case\n")
		}
		return errPluginTest
	}
	term.Printf(a.Stdout, "\nno faults\n")
	return nil
}

// printVerdicts prints the outcome of the cases, each of them if verbose, and each broken
// rule.
func printVerdicts(w io.Writer, r *coretest.Report, findings []judge.Finding, took time.Duration, verbose bool) {
	wrong := plain.Set(plain.Each(findings, func(f judge.Finding) string { return f.Case }))
	passed, declined := 0, 0
	if verbose {
		term.Printf(w, "\n")
	}
	for _, v := range r.Verdicts {
		result := "passed"
		switch {
		case wrong[v.Case]:
			result = "FAILED"
		case v.Declined != nil:
			result = "declined"
			declined++
		default:
			passed++
		}
		if verbose {
			term.Printf(w, "  %-8s  %-26s %s (%s ms)\n", result, v.Case, v.About, size.Number(judge.Millis(v.Duration)))
		}
	}
	term.Printf(w, "\nconformance: %s in %.1f s: %d passed, %d declined, %d failed; it acted in %d of %d\n",
		size.Plural(len(r.Verdicts), "case"), took.Seconds(), passed, declined, len(wrong), r.Acted(), len(r.Verdicts))
	if r.Acted() == 0 {
		term.Printf(w, "  it changed no conversation, so the cases tested next to nothing: --settings may make it act on small conversations\n")
	}
	printDeclined(w, r.Verdicts, wrong)
	for _, rule := range append(core.Rules(), coretest.Contract()...) {
		printFindings(w, rule, findings)
	}
	if r.Stopped != nil {
		term.Printf(w, "  stopped   %v\n", r.Stopped)
		return
	}
	switch {
	case r.Unmeasured:
		term.Printf(w, "deterministic: not measured, it gave no answer that could be compared\n")
	case r.Deterministic:
		term.Printf(w, "deterministic: yes, the same request had the same answer twice\n")
	default:
		term.Printf(w, "deterministic: no, the same request had two answers, or one and an error (not a fault, but harder to test)\n")
	}
}

// printDeclined prints why cases were declined, equal reasons together. Reasons that differ in numbers are equal.
func printDeclined(w io.Writer, verdicts []coretest.Verdict, wrong map[string]bool) {
	const shown = 4 // cases of a reason
	names := map[string][]string{}
	var reasons []string
	first := map[string]coretest.Verdict{}
	for _, v := range verdicts {
		if v.Declined == nil || wrong[v.Case] {
			continue
		}
		reason := digits().ReplaceAllString(v.Declined.Error(), "0")
		if names[reason] == nil {
			reasons, first[reason] = append(reasons, reason), v
		}
		names[reason] = append(names[reason], v.Case)
	}
	for _, reason := range reasons {
		v, all := first[reason], names[reason]
		if len(all) == 1 {
			term.Printf(w, "  declined  %s (%s): %v\n", v.Case, v.About, v.Declined)
			continue
		}
		more := ""
		if n := len(all) - shown; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
			all = all[:shown]
		}
		term.Printf(w, "  declined  %s (%s%s): %v\n", size.Plural(len(names[reason]), "case"), strings.Join(all, ", "), more, v.Declined)
	}
}

var digits = plain.Pattern(`[0-9]+`)

// printFindings prints where and how a rule was broken, and the remedy.
func printFindings(w io.Writer, rule core.Rule, findings []judge.Finding) {
	var first *judge.Finding
	var names []string
	for i, f := range findings {
		if f.Rule != rule.Name {
			continue
		}
		first = cmp.Or(first, &findings[i])
		if !slices.Contains(names, f.Case) {
			names = append(names, f.Case)
		}
	}
	if first == nil {
		return
	}
	term.Printf(w, "  FAILED    %s in %s: %s\n", rule.Name, size.Plural(len(names), "case"), strings.Join(names, ", "))
	term.Printf(w, "    %s (%s):\n      %s\n", first.Case, first.About, term.Indented{Text: first.Text, By: "      "})
	term.Printf(w, "    rule:   %s\n    repair: %s\n", rule.Text, first.Repair)
}

// tryTraces lets the plugin halve conversations, as the first of a chain, and reports whether
// any of its answers was invalid.
func tryTraces(
	ctx context.Context, a *cli.App, plugin core.CondensationProvider, name string, t *pluginTest,
) (tried []judge.Try, faulty bool, err error) {
	term.Printf(a.Stdout, "\nin a chain with truncation, to half the tokens:\n")
	for _, trace := range append([]string{""}, t.traces...) {
		d := &dev{app: a, trace: trace, format: t.format}
		req, about, err := d.request(ctx)
		if err != nil {
			return tried, faulty, err
		}
		chain, err := d.chain(ctx, name, plugin)
		if err != nil {
			return tried, faulty, err
		}
		got, err := chain.Run(ctx, req)
		if err != nil {
			return tried, faulty, fmt.Errorf("%s: %w", about, err)
		}
		term.Printf(a.Stdout, "%v\n", about)
		tried = append(tried, judge.Try{About: about, Attempts: got.Attempts})
		for i, at := range got.Attempts {
			d.print(at)
			if at.Err == nil {
				continue
			}
			printFaults(a.Stdout, at.Err)
			if i == 0 && (at.Outcome == core.OutcomeRejected || plugins.Broken(at.Err) || len(judge.Faults(at.Err)) > 0) {
				faulty = true
			}
		}
	}
	return tried, faulty, nil
}

// longSession returns the bundled session, forty times.
func longSession() []core.Message {
	var long []core.Message
	for range 40 {
		for _, m := range coretest.Session() {
			m.ID = ""
			long = append(long, m)
		}
	}
	return coretest.Conversation(long...)
}
