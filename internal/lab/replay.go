package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

// A Policy tells when a conversation is condensed, how far and by which strategy. [Replay] compares policies.
type Policy struct {
	Name, About string
	// Key identifies the policy, its strategies and the program in the cache. Empty: no caching.
	Key string
	// Strategy condenses. Nil: the conversation is never condensed, unless Recorded is set.
	Strategy *Strategy
	// Ingest shortens the results of a round of tools before they are first sent. Nil: they stay unchanged.
	Ingest *Strategy
	// Rule returns the rule for a window: see package policy. Nil is [policy.Default].
	Rule func(window int) policy.Rule
	// Recorded condenses where the session did, with the recorded summary.
	Recorded bool
	// Money asks the gateway's questions before every request, in addition to the rule: has the vendor's cache
	// forgotten the conversation, would an epoch pay for itself? Epochs then leave the share Leave of the
	// conversation.
	Money         bool
	Cold, Payback bool // reasons that count if Money is set
	Leave         float64
	// Floor is the size of the conversation, in tokens, below which money is no reason to condense. Zero means the
	// gateway's default: see docs/decisions/0032-epoch-defaults.md.
	Floor int
	// Risk is the most that an epoch may cost if the session ends with it, as a share of the session's cost so far;
	// below 0: no limit.
	Risk float64
}

// Untouched is the policy that never condenses. Every replay has it for comparison.
func Untouched() Policy {
	return Policy{Name: untouched, About: "every request as it was recorded, without compactions"}
}

const untouched = "untouched"

// A Tariff has the prices of a model and the rules of its prompt cache.
type Tariff struct {
	Name string `json:"name"`
	// Life is the lifetime of cache entries: the one that the client requests or, where prefixes are cached
	// automatically, an assumption if the vendor does not document it.
	Life    time.Duration   `json:"life"`
	Caching catalog.Caching `json:"caching"`
	// Scale is the number of the vendor's tokens for one of ours: see [catalog.TokenFactor].
	Scale float64 `json:"scale"`
	info  model.Info
}

// unsaid is the assumed lifetime of an entry of an automatic cache whose vendor does not document it: OpenAI's
// minimum from GPT-5.6 on.
const unsaid = 30 * time.Minute

// ParseTariff reads the name of a model of the price table; "/1h" after it requests cache entries of an hour.
func ParseTariff(s string) (Tariff, error) {
	name, hour := strings.CutSuffix(s, "/1h")
	m, err := catalog.Lookup(name)
	if err != nil {
		return Tariff{}, err
	}
	t := Tariff{Name: s, Caching: catalog.CachingOf(name, m.Price), Scale: catalog.TokenFactor(name), info: model.Info{Name: name, Price: m.Price, Tiers: m.Tiers}}
	switch {
	case m.Price.Input <= 0:
		return Tariff{}, fmt.Errorf("%s: the price is not known", name)
	case t.Caching.Automatic:
		t.Life = cmp.Or(t.Caching.Lifetime, unsaid)
	case t.Caching.Write == 0:
		return Tariff{}, fmt.Errorf("%s: nothing is known about its prompt cache", name)
	default:
		t.Life = 5 * time.Minute
	}
	if hour {
		if t.Caching.Automatic {
			return Tariff{}, fmt.Errorf("%s: its cache has no markers that could ask for an hour", name)
		}
		t.Life = time.Hour
	}
	return t, nil
}

// usd returns the price of a request in US dollars.
func (t *Tariff) usd(prompt, read, write, hour, answer int) float64 {
	p := t.info.PriceFor(prompt)
	c := t.Caching
	in := float64(prompt-read-write) + c.Read*float64(read) + cmp.Or(c.Write, 1)*float64(write-hour) + cmp.Or(c.WriteHour, c.Write, 1)*float64(hour)
	return (in*p.Input + float64(answer)*p.Output) / 1e6
}

// ReplayOptions adjust [Replay]. Of Options, budgets, rounds, the cost limit and shard are not used.
type ReplayOptions struct {
	Options
	Window  int      // of the model, in tokens
	Tariffs []Tariff // at least one
	// Fixed is the size of the system prompt and the tools, in the vendor's tokens, of a session that records neither
	// them nor the vendor's count of its first request. See [AssumedFixed].
	Fixed int

	// Logger receives every decision of policies with Money and its facts, at debug level; default: nothing is logged.
	Logger *slog.Logger
}

// AssumedFixed is roughly the size, in tokens, of Claude Code's system prompt and tools.
const AssumedFixed = 20_000

// A Played is one session under one policy and tariff.
type Played struct {
	Session string `json:"session"`
	Source  string `json:"source"`
	Mode    string `json:"mode"`
	// Half is "a" or "b". Sources are divided between two halves, so that a choice made on one half can be tested on
	// the other.
	Half   string `json:"half"`
	Policy string `json:"policy"`
	Tariff string `json:"tariff"`

	USD       float64 `json:"usd"` // prompts, and the recorded answers
	Untouched float64 `json:"untouched"`
	Long      bool    `json:"long,omitempty"` // untouched, it reaches 100,000 tokens

	Requests int `json:"requests"`
	Sent     int `json:"sent"`  // tokens of all prompts
	Read     int `json:"read"`  // of them from the cache
	Write    int `json:"write"` // to it
	Peak     int `json:"peak"`  // tokens of the largest prompt
	// Epochs are the condensations, Cut counts results that were shortened before they were sent.
	Epochs []PlayedEpoch `json:"epochs"`
	Cut    int           `json:"cut,omitempty"`
	// Had is the share of the content used by the agent and the user that was in the view at that moment. User is the
	// share of the user's words left at the end.
	Had  *float64 `json:"had,omitempty"`
	User *float64 `json:"user,omitempty"`
	// Repeats counts the calls that the recorded agent repeated although the result was there; Gone counts those
	// whose result the policy had removed.
	Repeats int `json:"repeats"`
	Gone    int `json:"gone"`
	// Error is the first error of a condensation.
	Error string `json:"error,omitempty"`
	// Size and Cached have, for every request, the tokens of the prompt and the tokens read from the cache.
	Size   []int `json:"size"`
	Cached []int `json:"cached"`
}

// A PlayedEpoch is one condensation of a session.
type PlayedEpoch struct {
	Request int    `json:"request"` // the first that was sent with it, from 0
	At      int    `json:"at"`      // messages of the session before it
	Reason  string `json:"reason"`
	Before  int    `json:"before"` // tokens of the prompt
	After   int    `json:"after"`
	// Predicted is the number of turns after which it should have paid for itself, by prices and sizes; Paid is the
	// actual number. Absent if it never would, and never did.
	Predicted *float64 `json:"predicted,omitempty"`
	Paid      *int     `json:"paid,omitempty"`
	// Panel is the share of the next turns' needs that was left, User the share of the user's words.
	Panel *float64 `json:"panel,omitempty"`
	User  *float64 `json:"user,omitempty"`
	// Truth holds the view against all messages before it.
	Truth *epoch.Truth `json:"truth,omitempty"`
}

// A PlayedSession has the facts about a session that do not depend on the policy.
type PlayedSession struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Mode    string `json:"mode"`
	Half    string `json:"half"`
	Tokens  int    `json:"tokens"`
	Fixed   int    `json:"fixed"`   // tokens of the system prompt and the tools
	Timed   bool   `json:"timed"`   // the times between its messages are recorded
	Counted bool   `json:"counted"` // the vendor's counts are recorded
	Hash    string `json:"hash"`
	Said    string `json:"said,omitempty"`
	// Check compares the simulated cache with the vendor's records; absent if there are none.
	Check *CacheCheck `json:"check,omitempty"`
}

// A ReplayReport is the result of [Replay].
type ReplayReport struct {
	Format   int    `json:"format"`
	Seed     uint64 `json:"seed"`
	Encoding string `json:"encoding"`
	Partial  bool   `json:"partial,omitempty"`
	// Conclusion is the result in one sentence.
	Conclusion string          `json:"conclusion,omitempty"`
	Window     int             `json:"window"`
	Policies   []StrategyInfo  `json:"policies"`
	Tariffs    []Tariff        `json:"tariffs"`
	Sessions   []PlayedSession `json:"sessions"`
	Skipped    []Skipped       `json:"skipped"`
	Plays      []Played        `json:"plays"`
	Lines      []ReplayLine    `json:"lines"`
	Check      *CacheCheck     `json:"check,omitempty"` // all sessions together
}

// Replay plays the sessions of items turn by turn under every policy and tariff: every request as it would have been
// sent, with the recorded times between them. No model is called, except by strategies that use one. If ctx ends, it
// returns the report on the finished sessions with the error.
func Replay(ctx context.Context, items []Item, policies []Policy, opts *ReplayOptions) (*ReplayReport, error) {
	if len(opts.Tariffs) == 0 {
		return nil, errors.New("replay: no tariff")
	}
	all := []Policy{Untouched()}
	var strategies []Strategy
	for _, p := range policies {
		if p.Name == untouched {
			if p.Strategy != nil || p.Recorded {
				return nil, fmt.Errorf("replay: %s is the policy that the others are compared with: give yours another name", untouched)
			}
			all[0].Key = p.Key
			continue
		}
		if slices.ContainsFunc(all, func(q Policy) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("replay: two policies are called %q", p.Name)
		}
		all = append(all, p)
		for _, s := range []*Strategy{p.Strategy, p.Ingest} {
			if s != nil {
				strategies = append(strategies, *s)
			}
		}
	}
	for i := range strategies {
		if _, err := strategies[i].open(0, nil); err != nil {
			return nil, err
		}
	}
	r, err := openRunner(items, strategies, &opts.Options)
	if err != nil {
		return nil, err
	}
	o := &r.opts
	out := &ReplayReport{Format: ReportFormat, Seed: o.Seed, Encoding: o.Encoding, Window: opts.Window, Tariffs: opts.Tariffs}
	out.Policies = append(out.Policies, plain.Each(all, func(p Policy) StrategyInfo { return StrategyInfo{Name: p.Name, About: p.About} })...)
	var mu sync.Mutex
	err = r.each(ctx, func(ctx context.Context, it Item) (outcomeOf, error) {
		done := outcomeOf{info: SessionInfo{Name: it.Name}}
		s, counter, err := r.read(it)
		if err == nil {
			if why := o.unwanted(s.Mode); why != "" {
				err = errors.New(why)
			} else if len(requests(s)) == 0 {
				err = errors.New("the agent says nothing")
			}
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			out.Skipped = append(out.Skipped, Skipped{Name: it.Name, Reason: strings.TrimPrefix(err.Error(), it.Name+": ")})
			return done, ctx.Err()
		}
		g := newGame(s, it.Name, counter, opts)
		g.cache, g.encoding = r.cache, o.Encoding
		plays, err := g.all(ctx, all)
		if err != nil {
			return done, err
		}
		info, err := g.info(ctx, all[0].Key)
		if err != nil {
			return done, err
		}
		mu.Lock()
		defer mu.Unlock()
		out.Sessions, out.Plays = append(out.Sessions, info), append(out.Plays, plays...)
		return done, nil
	})
	out.Partial = err != nil
	out.conclude()
	return out, err
}

// requests returns the indices of the messages that answer a request: the first of every run of the agent's messages,
// unless it is a part of the answer before.
func requests(s *score.Session) []int {
	var out []int
	last := ""
	for i := 1; i < len(s.Messages); i++ {
		if s.Messages[i].Role != core.RoleAssistant || s.Messages[i-1].Role == core.RoleAssistant {
			continue
		}
		id := s.Usage[i].ID
		if id == "" || id != last {
			out = append(out, i)
		}
		last = id
	}
	return out
}

// halves divides the sources between two halves with about the same number of tokens. The same sessions give the same
// halves.
func (r *ReplayReport) halves() map[string]string {
	sizes := map[string]int{}
	for i := range r.Sessions {
		sizes[r.Sessions[i].Source] += r.Sessions[i].Tokens
	}
	sources := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(sizes[b]-sizes[a], strings.Compare(a, b)) })
	out, a, b := map[string]string{}, 0, 0
	for _, s := range sources {
		if a <= b {
			out[s], a = "a", a+sizes[s]
		} else {
			out[s], b = "b", b+sizes[s]
		}
	}
	return out
}
