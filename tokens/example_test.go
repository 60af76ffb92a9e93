package tokens_test

import (
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

func Example() {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		fmt.Println(err)
		return
	}
	const text = "The quick brown fox jumps over the lazy dog."
	fmt.Println(encoding.CountText(text))
	fmt.Printf("%q\n", encoding.Prefix(text, 4))
	fmt.Printf("%q\n", encoding.Suffix(text, 3))
	// Output:
	// 10
	// "The quick brown fox"
	// " lazy dog."
}

func ExampleCounter_Breakdown() {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		fmt.Println(err)
		return
	}
	counter := tokens.NewCounter(encoding)
	by := counter.Breakdown(
		core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("What is in main.go?")}},
		core.Message{Role: core.RoleAssistant, Parts: []core.Part{
			core.Text("Let me look."),
			core.ToolCall{ID: "1", Name: "read_file", Args: `{"path":"main.go"}`},
		}},
	)
	for _, kind := range tokens.Kinds() {
		if n := by[kind]; n > 0 {
			fmt.Println(kind, n)
		}
	}
	// Output:
	// user 10
	// assistant 8
	// tool_call 8
}
