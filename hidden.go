package condense

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/secret"
)

// hidden returns [core.Request.Hidden] for a view: the originals of the journal that active condensations hide or rewrite, and what the
// turn adds. A redacted message stays redacted, and secrets are removed: what returns may be inserted, and sent. The journal is read now,
// because a provider may go on after its deadline.
func (p *plan) hidden(c *Conversation, t Turn) func(ids ...string) ([]core.Message, error) {
	redacted := map[string][]core.Part{}
	for _, done := range c.journal.Condensations() {
		for _, r := range done.Edit.Rewrite {
			if redacts(r.Parts) {
				redacted[r.ID] = r.Parts
			}
		}
	}
	var own []core.Message
	if len(c.journal.Condensations()) > 0 {
		for _, e := range c.journal.Timeline() {
			if m := e.Original; e.InsertedBy == "" && (len(e.HiddenBy) > 0 || e.RewrittenBy != "") {
				if parts := redacted[m.ID]; parts != nil {
					m.Parts = parts
				}
				own = append(own, m)
			}
		}
	}
	known := sync.OnceValues(func() ([]core.Message, error) {
		all := own
		if t.Earlier != nil {
			more, err := t.Earlier()
			if err != nil {
				return nil, err
			}
			all = slices.Concat(all, p.unseen(more))
		}
		for i := range all {
			m := &all[i]
			m.Source, m.Protected, m.Parts = nil, false, scrubbed(m.Parts)
			m.Tokens = core.MessageTokens(p.set.counter, *m)
		}
		return all, nil
	})
	return func(ids ...string) (out []core.Message, _ error) {
		all, err := known()
		want := map[string]bool{}
		for _, id := range ids {
			want[id] = true
		}
		for _, m := range all {
			if len(ids) == 0 {
				m.Parts = nil
			} else if !want[m.ID] {
				continue
			}
			delete(want, m.ID)
			out = append(out, m.Clone())
		}
		for id := range want {
			return nil, fmt.Errorf("no message %q is hidden", id)
		}
		return out, err
	}
}

// unseen returns the messages whose content is not in the view, nor redacted there, under IDs that no message of the view has.
func (p *plan) unseen(all []core.Message) (out []core.Message) {
	of := func(m *core.Message) string { return string(m.Role) + core.Handle(core.ToolResult{Content: m.Parts}) }
	seen, numbers := map[string]bool{}, map[int]bool{}
	for i := range p.view {
		m := &p.view[i]
		seen[of(m)], numbers[m.Number] = true, numbers[m.Number] || m.Number > 0 && redacts(m.Parts)
	}
	for _, m := range all {
		if !seen[of(&m)] && !numbers[m.Number] {
			m.ID = "earlier-" + m.ID
			out = append(out, m)
		}
	}
	return out
}

// redacts reports whether parts have the mark of a redaction.
func redacts(parts []core.Part) bool {
	return slices.ContainsFunc(parts, func(p core.Part) bool {
		r, isResult := p.(core.ToolResult)
		t, _ := p.(core.Text)
		return isResult && redacts(r.Content) || strings.Contains(string(t), core.Redacted)
	})
}

// scrubbed returns parts without secrets.
func scrubbed(parts []core.Part) []core.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		switch p := p.(type) {
		case core.Text:
			out[i] = core.Text(secret.Scrub(string(p)))
		case core.ToolCall:
			p.Args = secret.Scrub(p.Args)
			out[i] = p
		case core.ToolResult:
			p.Content = scrubbed(p.Content)
			out[i] = p
		case core.Opaque:
			p.JSON = secret.Scrub(p.JSON)
			out[i] = p
		case core.Image, core.Reasoning: // nobody reads a text there
		}
	}
	return out
}
