package native

import (
	_ "embed" // the prompts are files, which are easier to read
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/model"
)

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
