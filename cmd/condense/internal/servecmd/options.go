package servecmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/awssign"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/live"
)

// options returns the options of a gateway for a configuration.
func (g *gateway) options(c *config.Config) (*live.Options, error) {
	s := c.Serve()
	if g.knows != nil {
		s.TokenEnv, s.TokenFile, s.Tokens = "", "", ""
	}
	token, err := readToken(s)
	if err != nil {
		return nil, err
	}
	opts := &live.Options{
		Upstreams: live.Upstreams{URLs: s.Upstreams, Forbids: c.Forbids, Compaction: map[string]live.Compaction{"openai": live.Compaction(s.Compaction.OpenAI)}},
		Store:     live.Store{Path: s.Store, KeepFor: time.Duration(s.Retention.Age), KeepBytes: s.Retention.Size, Key: g.key},
		Access:    live.Access{Token: token, Tokens: s.Tokens, Orders: g.orders, Limits: limitsOf(s.Limits), Tenants: map[string]live.Limits{}},
		Reports:   live.Reports{Audit: g.audit, Logger: g.log},
		Choice:    live.Choice{Profile: g.place.Profile, Mode: g.place.Mode},
		Observe:   s.Observe,
		Account:   accountOf(s.Account),
		Bounds:    live.Bounds{MaxBody: s.MaxBody, Deadline: time.Duration(s.Deadline)},
		Recall:    live.Recall{Off: !s.Recall.MCP && !s.Recall.Tool, NoMCP: !s.Recall.MCP, Tool: s.Recall.Tool, Own: g.recall, MaxSize: s.Recall.MaxSize, MaxResult: s.Recall.MaxResult},
		Source:    s.Source,
		Ingest:    live.Ingest{Off: !s.Ingest.Lossless, MaxResult: s.Ingest.MaxResult},
		Epoch: live.EpochOptions{
			Target: s.Epoch.Target, IgnoreCold: !s.Epoch.Cold, IgnorePayback: !s.Epoch.Payback, MinSize: s.Epoch.MinSize,
			Risk: s.Epoch.Risk, Prepare: s.Epoch.Prepare,
		},
	}
	if s.Bedrock.Sign {
		opts.Upstreams.Signer = func(host string) (live.Signer, error) { return awssign.Machine(context.Background(), host) }
	}
	if g.knows != nil { // the agent is started in this folder
		opts.Agent = g.knows.of
		if opts.Folder, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if token == "" && s.Tokens == "" && (g.knows != nil || len(s.Tenants) == 0) { // it answers this machine only
		opts.Recall.Beside = sessions.Wholes
	}
	for _, name := range slices.Sorted(maps.Keys(s.Upstreams)) {
		if err := live.CheckUpstream(name, s.Upstreams[name]); err != nil {
			return nil, fmt.Errorf("serve.upstreams.%s: %w", name, err)
		}
	}
	for name, l := range s.Tenants {
		opts.Access.Tenants[name] = limitsOf(l)
	}
	g.watched(opts)
	if g.tls != nil {
		opts.Access.Names = g.tls.Names
	}
	if g.telemetry != nil {
		g.telemetry.fill(opts)
	}
	for name, address := range g.upstreams {
		if o, _ := c.Origin("serve", "upstreams", name); o.Kind == config.FromDefault || o.Kind == "" {
			opts.Upstreams.URLs[name] = address
			if slices.Contains(g.plain, name) {
				opts.Upstreams.Unversioned = append(opts.Upstreams.Unversioned, name)
			}
		}
	}
	for i, r := range s.Modes {
		if r.Agent != "" {
			agent := agents.Find(r.Agent)
			if agent == nil {
				return nil, fmt.Errorf("serve.modes[%d].agent: there is no agent %q%s; there are %s", i, r.Agent, suggest.DidYouMean(r.Agent, agents.Names()), strings.Join(agents.Names(), ", "))
			}
			r.Agent = agent.Name
		}
		opts.Choice.Rules = append(opts.Choice.Rules, live.Rule{Model: r.Model, Agent: r.Agent, System: r.System, Profile: r.Profile, Mode: r.Mode})
	}
	return opts, nil
}

// accountOf returns the account that a value of serve.account names.
func accountOf(value string) live.Account {
	switch value {
	case "":
		return live.AccountOff
	case config.AccountClient:
		return live.AccountClient
	}
	return live.AccountModel
}

func limitsOf(l config.ServeLimits) live.Limits {
	return live.Limits{Requests: int(l.Requests), Concurrent: int(l.Concurrent), Bytes: l.Bytes, ModelEpochs: int(l.ModelEpochs), Cost: l.Cost}
}

// shortestToken is the length in bytes below which a token could be guessed.
const shortestToken = 16

// readToken returns the token of the settings; empty if they have none.
func readToken(s config.Serve) (string, error) {
	token, key, from := "", "token_env", "the environment variable "+s.TokenEnv
	switch {
	case s.TokenEnv != "":
		token = os.Getenv(s.TokenEnv)
	case s.TokenFile != "":
		key, from = "token_file", "the file "+cli.FromHere(s.TokenFile)
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return "", fmt.Errorf("serve.%s: %w", key, err)
		}
		token = strings.TrimSpace(string(text))
	default:
		return "", nil
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '%' || r == '?' || r == '#' }
	switch {
	case token == "":
		return "", fmt.Errorf("serve.%s: %s is empty or not set; it should hold the token", key, from)
	case len(token) < shortestToken:
		return "", fmt.Errorf("serve.%s: the token in %s has %d characters; use at least %d, as from 'openssl rand -hex 24'", key, from, len(token), shortestToken)
	case strings.ContainsFunc(token, odd):
		return "", fmt.Errorf("serve.%s: the token in %s has a character that a URL cannot have; use letters and digits, as from 'openssl rand -hex 24'", key, from)
	}
	return token, nil
}
