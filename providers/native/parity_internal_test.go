package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/model"
)

// This file has Roo-Code's condensation, made of the parts of the provider. The recorded vectors of Roo-Code hold it to
// Roo-Code byte for byte, and so the parts that the two share.

// A rooProvider condenses as Roo-Code does.
type rooProvider struct{ *Provider }

// Reasons for which Roo-Code does not condense.
var (
	errNotEnough = errors.New("not enough messages to condense")
	errRecently  = errors.New("the conversation was condensed recently")
)

// A rooCut says which messages Roo-Code keeps: those before first, and those from recent on.
type rooCut struct{ first, recent int }

// condense reads hidden messages too, leaves no call open, cuts between a call and its result, and takes any summary that
// is not empty.
func (p rooProvider) condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	cut := rooCut{first: min(p.c.KeepFirst, len(req.Messages)), recent: max(0, len(req.Messages)-p.c.RecentMessages)}
	prompt, err := p.request(req, cut)
	if err != nil {
		return nil, err
	}
	s := &scribe{gen: p.gen}
	a, err := s.generate(ctx, prompt)
	if err == nil && trimJS(a.Text) == "" {
		err = model.ErrNoText
	}
	if err != nil {
		return &core.Result{Usage: s.spent()}, err
	}
	summary := core.Message{Role: p.c.role, Kind: core.KindSummary, Parts: []core.Part{core.Text(p.c.heading + trimJS(a.Text))}}
	if err := p.addExtras(ctx, req, &summary); err != nil {
		return &core.Result{Usage: s.spent()}, err
	}
	out := slices.Clone(req.Messages[:cut.first])
	out = append(append(out, summary), req.Messages[cut.recent:]...)
	return &core.Result{Messages: out, Usage: s.spent()}, nil
}

// request returns the prompt for the model. The error says why it is not asked.
func (p rooProvider) request(req *core.Request, cut rooCut) (*model.Prompt, error) {
	recent := req.Messages[cut.recent:]
	keep := len(recent)
	read := req.Messages[:cut.recent]
	if !p.c.readFirst && cut.first > 0 {
		read = read[min(cut.first, len(read)):]
	}
	all := read
	read = sinceSummary(all)
	if keep > 0 {
		read = openWithUser(read, all)
	}
	switch summaries := slices.ContainsFunc(read, isSummary); {
	case len(read) <= 1 && len(req.Messages) <= 1+keep:
		return nil, errNotEnough
	case len(read) <= 1, keep == 0 && summaries && len(read) <= 2, slices.ContainsFunc(recent, isSummary):
		return nil, errRecently
	}
	shape := &rooShaper{shaper: shaper{images: p.gen.Info().Images}, raw: keep > 0}
	prompt := &model.Prompt{System: strings.TrimSpace(p.system), Messages: append(shape.shape(read), userText(strings.TrimSpace(p.prompt)))}
	if p.c.promptInSystem {
		prompt.System = strings.TrimSpace(p.prompt)
		prompt.Messages[len(prompt.Messages)-1] = userText(begin)
	}
	return prompt, nil
}

func isSummary(m core.Message) bool { return m.Kind == core.KindSummary }

// sinceSummary returns the messages from the last summary on.
func sinceSummary(messages []core.Message) []core.Message {
	for i, m := range slices.Backward(messages) {
		if isSummary(m) {
			return messages[i:]
		}
	}
	return messages
}

func (p rooProvider) addExtras(ctx context.Context, req *core.Request, summary *core.Message) error {
	add := func(text string) { summary.Parts = append(summary.Parts, core.Text(text)) }
	if len(req.Messages) > 0 && p.c.KeepFirst == 0 {
		if block := workflowsBlock(commandBlocks(&req.Messages[0])); block != "" {
			add(block)
		}
	}
	if p.c.FoldedChars > 0 && len(req.FilesRead) > 0 && req.Dir != "" {
		blocks, err := p.fold(ctx, req, p.c.FoldedChars)
		if err != nil {
			return fmt.Errorf("fold files: %w", err)
		}
		for _, b := range blocks {
			if strings.TrimSpace(b) != "" {
				add(b)
			}
		}
	}
	if p.c.environment && req.Trigger != core.TriggerManual && trimJS(req.Environment) != "" {
		add(req.Environment)
	}
	return nil
}

// openWithUser returns messages that begin with the user, as some vendors demand: what the
// conversation began with is put before a summary of the assistant.
func openWithUser(read, all []core.Message) []core.Message {
	if len(read) == 0 || !isSummary(read[0]) || read[0].Role == core.RoleUser {
		return read
	}
	if first := all[0]; first.Role == core.RoleUser {
		return append([]core.Message{first}, read...)
	}
	return append([]core.Message{userText("Please continue from the following summary:")}, read...)
}

// trimJS does what JavaScript's trim does, which differs from strings.TrimSpace in two
// characters.
func trimJS(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		switch r {
		case '\u0085':
			return false
		case '\ufeff':
			return true
		}
		return strings.TrimSpace(string(r)) == ""
	})
}

// A rooShaper shows a model messages as Roo-Code does.
type rooShaper struct {
	shaper
	raw bool // calls and results stay as they are
}

// shape does what Roo-Code does before it asks for a summary: results for calls that
// have none, at the end; images that the model cannot see as text; calls and results as
// text. Roles and everything else stay.
func (s *rooShaper) shape(messages []core.Message) []core.Message {
	out := make([]core.Message, 0, len(messages)+1)
	if !s.raw {
		messages = prefix.WithResults(messages)
	}
	for _, m := range messages {
		shaped := core.Message{Role: m.Role, Parts: make([]core.Part, 0, len(m.Parts))}
		for _, p := range m.Parts {
			switch q := p.(type) {
			case core.ToolCall:
				if !s.raw {
					p = core.Text(roo.ToolUseText(q.Name, q.Args))
				}
			case core.ToolResult:
				if !s.raw {
					p = core.Text(s.resultText(q))
				}
			case core.Image:
				if !s.images {
					p = core.Text("[Referenced image in conversation]")
				}
			case core.Text, core.Reasoning, core.Opaque:
			}
			shaped.Parts = append(shaped.Parts, p)
		}
		out = append(out, shaped)
	}
	return out
}
