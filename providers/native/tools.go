package native

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/prefix"
)

// A partAt is the position of a part: message and index in it.
type partAt struct{ message, part int }

// A toolUse is the form of a call or a result that is shown as one. The zero value is one that is shown as
// text.
type toolUse struct {
	answer *core.ToolResult // of a call, to move to the very next message
	moved  bool             // of a result: it follows its call now
}

// pairTools says which calls and results of messages can be shown as such. The APIs want every result in the
// message after its call and no ID twice; others are brought into that form, or else shown as text. A call
// without a result gets one that says so. By the rule of [core.Groups], a result answers the oldest open call
// of its ID.
func pairTools(messages []core.Message) map[partAt]toolUse {
	uses := map[partAt]toolUse{}
	type call struct {
		at    partAt
		shown bool
	}
	open := map[string][]call{}
	used := map[string]bool{}
	for i := range messages {
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				shown := messages[i].Role == core.RoleAssistant && !used[p.ID] && p.ID != ""
				if shown {
					used[p.ID] = true
					uses[partAt{i, j}] = toolUse{answer: &core.ToolResult{CallID: p.ID, Content: []core.Part{core.Text(prefix.Deferred)}}}
				}
				open[p.ID] = append(open[p.ID], call{partAt{i, j}, shown})
			case core.ToolResult:
				calls := open[p.CallID]
				if len(calls) == 0 {
					continue
				}
				open[p.CallID] = calls[1:]
				if calls[0].shown {
					answer := p
					uses[calls[0].at] = toolUse{answer: &answer}
					uses[partAt{i, j}] = toolUse{moved: true}
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return uses
}
