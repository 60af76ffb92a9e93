package judge

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// The strategies of a judgement. The last two are built-in strategies at the size that the plugin reaches by itself, for a
// comparison without truncation.
const (
	inChain   = "the plugin"
	byItself  = "the plugin by itself"
	atItsSize = " at its size"

	itself = "plugin" // in a chain
)

// A rival is a strategy to compare with.
type rival struct{ name, strategy, settings string }

var rivals = []rival{{"smart/balanced", "smart", `{"preset":"balanced"}`}, {"slidingwindow", "slidingwindow", `{}`}}

// shortens returns the rivals of a provider that shortens new results: a gateway's own passes for agents that can recall.
func shortens() []rival {
	settings, _ := ingest.Settings(ingest.Options{Lossless: true, MaxResult: config.Default().Serve().Recall.MaxResult}) // cannot fail
	return []rival{{"serve.ingest", "smart", string(settings)}}
}

// callTimeout limits a call on a recorded session, which has some 100,000 tokens.
const callTimeout = 20 * time.Second

// Options shorten recorded sessions to a quarter.
var Options = lab.Options{Budgets: []lab.Budget{{Share: 25}}, Seed: 1, InUse: true}

// Strategies returns the plugin and the built-in strategies, and those of them that readers are asked about. With a rest, these are the
// plugin before the rest, by itself, and the rest alone.
func (w *Watch) Strategies(ctx context.Context, all *registry.Registry) (list, asked []lab.Strategy, err error) {
	if w.Rest != nil {
		first := core.NamedProvider{Name: itself, Provider: w.subject(w), Timeout: callTimeout}
		with := lab.Strategy{Name: inChain, Truncation: w.Rest.Truncation, Chain: append([]core.NamedProvider{first}, w.Rest.Chain...)}
		return []lab.Strategy{with, {Name: byItself, Chain: with.Chain[:1:1]}, *w.Rest}, []lab.Strategy{with, *w.Rest}, nil
	}
	open := func(strategy, settings string) (core.CondensationProvider, error) {
		s, err := all.Get(strategy)
		if err != nil {
			return nil, err
		}
		return s.Open(ctx, []byte(settings), registry.Env{})
	}
	truncation, err := open("slidingwindow", "{}")
	if err != nil {
		return nil, nil, err
	}
	const last = "truncation"
	chained := func(name string, p core.CondensationProvider) lab.Strategy {
		return lab.Strategy{Name: name, Truncation: last, Chain: []core.NamedProvider{
			{Name: itself, Provider: p, Timeout: callTimeout}, {Name: last, Provider: truncation},
		}}
	}
	with := chained(inChain, w.subject(w))
	list = []lab.Strategy{with, {Name: byItself, Chain: with.Chain[:1:1]}}
	against := rivals
	if w.Ingest {
		against = shortens()
	}
	for _, b := range against {
		p, err := open(b.strategy, b.settings)
		if err != nil {
			return nil, nil, err
		}
		p = w.subject(p)
		atSize := chained(b.name+atItsSize, p)
		atSize.SizeOf = byItself
		list = append(list, chained(b.name, p), atSize)
	}
	return list, slices.DeleteFunc(slices.Clone(list), func(s lab.Strategy) bool { return s.Name == byItself || s.SizeOf != "" }), nil
}

// subject returns p as it is asked in the judgement: for whole conversations, or for each round of results.
func (w *Watch) subject(p core.CondensationProvider) core.CondensationProvider {
	if w.Ingest {
		return coretest.Ingest(p)
	}
	return p
}

// A Plugin is a plugin as package plugins opens it.
type Plugin interface {
	core.CondensationProvider
	core.Declarer
	PeakMemory() int64
}

// A Watch is the plugin with a record of its calls.
type Watch struct {
	Plugin Plugin
	// Ingest judges how it shortens new results.
	Ingest bool
	// Rest is a chain in use: the plugin is judged as the first link of it, next to it alone. Optional.
	Rest *lab.Strategy
	// Answers answers what the plugin asks models on recorded sessions. Nil is a stand-in, as in the conformance suite.
	Answers model.Generator

	mu       sync.Mutex
	calls    []call
	failed   int
	peak     int64           // bytes of memory, of any of its processes
	recorded bool            // the conformance suite is over
	asked    int             // requests to models
	mute     []*core.Request // of requests to models that failed
	when     string          // that calls are made
	forgot   string          // how it forgets while a conversation grows
	own      float64         // the most that it saved then, as a share
}

// Model returns the model for the plugin's requests in a call, whatever it asks for.
func (w *Watch) Model(req *core.Request, _ string) (model.Generator, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.recorded && w.Answers != nil {
		return heard{w.Answers, w, req}, nil
	}
	return heard{plugins.StandIn(), w, req}, nil
}

// A heard model is one whose failures are not the plugin's.
type heard struct {
	model.Generator

	w   *Watch
	req *core.Request
}

// Generate implements [model.Generator].
func (h heard) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	answer, err := h.Generator.Generate(ctx, p)
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.w.asked++
	if err != nil && ctx.Err() == nil {
		h.w.mute = append(h.w.mute, h.req)
	}
	return answer, err
}

// models says who answered what the plugin asked; empty if it asked nothing.
func (w *Watch) models() string {
	const standIn = "a stand-in that selects sentences"
	text := "answered by " + standIn + ", no language model: --model NAME asks one"
	if w.asked == 0 {
		return ""
	} else if w.Answers != nil {
		text = fmt.Sprintf("answered by %s, in the conformance suite by %s", w.Answers.Info().Name, standIn)
	}
	if failed := len(w.mute); failed > 0 {
		text += fmt.Sprintf("; it failed in %d of %d requests, which does not count against the plugin", failed, w.asked)
	}
	return text
}

// A call is one call.
type call struct {
	bytes    int
	messages int
	when     string
	due      bool // the conversation was above its target
	took     time.Duration
	err      error
	excused  bool // a model failed, and the plugin said so
	acted    bool
	// truncated: it hid one run of messages, rewrote none, and inserted next to nothing.
	truncated bool
	faults    []Finding
}

// Run examines the plugin that a card names, measures it on recorded sessions, and gives the verdict, without floors. The error is of the
// run: whatever the plugin does is on the card.
func (c *Card) Run(ctx context.Context, w *Watch, items []lab.Item, list []lab.Strategy, opts *lab.Options) error {
	report := coretest.Examine(ctx, w.subject(w.Plugin))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.ingest = w.Ingest
	c.conform(report)
	if !w.Ingest {
		if err := w.grow(ctx, items, list[1].Chain[:1]); err != nil {
			return err
		}
	}
	w.mu.Lock()
	w.recorded = true
	w.mu.Unlock()
	if w.Rest != nil {
		c.Before = w.Rest.Name
	}
	measured, err := lab.Run(ctx, items, list, opts)
	if err != nil && (measured == nil || !errors.Is(err, lab.ErrMaxCost)) {
		return err
	}
	c.watched(w)
	c.measured(measured)
	c.Verdict, c.Why = c.verdict(w)
	c.Passed = c.Verdict == verdictWorks
	return nil
}

// enoughFailures is how many calls may fail before no more are made: the verdict is certain, and each may take its whole deadline.
const enoughFailures = 3

var errEnough = fmt.Errorf("it failed %d times and is not asked any more: %w", enoughFailures, core.ErrUnavailable)

// Abilities implements [core.Declarer].
func (w *Watch) Abilities() core.Abilities { return w.Plugin.Abilities() }

// Condense implements [core.CondensationProvider].
func (w *Watch) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	w.mu.Lock()
	enough := w.failed >= enoughFailures
	w.mu.Unlock()
	if enough {
		return nil, errEnough
	}
	req = inUse(req)
	c := call{messages: len(req.Messages), when: w.when, due: req.Tokens() > req.Budget.Target}
	c.bytes += plain.Sum(req.Messages, func(x core.Message) int { return core.ContentBytes(x.Parts...) })
	begun := time.Now()
	res, err := w.Plugin.Condense(ctx, req)
	c.took = time.Since(begun)
	if c.err = err; err != nil {
		c.faults = Faults(err)
	} else {
		given := *req
		given.Abilities = w.Abilities()
		if err := core.Verify(&given, res); err != nil {
			c.faults = Faults(err)
		} else {
			c.faults = foreign(req, res)
			c.acted, c.truncated = whatWasDone(req, res)
		}
	}
	peak := w.Plugin.PeakMemory()
	w.mu.Lock()
	defer w.mu.Unlock()
	c.excused = slices.Contains(w.mute, req) && !plugins.Broken(err)
	if c.broke() {
		w.failed++
	}
	w.calls, w.peak = append(w.calls, c), max(w.peak, peak)
	return res, err
}

// inUse returns req with what requests in use have, drawn from its messages: a plugin cannot tell by it that it is judged.
func inUse(req *core.Request) *core.Request {
	own, h := *req, fnv.New64a()
	for i := range req.Messages {
		_, _ = h.Write([]byte(req.Messages[i].ID))
	}
	r := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same in every run
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	own.API = pick("", "anthropic", "openai", "responses")
	if trigger := pick("automatic", "automatic", "manual", "overflow"); own.Trigger != core.TriggerIngest {
		own.Trigger = core.Trigger(trigger)
	}
	own.Environment, own.Instructions = pick("", "Open files: main.go, main_test.go"), pick("", "", "Keep what is needed to go on.")
	if own.Conversation == "" {
		own.Conversation = fmt.Sprintf("%016x", r.Uint64())
	}
	own.Budget.Reserve = r.IntN(4) * own.Budget.Limit / 16
	own.Budget.Window += own.Budget.Reserve
	return &own
}

// broke reports whether the call ended without an answer, for no reason that a chain knows.
func (c *call) broke() bool {
	return c.err != nil && len(c.faults) == 0 && !c.excused && !errors.Is(c.err, core.ErrUnavailable) && !errors.Is(c.err, errors.ErrUnsupported)
}

// foreign returns the fault of a result that begins a text with the line of another provider: only the host writes it.
func foreign(req *core.Request, res *core.Result) []Finding {
	known := append(signatures(req.Messages), core.Frame(itself))
	for _, line := range signatures(res.Messages) {
		if !slices.Contains(known, line) {
			return []Finding{NewFinding("new-role", fmt.Sprintf("new-role: a text is signed %q, which only the host writes", line), "", "")}
		}
	}
	return nil
}

// signatures returns the lines of providers that texts begin with.
func signatures(messages []core.Message) (lines []string) {
	for i := range messages {
		parts := messages[i].Parts
		for _, p := range parts {
			if r, ok := p.(core.ToolResult); ok {
				parts = append(slices.Clip(parts), r.Content...)
			}
		}
		for _, p := range parts {
			t, _ := p.(core.Text)
			if rest, ok := core.CutFrame(string(t)); ok {
				lines = append(lines, strings.TrimSpace(string(t[:len(t)-len(rest)])))
			}
		}
	}
	return lines
}

// maxMarker is the most tokens of a message that only says that others are hidden.
const maxMarker = 60

// whatWasDone reports whether a valid result changes the conversation, and whether it is a truncation: one run of messages is hidden,
// except for those that must stay, and nothing is left of them.
func whatWasDone(req *core.Request, res *core.Result) (acted, truncated bool) {
	kept := map[string]*core.Message{}
	inserted, rewritten := 0, false
	for i := range res.Messages {
		if m := &res.Messages[i]; m.ID != "" {
			kept[m.ID] = m
		} else {
			inserted += core.MessageTokens(req.Counter, *m)
		}
	}
	first, last := -1, -1
	for i := range req.Messages {
		m := &req.Messages[i]
		switch is := kept[m.ID]; {
		case is == nil:
			if last = i; first < 0 {
				first = i
			}
		case !core.EqualParts(is.Parts, m.Parts):
			rewritten = true
		}
	}
	acted = first >= 0 || rewritten || inserted > 0
	if first < 0 || rewritten || inserted > maxMarker {
		return acted, false
	}
	for i := first; i <= last; i++ {
		if m := &req.Messages[i]; kept[m.ID] != nil && !m.Protected && m.Role != core.RoleSystem {
			return acted, false
		}
	}
	return acted, true
}

// perMB returns the time for each MB of content at a share of the calls, in milliseconds.
func (w *Watch) perMB(share float64) float64 {
	return w.time(share, func(c *call) float64 { return Millis(c.took) / (float64(c.bytes) / (1 << 20)) })
}

// time returns a time at a share of the calls. Small conversations say little about it.
func (w *Watch) time(share float64, of func(*call) float64) float64 {
	const least = 32 << 10
	var all []float64
	for i := range w.calls {
		if c := &w.calls[i]; c.err == nil && c.bytes >= least {
			all = append(all, of(c))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(share*float64(len(all))))]
}
