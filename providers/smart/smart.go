// Package smart shortens conversations by passes: first they remove repeated, stale and empty content, then the
// content that is least likely to be used again. Passes work on the parts of messages, in place. Every pass
// leaves a valid conversation, and a stub for removed content. No model is called, except for the account of
// the strategy handover.
package smart

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	numbers "github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Name is the name of the strategy.
const Name = "smart"

const doc = `Removes what is repeated, stale or least likely to be used again, in passes, and leaves stubs.
Lossless passes come first: duplicates, stale environment blocks, superseded reads and
layout; then lossy ones, until the target is met. Of these only value, window and score
touch what a user said. No model is called. A preset is a list of passes with a name;
docs/smart.md describes both.`

// Strategy returns the strategy, for a registry.
func Strategy() registry.Strategy {
	return registry.Define(Name, doc, DefaultConfig,
		func(_ context.Context, c Config, _ registry.Env) (core.CondensationProvider, error) { return New(c) }).
		Only(core.Hides | core.Rewrites | core.Inserts)
}

// A Provider shortens conversations. It is safe for concurrent use.
type Provider struct {
	c     Config
	land  float64
	steps []step
}

// New returns a provider. The error says which setting is wrong.
func New(c Config) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{c: c, land: 1}
	list := c.Passes
	if len(list) == 0 {
		name := cmp.Or(c.Preset, defaultPreset)
		set, _ := findPreset(name)
		list, p.land = set.passes, set.land
	}
	if c.Land > 0 {
		p.land = c.Land
	}
	var err error
	p.steps, err = steps(list)
	return p, err
}

// Frames implements [core.Framer]: every new text begins with words that package dialog knows.
func (p *Provider) Frames() bool { return true }

// maxRounds is how often the list of passes runs at most. One pass may give an earlier pass something to do,
// and a second condensation must find nothing left to do.
const maxRounds = 4

// Condense implements [core.CondensationProvider]. It returns a conversation that meets the
// target unchanged. The cost is linear in the conversation. It checks ctx between passes.
func (p *Provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	if own := *req; req.Host != "" {
		own.Typed, req = dialog.Typed, &own // as the host of a plugin knows it
	}
	same := &core.Result{Messages: req.Messages}
	if len(req.Messages) == 0 || req.Tokens() <= req.Budget.Target {
		return same, nil
	}
	w := newWork(req, int(p.land*float64(req.Budget.Room())), new(dialog.Reader))
	w.first = req.Messages
	before := w.tokens
	done, err := p.run(ctx, w)
	if err != nil {
		return &core.Result{Usage: w.usage}, err
	}
	out := &core.Result{Messages: core.KeepRequest(req, w.result()), Usage: w.usage, Steps: done}
	why := ""
	switch gain := before - core.TotalTokens(out.Messages); {
	case gain <= 0:
		why = "nothing to remove: 0 tokens, 0 % saved"
	case before-gain > req.Budget.Room() && (gain < p.c.MinGain || float64(gain) < p.c.MinShare*float64(before)):
		why = fmt.Sprintf("%d tokens are %.1f %%, less than min_gain or min_share", gain, 100*float64(gain)/float64(before))
	case p.c.Accept != Accept{}:
		why = p.c.Accept.refuses(newWork(req, 0, w.reader), req.Messages, out.Messages)
	}
	if why != "" {
		same.Usage, same.Steps = w.usage, append(done, core.Step{Name: "unchanged", Note: why})
		return same, nil
	}
	out.Steps = append(out.Steps, cacheStep(req, out.Messages))
	return out, nil
}

// A progress is the state of a run of passes.
type progress struct {
	done    []*core.Step // by pass, in all rounds; nil if it did not run
	changed bool         // in this round
	lossy   bool         // a pass removed content that appears nowhere else
	covered bool         // a pass will select lines, so passes that leave references do not run
}

// run runs the list of passes until nothing changes, and returns a report for each.
func (p *Provider) run(ctx context.Context, w *work) ([]core.Step, error) {
	at := progress{done: make([]*core.Step, len(p.steps))}
	for round := range maxRounds {
		at.changed = false
		for i := 0; i < len(p.steps); i++ {
			s := &p.steps[i]
			// A model is asked once, and the text that a later round would refer to may be cut by now.
			if s.pass.refers && at.covered || round > 0 && (s.pass.class == classModel || s.pass.refers && at.lossy) {
				continue
			}
			if end := i + slices.IndexFunc(p.steps[i:], func(s step) bool { return s.pass.chooses }); s.pass.refers && round == 0 && end > i {
				if err := p.decide(ctx, w, &at, i, end); err != nil {
					return nil, err
				}
				i-- // run it again if it is covered; otherwise it is done
				if !at.covered {
					i = end - 1
				}
				continue
			}
			if err := p.step(ctx, w, &at, i); err != nil {
				return nil, err
			}
		}
		if !at.changed {
			break
		}
	}
	out := plain.Each(plain.Only(at.done, func(d *core.Step) bool { return d != nil }), func(d *core.Step) core.Step { return *d })
	return out, nil
}

// step runs pass i, unless the target is met.
func (p *Provider) step(ctx context.Context, w *work, at *progress, i int) error {
	s := &p.steps[i]
	if w.fits() && !s.always {
		return nil
	}
	rep, err := s.do(ctx, w, time.Now)
	if err != nil {
		return err
	}
	if rep.Changed > 0 {
		at.changed = true
		at.lossy = at.lossy || s.pass.class == classLossy || s.pass.class == classModel
	}
	at.done[i] = addStep(at.done[i], rep)
	return nil
}

// decide decides whether the passes from i on meet the target without the one at end, which selects
// lines. If they do, their result is used. If they do not, passes that leave references must not
// run, because the selection may cut the text that they refer to. Nothing is lost: a line that
// appears elsewhere adds nothing to the selection. Passes that clearly cannot meet the target are
// not tried.
func (p *Provider) decide(ctx context.Context, w *work, at *progress, i, end int) error {
	all := !slices.ContainsFunc(p.steps[i:end], func(s step) bool { return !s.pass.refers })
	at.covered = all && !p.steps[end].always && w.tokens-w.repeated() > w.room
	if at.covered {
		for k := i; k < end; k++ {
			at.done[k] = &core.Step{Name: p.steps[k].pass.name, Note: "not used: the extract covers it"}
		}
		return nil
	}
	trial, tried := w.clone(), *at
	tried.done = slices.Clone(at.done)
	for k := i; k < end; k++ {
		if err := p.step(ctx, trial, &tried, k); err != nil {
			return err
		}
	}
	if trial.fits() && !p.steps[end].always {
		*w, *at = *trial, tried
		return nil
	}
	at.covered = true
	for k := i; k < end; k++ {
		if d := tried.done[k]; p.steps[k].pass.refers && d != nil && d.TokensBefore > d.TokensAfter {
			at.done[k] = &core.Step{Name: d.Name, Duration: d.Duration, Note: fmt.Sprintf("not used: would have saved %s tokens; the extract covers it", numbers.Group(d.TokensBefore-d.TokensAfter))}
		}
	}
	return nil
}

// addStep adds the step s of a pass to d, its step in earlier rounds, if any.
func addStep(d *core.Step, s core.Step) *core.Step {
	if d == nil {
		return &s
	}
	d.Changed += s.Changed
	d.TokensAfter -= s.TokensBefore - s.TokensAfter
	d.Duration += s.Duration
	d.Note = cmp.Or(d.Note, s.Note)
	if d.Saved == nil { // its result was not used
		d.Saved = map[string]int{}
	}
	for kind, n := range s.Saved {
		d.Saved[kind] += n
	}
	return d
}

// cacheStep reports how much of the conversation is unchanged before the first change: a
// vendor's prompt cache still serves that prefix.
func cacheStep(req *core.Request, after []core.Message) core.Step {
	kept, tokens := 0, 0
	for kept < len(after) && kept < len(req.Messages) && req.Messages[kept].Equal(after[kept]) {
		tokens += req.Messages[kept].Tokens
		kept++
	}
	all, left := max(1, core.TotalTokens(req.Messages)), core.TotalTokens(after)
	share, rewriting := "", "nothing to rewrite"
	if percent := 100 * tokens / all; percent > 0 {
		share = fmt.Sprintf(" (%d %% of the tokens)", percent)
	}
	// In a cache that reads at a tenth of the price and writes at five quarters, everything after the change is
	// written once, and every later turn saves a tenth of the removed tokens.
	if turns := math.Ceil(1.25 * float64(left-tokens) / (0.1 * float64(max(1, all-left)))); turns > 0 {
		rewriting = "rewriting pays off after " + numbers.Plural(int(turns), "turn")
	}
	return core.Step{Name: "cache", Note: fmt.Sprintf("prompt cache: prefix kept %s of %s%s; %s",
		numbers.Group(kept), numbers.Plural(len(req.Messages), "message"), share, rewriting)}
}

// An Opportunity is the saving of one pass by itself, with its default settings.
type Opportunity struct {
	Class string // lossless, superseded or lossy
	core.Step
}

// Opportunities tries each pass separately on the conversation of req and changes nothing. It
// leaves out passes that add something (digest), or that remove as much as the target asks for
// (value, window, score). Passes that stop when the target is met do so here, too: a
// target of one token gives the most that they can save. The error is that of ctx.
func Opportunities(ctx context.Context, req *core.Request) ([]Opportunity, error) {
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	var out []Opportunity
	var reader dialog.Reader
	for _, p := range passes {
		if p.onDemand {
			continue
		}
		ready, err := steps([]PassConfig{{Pass: p.name}})
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w := newWork(req, req.Budget.Room(), &reader)
		w.first = req.Messages
		rep, err := ready[0].do(ctx, w, time.Now)
		if err != nil {
			return nil, err
		}
		out = append(out, Opportunity{Class: string(p.class), Step: rep})
	}
	return out, nil
}

// promptTokens returns the size of a prompt by the host's counter.
func promptTokens(w *work, p *model.Prompt) int {
	n := w.count(p.System) + core.FramingTokens
	if p.Tools != "" {
		n += w.count(p.Tools)
	}
	n += plain.Sum(p.Messages, func(x core.Message) int { return core.MessageTokens(w.req.Counter, x) })
	return n
}

// narrate writes the messages from index from on as text, in parts of at most limit tokens, with at most so
// many bytes of every result and of the arguments of every call; 0 means all. A message is in one part, unless
// it is larger.
func narrate(w *work, from, most, limit int) []string {
	var (
		parts []string
		b     strings.Builder
		size  int
	)
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, b.String())
		}
		b.Reset()
		size = 0
	}
	for i := from; i < len(w.msgs); i++ {
		if w.msgs[i].Role == core.RoleSystem || isAccount(&w.msgs[i]) {
			continue
		}
		var one strings.Builder
		writeMessage(w, &one, i, most)
		text := one.String()
		n := w.count(text)
		for n > limit { // it is cut, at any place
			k := len(text) * limit / n * 9 / 10
			flush()
			parts = append(parts, strings.ToValidUTF8(text[:k], ""))
			text = text[k:]
			n = w.count(text)
		}
		if size+n > limit {
			flush()
		}
		b.WriteString(text)
		size += n
	}
	flush()
	return parts
}

// writeMessage writes message i in the form for a model that shortens it, with at most so many bytes of every result
// and of the arguments of every call; 0 means all.
func writeMessage(w *work, b *strings.Builder, i, most int) {
	fmt.Fprintf(b, "<%s>\n", w.msgs[i].Role)
	for k := w.ofMsg[i].Start; k < w.ofMsg[i].End; k++ {
		block := &w.blocks[k]
		for n := block.segments.Start; n < block.segments.End; n++ {
			p := &w.segments[n]
			if p.kind == dialog.KindReasoning || p.kind == dialog.KindEnvironment {
				continue
			}
			if p.kind == dialog.KindToolCall {
				fmt.Fprintf(b, "[calls %s]\n", p.use.Name)
			}
			if p.kind == dialog.KindToolResult {
				of, isError := w.label(p)
				fmt.Fprintf(b, "[result of %s%s]\n", strings.TrimSpace(of), map[bool]string{true: ", an error"}[isError])
			}
			text := p.text
			if most > 0 && len(text) > most && (p.kind == dialog.KindToolCall || p.kind == dialog.KindToolResult || p.kind == dialog.KindError) {
				text = strings.ToValidUTF8(text[:most*2/3], "") + fmt.Sprintf("\n[%d bytes left out here]\n", len(text)-most) + strings.ToValidUTF8(text[len(text)-most/3:], "")
			}
			b.WriteString(text + "\n")
		}
	}
	fmt.Fprintf(b, "</%s>\n", w.msgs[i].Role)
}
