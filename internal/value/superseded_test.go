package value_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestFormerTextOfAFileIsNotShown: of a file that was read, changed and read again, no line is shown that it no longer has, whoever
// changed it and however its path is written.
func TestFormerTextOfAFileIsNotShown(t *testing.T) {
	file := func(name string) string {
		var b strings.Builder
		for i := range 120 {
			line := fmt.Sprintf("    result_%d = compute_step_%d(options, registry)", i, i)
			if i%5 == 0 {
				line = fmt.Sprintf("    item_%d = %s.take_next(worker_%d, timeout=%d)", i, name, i, i*7)
			}
			fmt.Fprintf(&b, "%5d→%s\n", i+1, line)
		}
		return b.String()
	}
	for how, c := range map[string]struct{ first, second, change string }{
		"an edit":              {"/src/app/worker.py", "src/app/worker.py", "edit"},
		"a codemod":            {"/src/app/worker.py", "/src/app/worker.py", "sed"},
		"Windows, two letters": {`C:\\src\\worker.py`, "c:/src/worker.py", "edit"},
		"Windows and WSL":      {`C:\\src\\worker.py`, "/mnt/c/src/worker.py", "sed"},
	} {
		messages := []core.Message{coretest.User(core.Text("Rename queue to QUEUE in the worker, everywhere."))}
		call := func(name, args, result string) {
			id := fmt.Sprint("c", len(messages))
			messages = append(messages, coretest.Assistant(core.ToolCall{ID: id, Name: name, Args: args}), coretest.User(coretest.Result(id, result)))
		}
		call("Read", `{"file_path":"`+c.first+`"}`, file("queue"))
		if c.change == "edit" {
			call("Edit", `{"file_path":"`+c.second+`","old_string":"queue","new_string":"QUEUE","replace_all":true}`, "The file has been updated successfully.")
		} else {
			call("Bash", `{"command":"sed -i s/queue/QUEUE/ worker.py"}`, "")
		}
		call("Read", `{"file_path":"`+c.second+`"}`, file("QUEUE"))
		for i := range 4 {
			call("Read", fmt.Sprintf(`{"file_path":"/src/app/other%d.py"}`, i), strings.ReplaceAll(file("stack"), "item", fmt.Sprint("other", i)))
		}
		messages = coretest.Conversation(append(messages, coretest.User(core.Text("Which timeouts does the worker use?")))...)
		for _, share := range []int{2, 3, 4, 6} {
			res := shorten(t, messages, tokensOf(messages)/share)
			left := ""
			for _, m := range res.Messages {
				for _, p := range m.Parts {
					if _, isCall := p.(core.ToolCall); !isCall {
						left += fmt.Sprint(p) + "\n"
					}
				}
			}
			if n := strings.Count(left, " queue.take_next"); n > 0 {
				t.Errorf("%s, 1/%d: %d lines of the former text, %d of the present", how, share, n, strings.Count(left, " QUEUE.take_next"))
			}
		}
	}
}
