package native

import (
	"context"
	_ "embed" // the prompts are files, which are easier to read
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/model"
)

// A scribe asks a model and adds up the usage. It is safe for concurrent use.
type scribe struct {
	gen model.Generator

	mu    sync.Mutex
	spare int // calls beyond the planned ones, for second attempts
	usage core.Usage
}

// again takes n calls from those that are not planned, if there are so many.
func (s *scribe) again(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.spare {
		return false
	}
	s.spare -= n
	return true
}

// generate asks the model once.
func (s *scribe) generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := s.gen.Generate(ctx, p)
	if a != nil {
		u := a.Usage
		if u.Calls == 0 && u.InputTokens+u.OutputTokens > 0 { // a client that leaves counting to others
			u.Calls = 1
			u = s.gen.Info().Charge(u)
		}
		s.mu.Lock()
		s.usage = s.usage.Add(u)
		s.mu.Unlock()
	}
	switch {
	case err == nil && a == nil:
		err = errors.New("neither an answer nor an error came back")
	case err == nil && strings.TrimSpace(a.Text) == "":
		err = model.ErrNoText
	}
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return a, fmt.Errorf("ask %s: %w", nameOf(s.gen), err)
	}
	return a, nil
}

// spent returns the sum of all answers so far.
func (s *scribe) spent() core.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// repeated is how much of the instructions an answer may repeat, in bytes: more than any
// heading or phrase that it would quote.
const repeated = 200

// tidy returns the summary that an answer holds: without the reasoning that some models
// write before it, and without tags around it. It is an error if nothing is left or if the
// model repeated its instructions.
func tidy(answer, instructions string) (string, error) {
	text := strings.TrimSpace(answer)
	for _, tag := range []string{"think", "thinking"} {
		if rest, ok := strings.CutPrefix(text, "<"+tag+">"); ok {
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<analysis>"); ok {
		if _, after, ok := strings.Cut(rest, "</analysis>"); ok && strings.TrimSpace(after) != "" {
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<summary>"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "</summary>"))
	}
	if text == "" {
		return "", model.ErrNoText
	}
	if i := strings.TrimSpace(instructions); len(i) >= repeated && strings.Contains(text, i[:repeated]) {
		return "", errors.New("the model repeated its instructions in place of a summary")
	}
	return text, nil
}

// ask has one summary written. One that was cut off, or that is too long for its place, is
// asked for once more, shorter; if that is cut off too, it says so.
func (p *Provider) ask(ctx context.Context, s *scribe, counter core.Counter, t *task, prompt func(*task) *model.Prompt) (string, error) {
	write := func(t *task) (text string, cut bool, err error) {
		a, err := s.generate(ctx, prompt(t))
		if err != nil {
			return "", false, err
		}
		text, err = tidy(a.Text, p.prompt)
		return text, a.Truncated, err
	}
	text, cut, err := write(t)
	if err != nil {
		return "", err
	}
	long := counter.Count(core.Text(text)) > t.fits
	if !cut && !long {
		return text, nil
	}
	if !s.again(1) {
		return withCutNote(text, cut), nil
	}
	again := *t
	again.tokens = t.tokens * 3 / 5
	again.note = strings.TrimSpace(t.note + " A first attempt was too long. Say less about what is finished, and do not exceed the limit.")
	shorter, cutAgain, err := write(&again)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", err
	case err == nil && (!cutAgain || cut):
		text, cut = shorter, cutAgain
	}
	return withCutNote(text, cut), nil
}

// withCutNote returns text with a last line that says that it is not complete.
func withCutNote(text string, cut bool) string {
	if cut {
		text += "\n\n[The summary ends here because the model reached its limit; what happened last may be missing.]"
	}
	return text
}

// The built-in prompts.
var (
	//go:embed prompts/system.txt
	systemPrompt string
	//go:embed prompts/handover.txt
	handoverPrompt string
	//go:embed prompts/state.txt
	statePrompt string
	//go:embed prompts/section.txt
	sectionPrompt string
	//go:embed prompts/merge.txt
	mergePrompt string
)

// begin is the last message if the instructions are in the system prompt.
const begin = "Write the summary now, as you were told."

// A task is a request to a model for one summary of one run of messages.
type task struct {
	messages []core.Message
	tokens   int    // that the summary may have
	fits     int    // tokens that it may have at the very most
	prefix   bool   // the model is shown the agent's own request
	kept     int    // of messages that the model sees, after those that it is to summarize
	note     string // further information
}

// instructions returns the instructions for the model.
func (p *Provider) instructions(req *core.Request, t *task) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(p.prompt))
	if own := strings.TrimSpace(req.Instructions); own != "" {
		b.WriteString("\n\nWhat the user wants from this summary in particular:\n" + own)
	}
	if t.kept > 0 {
		fmt.Fprintf(&b, "\n\nThe last %d messages before this one stay as they are, behind your summary. Do not repeat them; end where they begin.", t.kept)
	}
	// A word of English is 1.3 tokens or so, of code and other languages more.
	fmt.Fprintf(&b, "\n\nWrite at most %d words.", max(20, t.tokens/2))
	if t.note != "" {
		b.WriteString("\n\n" + t.note)
	}
	return b.String()
}

func promptTokens(c core.Counter, p *model.Prompt) int {
	n := messagesTokens(c, p.Messages) + c.Count(core.Text(p.System)) + core.FramingTokens
	if p.Tools != "" {
		n += c.Count(core.Text(p.Tools))
	}
	return n
}

// textPrompt returns the request for a summary of messages that are shaped.
func (p *Provider) textPrompt(req *core.Request, t *task, shaped []core.Message) *model.Prompt {
	prompt := &model.Prompt{System: strings.TrimSpace(p.system), MaxOutput: t.tokens}
	last := p.instructions(req, t)
	if p.c.promptInSystem {
		prompt.System += "\n\n" + last
		last = begin
	}
	prompt.Messages = append(slices.Clip(shaped), userText(last))
	if p.c.Request == requestNative {
		prompt.Tools = req.Tools
	}
	return prompt
}

func userText(text string) core.Message {
	return core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}
}

// prefixPrompt returns the agent's own request followed by the instructions, word for word as the vendor has it
// in its cache.
func (p *Provider) prefixPrompt(req *core.Request, t *task) *model.Prompt {
	return prefix.Prompt(req, strings.TrimSpace(p.system)+"\n\n"+p.instructions(req, t), t.tokens)
}

// Additions to the text of a summary have Roo-Code's form, so that each program finds the other's.
const (
	reminderOpen   = toolcall.ReminderOpen + "\n"
	reminderClose  = "\n" + toolcall.ReminderClose
	workflowsHead  = "## Active Workflows\n"
	workflowsIntro = "The following directives must be maintained across all future condensings:\n"
)

// commandForm is Roo-Code's: it also matches longer names, and an attribute may not hold a
// ">".
var commandForm = plain.Pattern(`(?s)<command[^>]*>.*?</command>`)

// commandBlocks returns the <command> blocks of a message, a newline between them.
func commandBlocks(m *core.Message) string {
	var texts []string
	for _, p := range m.Parts {
		if t, ok := p.(core.Text); ok && !dialog.Inserted(string(t)) { // a model's summary gives no directives
			texts = append(texts, string(t))
		}
	}
	return strings.Join(commandForm().FindAllString(strings.Join(texts, "\n"), -1), "\n")
}

// workflows returns the commands of the conversation's first message, or those that an earlier summary repeats,
// as a block; "" if there are none or if they stay where they are.
func (p *plan) workflows() string {
	messages := p.req.Messages
	blocks := ""
	p.hidden(func(i int, m *core.Message) {
		if blocks != "" {
			return
		}
		if m.Kind != core.KindSummary {
			if first := firstOriginal(messages); i == first {
				blocks = commandBlocks(m)
			}
			return
		}
		for _, part := range m.Parts {
			if t, ok := part.(core.Text); ok {
				if _, after, ok := strings.Cut(string(t), reminderOpen+workflowsHead); ok {
					inside, _, _ := strings.Cut(after, reminderClose)
					blocks = strings.Join(commandForm().FindAllString(inside, -1), "\n")
				}
			}
		}
	})
	return workflowsBlock(blocks)
}

func workflowsBlock(commands string) string {
	if commands == "" {
		return ""
	}
	return reminderOpen + workflowsHead + workflowsIntro + commands + reminderClose
}

// firstOriginal returns the index of the first message that is not a system's; -1 if that
// one is not verbatim.
func firstOriginal(messages []core.Message) int {
	for i := range messages {
		if messages[i].Role == core.RoleSystem {
			continue
		}
		if messages[i].Kind == core.KindOriginal {
			return i
		}
		break
	}
	return -1
}

// originalsBegin is how the words begin that say where the originals are.
const originalsBegin = "The messages that this summary stands for can be read word for word in "

// originalsNote says where the messages are that the summary replaces. The messages of an earlier summary among
// them are in a file of their own, and few read one to learn of the other.
func (p *plan) originalsNote() string {
	if p.req.Originals == "" {
		return ""
	}
	earlier := false
	p.hidden(func(_ int, m *core.Message) {
		earlier = earlier || m.Kind == core.KindSummary && slices.ContainsFunc(m.Parts, func(part core.Part) bool {
			t, ok := part.(core.Text)
			return ok && strings.HasPrefix(string(t), originalsBegin)
		})
	})
	note := originalsBegin + p.req.Originals + "."
	if earlier {
		note += " Those before them are in the files beside it with lower numbers."
	}
	return note + " Look there before you guess at a detail."
}
