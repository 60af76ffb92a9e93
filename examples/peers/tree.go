package peers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

// TreeConfig has the settings of [Tree].
type TreeConfig struct {
	Fresh   int    `json:"fresh"    doc:"Newest messages that stay."`
	Leaf    int    `json:"leaf"     doc:"Tokens of messages that one summary stands for."`
	LeafOut int    `json:"leaf_out" doc:"Tokens of such a summary."`
	Fanout  int    `json:"fanout"   doc:"Summaries of one depth that become one of the next."`
	NodeOut int    `json:"node_out" doc:"Tokens of a summary of summaries."`
	Model   string `json:"model"    doc:"Writes the summaries; empty for the host's choice."`
}

// Validate reports invalid settings.
func (c *TreeConfig) Validate() error {
	if c.Fresh < 1 || c.Leaf < 1 || c.LeafOut < 1 || c.NodeOut < 1 || c.Fanout < 2 {
		return fmt.Errorf("fresh, leaf, leaf_out and node_out must be positive, and fanout at least 2")
	}
	return nil
}

// Tree is the tree of summaries of LCM (Lossless Context Management, arXiv 2605.04050). All messages but the newest are summarized in
// pieces; several summaries become one of the next depth. Each says for which messages it stands, so that the agent can recall them.
// A summary that is no shorter is asked for again in brief, and then cut without a model.
func Tree() registry.Strategy {
	return registry.Define("tree", "LCM's tree: summaries of pieces, and summaries of summaries.",
		func() TreeConfig {
			return TreeConfig{Fresh: 32, Leaf: 20_000, LeafOut: 1200, Fanout: 4, NodeOut: 2000}
		},
		func(_ context.Context, c TreeConfig, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				return (&tree{c, &writer{env: env, name: c.Model}, req}).condense(ctx)
			}), nil
		})
}

type tree struct {
	TreeConfig
	*writer

	req *core.Request
}

var node = regexp.MustCompile(`\[summary of depth (\d+) of messages (\S+) to (\S+)\]`)

// depth returns the depth of a summary of this provider; -1 for other messages.
func depth(m *core.Message) int {
	if m.Kind == core.KindSummary && len(m.Parts) > 0 {
		if t, ok := m.Parts[0].(core.Text); ok {
			if found := node.FindStringSubmatch(string(t)); found != nil {
				n, _ := strconv.Atoi(found[1])
				return n
			}
		}
	}
	return -1
}

func (t *tree) condense(ctx context.Context) (*core.Result, error) {
	view := slices.Clone(t.req.Messages)
	fresh := t.Fresh // fewer, if they alone do not fit, as there
	for fresh > 1 && core.TotalTokens(view[max(0, len(view)-fresh):]) > t.req.Budget.Room()*2/3 {
		fresh /= 2
	}
	for core.TotalTokens(view) > t.req.Budget.Room() {
		next, err := t.leaf(ctx, view, fresh)
		if err == nil && next == nil {
			next, err = t.node(ctx, view)
		}
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		view = next
	}
	return answer(ctx, t.req, view, t.usage)
}

// leaf replaces the oldest messages by a summary; nil if there are none.
func (t *tree) leaf(ctx context.Context, view []core.Message, fresh int) ([]core.Message, error) {
	stays := map[string]bool{}
	for _, m := range core.KeepGroups(view, func(i int) bool { return i >= len(view)-fresh || view[i].Kind != core.KindOriginal || view[i].ID == "" }) {
		stays[m.ID] = true
	}
	var piece []int
	tokens := 0
	for _, g := range core.Groups(view) {
		for i := g.Start; i < g.End; i++ {
			if view[i].ID != "" && !stays[view[i].ID] {
				piece, tokens = append(piece, i), tokens+view[i].Tokens
			} else if len(piece) > 0 {
				tokens = t.Leaf // a summary stands for neighbors
			}
		}
		if tokens >= t.Leaf {
			break
		}
	}
	if len(piece) == 0 {
		return nil, nil
	}
	return t.replace(ctx, view, piece, 0, t.LeafOut)
}

// node replaces the oldest summaries of one depth, the lowest, by one of the next; nil if there are not enough.
func (t *tree) node(ctx context.Context, view []core.Message) ([]core.Message, error) {
	byDepth := map[int][]int{}
	deepest := -1
	for i := range view {
		if d := depth(&view[i]); d >= 0 {
			byDepth[d], deepest = append(byDepth[d], i), max(deepest, d)
		}
	}
	for d := range deepest + 1 {
		if all := byDepth[d]; len(all) >= 2 {
			return t.replace(ctx, view, all[:min(len(all), t.Fanout)], d+1, t.NodeOut)
		}
	}
	return nil, nil
}

var orders = []string{
	"Summarize this part of a coding agent's history in at most %d tokens: requests, decisions with reasons, files and functions, results, errors.",
	"List the facts of this part of a coding agent's history as short points, in at most %d tokens. Leave everything else out.",
}

// replace returns view with one summary in the place of the messages at these indices.
func (t *tree) replace(ctx context.Context, view []core.Message, at []int, depth, most int) ([]core.Message, error) {
	source, size := make([]core.Message, len(at)), 0
	for i, j := range at {
		source[i], size = view[j], size+view[j].Tokens
	}
	from, to := nameOf(&source[0], 2), nameOf(&source[len(source)-1], 3)
	text := written(source, 20_000)
	most = max(50, min(most, size/2, t.req.Budget.Room()/4))
	m := core.Message{Role: core.RoleUser, Kind: core.KindSummary}
	for level := 0; ; level++ {
		summary := strings.ToValidUTF8(text[:min(len(text), 3*most)], "") + "…"
		if level < len(orders) {
			var err error
			if summary, err = t.ask(ctx, fmt.Sprintf(orders[level], most), text, most); err != nil {
				continue // the next level, and at last without a model
			}
		}
		m.Parts = []core.Part{core.Text(fmt.Sprintf("[summary of depth %d of messages %s to %s]\n%s", depth, from, to, summary))}
		m.Tokens = core.MessageTokens(t.req.Counter, m)
		if m.Tokens < size {
			break
		}
		if level >= len(orders) {
			return nil, ctx.Err()
		}
	}
	var out []core.Message
	for i, v := range view {
		if i == at[0] {
			out = append(out, m)
		}
		if !slices.Contains(at, i) {
			out = append(out, v)
		}
	}
	return out, ctx.Err()
}

// nameOf returns the number of a message, or of the first or last one of a summary.
func nameOf(m *core.Message, end int) string {
	if depth(m) >= 0 {
		t, _ := m.Parts[0].(core.Text)
		return node.FindStringSubmatch(string(t))[end]
	}
	if m.Number > 0 {
		return "m" + strconv.Itoa(m.Number)
	}
	return strings.Join(strings.Fields(m.ID), "_")
}
