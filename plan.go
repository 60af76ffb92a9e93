package condense

import (
	"fmt"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
)

// A plan is what one turn leads to.
type plan struct {
	*settings
	view     []core.Message
	system   int // tokens
	tools    int // tokens
	decision policy.Decision
	request  *core.Request // nil unless the decision is to act
	part     string        // the file for the originals; empty if there is to be none
}

// free reports whether nothing may be spent on the turn, because nobody asked for it.
func (p *plan) free() bool { return !p.Auto && p.decision.Trigger != core.TriggerManual }

func (s *setup) plan(c *Conversation, t Turn) (*plan, error) {
	set, err := s.resolve(turnKey{t.Profile, t.Mode})
	if err != nil {
		return nil, err
	}
	if set, err = set.forRequest(t); err != nil {
		return nil, err
	}
	c.measure(set.Tokenizer, set.counter)
	p := &plan{settings: set, view: c.View()}
	p.system, p.tools = p.counter.Beside(t.System, t.Tools)
	trigger := t.Trigger
	if trigger == "" {
		trigger = core.TriggerAutomatic
	}
	size := policy.Size{
		System: p.system, Tools: p.tools, Messages: c.journal.Tokens(), Protected: c.pinned,
		Summaries: c.summaries, NothingNew: c.nothingNew(),
	}
	p.decision = p.rule.Decide(size, c.state, trigger)
	if !p.decision.Act {
		return p, nil
	}
	// Now that it matters, and costs a walk over the messages anyway, be exact.
	size.Protected = core.FixedTokens(p.counter, p.view)
	p.decision = p.rule.Decide(size, c.state, trigger)
	if !p.decision.Act {
		return p, nil
	}
	p.request = &core.Request{
		Messages: p.view, Budget: p.decision.Budget, Trigger: trigger,
		Profile: p.Profile, Mode: p.Mode, System: t.System, Environment: t.Environment,
		FilesRead: t.FilesRead, Dir: t.Dir, Tools: string(t.Tools),
		Instructions: t.Instructions, Counter: p.counter,
	}
	if t.Dir != "" && t.FilesRead == nil {
		p.request.FilesRead = FilesRead(c.journal.Messages(), t.Dir)
	}
	if p.Originals == config.OriginalsParts && c.originals != "" {
		if p.part, err = nextPart(c.originals); err != nil {
			return nil, fmt.Errorf("originals: %w", err)
		}
		p.request.Originals = fromDir(t.Dir, p.part)
	}
	if p.request.Instructions == "" {
		p.request.Instructions = p.Prompt
	}
	return p, nil
}
