package dialog

import "github.com/condensehq/condense/core"

// Regroup counts passages of texts by their own kind, in place of the kind of their message's role: a call in an
// assistant's text; results, reminders and the state of the surroundings in a user's. The total does not change. The
// keys are the names of kinds; headers and failed results count as results. The messages follow each other in a
// conversation.
func Regroup[K ~string](by map[K]int, c core.Counter, messages ...core.Message) {
	d := Read(messages)
	for i := range messages {
		m := &messages[i]
		own := K(KindUser.String())
		switch {
		case m.Kind != core.KindOriginal:
			continue
		case m.Role == core.RoleAssistant:
			own = K(KindAssistant.String())
		case m.Role != core.RoleUser:
			continue
		}
		for j, p := range m.Parts {
			if _, isText := p.(core.Text); !isText {
				continue
			}
			left := -1 // tokens of the part that are not moved
			for _, s := range d.Messages[i][j].Passages {
				kind := reported(s.Kind, own)
				if kind == own {
					continue
				}
				if left < 0 {
					left = min(c.Count(p), by[own])
				}
				n := left
				if len(d.Messages[i][j].Passages) > 1 {
					n = min(n, c.Count(core.Text(s.Text)))
				}
				left -= n
				by[own] -= n
				by[kind] += n
			}
		}
	}
}

// reported is the name of a kind in reports.
func reported[K ~string](k Kind, own K) K {
	switch k {
	case KindInjected, KindToolCall, KindToolResult, KindProjectRules, KindEnvironment:
		return K(k.String())
	case KindError, KindHeader:
		return K(KindToolResult.String())
	case KindUser, KindAssistant, KindReasoning, KindSystem, KindSummary, KindOther, kinds:
	}
	return own
}
