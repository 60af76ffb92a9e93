// Package native has a language model write a summary of a conversation, which takes the place of the messages.
package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Name is the name of the strategy.
const Name = "native"

const doc = `Has a language model write a summary that takes the place of older messages.
A preset gives the result its form: "fresh_start" (Roo-Code) replaces everything,
"keep_recent" keeps the first message and the last three, "rolling" (Ripple) keeps the
newest messages from a user's turn on, "sections" writes a short summary for every stretch
of the conversation. What the user typed is repeated word for word, up to a limit. A
conversation that is longer than the model's window is read in parts.`

// Strategy returns the strategy, for a registry.
func Strategy() registry.Strategy {
	return registry.Define(Name, doc, DefaultConfig,
		func(_ context.Context, c Config, env registry.Env) (core.CondensationProvider, error) {
			gen, err := env.Model(c.Model)
			if err != nil {
				return nil, fmt.Errorf("settings: model: %w", err)
			}
			if c.PromptFile != "" && !filepath.IsAbs(c.PromptFile) {
				c.PromptFile = filepath.Join(env.Dir, c.PromptFile)
			}
			return New(c, gen)
		}).Only(core.Hides | core.Inserts | core.AsksModels)
}

// settings are the user's settings and the style of the preset.
type settings struct {
	Config
	style
}

// A Provider has a model write summaries. It is safe for concurrent use if the model is,
// and does not call it if nothing can be gained.
type Provider struct {
	c      settings
	gen    model.Generator
	system string // the instructions of the model
	prompt string // the instructions for a summary
	fold   folder
}

// New returns a provider with settings that are valid. It reads the file that they name; a
// relative path starts in the working directory.
func New(c Config, gen model.Generator) (*Provider, error) {
	if gen == nil {
		return nil, errors.New("settings: model: there is none")
	}
	style := findPreset(c.Preset).style
	p := &Provider{c: settings{c, style}, gen: gen, system: systemPrompt, prompt: style.prompt, fold: foldFiles}
	own := c.PromptText
	if c.PromptFile != "" {
		data, err := os.ReadFile(c.PromptFile)
		if err != nil {
			return nil, fmt.Errorf("settings: prompt_file: %w", err)
		}
		if own = string(data); strings.TrimSpace(own) == "" {
			return nil, fmt.Errorf("settings: prompt_file: %s is empty", c.PromptFile)
		}
	}
	if own = strings.TrimSpace(own); own != "" {
		p.prompt = own
	}
	return p, nil
}

// Frames implements [core.Framer]: every new text begins with words that package dialog knows.
func (p *Provider) Frames() bool { return true }

// Condense implements [core.CondensationProvider]. The error wraps [core.ErrUnavailable] if the model cannot be
// asked. The result that comes with an error has the usage before it.
func (p *Provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	plan, err := newPlan(req, &p.c)
	if err != nil {
		return nil, err
	}
	if plan == nil {
		return &core.Result{Messages: req.Messages}, nil
	}
	s := &scribe{gen: p.gen}
	messages, err := p.write(ctx, s, plan)
	if err != nil {
		return &core.Result{Usage: s.spent()}, err
	}
	res := &core.Result{Messages: messages, Usage: s.spent()}
	if plan.lost > 0 {
		res.Steps = []core.Step{{Name: "user's words", Warning: fmt.Sprintf(
			"%s of the user's words, the oldest first, have no room next to the summary; they stay in the originals", size.Plural(plan.lost, "token"))}}
	}
	return res, nil
}
