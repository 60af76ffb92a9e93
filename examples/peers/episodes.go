package peers

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// EpisodesConfig has the settings of [Episodes].
type EpisodesConfig struct {
	Recent int `json:"recent" doc:"Newest episodes that go last."`
	Active int `json:"active" doc:"Newest episodes whose files are being reasoned over."`
}

// Episodes is the eviction of CWL (Context Window Lifecycle, arXiv 2606.11213). The user's turns stay. Of the rest, actions whose
// effects are in the environment go first, then explorations of files that nobody looks at any more, then others, the oldest first:
// their results are emptied, then they are hidden. There the agent marks its episodes and on which others they depend. Here an
// episode is a call group, an action if a call writes or runs something, and it depends on those that name the same file.
func Episodes() registry.Strategy {
	return registry.Define("episodes", "CWL's eviction without a model: the user's turns stay, actions go before explorations in use.",
		func() EpisodesConfig { return EpisodesConfig{Recent: 5, Active: 20} },
		func(_ context.Context, c EpisodesConfig, _ registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return answer(ctx, req, c.evict(req), core.Usage{})
			}), nil
		}).Only(core.Rewrites | core.Hides | core.KeepsWords)
}

var acting = regexp.MustCompile(`(?i)edit|write|create|replace|patch|bash|exec|run|command|shell`)

// An episode is a group of messages.
type episode struct {
	core.Span
	rank   int // the lowest goes first; -1 stays
	action bool
	files  []string
}

func (c EpisodesConfig) evict(req *core.Request) []core.Message {
	var all []episode
	for _, g := range core.Groups(req.Messages) {
		e := episode{Span: g}
		for i := g.Start; i < g.End; i++ {
			m := &req.Messages[i]
			if m.Role == core.RoleSystem || m.Protected || m.Kind != core.KindOriginal || m.Role == core.RoleUser && req.FromUser(m) {
				e.rank = -1
			}
			for _, p := range m.Parts {
				if call, ok := p.(core.ToolCall); ok {
					e.action = e.action || acting.MatchString(call.Name)
					e.files = append(e.files, files(call.Args)...)
				}
			}
		}
		all = append(all, e)
	}
	used := map[string]bool{}
	for _, e := range all[max(0, len(all)-c.Active):] {
		for _, f := range e.files {
			used[f] = true
		}
	}
	for i := range all {
		switch e := &all[i]; {
		case e.rank < 0 || e.action && i < len(all)-c.Recent: // actions are 0
		case i >= len(all)-c.Recent:
			e.rank = 3
		case slices.ContainsFunc(e.files, func(f string) bool { return used[f] }):
			e.rank = 2
		default:
			e.rank = 1
		}
	}
	out, gone := slices.Clone(req.Messages), map[int]bool{}
	over := core.TotalTokens(out) - req.Budget.Room()
	for rank := range 4 {
		for _, e := range all { // results first
			for i := e.Start; i < e.End && e.rank == rank && over > 0; i++ {
				if m, ok := emptied(out[i], func(core.ToolResult) bool { return true }); ok {
					m.Tokens = core.MessageTokens(req.Counter, m)
					over -= out[i].Tokens - m.Tokens
					out[i] = m
				}
			}
		}
		for _, e := range all {
			for i := e.Start; i < e.End && e.rank == rank && (over > 0 || gone[e.Start]); i++ {
				over -= out[i].Tokens
				gone[i] = true
			}
		}
	}
	return core.KeepGroups(out, func(i int) bool { return !gone[i] })
}

// files returns the files that the arguments of a call name.
func files(args string) []string {
	var fields map[string]any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return nil
	}
	var out []string
	for _, name := range []string{"path", "file_path", "filePath", "file", "filename"} {
		if f, ok := fields[name].(string); ok && f != "" {
			out = append(out, f)
		}
	}
	return out
}
