package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// Reasons for which Roo-Code does not condense.
var (
	errNotEnough = errors.New("not enough messages to condense")
	errRecently  = errors.New("the conversation was condensed recently")
)

// A rooCut says which messages Roo-Code keeps: those before first, and those from recent on.
type rooCut struct{ first, recent int }

// cutAsRoo returns where Roo-Code would cut messages, but keeps whole groups. Roo-Code cuts
// between a call and its result, which the APIs refuse and so does the host; when it kept
// messages, its conversations had calls as text, where this is the same.
func (p *Provider) cutAsRoo(messages []core.Message) rooCut {
	cut := p.exactCut(messages)
	for _, g := range core.Groups(messages) {
		if g.Start < cut.first {
			cut.first = max(cut.first, g.End)
		}
		if g.Start < cut.recent && cut.recent < g.End {
			cut.recent = g.Start
		}
	}
	cut.recent = max(cut.first, cut.recent)
	return cut
}

// exactCut returns where Roo-Code cuts, between a call and its result if need be.
func (p *Provider) exactCut(messages []core.Message) rooCut {
	return rooCut{first: min(p.c.KeepFirst, len(messages)), recent: max(0, len(messages)-p.c.RecentMessages)}
}

// condenseRoo does what Roo-Code does, defects included: it reads what is hidden, leaves no
// call that is open, and takes any summary that is not empty.
func (p *Provider) condenseRoo(ctx context.Context, req *core.Request, cut rooCut) (*core.Result, error) {
	prompt, err := p.rooPrompt(req, cut)
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
	summary := core.Message{Role: core.Role(p.c.SummaryRole), Kind: core.KindSummary, Parts: []core.Part{core.Text(p.c.Heading + trimJS(a.Text))}}
	if err := p.addExtrasRoo(ctx, req, &summary); err != nil {
		return &core.Result{Usage: s.spent()}, err
	}
	out := slices.Clone(req.Messages[:cut.first])
	out = append(append(out, summary), req.Messages[cut.recent:]...)
	return &core.Result{Messages: out, Usage: s.spent()}, nil
}

// rooPrompt returns what the model is asked. The error says why it is not.
func (p *Provider) rooPrompt(req *core.Request, cut rooCut) (*model.Prompt, error) {
	recent := req.Messages[cut.recent:]
	keep := len(recent)
	read := req.Messages[:cut.recent]
	if !p.c.ReadFirst && cut.first > 0 {
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
	shape := &shaper{images: p.gen.Info().Images, roo: true, raw: keep > 0}
	prompt := &model.Prompt{System: strings.TrimSpace(p.system), Messages: append(shape.shape(read), userText(strings.TrimSpace(p.prompt)))}
	if p.c.PromptAs == "system" {
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

func (p *Provider) addExtrasRoo(ctx context.Context, req *core.Request, summary *core.Message) error {
	add := func(text string) { summary.Parts = append(summary.Parts, core.Text(text)) }
	if p.c.CommandBlocks && len(req.Messages) > 0 && p.c.KeepFirst == 0 {
		if block := workflowsBlock(commandBlocks(&req.Messages[0])); block != "" {
			add(block)
		}
	}
	if p.c.FoldedChars > 0 && len(req.FilesRead) > 0 && req.Dir != "" {
		blocks, err := p.fold(ctx, req, p.c.FoldedChars, p.c.FoldedIgnore)
		if err != nil {
			return fmt.Errorf("fold files: %w", err)
		}
		for _, b := range blocks {
			if strings.TrimSpace(b) != "" {
				add(b)
			}
		}
	}
	if p.c.Environment && req.Trigger != core.TriggerManual && trimJS(req.Environment) != "" {
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
