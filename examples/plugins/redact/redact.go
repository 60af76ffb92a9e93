// Package redact is a strategy that removes secrets from a conversation before it is sent
// again. It demonstrates settings, logging, and counting with the host's counter.
//
// The package does not depend on the plugin SDK: [Strategy] can be compiled into a program, and
// cmd/condense-redact makes a plugin of it.
package redact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// Config has the settings.
type Config struct {
	Patterns map[string]string `json:"patterns" doc:"Secrets to remove: a name, for the log, and a regular expression (RE2)."`
	Roles    []string          `json:"roles"    doc:"Roles whose messages to search: user, assistant, tool."`
}

// DefaultConfig returns the defaults: credentials that can be recognised by their form.
func DefaultConfig() Config {
	return Config{
		Patterns: map[string]string{
			"private_key": `(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`,
			"aws_key":     `\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
			"api_key":     `\bsk-[A-Za-z0-9_-]{20,}`,
			"google":      `\bAIza[0-9A-Za-z_-]{35}\b`,
			"slack":       `\bxox[abprs]-[0-9A-Za-z-]{10,}`,
			"bearer":      `(?i)\bbearer [A-Za-z0-9._~+/-]{20,}=*`,
			"url":         `\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@`,
			"github":      `\bgh[pousr]_[A-Za-z0-9]{36,}\b`,
			"jwt":         `\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
		},
		Roles: []string{"user", "assistant", "tool"},
	}
}

// Validate reports all invalid settings.
func (c *Config) Validate() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Patterns)) {
		if re, err := regexp.Compile(c.Patterns[name]); err != nil {
			errs = append(errs, fmt.Errorf("patterns.%s: %w", name, err))
		} else if re.MatchString("") {
			errs = append(errs, fmt.Errorf("patterns.%s: matches the empty string, so it would match everywhere", name))
		}
	}
	for _, r := range c.Roles {
		if !slices.Contains(DefaultConfig().Roles, r) {
			errs = append(errs, fmt.Errorf("roles: unknown role %q; there are user, assistant and tool", r))
		}
	}
	return errors.Join(errs...)
}

// Strategy returns the strategy.
func Strategy() registry.Strategy {
	return registry.Define("redact",
		"Removes secrets from a conversation. Keys and tokens that can be recognised by their form are replaced by [redacted], in texts, "+
			"in arguments of tool calls and in results; protected messages and reasoning are not changed.",
		DefaultConfig,
		func(_ context.Context, c Config, env registry.Env) (core.CondensationProvider, error) {
			return open(c, env.Logger)
		}).Only(core.Rewrites)
}

type provider struct {
	patterns []pattern
	roles    map[core.Role]bool
	log      *slog.Logger
}

type pattern struct {
	name string
	re   *regexp.Regexp
}

func open(c Config, log *slog.Logger) (*provider, error) {
	p := &provider{roles: map[core.Role]bool{}, log: log}
	for _, name := range slices.Sorted(maps.Keys(c.Patterns)) { // the same order every time: they may overlap
		re, err := regexp.Compile(c.Patterns[name])
		if err != nil {
			return nil, err
		}
		p.patterns = append(p.patterns, pattern{name, re})
	}
	for _, r := range c.Roles {
		p.roles[core.Role(r)] = true
	}
	return p, nil
}

// Condense rewrites the messages that contain a secret and keeps all others.
func (p *provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	messages := slices.Clone(req.Messages) // the request must not be modified
	before, after, rewritten := 0, 0, 0
	found := map[string]int{}
	for i, m := range req.Messages {
		if err := ctx.Err(); err != nil { // the call is cancelled or late
			return nil, err
		}
		if m.Protected || !p.roles[m.Role] {
			continue
		}
		parts := p.redactParts(m.Parts, found)
		if core.EqualParts(parts, m.Parts) {
			continue
		}
		messages[i].Parts = parts // same ID, other parts: the message is rewritten
		rewritten++
		before += m.Tokens
		after += core.MessageTokens(req.Counter, messages[i])
	}
	for _, pat := range p.patterns {
		if n := found[pat.name]; n > 0 {
			p.log.DebugContext(ctx, "found", "pattern", pat.name, "matches", n)
		}
	}
	if rewritten > 0 {
		p.log.InfoContext(ctx, "redacted", "messages", rewritten, "tokens_before", before, "tokens_after", after)
	}
	step := core.Step{Name: "secrets", Looked: len(messages), Changed: rewritten, TokensBefore: before, TokensAfter: after}
	return &core.Result{Messages: messages, Steps: []core.Step{step}}, nil
}

// redactParts returns parts without secrets and does not modify parts. found counts the secrets.
func (p *provider) redactParts(parts []core.Part, found map[string]int) []core.Part {
	out := make([]core.Part, len(parts))
	for i, part := range parts {
		switch part := part.(type) {
		case core.Text:
			out[i] = core.Text(p.redact(string(part), found))
		case core.ToolCall:
			part.Args = p.redact(part.Args, found)
			out[i] = part
		case core.ToolResult:
			part.Content = p.redactParts(part.Content, found)
			out[i] = part
		default: // an image, reasoning that the vendor has signed, a kind of a later version
			out[i] = part
		}
	}
	return out
}

func (p *provider) redact(s string, found map[string]int) string {
	for _, pat := range p.patterns {
		s = pat.re.ReplaceAllStringFunc(s, func(string) string {
			found[pat.name]++
			return core.Redacted // the only word that may replace user text; see the rule keep-words
		})
	}
	return s
}
