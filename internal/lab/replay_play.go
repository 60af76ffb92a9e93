package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/promptcache"
)

// A play is one session under one policy. Counts and hashes of messages are computed once, so a request costs only
// its new messages.
type play struct {
	game     *game
	policy   *Policy
	rule     policy.Rule
	state    policy.State
	when     epoch.Policy
	live     lineage.State
	authors  []wire.Message // the session's messages, with nothing but their roles and results
	counts   []int          // their tokens
	cut      int            // messages of the session that the view replaces
	scale    float64        // the vendor's tokens for one of ours: prompts, limits and prices are in the vendor's, messages in ours
	head     int            // the vendor's tokens of the system prompt and the tools
	bills    []bill         // one per tariff
	memory   *score.Memory
	view     []core.Message
	tokens   int // of the view, by our count
	blocks   []promptcache.Block
	run      int // number of the last run of blocks
	ends     [2]int
	gone     map[int]bool   // messages of the session that the view does not have in their recorded form
	played   int            // messages of the session in the view
	compact  int            // recorded compactions so far
	retry    int            // another attempt is useless below this size
	ready    []core.Message // condensed during an earlier request; nil for nothing
	since    int            // messages of the session that were played then
	requests int
	epochs   []PlayedEpoch
	summary  int // tokens of the recorded summary that was written before the next request
	sum      struct{ sent, peak, cut, repeats, gone int }
	size     []int
	fault    string
	wanted   []wanted // by request, where the record differs from the tariff; nil: nowhere
}

// wanted is the model of a recorded request, and the lifetime of its cache entries.
type wanted struct {
	model string
	life  time.Duration
}

func newPlay(g *game, p *Policy, tariffs []Tariff) *play {
	if g.uses == nil {
		g.uses = score.NewUses(g.session, score.Common())
	}
	x := &play{game: g, policy: p, memory: g.uses.NewMemory(), gone: map[int]bool{}, rule: policy.Default(g.opts.Window)}
	if p.Rule != nil {
		x.rule = p.Rule(g.opts.Window)
	}
	for i := range tariffs {
		x.bills = append(x.bills, bill{tariff: &tariffs[i]})
	}
	x.scale = cmp.Or(tariffs[0].Scale, 1)
	if x.head = g.fixed; !g.assumed {
		x.head = x.scaled(g.fixed)
	}
	x.live.HeadOur = x.head
	x.when = whenOf(x.rule, p)
	x.authors, x.counts = make([]wire.Message, len(g.session.Messages)), make([]int, len(g.session.Messages))
	for i := range x.authors {
		m := &g.session.Messages[i]
		x.authors[i].Role, x.counts[i] = string(m.Role), x.scaled(m.Tokens)
		for _, p := range m.Parts {
			if r, ok := p.(core.ToolResult); ok {
				x.authors[i].Results = append(x.authors[i].Results, r.CallID)
			}
		}
	}
	x.reset(nil)
	return x
}

// scaled returns our count of something in the vendor's tokens.
func (x *play) scaled(our int) int { return int(x.scale*float64(our) + 0.5) }

// ours converts the vendor's tokens to ours.
func (x *play) ours(vendor int) int { return int(float64(vendor) / x.scale) }

// talk is the vendor's count of the view.
func (x *play) talk() int { return x.scaled(x.tokens) }

// prompt is the vendor's count of a request with the view.
func (x *play) prompt() int { return x.head + x.talk() }

// sizes are the parts of a prompt.
func (x *play) sizes() policy.Size { return policy.Size{System: x.head, Messages: x.talk()} }

// reset begins a view.
func (x *play) reset(view []core.Message) {
	x.view, x.tokens, x.blocks = nil, 0, nil
	x.push([]byte("fixed"), 0)
	x.blocks[0].End = x.head
	for i := range view {
		x.add(view[i])
	}
}

// push appends a block to the prompt.
func (x *play) push(content []byte, run int) {
	h := sha256.New()
	if n := len(x.blocks); n > 0 {
		_, _ = h.Write(x.blocks[n-1].Sum[:])
	}
	_, _ = h.Write(content)
	b := promptcache.Block{Run: run, End: x.prompt()}
	copy(b.Sum[:], h.Sum(nil))
	x.blocks = append(x.blocks, b)
}

// add appends a message to the view and to the prompt.
func (x *play) add(m core.Message) {
	if m.Tokens == 0 {
		m.Tokens = core.MessageTokens(x.game.counter, m)
	}
	bytes, total := 0, max(1, core.ContentBytes(m.Parts...))
	before := x.tokens
	calls, results := 0, 0
	for i := range m.Parts {
		run := 0
		switch m.Parts[i].(type) { // neighbours count as one position
		case core.Text, core.Reasoning, core.Image, core.Opaque:
		case core.ToolCall:
			if calls == 0 {
				x.run++
				calls = x.run
			}
			run = calls
		case core.ToolResult:
			if results == 0 {
				x.run++
				results = x.run
			}
			run = results
		}
		bytes += core.ContentBytes(m.Parts[i])
		x.tokens = before + m.Tokens*bytes/total
		x.push(content(&m, m.Parts[i]), run)
	}
	x.tokens = before + m.Tokens
	if len(m.Parts) > 0 {
		x.blocks[len(x.blocks)-1].End = x.prompt()
	}
	x.view = append(x.view, m)
}

// content returns the bytes of a block for hashing.
func content(m *core.Message, p core.Part) []byte {
	out := append([]byte(m.Role), 0)
	switch p := p.(type) {
	case core.Text:
		return append(append(out, 't'), p...)
	case core.ToolCall:
		return append(append(append(append(append(out, 'c'), p.ID...), 0), p.Name...), p.Args...)
	case core.ToolResult:
		out = append(append(out, 'r'), p.CallID...)
		out = append(out, slices.Concat(plain.Each(p.Content, func(c core.Part) []byte { return content(m, c) })...)...)
	case core.Reasoning:
		out = append(append(append(append(out, 'h'), p.Text...), p.Signature...), p.Encrypted...)
	case core.Image:
		out = append(append(append(out, 'i'), p.Data...), p.URL...)
	case core.Opaque:
		out = append(append(out, 'o'), p.JSON...)
	}
	return out
}

func (x *play) play(ctx context.Context) error {
	for k, t := range x.game.turns {
		if err := x.extend(ctx, t); err != nil {
			return err
		}
		if err := x.epoch(ctx, k, t); err != nil {
			return err
		}
		x.send(k, t)
	}
	if err := x.extend(ctx, len(x.game.session.Messages)); err != nil {
		return err
	}
	return ctx.Err()
}

// extend appends the messages of the session up to an index.
func (x *play) extend(ctx context.Context, to int) error {
	from := x.played
	added, cut, err := x.ingest(ctx, from, to)
	if err != nil {
		return err
	}
	for ; x.played < to; x.played++ {
		i := x.played
		x.memory.Use(i)
		if was := x.game.repeats[i]; was >= 0 {
			x.sum.repeats++
			if x.gone[was] {
				x.sum.gone++
			}
		}
		x.add(added[i-from])
		if cut[i-from] {
			x.sum.cut++
			x.gone[i] = true
			x.memory.Append(added[i-from])
		} else {
			x.memory.Add(i)
		}
	}
	return nil
}

// ingest returns the new messages as they are sent, and which of them were shortened.
func (x *play) ingest(ctx context.Context, from, to int) ([]core.Message, []bool, error) {
	added, cut := x.game.session.Messages[from:to], make([]bool, to-from)
	if x.policy.Ingest == nil || !slices.ContainsFunc(added, func(m core.Message) bool { return hasResult(m.Parts) }) {
		return added, cut, nil
	}
	chain, err := x.policy.Ingest.open(1000+from, x.game.opts.Now)
	if err != nil {
		return nil, nil, err
	}
	// An answer of the model makes the round complete: the last request of a conversation is never changed.
	closing := core.Message{ID: "closing", Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}, Tokens: 1}
	const window = 10_000_000
	out, err := chain.Run(ctx, &core.Request{
		Messages: append(slices.Clip(slices.Clone(added)), closing), Trigger: core.TriggerIngest, Typed: dialog.Typed, Counter: x.game.counter,
		Budget: core.Budget{Window: window, Limit: window, Target: 1},
	})
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil || len(out.Messages) != len(added)+1 {
		return added, cut, nil //nolint:nilerr // the messages stay unchanged
	}
	for i := range added {
		cut[i] = out.Messages[i].Tokens < added[i].Tokens
	}
	return out.Messages[:len(added)], cut, nil
}

// send settles the bill of request k, which message t answers.
func (x *play) send(k, t int) {
	answer := 0
	end := len(x.game.session.Messages)
	if k+1 < len(x.game.turns) {
		end = x.game.turns[k+1]
	}
	for i := t; i < end; i++ {
		if x.game.session.Messages[i].Role == core.RoleAssistant {
			answer += x.game.session.Messages[i].Tokens
		}
	}
	answer = x.scaled(answer)
	now := x.game.starts[k]
	last := len(x.blocks) - 1
	prompt := x.blocks[last].End
	x.sum.sent += prompt
	x.sum.peak = max(x.sum.peak, prompt)
	x.size = append(x.size, prompt)
	for i := range x.bills {
		d := &x.bills[i]
		as := wanted{"", d.tariff.Life}
		if x.wanted != nil {
			as = x.wanted[k]
		}
		u := d.send(x.blocks, []int{0, x.ends[0], x.ends[1], last}, as, now)
		usd := d.tariff.usd(u.Prompt, u.Read, u.Write, u.Hour, answer)
		if x.summary > 0 { // the agent asked for it, with the conversation uncondensed
			before := x.epochs[len(x.epochs)-1].Before
			usd += d.tariff.usd(before, before, 0, 0, x.summary)
		}
		d.usd += usd
		d.settle(x, &u, now)
		d.last = now
		if i == 0 {
			x.live.Sent(x.request(k), nil, now)
			usage := lineage.Usage{Input: prompt, Read: u.Read, Write: u.Write}
			x.live.Paid(usage, answer, d.tariff.rates(prompt))
			x.live.Measured(prompt, usage)
		}
	}
	x.summary = 0
	x.ends[1] = last
	x.requests++
}
