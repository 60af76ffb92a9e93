package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// try runs the program and has it condense a conversation. The error is errDev if the
// plugin did not do its part.
func (d *dev) try(ctx context.Context, path string) (err error) {
	req, about, err := d.request(ctx)
	if err != nil {
		return err
	}
	plugin, err := d.trial(path).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	what, err := plugin.Describe(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		printf(d.app.stdout, "the plugin does not start: %v\n", indented{err.Error(), "  "})
		return errDev
	}
	first, _, _ := strings.Cut(what.Doc, ".")
	printf(d.app.stdout, "%s: %s\n%s\n", what.Name, first, about)
	chain, err := d.chain(ctx, what.Name, plugin)
	if err != nil {
		return err
	}
	condensed, err := chain.Condense(ctx, req)
	if err != nil {
		return err
	}
	for _, at := range condensed.Attempts {
		d.print(at)
		if at.Err != nil {
			printFaults(d.app.stdout, at.Err)
		}
	}
	switch condensed.Attempts[0].Outcome {
	case core.OutcomeApplied, core.OutcomeInsufficient, core.OutcomeNoOp:
		return nil
	case core.OutcomeRejected, core.OutcomeFailed, core.OutcomeSkipped:
	}
	return errDev
}

// request returns the request to bring the conversation to half its size, and says what it
// is about. Truncation can always do so.
func (d *dev) request(ctx context.Context) (*core.Request, string, error) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, "", err
	}
	req := &core.Request{Trigger: core.TriggerManual, Counter: tokens.NewCounter(encoding)}
	name := "a session that comes with condense"
	if d.trace == "" {
		req.Messages = coretest.Session()
		for i := range req.Messages {
			req.Messages[i].Tokens = 0 // by another counter
		}
	} else {
		doc, err := d.app.read(ctx, d.trace, d.format)
		if err != nil {
			return nil, "", err
		}
		view := doc.Journal.View()
		req.Messages, req.System, name = append(view[:0:0], view...), doc.System, d.trace
	}
	core.Measure(req.Counter, req.Messages)
	if req.System != "" {
		req.Budget.Overhead = req.Counter.Count(core.Text(req.System))
	}
	total := req.Tokens()
	req.Budget.Window, req.Budget.Limit, req.Budget.Target = 2*total, total, total/2
	return req, fmt.Sprintf("%s: %s messages, %s tokens, wanted %s", name,
		thousands(len(req.Messages)), thousands(total), thousands(req.Budget.Target)), nil
}

// chain returns the chain that every plugin stands in: truncation follows.
func (d *dev) chain(ctx context.Context, name string, plugin core.CondensationProvider) (*core.Chain, error) {
	reg, err := d.app.registry()
	if err != nil {
		return nil, err
	}
	strategy, err := reg.Get("slidingwindow")
	if err != nil {
		return nil, err
	}
	truncation, err := strategy.Open(ctx, nil, registry.Env{})
	if err != nil {
		return nil, err
	}
	if name == "truncation" {
		name = "plugin"
	}
	return core.NewChain([]core.Candidate{
		{Name: name, Provider: plugin, Timeout: time.Minute},
		{Name: "truncation", Provider: truncation},
	}, nil)
}

func (d *dev) print(at core.Attempt) {
	printf(d.app.stdout, "  %-16s %-12s", at.Provider, at.Outcome)
	if at.TokensAfter != at.TokensBefore {
		printf(d.app.stdout, " %s -> %s tokens", thousands(at.TokensBefore), thousands(at.TokensAfter))
	}
	if at.Reason != "" && at.Err == nil {
		printf(d.app.stdout, " %s", at.Reason)
	}
	if at.Duration > 0 {
		printf(d.app.stdout, " (%s ms)", number(float64(at.Duration.Microseconds())/1000))
	}
	printf(d.app.stdout, "\n")
}

// trial returns how the program at path is run. Its log goes to standard error: all that it
// logs in a call and what else it prints, without the debug lines of its SDK.
func (d *dev) trial(path string) *plugins.Trial {
	t := &plugins.Trial{Plugin: config.Provider{Name: d.source.name(), Plugin: path, Settings: json.RawMessage(d.settings)}}
	if d.source.program != "" {
		t.Plugin.Folder = d.source.root
	}
	t.Output, t.Calls = authorLogs(d.app.stderr)
	return t
}
