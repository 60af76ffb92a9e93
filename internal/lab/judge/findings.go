package judge

import (
	"context"
	_ "embed" // the repairs
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/registry"
)

// An Examination is the result of a test of a plugin.
type Examination struct {
	Passed        bool               `json:"passed"`
	Name          string             `json:"name"`
	Version       string             `json:"version"`
	SDK           string             `json:"sdk"`
	Doc           string             `json:"doc"`
	Settings      []registry.Setting `json:"settings"`
	Abilities     core.Abilities     `json:"abilities"`
	ReadyMS       float64            `json:"ready_ms"`
	Cases         []Case             `json:"cases"`
	Findings      []Finding          `json:"findings"`
	Untrue        []Finding          `json:"untrue,omitempty"`  // of [coretest.Truths]: warnings, with the kind of the fact as rule
	Acted         int                `json:"acted"`             // cases in which it changed a conversation
	Deterministic *bool              `json:"deterministic"`     // null if it gave no answer that could be compared
	Stopped       string             `json:"stopped,omitempty"` // why cases were left out
	// Conversations are the conversations that it had to halve, in a chain.
	Conversations []Try `json:"conversations"`
}

// A Case is a case of the conformance suite.
type Case struct {
	Name   string  `json:"name"`
	About  string  `json:"about"`
	Result string  `json:"result"`           // passed, declined, failed
	Acted  bool    `json:"acted"`            // it changed a conversation
	Reason string  `json:"reason,omitempty"` // why it was declined
	MS     float64 `json:"ms"`
}

// A Finding is a rule that was broken, and how; in a case, if it has a name.
type Finding struct {
	Rule   string `json:"rule"`
	Case   string `json:"case"`
	Text   string `json:"text"`
	Repair string `json:"repair,omitempty"`
	About  string `json:"-"` // of the case
}

// A Try is a conversation that it had to halve.
type Try struct {
	About    string         `json:"about"`
	Attempts []core.Attempt `json:"attempts"`
}

// Add adds the results of the conformance suite.
func (l *Examination) Add(r *coretest.Report, findings []Finding) {
	l.Cases, l.Findings, l.Acted = []Case{}, append([]Finding{}, findings...), r.Acted()
	if r.Stopped == nil && !r.Unmeasured {
		l.Deterministic = &r.Deterministic
	}
	if r.Stopped != nil {
		l.Stopped = r.Stopped.Error()
	}
	for _, v := range r.Verdicts {
		c := Case{Name: v.Case, About: v.About, Result: "passed", Acted: v.Acted, MS: Millis(v.Duration)}
		switch {
		case slices.ContainsFunc(findings, func(f Finding) bool { return f.Case == v.Case }):
			c.Result = "failed"
		case v.Declined != nil:
			c.Result, c.Reason = "declined", v.Declined.Error()
		}
		l.Cases = append(l.Cases, c)
	}
}

// untrue says of each kind of fact how a view is not true to it.
var untrue = map[string]string{
	"words": "gone, the user's words", "others": "given as the user's, and not their words", "old": "shown as it was, without what replaced it",
	"made": "gone, the name of something started or created",
}

// Tell adds the facts to which views of the plugin are not true. Lost words of the user are findings if it promises to keep them. A
// case that it declines tells nothing.
func (l *Examination) Tell(ctx context.Context, plugin core.CondensationProvider) (all []Finding) {
	for _, t := range coretest.Truths() {
		res, err := plugin.Condense(ctx, coretest.HalfRequest(t.Messages))
		if err != nil {
			continue
		}
		for _, f := range t.Faults(res.Messages) {
			text := fmt.Sprintf("%s: %q", untrue[f.Kind], f.Text)
			if f.Kind == "words" && l.Abilities&core.KeepsWords != 0 {
				all = append(all, NewFinding("declared-abilities", text, t.Name, t.About))
				continue
			}
			l.Untrue = append(l.Untrue, Finding{Rule: f.Kind, Case: t.Name, Text: text})
		}
	}
	return all
}

// Millis returns d in milliseconds.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// repairs tell an author how to repair a broken rule. The rule itself states its requirement.
var repairs = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(repairsText) {
		rule, repair, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[rule] = repair
	}
	return all
}()

//go:embed repairs.txt
var repairsText string

// NewFinding returns a broken rule with its repair.
func NewFinding(rule, text, name, about string) Finding {
	return Finding{Rule: rule, Text: text, Case: name, About: about, Repair: repairs[rule]}
}

// Faults returns the broken rules that err reports: detected by the host, or by the plugin's SDK, which checks
// before it answers.
func Faults(err error) []Finding {
	var faults []Finding
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		for rule := range repairs {
			if i := strings.Index(line, rule+": "); i == 0 || i > 0 && strings.HasSuffix(line[:i], ": ") {
				faults = append(faults, NewFinding(rule, line[i:], "", ""))
				break
			}
		}
	}
	return faults
}

// Findings returns all faults. A plugin may decline a case, unless its error shows that it
// is broken, or that its SDK refused to send its answer.
func Findings(r *coretest.Report) []Finding {
	var all []Finding
	for _, v := range r.Verdicts {
		add := func(rule, text string) {
			f := NewFinding(rule, text, v.Case, v.About)
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
		deeper := func(err error) bool { // what a plugin's SDK or the host says
			all := Faults(err)
			for _, f := range all {
				add(f.Rule, f.Text)
			}
			return len(all) > 0
		}
		for _, failure := range failures(v.Err) {
			switch {
			case deeper(failure.Err):
			case plugins.Broken(failure.Err):
				add("return", strings.TrimPrefix(failure.Err.Error(), "declined: "))
			default:
				add(failure.Rule.Name, strings.TrimPrefix(failure.Err.Error(), failure.Rule.Name+": "))
			}
		}
		if v.Declined == nil || v.Err != nil {
			continue
		}
		if !deeper(v.Declined) && plugins.Broken(v.Declined) {
			add("return", v.Declined.Error())
		}
	}
	return all
}

// failures returns the single failures in the error of a verdict.
func failures(err error) []*coretest.FailureError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.Concat(plain.Each(joined.Unwrap(), failures)...)
	}
	if f, ok := errors.AsType[*coretest.FailureError](err); ok {
		return []*coretest.FailureError{f}
	}
	return nil
}
