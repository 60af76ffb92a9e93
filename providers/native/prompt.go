package native

import (
	_ "embed" // the prompts are files, so that they read as what they are
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
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

var builtinPrompts = map[string]string{"handover": handoverPrompt, "state": statePrompt, "section": sectionPrompt}

// begin is the last message where the instructions stand in the system prompt.
const begin = "Write the summary now, as you were told."

// A task is what a model is asked for: one summary of one run of messages.
type task struct {
	messages []core.Message
	tokens   int    // that the summary may have
	fits     int    // tokens that it may have at the very most
	prefix   bool   // the model is shown the agent's own request
	kept     int    // of messages that the model sees, behind those that it is to summarize
	note     string // what else it must know
}

// instructions returns what the model is told to do.
func (p *Provider) instructions(req *core.Request, t *task) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(p.prompt))
	if own := strings.TrimSpace(req.Instructions); own != "" {
		b.WriteString("\n\nWhat the person wants of this summary in particular:\n" + own)
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
