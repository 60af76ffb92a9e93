package lab

import (
	"cmp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// A Spending is the distribution of the tokens of sessions. Each message counts once, however often it was sent.
type Spending struct {
	Mode     string `json:"mode"` // empty: all sessions, including those without a mode
	Sessions int    `json:"sessions"`
	Tokens   int    `json:"tokens"` // of the system prompt and the messages; definitions of tools are not counted
	// ByKind adds up to Tokens.
	ByKind map[tokens.Kind]int `json:"by_kind"`
	// ByTool has calls and results, the tool with the most tokens first.
	ByTool []ToolSpending `json:"by_tool"`
}

// A ToolSpending has the tokens of a tool.
type ToolSpending struct {
	Tool    string `json:"tool"`
	Calls   int    `json:"calls"`
	Results int    `json:"results"`
	// CallTokens and ResultTokens include images in results.
	CallTokens   int `json:"call_tokens"`
	ResultTokens int `json:"result_tokens"`
}

// Tokens returns the tokens of calls and results.
func (t *ToolSpending) Tokens() int { return t.CallTokens + t.ResultTokens }

// Names of tools that a session does not name: of a result without a call, and of results that the agent sent as
// text.
const (
	unknownTool = "(unknown)"
	inText      = "(in text)"
)

// A spent is the spending of one session.
type spent struct {
	tokens int
	kinds  map[tokens.Kind]int
	tools  map[string]*ToolSpending
}

// spentBy counts s, which c has measured.
func spentBy(s *score.Session, c *tokens.Counter) *spent {
	out := &spent{kinds: c.BreakdownMeasured(s.Messages...), tools: map[string]*ToolSpending{}}
	if s.System != "" {
		out.kinds[tokens.KindSystem] += c.Count(core.Text(s.System))
	}
	named := map[string]string{} // the tool of a call
	for i := range s.Messages {
		m := &s.Messages[i]
		for k, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				named[p.ID] = p.Name
				t := out.tool(p.Name)
				t.Calls++
				t.CallTokens += c.Count(p)
			case core.ToolResult:
				t := out.tool(cmp.Or(named[p.CallID], unknownTool))
				t.Results++
				t.ResultTokens += c.Count(p)
			case core.Text:
				if m.Role != core.RoleUser {
					continue
				}
				switch n := c.Count(p); originAt(s, i, k) {
				case score.OriginTool:
					t := out.tool(inText)
					t.Results++
					t.ResultTokens += n
					out.move(tokens.KindToolResult, n)
				case score.OriginInjected:
					out.move(tokens.KindInjected, n)
				case score.OriginUnknown, score.OriginUser, score.OriginAgent:
				}
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	for _, n := range out.kinds {
		out.tokens += n
	}
	return out
}

// originAt returns the author of a part.
func originAt(s *score.Session, message, part int) score.Origin {
	if message >= len(s.Origins) {
		return score.OriginUnknown
	}
	switch o := s.Origins[message]; {
	case part < len(o):
		return o[part]
	case len(o) == 1: // one for all parts
		return o[0]
	}
	return score.OriginUnknown
}

func (s *spent) tool(name string) *ToolSpending {
	if s.tools[name] == nil {
		s.tools[name] = &ToolSpending{Tool: name}
	}
	return s.tools[name]
}

// move counts n tokens of the user's kind, which they have by their role, as another kind.
func (s *spent) move(to tokens.Kind, n int) {
	n = min(n, s.kinds[tokens.KindUser])
	s.kinds[to] += n
	s.kinds[tokens.KindUser] -= n
}

// spending adds up the sessions, all together and by mode, each conversation once.
func spending(sessions []outcomeOf) []Spending {
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(o outcomeOf) bool { return o.spent == nil })
	slices.SortFunc(sessions, func(a, b outcomeOf) int { return strings.Compare(a.info.Name, b.info.Name) })
	infos := make([]SessionInfo, 0, len(sessions))
	infos = append(infos, plain.Each(sessions, func(x outcomeOf) SessionInfo { return x.info })...)
	again := copies(infos)
	sums, counts := map[string]*spent{}, map[string]int{}
	for _, o := range sessions {
		if again[o.info.Name] != "" {
			continue
		}
		for _, mode := range slices.Compact([]string{"", o.info.Mode}) {
			if sums[mode] == nil {
				sums[mode] = &spent{kinds: map[tokens.Kind]int{}, tools: map[string]*ToolSpending{}}
			}
			sums[mode].add(o.spent)
			counts[mode]++
		}
	}
	var out []Spending
	for mode, s := range sums {
		x := Spending{Mode: mode, Sessions: counts[mode], Tokens: s.tokens, ByKind: s.kinds, ByTool: []ToolSpending{}}
		for _, t := range s.tools {
			x.ByTool = append(x.ByTool, *t)
		}
		slices.SortFunc(x.ByTool, func(a, b ToolSpending) int {
			return cmp.Or(cmp.Compare(b.Tokens(), a.Tokens()), strings.Compare(a.Tool, b.Tool))
		})
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Spending) int {
		if a.Mode == "" || b.Mode == "" { // all of them come first, also where one mode has as many
			return strings.Compare(a.Mode, b.Mode)
		}
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), strings.Compare(a.Mode, b.Mode))
	})
	return out
}

func (s *spent) add(o *spent) {
	s.tokens += o.tokens
	for k, n := range o.kinds {
		s.kinds[k] += n
	}
	for name, t := range o.tools {
		s.tool(name).Add(t)
	}
}

// Add adds the tokens of another tool to those of t.
func (t *ToolSpending) Add(o *ToolSpending) {
	t.Calls += o.Calls
	t.Results += o.Results
	t.CallTokens += o.CallTokens
	t.ResultTokens += o.ResultTokens
}
