package main

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/registry"
)

// A testListing is what a test of a plugin found, as JSON.
type testListing struct {
	Passed        bool               `json:"passed"`
	Name          string             `json:"name"`
	Version       string             `json:"version"`
	SDK           string             `json:"sdk"`
	Doc           string             `json:"doc"`
	Settings      []registry.Setting `json:"settings"`
	ReadyMS       float64            `json:"ready_ms"`
	Cases         []caseListing      `json:"cases"`
	Findings      []findingListing   `json:"findings"`
	Deterministic bool               `json:"deterministic"`
	Stopped       string             `json:"stopped,omitempty"` // why cases were left out
	// Conversations are those that it was to bring to half their size, in a chain.
	Conversations []tryListing `json:"conversations"`
}

type caseListing struct {
	Name   string  `json:"name"`
	About  string  `json:"about"`
	Result string  `json:"result"`           // passed, declined, failed
	Reason string  `json:"reason,omitempty"` // why it was declined
	MS     float64 `json:"ms"`
}

type findingListing struct {
	Rule   string `json:"rule"`
	Case   string `json:"case"`
	Text   string `json:"text"`
	Repair string `json:"repair,omitempty"`
}

type tryListing struct {
	About    string         `json:"about"`
	Attempts []core.Attempt `json:"attempts"`
}

// examined takes in what the conformance suite found.
func (l *testListing) examined(r *coretest.Report, findings []finding) {
	l.Cases, l.Findings, l.Deterministic = []caseListing{}, []findingListing{}, r.Deterministic
	if r.Stopped != nil {
		l.Stopped = r.Stopped.Error()
	}
	wrong := map[string]bool{}
	for _, f := range findings {
		wrong[f.name] = true
		l.Findings = append(l.Findings, findingListing{f.rule, f.name, f.text, repairs[f.rule]})
	}
	for _, v := range r.Verdicts {
		c := caseListing{Name: v.Case, About: v.About, Result: "passed", MS: millis(v.Duration)}
		switch {
		case wrong[v.Case]:
			c.Result = "failed"
		case v.Declined != nil:
			c.Result, c.Reason = "declined", v.Declined.Error()
		}
		l.Cases = append(l.Cases, c)
	}
}
