package transcript_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/condensehq/condense/transcript"
)

// A conversation in one vendor's format becomes one that the other accepts, and says
// what got lost.
func Example() {
	file := strings.NewReader(`[
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "How many files?"},
		{"role": "assistant", "reasoning_content": "I will count.", "content": null, "tool_calls": [
			{"id": "call.1", "type": "function", "function": {"name": "sh", "arguments": "{\"cmd\":\"ls | wc -l\"}"}}]},
		{"role": "tool", "tool_call_id": "call.1", "content": "42"},
		{"role": "assistant", "content": "42."}]`)
	doc, err := transcript.Read(file, &transcript.ReadOptions{Name: "chat.json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	warnings, err := doc.Write(os.Stdout, "anthropic")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Output:
	// {"system":"Be brief.","messages":[{"role":"user","content":"How many files?"},{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"sh","input":{"cmd":"ls | wc -l"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"42"}]},{"role":"assistant","content":"42."}]}
	// message m3: the id of a tool call was changed to one that is valid and unique
	// message m3: reasoning was left out: anthropic accepts only what it has signed itself
}
