package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins"
)

// testPlugin runs the whole test. The error is errPluginTest if the plugin has faults.
func (a *app) testPlugin(ctx context.Context, trial *plugins.Trial, t *pluginTest) (err error) {
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
	l := &testListing{Name: d.Name, Version: d.Version, SDK: d.SDK, Doc: d.Doc, Settings: d.Settings, ReadyMS: millis(time.Since(begun))}
	if t.json {
		out, quiet := a.stdout, *a
		defer func() { err = errors.Join(printJSON(out, l), err) }()
		quiet.stdout = io.Discard
		a = &quiet
	}
	printf(a.stdout, "%s %s (%s), ready after %s ms\n", d.Name, d.Version, d.SDK, number(l.ReadyMS))
	printAbout(a.stdout, d.Doc, d.Settings)

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
				fault{"heed-context", fmt.Sprintf("it still worked %.1f s after its call was given up", longer.Seconds())},
				"a call that is given up", "a long session; the plugin is asked to end at once after",
			})
		}
	}
	printVerdicts(a.stdout, report, findings, time.Since(begun), t.verbose)
	l.examined(report, findings)

	tried, faulty, err := a.tryTraces(ctx, plugin, d.Name, t)
	l.Conversations = append(l.Conversations, tried...)
	if err != nil {
		return err
	}
	l.Passed = len(findings) == 0 && report.Stopped == nil && !faulty
	if !l.Passed {
		if !t.verbose {
			printf(a.stdout, "\n-v prints what the plugin logs, and every case\n")
		}
		return errPluginTest
	}
	printf(a.stdout, "\nno faults\n")
	return nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A finding is a rule that was broken in a case.
type finding struct {
	fault

	name, about string // of the case
}

// findingsOf returns all that is wrong. A plugin that declines a case may do so, unless its
// error shows that it broke down, or that its SDK refused to pass its answer on.
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

// failures takes the error of a verdict apart.
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

// printVerdicts says what came of the cases: each if verbose, then each rule that was broken.
func printVerdicts(w io.Writer, r *coretest.Report, findings []finding, took time.Duration, verbose bool) {
	wrong := map[string]bool{}
	for _, f := range findings {
		wrong[f.name] = true
	}
	passed := 0
	var declined []coretest.Verdict
	if verbose {
		printf(w, "\n")
	}
	for _, v := range r.Verdicts {
		result := "passed"
		switch {
		case wrong[v.Case]:
			result = "FAILED"
		case v.Declined != nil:
			result = "declined"
			declined = append(declined, v)
		default:
			passed++
		}
		if verbose {
			printf(w, "  %-8s  %-26s %s (%s ms)\n", result, v.Case, v.About, number(millis(v.Duration)))
		}
	}
	printf(w, "\nconformance: %s in %.1f s: %d passed, %d declined, %d failed\n",
		plural(len(r.Verdicts), "case"), took.Seconds(), passed, len(declined), len(wrong))
	for _, v := range declined {
		printf(w, "  declined  %s (%s): %v\n", v.Case, v.About, v.Declined)
	}
	for _, rule := range append(core.Rules(), coretest.Contract()...) {
		printFindings(w, rule, findings)
	}
	if r.Stopped != nil {
		printf(w, "  stopped   %v\n", r.Stopped)
		return
	}
	if r.Deterministic {
		printf(w, "deterministic: yes, the same question had the same answer twice\n")
	} else {
		printf(w, "deterministic: no, the same question had two answers or none (no fault, but tests are harder)\n")
	}
}

// printFindings says where and how a rule was broken, and what to do.
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
	printf(w, "  FAILED    %s in %s: %s\n", rule.Name, plural(len(names), "case"), strings.Join(names, ", "))
	printf(w, "    %s (%s):\n      %s\n", first.name, first.about, indented{first.text, "      "})
	printf(w, "    rule:   %s\n    repair: %s\n", rule.Text, repairs[rule.Name])
}

// tryTraces has the plugin bring conversations to half their size, as the first of a chain,
// and reports whether any of its answers was of no use.
func (a *app) tryTraces(ctx context.Context, plugin core.CondensationProvider, name string, t *pluginTest) (tried []tryListing, faulty bool, err error) {
	printf(a.stdout, "\nin a chain with truncation, to half the tokens:\n")
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
		got, err := chain.Condense(ctx, req)
		if err != nil {
			return tried, faulty, fmt.Errorf("%s: %w", about, err)
		}
		printf(a.stdout, "%v\n", about)
		tried = append(tried, tryListing{about, got.Attempts})
		for i, at := range got.Attempts {
			d.print(at)
			if at.Err == nil {
				continue
			}
			printFaults(a.stdout, at.Err)
			if i == 0 && (at.Outcome == core.OutcomeRejected || plugins.Broken(at.Err) || len(faultsOf(at.Err)) > 0) {
				faulty = true
			}
		}
	}
	return tried, faulty, nil
}

// longSession is the session that comes with condense, forty times.
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
