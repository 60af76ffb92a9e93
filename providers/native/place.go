package native

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// assemble returns the kept messages with the summaries among them. Each is where
// the last of its messages was, or else the first, so that the conversation begins with
// the user if it did. Ack, if not nil, follows the last one if the user speaks next.
func (p *plan) assemble(summaries []core.Message, ack *core.Message) []core.Message {
	out := p.place(summaries, ack, false)
	if was, ok := firstSpeaker(p.req.Messages); ok && was == core.RoleUser {
		if is, ok := firstSpeaker(out); !ok || is != core.RoleUser {
			summaries = slices.Clone(summaries)
			summaries[0].Role = core.RoleUser
			out = p.place(summaries, ack, true)
		}
	}
	return out
}

func (p *plan) place(summaries []core.Message, ack *core.Message, front bool) []core.Message {
	const kept = -1
	at := make([]int, len(p.req.Messages)) // which section a message belongs to
	for i := range at {
		at[i] = kept
	}
	place := make([]int, len(summaries)) // the message that a summary follows
	for s, section := range p.sections {
		for _, i := range section {
			at[i] = s
		}
		place[s] = section[len(section)-1]
	}
	if front {
		place[0] = p.sections[0][0]
	}
	out := make([]core.Message, 0, len(at))
	next, last := 0, kept
	for i := range at {
		if at[i] == kept {
			out = append(out, p.req.Messages[i])
		}
		for next < len(summaries) && place[next] == i {
			out = append(out, summaries[next])
			last = len(out) - 1
			next++
		}
	}
	if ack != nil && out[last].Role == core.RoleUser && last+1 < len(out) && out[last+1].Role == core.RoleUser {
		out = slices.Insert(out, last+1, *ack)
	}
	return out
}

func firstSpeaker(messages []core.Message) (core.Role, bool) {
	for i := range messages {
		if messages[i].Role != core.RoleSystem {
			return messages[i].Role, true
		}
	}
	return "", false
}
