package native

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

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
