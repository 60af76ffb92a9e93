package smart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/prefix"
	numbers "github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/smart/internal/account"
	"github.com/condensehq/condense/registry"
)

// HandoverName is the name of the strategy of [Handover].
const HandoverName = account.Provider

const handoverDoc = `Has a language model write an account of the work, and keeps verbatim parts next to it.
The account is checked against the history, brought up to date by each later condensation, and
has a share of the room. The rest is chosen as by smart, which knows the account: what it names
comes first, what it repeats goes. Without a model, and if the account is refused, the provider
fails, so that the chain goes on; name smart after it. docs/handover.md describes it.`

// The ways to show a model the conversation.
const (
	requestText   = "text"
	requestPrefix = "prefix"
)

// HandoverConfig are the settings of the strategy handover.
type HandoverConfig struct {
	Model    string  `json:"model" doc:"name of the configured model that writes; empty means the host's choice, client the agent's own with its key, which only a gateway with serve.account can ask"`
	Request  string  `json:"request" enum:"text|prefix" doc:"how the model is shown the conversation: as text, or by the agent's own request with one message more, for the vendor's prompt cache"`
	Tokens   int     `json:"tokens" doc:"most that is written at once, 200 to 8000; an account grows to twice that"`
	Share    float64 `json:"share" doc:"largest share of the room for the account, above 0 and at most 0.9"`
	Unknown  float64 `json:"unknown" doc:"share of paths, numbers, names and quotes that may be unknown; above it the account is refused"`
	MaxCalls int     `json:"max_calls" doc:"largest number of calls for one account"`
}

// DefaultHandover returns the default settings.
func DefaultHandover() HandoverConfig {
	return HandoverConfig{Request: requestText, Tokens: 6000, Share: 0.6, Unknown: 0.25, MaxCalls: 8}
}

// Validate reports every setting that is out of range.
func (c *HandoverConfig) Validate() error {
	var errs []error
	if c.Request != requestText && c.Request != requestPrefix {
		errs = append(errs, fmt.Errorf("request: %q is none of %s, %s", c.Request, requestText, requestPrefix))
	}
	if c.Tokens < 200 || c.Tokens > 8000 {
		errs = append(errs, fmt.Errorf("tokens: %d is not between 200 and 8000", c.Tokens))
	}
	if !(c.Share > 0 && c.Share <= 0.9) {
		errs = append(errs, fmt.Errorf("share: %v is not above 0 and at most 0.9", c.Share))
	}
	return errors.Join(append(errs, share("unknown", c.Unknown), atLeast(1, "max_calls", c.MaxCalls))...)
}

// Handover returns the strategy that has a model write an account and keeps verbatim parts next to it, for a registry.
func Handover() registry.Strategy {
	return registry.Define(HandoverName, handoverDoc, DefaultHandover,
		func(_ context.Context, c HandoverConfig, env registry.Env) (core.CondensationProvider, error) {
			var gen model.Generator = prefix.Agent{}
			var err error
			if c.Model == prefix.AgentName {
				c.Request = requestPrefix
			} else if gen, err = env.Model(c.Model); err != nil && c.Model != "" {
				return nil, fmt.Errorf("settings: model: %w", err)
			}
			rest, faults := steps(handoverPasses)
			if faults != nil {
				return nil, faults
			}
			ask := &writing{c: c, gen: gen, err: err}
			first := step{pass: &accountPass, always: true, run: ask.run}
			return accounting{&Provider{c: DefaultConfig(), land: 1, steps: append([]step{first}, rest...)}}, nil
		}).Only(core.Hides | core.Rewrites | core.Inserts | core.AsksModels)
}

// An accounting provider asks a model in its first step.
type accounting struct{ p *Provider }

// Condense implements [core.CondensationProvider].
func (a accounting) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	return a.p.Condense(ctx, req)
}

// Frames implements [core.Framer].
func (a accounting) Frames() bool { return a.p.Frames() }

// EstimateCost implements [core.CostEstimator]. It returns the highest cost of an account, with nothing read
// from a cache. Nothing is sent.
func (a accounting) EstimateCost(ctx context.Context, req *core.Request) (core.Usage, error) {
	if err := ctx.Err(); err != nil {
		return core.Usage{}, err
	}
	if req.Counter == nil {
		return core.Usage{}, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	if len(req.Messages) == 0 || req.Tokens() <= req.Budget.Target {
		return core.Usage{}, nil
	}
	w := newWork(req, int(a.p.land*float64(req.Budget.Room())), new(dialog.Reader))
	w.first, w.dry = req.Messages, true
	_, err := a.p.steps[0].do(ctx, w, time.Now)
	return w.usage, err
}

// handoverPasses follow the account.
var handoverPasses = after(lossless, with("value", `{}`))

// accountPass is no pass that a list can name: by itself it makes a conversation larger.
var accountPass = pass{name: "account", class: classModel}

// A writing has accounts written.
type writing struct {
	c   HandoverConfig
	gen model.Generator
	err error // why there is no model
}

// minAccount is the size in tokens below which an account says nothing.
const minAccount = 100

// run puts an account at the head of the conversation, in the place of the one that is there.
func (a *writing) run(ctx context.Context, w *work) error {
	if a.gen == nil {
		return fmt.Errorf("%w: no model to write an account: %w", core.ErrUnavailable, a.err)
	}
	if a.c.Model == prefix.AgentName && !prefix.CanAsk(ctx) {
		if w.dry { // nothing will be asked
			return nil
		}
		return fmt.Errorf("%w: no account by the agent's own model was ready", core.ErrUnavailable)
	}
	if err := model.CheckKey(a.gen); err != nil {
		return fmt.Errorf("%w: %w", core.ErrUnavailable, err)
	}
	largest := min(2*a.c.Tokens, int(a.c.Share*float64(w.room)))
	if room := a.room(w, nil, largest); room < minAccount {
		return fmt.Errorf("no room for an account: %s tokens", numbers.Group(max(room, 0)))
	}
	former, at := formerAccount(w)
	from := 0
	if former != nil {
		from = covered(w, former.Marks)
	}
	now, u, err := a.write(ctx, w, former, from, largest)
	if err != nil || w.dry {
		return err
	}
	now.Marks = append(digestMarks(w), contentMarks(w)...)
	if w.req.NoRecall {
		now.Uncite()
	}
	left := now.Fit(largest, w.count)
	if len(now.Items) == 0 {
		return errors.New("the model wrote no account")
	}
	if at >= 0 {
		w.hide(group{Span: core.Span{Start: at, End: at + 1}})
	}
	m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(now.Text())}}
	m.Tokens = core.MessageTokens(w.req.Counter, m)
	w.head = append(w.head, m)
	w.step.Changed++
	w.step.Saved["summary"] -= m.Tokens
	w.step.Note = reportAccount(a.gen, now, &u, m.Tokens, left)
	return nil
}

// room returns how many tokens may be added to an account, which may be nil, of which no more than largest stay: what it says stays.
func (a *writing) room(w *work, now *account.Account, largest int) int {
	const least = 4 // its inverse: the share for what is new
	room := min(a.c.Tokens, largest, cmp.Or(a.gen.Info().MaxOutput, largest))
	if now != nil {
		room = min(room, max(largest-w.count(now.Text()), largest/least))
	}
	return room
}

// reportAccount summarizes an account in numbers: a report never has text by a model.
func reportAccount(gen model.Generator, a *account.Account, u *account.Update, tokens, left int) string {
	s := fmt.Sprintf("%s in %s tokens by %s: %d new, %d changed, %d withdrawn; %d of %d paths, numbers, names and quotes are not in the history and marked",
		numbers.Plural(len(a.Items), "item"), numbers.Group(tokens), core.Label(gen.Info().Name), u.New, u.Changed, u.Gone, u.Unknown, u.Looked)
	if u.Refused > 0 {
		s += fmt.Sprintf("; %d more were to be withdrawn and stay", u.Refused)
	}
	if u.Secrets > 0 {
		s += "; " + numbers.Plural(u.Secrets, "secret") + " left out"
	}
	if left > 0 {
		s += "; " + numbers.Plural(left, "item") + " left out for want of room"
	}
	return s
}

// formerAccount returns the newest account in the conversation, and the message that holds nothing else; -1 if
// there is other content in it, which stays, and if the model has not answered since: then it counts as the
// words of the user.
func formerAccount(w *work) (former *account.Account, at int) {
	answered := false
	for i := len(w.msgs) - 1; i >= 0; i-- {
		answered = answered || w.msgs[i].Role == core.RoleAssistant
		if text, alone := account.In(&w.msgs[i]); text != "" {
			if alone && !w.msgs[i].Protected && (answered || w.msgs[i].Kind != core.KindOriginal) {
				return account.Read(text), i
			}
			return account.Read(text), -1
		}
	}
	return nil, -1
}

// markedMessages is how many of the newest messages are marked by their content, and minMarked the least size
// of it in bytes.
const (
	markedMessages = 3
	minMarked      = 60
)

// contentMarks returns marks of the content of the newest messages, for formats in which messages have other
// IDs whenever they are read.
func contentMarks(w *work) []string {
	var marks []string
	for i := len(w.msgs) - 1; i >= 0 && len(marks) < markedMessages; i-- {
		if n := len(w.msgs[i].Parts); n > 0 {
			if mark := contentMark(w.msgs[i].Parts[n-1]); mark != "" {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// contentMark names the content of a part in few tokens; "" if it is too short to differ from others.
func contentMark(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		if len(p) < minMarked || account.Is(string(p)) {
			return ""
		}
	case core.ToolCall:
		if len(p.Args) < minMarked {
			return ""
		}
	case core.ToolResult, core.Image:
	case core.Reasoning, core.Opaque:
		return ""
	}
	return "=" + core.Handle(p)[:8]
}

// covered returns the first message that an account with those marks does not cover: by the ID of the newest
// one that it does, or else after the first one with a content that it marked, so that nothing new is taken for
// old.
func covered(w *work, marks []string) int {
	if from := undigested(w, marks); from > 0 {
		return from
	}
	for i := range w.msgs {
		for _, p := range w.msgs[i].Parts {
			if mark := contentMark(p); mark != "" && slices.Contains(marks, mark) {
				return i + 1
			}
		}
	}
	return 0
}

// isAccount reports whether m is an account and nothing else.
func isAccount(m *core.Message) bool {
	_, alone := account.In(m)
	return alone
}

// write has the account brought up to date by the messages from index from on, in as many parts as the window
// of the model requires.
func (a *writing) write(ctx context.Context, w *work, former *account.Account, from, largest int) (*account.Account, account.Update, error) {
	var sum account.Update
	if !newSince(w, from) && former != nil {
		return former, sum, nil
	}
	prompts, err := a.prompts(w, former, from, largest)
	if err != nil {
		return nil, sum, err
	}
	if w.dry {
		for _, p := range prompts {
			prompt := p(former)
			w.usage = w.usage.Add(a.gen.Info().Charge(core.Usage{Calls: 1, InputTokens: promptTokens(w, prompt), OutputTokens: prompt.MaxOutput}))
		}
		return former, sum, nil
	}
	history := account.NewHistory(w.first, w.reader.Read(w.first), citing(w))
	now := former
	for _, prompt := range prompts {
		text, err := a.ask(ctx, w, prompt(now))
		if err != nil {
			return nil, sum, err
		}
		var u account.Update
		now, u = account.Follow(now, text, history)
		sum.Add(u)
	}
	const few = 8 // claims: a share of fewer says nothing
	if sum.Looked >= few && sum.Share() > a.c.Unknown {
		return nil, sum, fmt.Errorf("the account is refused: %d of %d paths, numbers, names and quotes in it are not in the history", sum.Unknown, sum.Looked)
	}
	return now, sum, nil
}

// newSince reports whether a message from index from on is part of the conversation, and not inserted by a
// condensation.
func newSince(w *work, from int) bool {
	return slices.ContainsFunc(w.msgs[from:], func(m core.Message) bool { return m.Role != core.RoleSystem && !dialog.AllInserted(&m) })
}

// citing returns how the account names sources; nil if nothing can be recalled.
func citing(w *work) func(m *core.Message, part int) string {
	if w.req.NoRecall {
		return nil
	}
	return func(m *core.Message, part int) string { return core.Handle(m.Parts[part]) }
}

// ask asks the model once and returns its text.
func (a *writing) ask(ctx context.Context, w *work, p *model.Prompt) (string, error) {
	answer, err := a.gen.Generate(ctx, p)
	if answer != nil {
		u := answer.Usage
		if u.Calls == 0 && u.InputTokens+u.OutputTokens > 0 { // a client that leaves counting to others
			u.Calls = 1
			u = a.gen.Info().Charge(u)
		}
		w.usage = w.usage.Add(u)
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("ask the model for an account: %w", err)
	case answer == nil:
		return "", errors.New("ask the model for an account: neither an answer nor an error came back")
	}
	text := account.Tidy(answer.Text)
	if text == "" {
		return "", fmt.Errorf("ask the model for an account: %w", model.ErrNoText)
	}
	if answer.Truncated { // an incomplete line is not used
		text = text[:max(0, strings.LastIndexByte(text, '\n'))]
	}
	return text, nil
}

// prompts returns the requests for an account, each made from the account so far. The error says that there
// would be too many.
func (a *writing) prompts(w *work, former *account.Account, from, largest int) ([]func(*account.Account) *model.Prompt, error) {
	const margin = 0.9 // of the window: tokenizers differ
	window := cmp.Or(a.gen.Info().Window, w.req.Budget.Window)
	room := func(now *account.Account) int { return a.room(w, now, largest) }
	limit := int(margin*float64(window)) - room(nil)
	if a.c.Request == requestPrefix {
		agents := func(now *account.Account) *model.Prompt {
			return prefix.Prompt(w.req, account.System()+"\n\n"+account.Instructions(now, true, room(now), w.req.Instructions), room(now))
		}
		if promptTokens(w, agents(former)) <= limit {
			return []func(*account.Account) *model.Prompt{agents}, nil
		}
		if a.c.Model == prefix.AgentName {
			return nil, errors.New("the agent's request and the question do not fit into the window")
		}
	}
	about := func(text string) func(*account.Account) *model.Prompt {
		return func(now *account.Account) *model.Prompt {
			return &model.Prompt{System: account.System(), MaxOutput: room(now), Messages: []core.Message{
				{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}},
				{Role: core.RoleUser, Parts: []core.Part{core.Text(account.Instructions(now, false, room(now), w.req.Instructions))}},
			}}
		}
	}
	limit -= promptTokens(w, about("")(former)) + room(nil)
	if limit < minPart {
		return nil, fmt.Errorf("the window of the model is too small: %s tokens", numbers.Group(window))
	}
	var parts []string
	// Most bytes of a result, 0 for all, and calls, the best first: two calls are better than little.
	for _, try := range [][2]int{{0, 1}, {16000, 1}, {8000, 1}, {0, 2}, {16000, 2}, {8000, 2}, {4000, 2}, {2000, 1}, {600, 1}} {
		if parts = narrate(w, from, try[0], limit); len(parts) <= try[1] {
			break
		}
	}
	if len(parts) > a.c.MaxCalls {
		return nil, fmt.Errorf("the conversation would have to be read in %d calls, and max_calls allows %d", len(parts), a.c.MaxCalls)
	}
	out := plain.Each(parts, about)
	return out, nil
}

// minPart is the size in tokens of the smallest part that is worth a call.
const minPart = 512
