// The testlog command is a plugin that shortens the output of test runners: failures stay, passing tests become a number.
package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
	"github.com/condensehq/condense/registry"
)

func main() { pluginsdk.Main(strategy) }

var strategy = registry.Define("testlog",
	"Shortens the output of test runners in results of tools. Lines of passing tests become their number, and everything else, failures above all, stays as it is.",
	func() config { return config{Recent: 1, MinLines: 3} },
	func(_ context.Context, c config, _ registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(c.condense), nil
	}).Only(core.Rewrites)

type config struct {
	Recent   int `json:"recent" doc:"Results at the end that are not changed."`
	MinLines int `json:"min_lines" doc:"Shorter runs of passing lines are not changed."`
}

// Validate is called before the first conversation; the user sees its error.
func (c *config) Validate() error {
	if c.Recent < 0 || c.MinLines < 1 {
		return errors.New("recent and min_lines: must not be negative, and min_lines not 0")
	}
	return nil
}

// passing matches a line about a test that passed, or about nothing: go test, pytest, jest and mocha, cargo, TAP.
var passing = regexp.MustCompile(`^\s*(?:` + strings.Join([]string{
	`=== (?:RUN|PAUSE|CONT|NAME)\s.*`, `--- (?:PASS|SKIP): .*`, `ok  \t.*`, `\?   \t.*\[no test files\]`,
	`\S+::\S+ PASSED.*`, `\S+\.py \.+ *(?:\[ *\d+%\])?`,
	`[✓✔√] .*`, `PASS \S+.*`, `test \S+ \.\.\. ok`, `ok \d+ .*`,
}, "|") + `)$`)

func (c *config) condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	messages := slices.Clone(req.Messages) // the request must not be modified
	step := core.Step{Name: "passing tests"}
	for i := range messages[:max(0, len(messages)-c.Recent)] {
		m := &messages[i]
		if err := ctx.Err(); err != nil { // the call is cancelled or late
			return nil, err
		}
		if m.Protected {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		for j, part := range m.Parts {
			result, ok := part.(core.ToolResult)
			if !ok {
				continue
			}
			step.Looked++
			if short, ok := c.shorten(result.Content); ok {
				result.Content = short
				m.Parts[j] = result
				step.Changed++
			}
		}
	}
	return &core.Result{Messages: messages, Steps: []core.Step{step}}, nil
}

// shorten returns the content of a result without passing lines, and whether there were any.
func (c *config) shorten(content []core.Part) (short []core.Part, changed bool) {
	short = slices.Clone(content)
	for i, part := range content {
		if text, ok := part.(core.Text); ok {
			if s := c.cut(string(text)); s != string(text) {
				short[i], changed = core.Text(s), true
			}
		}
	}
	return short, changed
}

// cut replaces runs of passing lines by their number.
func (c *config) cut(text string) string {
	var out, run []string
	flush := func() {
		if len(run) >= c.MinLines {
			run = []string{fmt.Sprintf("[%d lines of passing tests left out]", len(run))}
		}
		out, run = append(out, run...), nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if passing.MatchString(strings.TrimRight(line, "\r")) {
			run = append(run, line)
			continue
		}
		flush()
		out = append(out, line)
	}
	flush()
	return strings.Join(out, "\n")
}
