package plugincmd

import (
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
	l := &testListing{Name: d.Name, Version: d.Version, SDK: d.SDK, Doc: d.Doc, Settings: d.Settings, Abilities: d.Abilities, ReadyMS: millis(time.Since(begun))}
	if t.json {
		out, quiet := a.Stdout, *a
		defer func() { err = errors.Join(term.PrintJSON(out, l), err) }()
		quiet.Stdout = io.Discard
		a = &quiet
	}
	term.Printf(a.Stdout, "%s %s (%s), ready after %s ms\n", d.Name, d.Version, d.SDK, term.Number(l.ReadyMS))
	printAbout(a.Stdout, d.Doc, d.Abilities, d.Settings)

	begun = time.Now()
	report := coretest.Examine(ctx, plugin)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	findings := findingsOf(report)
	if report.Stopped == nil {
		longer, err := trial.WorkAfterCancel(ctx, coretest.HalfRequest(longSession()))
		if err != nil {
			return err
		}
		if longer > 0 {
			findings = append(findings, finding{
				fault{"heed-context", fmt.Sprintf("it still worked %.1f s after its call was cancelled", longer.Seconds())},
				"a call that is cancelled", "a long session; then the plugin is asked to exit",
			})
		}
	}
	printVerdicts(a.Stdout, report, findings, time.Since(begun), t.verbose)
	l.examined(report, findings)

	tried, faulty, err := tryTraces(ctx, a, plugin, d.Name, t)
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

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A finding is a rule that was broken in a case.
type finding struct {
	fault

	name, about string // of the case
}

// findingsOf returns all faults. A plugin may decline a case, unless its error shows that it
// is broken, or that its SDK refused to send its answer.
func findingsOf(r *coretest.Report) []finding {
	var all []finding
	for _, v := range r.Verdicts {
		add := func(rule, text string) {
			f := finding{fault{rule, text}, v.Case, v.About}
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
		for _, failure := range failures(v.Err) {
			deeper := faultsOf(failure.Err)
			for _, f := range deeper {
				add(f.rule, f.text)
			}
			switch {
			case len(deeper) > 0:
			case plugins.Broken(failure.Err):
				add("return", strings.TrimPrefix(failure.Err.Error(), "declined: "))
			default:
				add(failure.Rule.Name, strings.TrimPrefix(failure.Err.Error(), failure.Rule.Name+": "))
			}
		}
		if v.Declined == nil || v.Err != nil {
			continue
		}
		deeper := faultsOf(v.Declined)
		for _, f := range deeper {
			add(f.rule, f.text)
		}
		if len(deeper) == 0 && plugins.Broken(v.Declined) {
			add("return", v.Declined.Error())
		}
	}
	return all
}

// failures returns the single failures in the error of a verdict.
func failures(err error) []*coretest.FailureError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*coretest.FailureError
		for _, e := range joined.Unwrap() {
			all = append(all, failures(e)...)
		}
		return all
	}
	if f, ok := errors.AsType[*coretest.FailureError](err); ok {
		return []*coretest.FailureError{f}
	}
	return nil
}

// printVerdicts prints the outcome of the cases, each of them if verbose, and each broken
// rule.
func printVerdicts(w io.Writer, r *coretest.Report, findings []finding, took time.Duration, verbose bool) {
	wrong := map[string]bool{}
	for _, f := range findings {
		wrong[f.name] = true
	}
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
			term.Printf(w, "  %-8s  %-26s %s (%s ms)\n", result, v.Case, v.About, term.Number(millis(v.Duration)))
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
func printFindings(w io.Writer, rule core.Rule, findings []finding) {
	var first *finding
	var names []string
	for i, f := range findings {
		if f.rule != rule.Name {
			continue
		}
		if first == nil {
			first = &findings[i]
		}
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	if first == nil {
		return
	}
	term.Printf(w, "  FAILED    %s in %s: %s\n", rule.Name, size.Plural(len(names), "case"), strings.Join(names, ", "))
	term.Printf(w, "    %s (%s):\n      %s\n", first.name, first.about, term.Indented{Text: first.text, By: "      "})
	term.Printf(w, "    rule:   %s\n    repair: %s\n", rule.Text, repairs[rule.Name])
}

// tryTraces lets the plugin halve conversations, as the first of a chain, and reports whether
// any of its answers was invalid.
func tryTraces(
	ctx context.Context, a *cli.App, plugin core.CondensationProvider, name string, t *pluginTest,
) (tried []tryListing, faulty bool, err error) {
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
		tried = append(tried, tryListing{about, got.Attempts})
		for i, at := range got.Attempts {
			d.print(at)
			if at.Err == nil {
				continue
			}
			printFaults(a.Stdout, at.Err)
			if i == 0 && (at.Outcome == core.OutcomeRejected || plugins.Broken(at.Err) || len(faultsOf(at.Err)) > 0) {
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
