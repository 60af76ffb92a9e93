package lab

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/lab/score"
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
	marks   map[markKey]*PlayedEpoch   // and their measures

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
		index: map[string]int{}, scorers: map[scorerKey]*score.Scorer{}, views: map[viewKey][]core.Message{}, marks: map[markKey]*PlayedEpoch{},
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
			ours := core.TotalTokens(s.Messages[:g.turns[0]])
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
