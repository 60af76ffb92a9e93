package epoch

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

// A Boundary is an end of a piece of work.
type Boundary string

// The boundaries.
const (
	NoBoundary     Boundary = ""
	BoundaryAsked  Boundary = "the user's words"
	BoundaryPlan   Boundary = "a finished item of the plan"
	BoundaryCommit Boundary = "a commit"
	BoundaryTest   Boundary = "a passing test"
)

// Progress says where a conversation's newest messages stand in its work.
type Progress struct {
	Boundary Boundary // the latest one in the newest rounds: see [ProgressOf]; [NoBoundary] for none
	// Failed is the purpose of the latest command that failed and has not succeeded since: see [dialog.CommandKey]. Empty for
	// none, and after a commit: then the work has moved on.
	Failed string
}

// ProgressOf reads the newest messages of a conversation, beginning with an answer of the model. A boundary counts in
// the last two rounds: in those messages from the model's last but one answer on. An epoch is prepared next to the
// request with the boundary and begins with the next request.
func ProgressOf(messages []core.Message) Progress {
	var p Progress
	var last struct {
		boundary Boundary
		at       int
	}
	failed := map[string]int{} // the message in which a command failed, by its purpose
	plan := planned{finished: -1}
	reach := func(b Boundary, m int) { last.boundary, last.at = b, m }
	for m, parts := range dialog.Read(messages).Messages {
		for i := range parts {
			for _, pass := range parts[i].Passages {
				switch {
				case pass.Kind == dialog.KindUser && messages[m].Role == core.RoleUser && strings.TrimSpace(pass.Text) != "":
					reach(BoundaryAsked, m)
				case pass.Use == nil || pass.Kind != dialog.KindToolResult && pass.Kind != dialog.KindError || dialog.Refused(pass.Text):
				case pass.Use.Info.Family == dialog.FamilyCommand:
					if b := outcome(&pass, m, failed); b != NoBoundary {
						reach(b, m)
					}
				}
			}
		}
		for _, part := range messages[m].Parts {
			if call, ok := part.(core.ToolCall); ok && dialog.FamilyOf(call.Name) == dialog.FamilyPlan && plan.advances(call.Args) {
				reach(BoundaryPlan, m)
			}
		}
	}
	if last.at >= newestRounds(messages) {
		p.Boundary = last.boundary
	}
	for key, m := range failed {
		if p.Failed == "" || m > failed[p.Failed] || m == failed[p.Failed] && key < p.Failed {
			p.Failed = key
		}
	}
	return p
}

// outcome takes the result of a command in message m into account.
func outcome(pass *dialog.Passage, m int, failed map[string]int) Boundary {
	command := pass.Use.Info.Target
	bad := pass.Use.IsError
	if !bad && commits().MatchString(command) {
		clear(failed)
		return BoundaryCommit
	}
	key := dialog.CommandKey(command)
	switch {
	case key == "":
	case bad:
		failed[key] = m
	default:
		_, repaired := failed[key]
		delete(failed, key)
		if repaired || checks().MatchString(command) {
			return BoundaryTest
		}
	}
	return NoBoundary
}

// commits matches commands that commit; checks matches those that check the work.
var (
	commits = plain.Pattern(`\bgit (?:-\S+ \S+ )*commit\b`)
	checks  = plain.Pattern(`(?i)\b(?:\w*tests?|\w*spec|check|verify|clippy|\w*lint|vet|tsc|mypy|jest|vitest|ctest)\b`)
)

// finishedItem matches a finished item in the arguments of a call that keeps a plan.
var finishedItem = plain.Pattern(`"status" *: *"(?:completed|done)"|\[x\]`)

// planned is the state of a plan: its number of finished items, as far as it was listed; -1 if it was not.
type planned struct{ finished int }

// advances reports whether a call finishes an item: it names just that one, or lists more finished ones than the last
// list.
func (p *planned) advances(args string) bool {
	n := len(finishedItem().FindAllStringIndex(args, -1))
	if !strings.Contains(args, "[") {
		return n > 0
	}
	was := p.finished
	p.finished = n
	return was >= 0 && n > was
}

// newestRounds returns the index of the message with which the model's last but one answer begins; 0 if there is none.
func newestRounds(messages []core.Message) int {
	answers := 0
	for i, m := range slices.Backward(messages) {
		if m.Role == core.RoleAssistant && (i == 0 || messages[i-1].Role != core.RoleAssistant) {
			if answers++; answers == 2 {
				return i
			}
		}
	}
	return 0
}
