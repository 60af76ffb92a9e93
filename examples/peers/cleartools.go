package peers

import (
	"context"
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// ClearToolUsesConfig has the settings of [ClearToolUses].
type ClearToolUsesConfig struct {
	Keep         int      `json:"keep"              doc:"Newest uses of tools that stay."`
	ClearAtLeast int      `json:"clear_at_least"    doc:"Tokens: fewer are not worth losing the vendor's cache, and nothing is cleared."`
	Exclude      []string `json:"exclude_tools"     doc:"Tools whose uses stay."`
	Inputs       bool     `json:"clear_tool_inputs" doc:"Clear the arguments of the calls, too."`
}

// Validate reports invalid settings.
func (c *ClearToolUsesConfig) Validate() error {
	if c.Keep < 0 || c.ClearAtLeast < 0 {
		return fmt.Errorf("keep and clear_at_least: must not be negative")
	}
	return nil
}

// ClearToolUses is clear_tool_uses of Anthropic's context editing: results of tools, but the newest, become a placeholder.
func ClearToolUses() registry.Strategy {
	return registry.Define("clear_tool_uses", "Anthropic's context editing: old results of tools are cleared.",
		func() ClearToolUsesConfig { return ClearToolUsesConfig{Keep: 3} },
		func(_ context.Context, c ClearToolUsesConfig, _ registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return answer(ctx, req, c.clear(req), core.Usage{})
			}), nil
		}).Only(core.Rewrites | core.KeepsWords)
}

func (c ClearToolUsesConfig) clear(req *core.Request) []core.Message {
	tool, uses := map[string]string{}, []string{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				tool[p.ID] = p.Name
			case core.ToolResult:
				uses = append(uses, p.CallID)
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	cleared := map[string]bool{}
	for _, id := range uses[:max(0, len(uses)-c.Keep)] {
		cleared[id] = !slices.Contains(c.Exclude, tool[id])
	}
	out, saved := slices.Clone(req.Messages), 0
	for i := range out {
		m, changed := emptied(out[i], func(r core.ToolResult) bool { return cleared[r.CallID] })
		for j, p := range m.Parts {
			if call, ok := p.(core.ToolCall); ok && c.Inputs && cleared[call.ID] && !m.Protected && len(call.Args) > len("{}") {
				call.Args = "{}"
				m.Parts[j], changed = call, true
			}
		}
		if !changed {
			continue
		}
		m.Tokens = core.MessageTokens(req.Counter, m)
		saved += out[i].Tokens - m.Tokens
		out[i] = m
	}
	if saved < c.ClearAtLeast {
		return req.Messages
	}
	return out
}
