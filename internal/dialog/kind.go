package dialog

import "github.com/condensehq/condense/internal/toolcall"

// A Kind is the kind of a passage of a conversation. The names are from package tokens and all reports, and a few
// more that only reading the text can distinguish.
type Kind uint8

// The kinds.
const (
	KindUser         Kind = iota // typed by the user
	KindInjected                 // written into a user's message by the agent's program: reminders, commands, notices
	KindAssistant                // said by the model
	KindReasoning                // thought by the model
	KindToolCall                 // a call to a tool
	KindToolResult               // a tool's result
	KindError                    // a failed tool's result
	KindProjectRules             // instructions for every conversation, as in AGENTS.md
	KindEnvironment              // the state of the surroundings, as the agent's program describes it
	KindHeader                   // the line that announces the result of a tool that was called in a text
	KindSystem                   // a system message
	KindSummary                  // inserted by a condensation: summaries, extracts and markers
	KindOther                    // anything else, such as a text next to a result
	kinds                        // how many there are
)

var kindNames = [kinds]string{
	"user", "injected", "assistant", "reasoning", "tool_call", "tool_result", "error",
	"project_rules", "environment", "header", "system", "summary", "other",
}

// writers are the kinds of what programs put into user messages.
var writers = map[toolcall.Writer]Kind{
	toolcall.Program: KindInjected, toolcall.Agent: KindInjected, toolcall.Surroundings: KindEnvironment, toolcall.Rules: KindProjectRules, toolcall.Person: KindUser,
}

// String returns the name of k.
func (k Kind) String() string { return kindNames[k] }
