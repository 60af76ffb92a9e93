package coretest

import "github.com/condensehq/condense/core"

// A Counter counts one token for every four bytes of a text, a started four included.
// It is quick and additive, and no tokenizer: right for tests, wrong for users.
type Counter struct{}

// Count returns the tokens of parts.
func (c Counter) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += tokens(string(p))
		case core.ToolCall:
			n += tokens(p.ID) + tokens(p.Name) + tokens(p.Args)
		case core.ToolResult:
			n += tokens(p.CallID) + c.Count(p.Content...)
		case core.Image:
			n += tokens(p.Data) + tokens(p.URL)
		case core.Reasoning:
			n += tokens(p.Text) + tokens(p.Signature) + tokens(p.Encrypted)
		case core.Opaque:
			n += tokens(p.JSON)
		}
	}
	return n
}

func tokens(s string) int { return (len(s) + 3) / 4 }
