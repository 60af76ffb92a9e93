package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/promptcache"
	"github.com/condensehq/condense/tokens"
)

// A game is the state shared by the plays of one session.
type game struct {
	session *score.Session
	name    string
	counter *tokens.Counter
	opts    *ReplayOptions
	fixed   int  // tokens of the system prompt and the tools, by our count
	assumed bool // it is an assumption
	hash    string
	turns   []int       // for every request, the message that answers it
	starts  []time.Time // when each request began
	timed   bool
	uses    *score.Uses
	index   map[string]int // of messages by their ID
	repeats []int          // for each message, the index of the earlier message with the result of the same call; -1 for none
	scorers map[scorerKey]*score.Scorer
	views   map[viewKey][]core.Message // results of strategies for views, shared by tariffs
	marks   map[markKey][2]*float64    // and their measures

	cache    *cache // nil: none
	encoding string
}

// A viewKey has everything on which the result of a strategy depends.
type viewKey struct {
	strategy *Strategy
	view     [16]byte // its last block
	budget   core.Budget
	trigger  core.Trigger
	round    int
	bare     bool
}

type markKey struct {
	at   int
	view [16]byte
}

func newGame(s *score.Session, name string, c *tokens.Counter, opts *ReplayOptions) *game {
	g := &game{
		session: s, name: name, counter: c, opts: opts, hash: sessionHash(s), turns: requests(s),
		index: map[string]int{}, scorers: map[scorerKey]*score.Scorer{}, views: map[viewKey][]core.Message{}, marks: map[markKey][2]*float64{},
	}
	for i := range s.Messages {
		g.index[s.Messages[i].ID] = i
	}
	g.clock()
	g.measureFixed()
	g.findRepeats()
	return g
}

// Pauses for sessions that record no times, from 42 recorded sessions of Claude Code: the deciles of the pauses
// before a message that the user types.
var pauses = [...]int{0, 3, 13, 39, 72, 107, 170, 301, 702, 1800} // seconds

const perTurn = 8 * time.Second // the same, between two requests of one round of tools

// clock determines when each request began: when the message before its answer was written.
func (g *game) clock() {
	s := g.session
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(g.hash))
	rng := rand.New(rand.NewPCG(g.opts.Seed, sum.Sum64())) //nolint:gosec // no secret
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for k, t := range g.turns {
		at := s.Messages[t-1].Time
		if at.IsZero() {
			at = s.Messages[t].Time
		}
		if !at.IsZero() {
			g.timed = true
			if k == 0 || at.After(now) {
				now = at
			}
		} else {
			now = now.Add(perTurn)
			if !hasResult(s.Messages[t-1].Parts) {
				now = now.Add(time.Duration(pauses[rng.IntN(len(pauses))]) * time.Second)
			}
		}
		g.starts = append(g.starts, now)
	}
}

func hasResult(parts []core.Part) bool {
	return slices.ContainsFunc(parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
}

// measureFixed determines the size of the system prompt and the tools: as recorded, or the vendor's count of the
// first request less the count of its messages.
func (g *game) measureFixed() {
	s := g.session
	if s.System != "" {
		g.fixed = g.counter.Count(core.Text(s.System))
		return
	}
	if len(g.turns) > 0 {
		if u, ok := s.Usage[g.turns[0]]; ok {
			ours := 0
			for i := range s.Messages[:g.turns[0]] {
				ours += s.Messages[i].Tokens
			}
			g.fixed = max(0, int(float64(u.Input)/catalog.TokenFactor(u.Model))-ours)
			return
		}
	}
	g.fixed, g.assumed = g.opts.Fixed, true
}

// findRepeats finds the calls that repeat an earlier call with the same arguments.
func (g *game) findRepeats() {
	last := map[string]int{}
	g.repeats = make([]int, len(g.session.Messages))
	for i := range g.session.Messages {
		g.repeats[i] = -1
		for _, p := range g.session.Messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				key := c.Name + "\x00" + c.Args
				if was, ok := last[key]; ok {
					g.repeats[i] = was
				}
				last[key] = i + 1 // where its result is
			}
		}
	}
}

// info describes the session. Key is the program's key in the cache.
func (g *game) info(ctx context.Context, key string) (PlayedSession, error) {
	s := describe(g.name, g.session)
	out := PlayedSession{
		Name: g.name, Source: s.Source, Mode: s.Mode, Tokens: s.Tokens, Fixed: g.fixed, Timed: g.timed, Counted: len(g.session.Usage) > 0, Hash: g.hash, Said: s.Said,
	}
	var kept struct{ Check *CacheCheck }
	k := g.key(key, "check")
	if g.found(k, &kept) {
		out.Check = kept.Check
		return out, nil
	}
	out.Check = g.check(ctx)
	kept.Check = out.Check
	return out, errors.Join(ctx.Err(), g.keep(k, kept))
}

// key returns the key of a result in the cache; empty if the policy has none.
func (g *game) key(policy, what string) string {
	if g.cache == nil || policy == "" {
		return ""
	}
	return replayKey(g.hash, g.session, policy, g.encoding, what, g.opts.Seed, g.opts.Window, g.opts.Fixed)
}

func (g *game) found(key string, v any) bool { return key != "" && g.cache.get(key, v) }

func (g *game) keep(key string, v any) error {
	if key == "" {
		return nil
	}
	return g.cache.put(key, v)
}

// all plays every policy under every tariff.
func (g *game) all(ctx context.Context, policies []Policy) ([]Played, error) {
	var out []Played
	for i := range policies {
		p := &policies[i]
		// Without Money the requests are the same under all tariffs that count alike, except for thinking bound to
		// its history.
		sets := map[kin][]Tariff{}
		for _, t := range g.opts.Tariffs {
			var kept Played
			if g.found(g.key(p.Key, t.Name), &kept) {
				kept.Policy, kept.Session, kept.Source, kept.Mode = p.Name, g.name, g.session.Source, g.session.Mode
				out = append(out, kept)
				continue
			}
			if !p.Money {
				k := kin{t.Caching.Bound, t.Scale}
				sets[k] = append(sets[k], t)
				continue
			}
			plays, err := g.play(ctx, p, []Tariff{t})
			if err != nil {
				return nil, err
			}
			out = append(out, plays...)
		}
		for _, set := range sets {
			plays, err := g.play(ctx, p, set)
			if err != nil {
				return nil, err
			}
			out = append(out, plays...)
		}
	}
	return out, nil
}

// kin is the part of a tariff on which requests depend.
type kin struct {
	bound bool
	scale float64
}

// play plays a policy under tariffs with the same requests.
func (g *game) play(ctx context.Context, p *Policy, tariffs []Tariff) ([]Played, error) {
	x := newPlay(g, p, tariffs)
	if err := x.play(ctx); err != nil {
		return nil, err
	}
	plays := x.results()
	for i := range plays {
		if plays[i].Error == "" { // the next run may succeed
			if err := g.keep(g.key(p.Key, plays[i].Tariff), plays[i]); err != nil {
				return nil, err
			}
		}
	}
	return plays, nil
}

// A play is one session under one policy. Counts and hashes of messages are computed once, so a request costs only
// its new messages.
type play struct {
	*game
	policy   *Policy
	rule     policy.Rule
	state    policy.State
	when     epoch.Policy
	live     lineage.State
	authors  []wire.Message // the session's messages, with nothing but their roles
	cut      int            // messages of the session that the view replaces
	scale    float64        // the vendor's tokens for one of ours: prompts, limits and prices are in the vendor's, messages in ours
	head     int            // the vendor's tokens of the system prompt and the tools
	desks    []desk         // one per tariff
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

// A desk settles the bill of a play under one tariff.
type desk struct {
	tariff *Tariff
	cache  promptcache.Cache
	usd    float64
	read   int
	write  int
	cached []int
	last   time.Time
	debts  []debt
}

// A debt is an epoch that has not paid for itself.
type debt struct {
	epoch     int
	saved     int // tokens that every later prompt is shorter by
	predicted *float64
	owed      float64 // prices of tokens
	turns     int
	paid      bool
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
		x.desks = append(x.desks, desk{tariff: &tariffs[i]})
	}
	x.scale = cmp.Or(tariffs[0].Scale, 1)
	if x.head = g.fixed; !g.assumed {
		x.head = x.scaled(g.fixed)
	}
	x.live.HeadOur = x.head
	x.when = whenOf(x.rule, p)
	x.authors = make([]wire.Message, len(g.session.Messages))
	for i := range x.authors {
		x.authors[i].Role = string(g.session.Messages[i].Role)
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
		m.Tokens = core.MessageTokens(x.counter, m)
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
		for _, c := range p.Content {
			out = append(out, content(m, c)...)
		}
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
	for k, t := range x.turns {
		if err := x.extend(ctx, t); err != nil {
			return err
		}
		if err := x.epoch(ctx, k, t); err != nil {
			return err
		}
		x.send(k, t)
	}
	if err := x.extend(ctx, len(x.session.Messages)); err != nil {
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
		if was := x.repeats[i]; was >= 0 {
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
	added, cut := x.session.Messages[from:to], make([]bool, to-from)
	if x.policy.Ingest == nil || !slices.ContainsFunc(added, func(m core.Message) bool { return hasResult(m.Parts) }) {
		return added, cut, nil
	}
	chain, err := x.policy.Ingest.open(1000+from, x.opts.Now)
	if err != nil {
		return nil, nil, err
	}
	// An answer of the model makes the round complete: the last request of a conversation is never changed.
	closing := core.Message{ID: "closing", Role: core.RoleAssistant, Parts: []core.Part{core.Text(".")}, Tokens: 1}
	const window = 10_000_000
	out, err := chain.Run(ctx, &core.Request{
		Messages: append(slices.Clip(slices.Clone(added)), closing), Trigger: core.TriggerManual, Counter: x.counter,
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

// A due is a decision to condense.
type due struct {
	reason  string
	trigger core.Trigger
	target  int // tokens of the whole prompt; 0 for the rule's
}

// decide says whether the next request should be condensed, and why.
func (x *play) decide(k int) (due, bool) {
	if !x.policy.Money {
		d := x.rule.Decide(x.sizes(), x.state, core.TriggerAutomatic)
		return due{reason: string(d.Reason), trigger: core.TriggerAutomatic}, d.Act
	}
	f := x.facts(k)
	d := epoch.Decide(f, x.when)
	if l := x.opts.Logger; l != nil {
		l.Debug("decision", "session", x.name, "request", k, "facts", f, "policy", x.when, "decision", d)
	}
	return due{reason: string(d.Reason), trigger: d.Reason.Trigger(), target: d.Target}, d.Reason != epoch.None
}

// facts returns the numbers that the decision before request k rests on, as the gateway would know them.
func (x *play) facts(k int) epoch.Facts {
	t := x.desks[0].tariff
	f := x.live.Facts(x.request(k), x.prompt(), x.starts[k])
	f.Retry = x.retry
	f.Cache.Write, f.Cache.Read = t.Caching.Prices(t.life())
	if t.Caching.Automatic { // else the client asks for one
		f.Cache.Usual = t.Life
	}
	return f
}

// request returns request k as far as the gateway's records of a conversation need it.
func (x *play) request(k int) *wire.Request {
	t := x.desks[0].tariff
	return &wire.Request{Model: t.Name, TTL: t.life(), Messages: x.authors[:x.turns[k]]}
}

// whenOf returns what the gateway's policy would be: that of the rule, with the wishes of the replayed one.
func whenOf(r policy.Rule, p *Policy) epoch.Policy {
	when := epoch.Of(r)
	when.MinSize, when.Share, when.Risk = p.Floor, p.Leave, p.Risk
	when.IgnoreCold, when.IgnorePayback = when.IgnoreCold || !p.Cold, when.IgnorePayback || !p.Payback
	return when
}

// life is the requested lifetime of cache entries; 0 if prefixes are cached automatically.
func (t *Tariff) life() time.Duration {
	if t.Caching.Automatic {
		return 0
	}
	return t.Life
}

// rates are the prices for a prompt of that size, relative to the price of input.
func (t *Tariff) rates(prompt int) lineage.Rates {
	p := t.info.PriceFor(prompt)
	write, read := t.Caching.Prices(t.life())
	return lineage.Rates{Write: cmp.Or(write, 1), Read: cmp.Or(read, 1), Answer: p.Output / p.Input}
}

// epoch condenses the view if it is due.
func (x *play) epoch(ctx context.Context, k, t int) error {
	if x.policy.Recorded {
		x.compacted(k, t)
		return nil
	}
	if x.policy.Strategy == nil {
		return nil
	}
	d, ok := x.decide(k)
	before := x.prompt()
	if !ok || !x.policy.Money && before < x.retry && d.reason != string(policy.ReasonLimit) {
		return nil
	}
	if !x.policy.Money {
		view, err := x.condensed(ctx, d)
		if view != nil {
			x.begin(k, t, d, before, view)
		}
		return err
	}
	// As in the gateway, no request waits for a condensation but one that the window forces: the next request uses it.
	forced := d.reason == string(epoch.Forced)
	view := x.takeReady()
	if view != nil && forced && x.sizeOf(view) > x.when.Limit { // too much has come since
		view = nil
	}
	if view == nil {
		made, err := x.condensed(ctx, d)
		if made == nil || err != nil {
			return err
		}
		if !forced {
			x.ready, x.since = made, x.played
			return nil
		}
		view = made
	}
	if x.sizeOf(view) >= before {
		x.retry = x.when.RetryAfter(before)
		return nil
	}
	x.begin(k, t, d, before, view)
	return nil
}

// takeReady returns the view that was condensed next to an earlier request, with the messages since; nil if there is none.
func (x *play) takeReady() []core.Message {
	if x.ready == nil {
		return nil
	}
	view := append(slices.Clip(x.ready), x.view[len(x.view)-(x.played-x.since):]...)
	x.ready = nil
	return view
}

// sizeOf returns the vendor's count of a request with a view.
func (x *play) sizeOf(view []core.Message) int {
	left := 0
	for i := range view {
		left += view[i].Tokens
	}
	return x.head + x.scaled(left)
}

// condensed returns what the strategy makes of the view; nil if that fails or is of no use.
func (x *play) condensed(ctx context.Context, d due) ([]core.Message, error) {
	before := x.prompt()
	decision := x.rule.Decide(x.sizes(), x.state, d.trigger)
	budget := decision.Budget
	if d.target > 0 {
		budget.Target = min(budget.Limit, max(d.target, x.head+1))
	}
	after := before
	view, err := x.condense(ctx, budget, d.trigger)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil {
		after = x.sizeOf(view)
	} else if x.fault == "" {
		x.fault = err.Error()
	}
	x.state = x.state.After(decision, after)
	if !decision.Worth(after) && (!x.policy.Money || after >= before) {
		x.retry = x.when.RetryAfter(before)
		return nil, nil
	}
	return view, nil
}

// condense runs the strategy, which counts as we do. Messages that the model has not answered yet stay unchanged,
// unless that leaves too little room.
func (x *play) condense(ctx context.Context, budget core.Budget, trigger core.Trigger) ([]core.Message, error) {
	budget = core.Budget{
		Window: x.ours(budget.Window), Reserve: x.ours(budget.Reserve), Overhead: x.ours(budget.Overhead), Limit: x.ours(budget.Limit), Target: x.ours(budget.Target),
	}
	key := viewKey{x.policy.Strategy, x.blocks[len(x.blocks)-1].Sum, budget, trigger, len(x.epochs) + 1, x.policy.Money}
	if view, ok := x.views[key]; ok {
		return view, nil
	}
	view, err := x.attempt(ctx, budget, trigger)
	if err == nil {
		x.views[key] = view
	}
	return view, err
}

func (x *play) attempt(ctx context.Context, budget core.Budget, trigger core.Trigger) ([]core.Message, error) {
	open := len(x.view)
	for open > 0 && x.view[open-1].Role != core.RoleAssistant {
		open--
	}
	for open > 0 && x.view[open-1].Role == core.RoleAssistant {
		open--
	}
	var first error
	for _, keep := range []int{open, len(x.view)} {
		chain, err := x.policy.Strategy.open(len(x.epochs)+1, x.opts.Now)
		if err != nil {
			return nil, err
		}
		messages := slices.Clone(x.view)
		for i := keep; i < len(messages); i++ {
			messages[i].Protected = true
		}
		out, err := chain.Run(ctx, &core.Request{
			Messages: messages, Trigger: trigger, Mode: x.session.Mode, System: x.session.System, Budget: budget, Counter: x.counter, NoRecall: x.policy.Money,
		})
		if err == nil && out.Provider != "" {
			for i := range out.Messages {
				out.Messages[i].Protected = false
			}
			return out.Messages, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil || keep == len(x.view) {
			break
		}
	}
	if first == nil {
		return x.view, nil
	}
	return nil, first
}

// compacted replays a recorded compaction.
func (x *play) compacted(k, t int) {
	s := x.session
	for x.compact < len(s.Compactions) && s.Compactions[x.compact].At <= t {
		c := s.Compactions[x.compact]
		x.compact++
		if c.Summary == "" {
			continue
		}
		view := []core.Message{{ID: "summary-" + string(rune('a'+x.compact)), Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(c.Summary)}}}
		view[0].Tokens = core.MessageTokens(x.counter, view[0])
		x.summary += x.scaled(view[0].Tokens)
		view = append(view, s.Messages[c.KeptFrom:t]...)
		x.begin(k, t, due{reason: "recorded"}, x.prompt(), view)
	}
}

// begin makes view the next one that is sent.
func (x *play) begin(k, t int, d due, before int, view []core.Message) {
	kept := x.kept(view)
	x.cut = t - kept
	block, rest := view[:len(view)-kept], view[len(view)-kept:]
	if x.desks[0].tariff.Caching.Bound { // thinking after the old history is not valid after the new one
		block, rest = withoutReasoning(block, x.counter), withoutReasoning(rest, x.counter)
	}
	old := x.blocks
	x.reset(block)
	ours := x.talk()
	for i := range rest {
		x.add(rest[i])
	}
	x.memory.Read(view)
	clear(x.gone)
	unchanged := map[int]bool{}
	for i := range x.view {
		if at, ok := x.index[x.view[i].ID]; ok && x.view[i].Equal(x.session.Messages[at]) {
			unchanged[at] = true
		}
	}
	for i := range x.played {
		if !unchanged[i] {
			x.gone[i] = true
		}
	}
	after := x.prompt()
	e := PlayedEpoch{Request: k, At: t, Reason: d.reason, Before: before, After: after}
	e.Panel, e.User = x.judge(t)
	x.live.Epoch = &lineage.Epoch{N: len(x.epochs) + 1, Cut: x.cut, Our: ours, Reason: epoch.Reason(d.reason), Time: x.starts[k], Before: before, After: after}
	x.ends = [2]int{len(x.blocks) - 1, 0}
	same := 0
	for same < min(len(old), len(x.blocks)) && old[same].Sum == x.blocks[same].Sum {
		same++
	}
	head := 0
	if same > 0 {
		head = old[same-1].End
	}
	for i := range x.desks {
		d := &x.desks[i]
		b := debt{epoch: len(x.epochs), saved: before - after}
		if w, r := d.tariff.Caching.Prices(d.tariff.life()); after < before && r > 0 {
			turns := 0.0
			if k > 0 && x.starts[k].Sub(x.starts[k-1]) < d.tariff.Life {
				turns = max(0, (w*float64(after-head)-r*float64(before-head))/(r*float64(before-after)))
			}
			b.predicted = &turns
		}
		d.debts = append(d.debts, b)
	}
	x.epochs = append(x.epochs, e)
}

// kept returns how many messages at the end of a condensed view are those of the session after the last cut, as they were sent: the gateway
// freezes only what is before them.
func (x *play) kept(view []core.Message) int {
	n, most := 0, min(len(view), len(x.view), x.played-x.cut)
	for n < most && view[len(view)-1-n].ID == x.view[len(x.view)-1-n].ID && view[len(view)-1-n].Equal(x.view[len(x.view)-1-n]) {
		n++
	}
	return n
}

func withoutReasoning(view []core.Message, c core.Counter) []core.Message {
	out := make([]core.Message, 0, len(view))
	for _, m := range view {
		if slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok }) {
			m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok })
			if len(m.Parts) == 0 {
				continue
			}
			m.Tokens = core.MessageTokens(c, m)
		}
		out = append(out, m)
	}
	return out
}

// judge measures the view against the messages after message t.
func (x *play) judge(t int) (panel, user *float64) {
	key := markKey{t, x.blocks[len(x.blocks)-1].Sum}
	if m, ok := x.marks[key]; ok {
		return m[0], m[1]
	}
	end, turns := len(x.session.Messages), 0
	for _, at := range x.turns {
		if at >= t {
			if turns++; turns > score.TurnsOfTheFuture {
				end = at
				break
			}
		}
	}
	s := x.scorer(t, end).Score(x.view)
	if turns >= score.TurnsAfter {
		panel = value(s.Panel())
	}
	user = value(s.UIR.Value())
	x.marks[key] = [2]*float64{panel, user}
	return panel, user
}

func (g *game) scorer(at, end int) *score.Scorer {
	k := scorerKey{nil, at, end}
	if g.scorers[k] == nil {
		g.scorers[k] = score.NewScorer(score.Cut{Session: g.session, At: at, End: end, Compaction: -1}, score.Common())
	}
	return g.scorers[k]
}

// send settles the bill of request k, which message t answers.
func (x *play) send(k, t int) {
	answer := 0
	end := len(x.session.Messages)
	if k+1 < len(x.turns) {
		end = x.turns[k+1]
	}
	for i := t; i < end; i++ {
		if x.session.Messages[i].Role == core.RoleAssistant {
			answer += x.session.Messages[i].Tokens
		}
	}
	answer = x.scaled(answer)
	now := x.starts[k]
	last := len(x.blocks) - 1
	prompt := x.blocks[last].End
	x.sum.sent += prompt
	x.sum.peak = max(x.sum.peak, prompt)
	x.size = append(x.size, prompt)
	for i := range x.desks {
		d := &x.desks[i]
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

// send looks a prompt up and writes it.
func (d *desk) send(blocks []promptcache.Block, marks []int, as wanted, now time.Time) promptcache.Use {
	c := d.tariff.Caching
	p := promptcache.Prompt{Blocks: blocks, Scope: as.model}
	rules := promptcache.Rules{Minimum: c.MinPrefix}
	if c.Automatic {
		rules = promptcache.Rules{Automatic: true, Minimum: c.MinPrefix, Life: as.life, Step: 128, Writes: c.Write > 1}
	} else {
		slices.Sort(marks)
		for _, m := range slices.Compact(marks) {
			p.Marks = append(p.Marks, promptcache.Mark{Block: m, Life: as.life})
		}
	}
	u := d.cache.Lookup(&p, rules, now)
	d.cache.Learn(&u, now)
	d.read += u.Read
	d.write += u.Write
	d.cached = append(d.cached, u.Read)
	return u
}

// settle compares the last epoch's savings so far with its cost, in prices of a token of input.
func (d *desk) settle(x *play, u *promptcache.Use, now time.Time) {
	if len(d.debts) == 0 || d.debts[len(d.debts)-1].paid {
		return
	}
	b := &d.debts[len(d.debts)-1]
	w, r := d.tariff.Caching.Prices(d.tariff.life())
	rate := w // of a token that would have been sent without the epoch
	if !d.last.IsZero() && now.Sub(d.last) < d.tariff.Life {
		rate = r
	}
	if e := &x.epochs[b.epoch]; e.Request == x.requests {
		b.owed = float64(u.Prompt-u.Read-u.Write) + r*float64(u.Read) + w*float64(u.Write) - rate*float64(e.Before)
	} else {
		b.turns++
		b.owed -= rate * float64(b.saved)
	}
	b.paid = b.owed <= 0
}

func (x *play) results() []Played {
	had := value(x.memory.Had())
	_, user := x.judge(len(x.session.Messages))
	var out []Played
	for i := range x.desks {
		d := &x.desks[i]
		epochs := slices.Clone(x.epochs)
		for _, b := range d.debts {
			epochs[b.epoch].Predicted = b.predicted
			if b.paid {
				epochs[b.epoch].Paid = &b.turns
			}
		}
		out = append(out, Played{
			Session: x.name, Source: x.session.Source, Mode: x.session.Mode, Policy: x.policy.Name, Tariff: d.tariff.Name,
			USD: d.usd, Requests: x.requests, Sent: x.sum.sent, Read: d.read, Write: d.write, Peak: x.sum.peak, Epochs: some(epochs), Cut: x.sum.cut,
			Had: had, User: user, Repeats: x.sum.repeats, Gone: x.sum.gone, Error: x.fault, Size: x.size, Cached: d.cached,
		})
	}
	return out
}
