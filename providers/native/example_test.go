package native_test

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/native"
)

// A client is a language model of one's own: here one that is not very bright.
type client struct{}

func (client) Info() model.Info {
	return model.Info{Name: "mine", Window: 200_000, Price: model.Price{Input: 1, Output: 5}}
}

func (client) Generate(ctx context.Context, _ *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &model.Answer{
		Text:  "1. Goal\nA build that passes. Seven files were read, and the comma is mended.",
		Usage: core.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 20},
	}, nil
}

// A program with a client of its own passes it to New.
func Example() {
	c := native.DefaultConfig()
	c.UserWordsShare = 0 // to keep the output of this example short
	c.KeepFirst = 1
	provider, err := native.New(c, client{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var messages []core.Message
	messages = append(messages, coretest.User(core.Text("Why does the build fail?")))
	for i := range 7 {
		id := fmt.Sprintf("call%d", i)
		messages = append(messages, coretest.Assistant(coretest.Call(id)), coretest.Tool(coretest.Result(id, fmt.Sprintf("%1000d", i))))
	}
	req := coretest.HalfRequest(coretest.Conversation(append(messages, coretest.Assistant(core.Text("I mended a comma.")))...))
	res, err := provider.Condense(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.Messages {
		fmt.Printf("%s %s:\n%s\n", m.Role, m.Kind, m.Parts[0])
	}
	// Output:
	// user :
	// Why does the build fail?
	// user summary:
	// [Written by provider native to shorten this conversation; not said by the user]
	// ## Conversation Summary
	// 1. Goal
	// A build that passes. Seven files were read, and the comma is mended.
}
