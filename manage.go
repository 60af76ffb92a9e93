package condense

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/value"
)

// A Turn describes a request to the model that a program is about to send. The zero Turn
// is an automatic one under the default profile.
type Turn struct {
	// Profile and Mode choose the configuration. An empty profile means the profile of the
	// mode, and the default profile if there is no mode either.
	Profile, Mode string
	// Trigger says why; empty means [core.TriggerAutomatic]. A program whose request the
	// model's API refused as too large ([Host.Overflow]) sets [core.TriggerOverflow] and
	// sends the view again. With [core.TriggerIngest] the conversation is what that says, and
	// the providers of the key ingest are asked.
	Trigger core.Trigger
	// System is the system prompt and Tools the definitions of the tools, if they are
	// sent in addition to the messages. They count against the window.
	System string
	Tools  json.RawMessage
	// Besides is the number of tokens of what else is sent with the messages, if its text is not known.
	Besides int
	// Window is the context window of the model and MaxOutput the longest answer that the
	// request asks for, both in tokens. If not 0 they replace those of the configuration.
	Window, MaxOutput int
	// Target is the size in tokens to condense to. If not 0 it replaces the target of the
	// configuration. The result may be larger: see [policy.Rule.Budget].
	Target int
	// Environment, Dir, FilesRead and Instructions are passed to the providers: see
	// [core.Request]. If Dir is set and FilesRead is nil, the files that the agent read are
	// detected by its tool calls and the user's mentions.
	Environment  string
	Dir          string
	FilesRead    []string
	Instructions string
	// NoRecall says that the agent has no way to recall condensed text, so that no handles are
	// written for it. It is passed to the providers.
	NoRecall bool
	// Numbers are the places of the messages of the view in the conversation, from 1 (0: unknown), if the conversation that the agent
	// recalls from is not this one; nil: their places in its journal. See [core.Message].
	Numbers []int
	// Earlier returns messages of the conversation that were condensed before it came here, for providers that ask for hidden ones; nil:
	// there are none. It may be called after the turn has ended.
	Earlier func() ([]core.Message, error)
	// API names the form in which the conversation is sent or written, as a format of package
	// transcript does. It is passed to the providers: see [core.Request].
	API string
	// Cached is what the vendor's prompt cache has of the view, if the program knows. Kept has the reason for which a message is protected,
	// by ID, if the user did not pin it. Both are passed to the providers: see [core.Request] and [core.Message].
	Cached core.Cached
	Kept   map[string]string
	// Skip names providers of the chain that are not asked, for instance because the answer would come too late.
	Skip []string
	// Conversation names the conversation for the providers, and States are their states after its last condensations, by provider: see
	// [core.Request] and [Report]. Without a name, both are those of the journal.
	Conversation string
	States       map[string][]byte
	// MayWait says whether a provider may answer that it is better to wait, if the conversation is below its limit; nil: if the trigger is
	// automatic. See [core.Result].
	MayWait *bool
	// MayAsk is called before each request of a provider to a language model that is not free. Its error is the provider's answer to that;
	// it should wrap [core.ErrUnavailable]. Nil: every request may be sent.
	MayAsk func() error
	// Estimate asks the providers for their possible cost before one is used: see
	// [Report.Estimates] and [EventEstimated]. It takes some time.
	Estimate bool
}

// Check returns the decision that [Host.Manage] would make, and changes nothing. After the first call
// the cost depends on the added messages, not on the length of the conversation.
func (h *Host) Check(c *Conversation, t Turn) (policy.Decision, error) {
	s, release := h.use()
	p, err := s.plan(c, t)
	if err := errors.Join(err, release()); err != nil {
		return policy.Decision{}, err
	}
	return p.decision, nil
}

// Manage condenses the conversation if it is due, and reports its decision with the reason. Call it
// before every request to the model.
//
// The report is nil only if the configuration has no such profile. The error wraps
// [policy.ErrFloorExceedsWindow] if the fixed tokens are too large, which is detected
// before any provider is asked; it is a [*core.ExhaustedError] if no provider, not even
// truncation, brought the conversation below its limit; it wraps ctx.Err() if ctx is done.
// After any error the conversation is unchanged.
//
// If providers fail and the conversation is within its limit, it stays unchanged. This is
// an error, which wraps those of the providers, only if the trigger is
// [core.TriggerManual]; otherwise the report has a warning, and the program can go on.
func (h *Host) Manage(ctx context.Context, c *Conversation, t Turn) (*Report, error) {
	s, release := h.use()
	r, err := s.manage(ctx, c, t)
	return r, errors.Join(err, release())
}

func (s *setup) manage(ctx context.Context, c *Conversation, t Turn) (*Report, error) {
	p, err := s.plan(c, t)
	if err != nil {
		return nil, err
	}
	r := newReport(p)
	before := c.kinds(&p.reader, p.set.counter)
	if !p.decision.Act {
		r.fill(p, before, before)
		return r, p.floorErr()
	}
	s.host.observe(Event{Kind: EventStarted, Profile: p.set.Profile, Mode: p.set.Mode, Decision: p.decision})
	if t.Estimate {
		err = s.announce(ctx, p, r)
	}
	if err == nil {
		err = s.condense(ctx, c, p, r)
	}
	r.fill(p, before, c.kinds(&p.reader, p.set.counter))
	s.host.observe(Event{Kind: EventFinished, Profile: p.set.Profile, Mode: p.set.Mode, Report: r, Err: err})
	return r, err
}

// condense asks the chain and records the result.
func (s *setup) condense(ctx context.Context, c *Conversation, p *plan, r *Report) error {
	var made []core.Attempt
	chain, err := s.chain(ctx, p, func(a core.Attempt) { made = append(made, a) })
	if err != nil {
		return err
	}
	got, err := chain.Run(ctx, p.request)
	if err != nil {
		r.attempts(made) // for the cost
		if errors.As(err, new(*core.ExhaustedError)) {
			c.state = c.state.After(p.decision, p.decision.Used)
		}
		return err
	}
	r.attempts(got.Attempts)
	if r.Later = got.Later; got.Later != "" {
		c.state = c.state.Later(p.decision)
		r.Reason = fmt.Sprintf("not yet: %s; asked again after %s more tokens", got.Later, size.Group(policy.LaterAfter(p.set.Window)))
		return nil
	}
	if got.Edit.Empty() || !p.decision.Worth(got.TokensAfter) {
		c.state = c.state.After(p.decision, p.decision.Used)
		if !got.Edit.Empty() {
			r.Reason = fmt.Sprintf("a result of %s was dropped: it saves less than %s", size.Plural(got.TokensAfter, "token"), size.Group(p.decision.MinGain))
		}
		return r.unchanged(p, got)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	// The originals first: the summary points there.
	originals, undo, err := p.keepOriginals(c, &got.Edit)
	switch {
	case err == nil:
	case names(got.Messages, p.request.Originals) && (errors.Is(err, fs.ErrExist) || p.decision.Used <= p.decision.Budget.Limit):
		return fmt.Errorf("originals: %w", err) // a summary names a file of another conversation, or a missing one; the next turn tries again
	default:
		r.Warnings = append(r.Warnings, onlyInJournal(err))
	}
	err = c.journal.Condense(history.Condensation{
		ID: id.String(), Provider: got.Provider, Trigger: p.decision.Trigger, Time: time.Now(),
		Edit: got.Edit, States: got.States, TokensBefore: got.TokensBefore, TokensAfter: got.TokensAfter,
		Attempts: got.Attempts, Originals: originals,
	})
	if err != nil {
		return errors.Join(err, undo())
	}
	r.Originals = originals
	c.state = c.state.After(p.decision, got.TokensAfter)
	c.changed()
	r.Acted, r.States = true, got.States
	r.losses(p.request, got)
	r.CondensationID = id.String()
	r.Messages = MessageReport{
		Before: len(p.view), After: len(got.Messages),
		Hidden: len(got.Edit.Hide), Rewritten: len(got.Edit.Rewrite), Inserted: len(got.Edit.Insert),
	}
	if r.Words.Before, r.Words.After = value.Said(&p.reader, p.view, got.Messages, p.set.counter); r.Words.After < r.Words.Before {
		r.Warnings = append(r.Warnings, fmt.Sprintf("of what the user typed, %s of %s are no longer in the view: nothing else was left to remove, or the provider removes them",
			size.Group(r.Words.Before-r.Words.After), size.Plural(r.Words.Before, "token")))
	}
	return nil
}

func onlyInJournal(err error) string {
	return fmt.Sprintf("originals: no file could be written, so only the journal has them: %v", err)
}

// A plan holds the decisions of one turn.
type plan struct {
	set      *settings
	view     []core.Message
	reader   dialog.Reader
	kept     int // tokens of messages that the configuration keeps
	system   int // tokens
	tools    int // tokens
	decision policy.Decision
	request  *core.Request // nil unless the decision is to act
	skip     []string      // names of providers that are not asked
	mayAsk   func() error
	part     string // the file for the originals; empty for none
	partErr  error  // why there is none
}

// free reports whether the turn may spend nothing, because the user did not ask for it.
func (p *plan) free() bool { return !p.set.Auto && p.decision.Trigger != core.TriggerManual }

func (s *setup) plan(c *Conversation, t Turn) (*plan, error) {
	set, err := s.resolve(turnKey{t.Profile, t.Mode})
	if err != nil {
		return nil, err
	}
	if set, err = set.forRequest(t); err != nil {
		return nil, err
	}
	c.measure(set.Tokenizer, set.counter)
	p := &plan{set: set, view: c.View(), skip: t.Skip, mayAsk: t.MayAsk}
	p.system, p.tools = p.set.counter.Overhead(t.System, t.Tools)
	p.system += t.Besides
	trigger := cmp.Or(t.Trigger, core.TriggerAutomatic)
	size := policy.Size{
		System: p.system, Tools: p.tools, Messages: c.journal.Tokens(), Protected: c.pinned,
		Summaries: c.summaries, NothingNew: c.journal.Settled() || c.summaries > 0 && c.said == 0,
	}
	if p.set.rule.When != (policy.When{}) {
		n := c.journal.Appended()
		if n == 0 && len(c.journal.Condensations()) == 0 {
			n = len(p.view)
		}
		size.Since = policy.Count(p.view[len(p.view)-n:], p.set.counter, time.Now())
	}
	p.decision = p.set.rule.Decide(size, c.state, trigger)
	if !p.decision.Act {
		return p, nil
	}
	// The journal is not read later: a provider may go on after its deadline.
	timeline, done := c.journal.Timeline(), c.journal.Condensations()
	p.number(timeline, t.Numbers)
	p.label(t.Kept)
	p.keepLoaded()
	p.keepAlways()
	p.keepRecalled(c.journal.Appended())
	// The exact floor takes a pass over all messages, so it is computed only when it matters.
	req := &core.Request{Messages: p.view, Budget: p.decision.Budget, Typed: dialog.Typed, Counter: p.set.counter}
	size.Protected = core.FixedTokens(req)
	p.decision = p.set.rule.Decide(size, c.state, trigger)
	if !p.decision.Act {
		return p, nil
	}
	p.request = &core.Request{
		Messages: p.view, Budget: p.decision.Budget, Trigger: trigger, Typed: dialog.Typed,
		Profile: p.set.Profile, Mode: p.set.Mode, System: t.System, Environment: t.Environment,
		FilesRead: t.FilesRead, Dir: t.Dir, Tools: string(t.Tools),
		Instructions: t.Instructions, NoRecall: t.NoRecall, API: t.API, Counter: p.set.counter,
		Model: p.set.Model.Name, Price: p.set.Model.Price, Conversation: t.Conversation, States: t.States, Cached: t.Cached,
	}
	for _, i := range p.request.Unanswered() {
		p.reason(i, "request")
	}
	p.request.MayWait = p.decision.Used <= p.decision.Budget.Limit && (t.MayWait == nil && trigger == core.TriggerAutomatic || t.MayWait != nil && *t.MayWait)
	if t.Conversation == "" {
		p.request.Conversation, p.request.States = c.journal.ID(), history.States(c.journal)
	}
	own := sync.OnceValues(func() (all, lacking []core.Message) { return recorded(timeline, done) })
	p.request.Hidden, p.request.File = p.hidden(own, t), p.file(own, t)
	if t.Dir != "" && t.FilesRead == nil {
		p.request.FilesRead = dialog.FilesRead(c.journal.Messages(), t.Dir)
	}
	if p.set.Originals == config.OriginalsParts && c.originals != "" {
		if p.part, p.partErr = nextPart(c.originals); p.partErr == nil {
			p.request.Originals = fromDir(t.Dir, p.part)
		}
	}
	p.request.Instructions = cmp.Or(p.request.Instructions, p.set.Prompt)
	return p, nil
}

// number gives the messages of the view their places in the conversation: in all, or as the caller knows them.
func (p *plan) number(timeline []history.Entry, known []int) {
	p.view = slices.Clone(p.view) // its messages are the plan's own from here on
	if known != nil {
		for i := range p.view[:min(len(p.view), len(known))] {
			p.view[i].Number = known[i]
		}
		return
	}
	shown, place := 0, 0
	for i := range timeline {
		e, number := &timeline[i], 0
		if e.InsertedBy == "" {
			place++
			number = place
		}
		if len(e.HiddenBy) == 0 {
			p.view[shown].Number = number
			shown++
		}
	}
}

// Limits of the labels that a program gives a message, and the name of the host's own.
const (
	maxLabels = 16
	maxLabel  = 200 // bytes of a name or a text
	keptLabel = "kept"
)

// label says of the protected messages why they are, limits the labels that the program gave, and removes secrets from them.
func (p *plan) label(kept map[string]string) {
	clean := func(s string) string {
		s = secret.Scrub(s)
		return strings.ToValidUTF8(s[:min(len(s), maxLabel)], "")
	}
	for i := range p.view {
		m := &p.view[i]
		given := m.Labels
		if m.Labels = nil; m.Protected {
			p.keep(i, cmp.Or(kept[m.ID], "pin"))
		}
		for _, key := range slices.Sorted(maps.Keys(given)) {
			if name := clean(key); len(m.Labels) < maxLabels && name != keptLabel {
				p.note(i, name, clean(given[key]))
			}
		}
	}
}

// keep protects a message for this condensation.
func (p *plan) keep(i int, why string) {
	p.view[i].Protected = true
	p.reason(i, why)
}

// reason notes the first reason why a message must stay.
func (p *plan) reason(i int, why string) {
	if p.view[i].Labels[keptLabel] == "" {
		p.note(i, keptLabel, why)
	}
}

func (p *plan) note(i int, name, text string) {
	if p.view[i].Labels == nil {
		p.view[i].Labels = map[string]string{}
	}
	p.view[i].Labels[name] = text
}

// keepRecalled protects, for this condensation, the texts that the agent recalled in the newest messages, in up to half of the target.
func (p *plan) keepRecalled(newest int) {
	const bytesPerToken = 4 // of most texts
	most := p.decision.Budget.Room() / 2 * bytesPerToken
	if p.decision.Trigger == core.TriggerIngest { // the agent has read none of it
		most = math.MaxInt
	}
	for _, i := range dialog.Fresh(p.view, len(p.view)-newest, most) {
		p.keep(i, "recalled")
	}
}

// keepLoaded protects, for this condensation, the definitions of tools that a search loaded: the vendor knows them by these messages only,
// and a name is some fifteen tokens.
func (p *plan) keepLoaded() {
	calls := map[string]int{} // the messages with them
	for i := range p.view {
		for _, part := range p.view[i].Parts {
			switch part := part.(type) {
			case core.ToolCall:
				calls[part.ID] = i
			case core.ToolResult:
				if slices.ContainsFunc(part.Content, func(c core.Part) bool {
					o, ok := c.(core.Opaque)
					return ok && (o.Kind == "tool_reference" || o.Kind == "tools")
				}) {
					p.keep(i, "tools")
					if at, ok := calls[part.CallID]; ok {
						p.keep(at, "tools")
					}
				}
			case core.Opaque:
				if part.Kind == "tool_search_tool_result" || part.Kind == "tool_search_output" {
					p.keep(i, "tools")
				}
			case core.Text, core.Image, core.Reasoning:
			}
		}
	}
}

// keepAlways protects, for this condensation, what the configuration says that nothing removes.
func (p *plan) keepAlways() {
	if p.set.KeepFirst == 0 && p.set.KeepUsers == 0 && !p.set.KeepCalls && !p.set.KeepErrors {
		return
	}
	keep := func(i int, why string) {
		if m := &p.view[i]; !m.Protected {
			p.keep(i, why)
			p.kept += m.Tokens
		}
	}
	first, users := p.set.KeepFirst, p.set.KeepUsers
	for i := 0; i < len(p.view) && first > 0; i++ {
		if m := &p.view[i]; m.Role != core.RoleSystem && !dialog.AllInserted(m) {
			keep(i, "keep_first")
			first--
		}
	}
	by := core.Request{Typed: dialog.Typed}
	for i := len(p.view) - 1; i >= 0 && users > 0; i-- {
		if m := &p.view[i]; by.FromUser(m) && !dialog.AllInserted(m) {
			keep(i, "keep_users")
			users--
		}
	}
	if !p.set.KeepCalls && !p.set.KeepErrors {
		return
	}
	for i, parts := range p.reader.Read(p.view).Messages {
		for _, part := range parts {
			for _, pass := range part.Passages {
				isCall := pass.Kind == dialog.KindToolCall
				if p.set.KeepCalls && isCall {
					keep(i, "keep_calls")
				} else if p.set.KeepErrors && !isCall && pass.Use != nil && pass.Use.IsError() {
					keep(i, "keep_errors")
				}
			}
		}
	}
}

// floorErr returns why nothing can be done, and what to do if the configuration keeps too much.
func (p *plan) floorErr() error {
	err := p.decision.Err()
	if err == nil || p.kept == 0 {
		return err
	}
	return fmt.Errorf("%w; keep_first, keep_users, keep_calls and keep_errors of profile %s keep about %d tokens of messages: "+
		"lower them, or use a model with a larger window", err, p.set.Profile, p.kept)
}

// Overflow reports whether err, from a request to a model's API, says that the
// conversation is too large. If so, manage it with [core.TriggerOverflow] and send it
// again. Under a profile with Roo Code's rule it recognizes the actions of Roo Code, otherwise
// the errors of all vendors and SDKs that are known.
func (h *Host) Overflow(t Turn, err error) (bool, error) {
	s, release := h.use()
	set, fault := s.resolve(turnKey{t.Profile, t.Mode})
	switch fault = errors.Join(fault, release()); {
	case fault != nil:
		return false, fault
	case set.RooRule:
		return roo.ContextLengthError(err, remote.HTTPStatus(err)), nil
	default:
		return remote.IsContextLength(err), nil
	}
}
