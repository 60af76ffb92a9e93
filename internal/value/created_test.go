package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestRunningAndCreatedThingsKeepTheirNames: what calls started or created cannot be found again, so identifiers outlive what can be read
// again; those of what ended go.
func TestRunningAndCreatedThingsKeepTheirNames(t *testing.T) {
	var messages []core.Message
	n := 0
	call := func(name, args, result string) {
		n++
		id := fmt.Sprint("c", n)
		messages = append(messages, coretest.Assistant(core.ToolCall{ID: id, Name: name, Args: args}), coretest.User(coretest.Result(id, result)))
	}
	fill := func(k int) {
		for i := range k {
			var b strings.Builder
			for l := range 60 {
				fmt.Fprintf(&b, "%4d→\tfunc handle%d_%d(w http.ResponseWriter, r *http.Request) error { return render(w, %q) }\n", l+1, len(messages), l, fmt.Sprint("page", i, l))
			}
			call("Read", fmt.Sprintf(`{"file_path":"/src/f%d_%d.go"}`, len(messages), i), b.String())
		}
	}
	messages = append(messages, coretest.User(core.Text("Audit the services and file what you find. Do not start an agent twice.")))
	fill(2)
	var alive, over []string
	for i := range 4 {
		id := fmt.Sprintf("a%dc9e2f%d", i, i*7+1)
		call("Task", fmt.Sprintf(`{"description":"audit service %d","prompt":"Audit service %d."}`, i, i), "Async agent launched successfully.\nagentId: "+id+" (internal ID - do not mention to user)\nThe agent is working in the background.")
		if alive = append(alive, id); i == 0 {
			alive, over = nil, []string{id}
		}
		fill(2)
	}
	for i := range 8 {
		key := fmt.Sprint("SHOP-", 1100+17*i)
		call("mcp__tracker__create_issue", fmt.Sprintf(`{"title":"finding %d"}`, i), fmt.Sprintf(`{"ok":true,"key":%q,"title":"finding %d","status":"open"}`, key, i))
		alive = append(alive, key)
		fill(1)
	}
	for i := range 4 {
		hash := fmt.Sprintf("%d3f9a2b", i+1)
		call("Bash", fmt.Sprintf(`{"command":"git commit -qam 'step %d'; git log -1"}`, i), fmt.Sprintf("[main %s] step %d\n 1 file changed, 2 insertions(+)", hash, i))
		alive = append(alive, hash)
		fill(1)
	}
	for i := range 5 { // the identifier comes after a report with numbers
		id := fmt.Sprintf("b%de31c9f%d", i, i*7+1)
		call("Agent", fmt.Sprintf(`{"description":"review service %d","prompt":"Review service %d."}`, i, i),
			strings.Repeat(fmt.Sprintf("Read commit %d0aa9f1 of issue #%d and pull request #5%d, lines of page %d.\n", i, i+40, i, i), 50)+"agentId: "+id+" (use SendMessage with to: '"+id+"' to continue this agent)")
		alive = append(alive, id)
	}
	call("Bash", `{"command":"go test ./...","run_in_background":true}`, "Command running in background with ID: bash_5y1. Output is being written to: /tmp/"+strings.Repeat("folder/", 30)+"bash_5y1.output")
	alive = append(alive, "bash_5y1")
	call("Bash", `{"command":"npm run dev","run_in_background":true}`, "Command running in background with ID: bash_7x2")
	alive = append(alive, "bash_7x2")
	messages = append(messages, coretest.User(core.Text("<task-notification>\nagent "+over[0]+" completed\n</task-notification>")))
	fill(8)
	messages = append(messages, coretest.User(core.Text("Go on.")))
	messages = coretest.Conversation(messages...)
	for _, share := range []int{3, 6, 10} {
		left := ""
		res := shorten(t, messages, tokensOf(messages)/share)
		// What an extract lists outlives the next one.
		res = shorten(t, coretest.Conversation(append(res.Messages, messages[3:20]...)...), tokensOf(messages)/share)
		for _, m := range res.Messages {
			left += fmt.Sprint(m.Parts) + "\n"
		}
		var lost []string
		for _, id := range alive {
			if !strings.Contains(left, id) {
				lost = append(lost, id)
			}
		}
		if len(lost) > 0 {
			t.Errorf("at a share of 1/%d these are lost: %q", share, lost)
		}
	}
}
