package coretest

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
)

// conversations has the cases that make one call and check the result. The budget is half
// the size of the conversation unless the case sets another one.
var conversations = []testCase{
	{
		name: "session", about: "an ordinary session, its results in user messages", rule: "keep-pairs", must: true,
		request: half(func() []core.Message { return Conversation(exchanges(12, core.RoleUser)...) }),
	},
	{
		name: "session with tool messages", about: "an ordinary session, each result a message of its own", rule: "keep-pairs", must: true,
		request: half(func() []core.Message { return Conversation(exchanges(12, core.RoleTool)...) }),
	},
	{
		name: "session with tools as text", about: "calls and results are XML in texts; no tool parts at all",
		rule: "keep-order", must: true,
		request: half(xmlSession),
	},
	{
		name: "everything", about: "protected messages, reasoning, pictures, parallel calls, an old summary, an open call",
		rule:    "valid-parts",
		request: half(Session),
	},
	{
		name: "parallel calls", about: "three calls in one message, their results in one", rule: "keep-pairs",
		request: half(func() []core.Message {
			return Conversation(
				User(core.Text("compare the three files "+prose(50))),
				Assistant(Call("a"), Call("b"), Call("c")),
				User(Result("a", prose(40)), Result("b", prose(40)), Result("c", prose(40))),
				Assistant(core.Text("they are the same")),
				User(core.Text("thanks")),
			)
		}),
	},
	{
		name: "spread results", about: "two calls in one message, answered in two, a user's word between", rule: "no-split",
		request: half(func() []core.Message {
			return Conversation(
				User(core.Text(prose(80))),
				Assistant(core.Text("both at once"), Call("a"), Call("b")),
				Tool(Result("a", prose(60))),
				User(core.Text("hurry up")),
				Tool(Result("b", prose(60))),
				Assistant(core.Text(prose(20))),
				User(core.Text("and now the other one")),
			)
		}),
	},
	{
		name: "pending call", about: "the last message calls a tool that has not answered yet", rule: "keep-pairs",
		request: half(func() []core.Message {
			return Conversation(append(exchanges(6, core.RoleUser), Assistant(core.Text("one more"), Call("last")))...)
		}),
	},
	{
		name: "orphaned results", about: "results on arrival whose calls are missing", rule: "keep-calls",
		request: half(func() []core.Message {
			return Conversation(append([]core.Message{
				User(core.Text("go on"), Result("lost", prose(40))),
				Assistant(core.Text(prose(30))),
				Tool(Result("lost too", prose(40))),
			}, exchanges(4, core.RoleTool)...)...)
		}),
	},
	{
		name: "call IDs used twice", about: "three calls with one ID, as recorded sessions have them", rule: "keep-pairs",
		request: half(func() []core.Message {
			return Conversation(
				User(core.Text(prose(30))),
				Assistant(Call("x")), Tool(Result("x", prose(50))),
				Assistant(Call("x")), Tool(Result("x", prose(50))),
				Assistant(Call("x"), Call("x")), User(Result("x", prose(50)), Result("x", prose(50))),
				Assistant(core.Text("done")),
				User(core.Text("next")),
			)
		}),
	},
	{
		name: "images", about: "pictures in messages and in tool results", rule: "keep-media",
		request: half(func() []core.Message {
			m := []core.Message{User(core.Text("what is wrong in these?"), Image(1), Image(2), core.Text(prose(60)))}
			for i := range 4 {
				id := fmt.Sprintf("shot%d", i)
				m = append(
					m, Assistant(core.Text("a screenshot"), Call(id)),
					User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(prose(60)), Image(10 + i)}}),
				)
			}
			return Conversation(append(m, Assistant(core.Text("the margin")), User(Image(3)))...)
		}),
	},
	{
		name: "reasoning", about: "signed and encrypted reasoning, with calls and alone", rule: "keep-reasoning",
		request: half(func() []core.Message {
			signed := core.Reasoning{Text: prose(60), Signature: "c2lnbmVk"}
			return Conversation(
				User(core.Text(prose(50))),
				Assistant(signed, core.Text(prose(50)), Call("a")), User(Result("a", prose(50))),
				Assistant(core.Reasoning{Encrypted: "ZW5jcnlwdGVk"}, Call("b")), User(Result("b", prose(50))),
				Assistant(core.Reasoning{Text: prose(30)}),
				User(core.Text("well?")),
				Assistant(signed, core.Text("yes")),
			)
		}),
	},
	{
		name: "unknown blocks", about: "blocks of a kind that the host does not know", rule: "keep-media",
		request: half(func() []core.Message {
			block := core.Opaque{Kind: "search_result", JSON: `{"type": "search_result", "hits": [1, 2, 3]}`}
			return Conversation(
				User(core.Text(prose(50)), block),
				Assistant(Call("a")),
				User(core.ToolResult{CallID: "a", Content: []core.Part{core.Text(prose(80)), block}}),
				Assistant(core.Text(prose(40)), block),
				User(core.Text("and?")),
			)
		}),
	},
	{
		name: "system messages", about: "system messages at the front and in the middle", rule: "first-role",
		request: half(func() []core.Message {
			m := append([]core.Message{System(core.Text(prose(40)))}, exchanges(4, core.RoleUser)...)
			m = append(m, System(core.Text("from now on, answer in verse")))
			return Conversation(append(m, User(core.Text("go on")), Assistant(core.Text(prose(40))))...)
		}),
	},
	{name: "first message protected", about: "the task must stay", rule: "keep-protected", request: half(protecting(0))},
	{name: "middle message protected", about: "a call in the middle must stay, its result with it", rule: "keep-protected", request: half(protecting(11))},
	{name: "last message protected", about: "the last message must stay", rule: "keep-protected", request: half(protecting(-1))},
	{
		name: "everything protected", about: "nothing may be changed", rule: "keep-protected",
		request: half(func() []core.Message {
			m := exchanges(4, core.RoleUser)
			for i := range m {
				m[i].Protected = true
			}
			return Conversation(m...)
		}),
	},
	{name: "no messages", about: "an empty history", rule: "answer", request: half(func() []core.Message { return nil })},
	{
		name: "one message", about: "a user has said one word", rule: "answer",
		request: half(func() []core.Message { return Conversation(User(core.Text("hello"))) }),
	},
	{
		name: "huge message", about: "one message is larger than the window", rule: "not-empty",
		request: func() *core.Request {
			m := exchanges(3, core.RoleUser)
			m[1].Parts = append(m[1].Parts, core.Text(strings.Repeat(prose(100)+"\n", 400)))
			return Request(Conversation(m...), 4000)
		},
	},
	{
		name: "only a huge message", about: "there is one message, and it is larger than the window", rule: "not-empty",
		request: func() *core.Request {
			return Request(Conversation(User(core.Text(strings.Repeat(prose(100)+"\n", 400)))), 4000)
		},
	},
	{
		name: "huge reasoning", about: "a message consists of long reasoning and an empty text", rule: "not-empty",
		request: func() *core.Request {
			thought := core.Reasoning{Text: strings.Repeat(prose(100)+"\n", 400), Signature: "c2lnbmVk"}
			return Request(Conversation(User(core.Text("think")), Assistant(thought, core.Text("")), User(core.Text("so?"))), 4000)
		},
	},
	{
		name: "blank messages", about: "messages on arrival with an empty text, only spaces, or no part", rule: "not-empty",
		request: half(func() []core.Message {
			m := append(exchanges(4, core.RoleUser), User(core.Text("")), Assistant(core.Text(" \n\t")), User(), Assistant(Call("a")), User(Result("a")))
			return Conversation(append(m, User(core.Text("hello?")))...)
		}),
	},
	{
		name: "bytes", about: "invalid UTF-8, NULs, a byte order mark and half a rune in texts and arguments", rule: "valid-parts",
		request: half(func() []core.Message {
			bad := "\ufeff\x00\xff\xfe" + prose(60) + "\xe2\x82"
			return Conversation(
				User(core.Text(bad)),
				Assistant(core.Text(bad), core.ToolCall{ID: "c1", Name: "cat", Args: `{"path": "` + bad}),
				User(Result("c1", bad)),
				Assistant(core.Text("binary")),
				User(core.Text("\x00")),
			)
		}),
	},
	{
		name: "long line", about: "a result of one line of a megabyte without a space", rule: "no-growth",
		request: half(func() []core.Message {
			return Conversation(
				User(core.Text("show me the bundle")),
				Assistant(Call("a")),
				User(Result("a", strings.Repeat("0123456789abcdef", 1<<16))),
				Assistant(core.Text("it is minified")),
				User(core.Text("I see")),
			)
		}),
	},
	{
		name: "2,000 messages", about: "a long session", rule: "keep-order",
		request: half(func() []core.Message { return Conversation(exchanges(666, core.RoleUser)...) }),
	},
	{
		name: "budget met", about: "the conversation is on target already", rule: "no-growth",
		request: func() *core.Request {
			m := Conversation(exchanges(4, core.RoleUser)...)
			return Request(m, 2*Request(m, 0).Tokens())
		},
	},
	{
		name: "budget impossible", about: "the overhead alone is more than the target", rule: "no-growth",
		request: func() *core.Request {
			req := Request(Conversation(exchanges(8, core.RoleUser)...), 500)
			req.Budget.Overhead = 1000
			return req
		},
	},
	{
		name: "budget of one token", about: "no conversation is that small", rule: "answer",
		request: func() *core.Request { return Request(Conversation(exchanges(8, core.RoleTool)...), 1) },
	},
}

// half returns the request to condense the messages to half their size.
func half(messages func() []core.Message) func() *core.Request {
	return func() *core.Request { return HalfRequest(messages()) }
}

// exchanges returns the messages of a session in which a model calls n tools, without IDs. Role is the role of the
// results.
func exchanges(n int, role core.Role) []core.Message {
	m := []core.Message{User(core.Text("Find out why the build fails. " + prose(20)))}
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		m = append(
			m,
			Assistant(core.Text(fmt.Sprintf("Step %d. %s", i, prose(5+i%10))), Call(id)),
			core.Message{Role: role, Parts: []core.Part{Result(id, fmt.Sprintf("%d: %s", i, prose(20+13*i%90)))}},
		)
		if i%4 == 3 {
			m = append(m, Assistant(core.Text(fmt.Sprintf("Part %d is done.", i))), User(core.Text("Go on.")))
		}
	}
	return append(m, Assistant(core.Text("The build passes.")), User(core.Text("What was it?")))
}

func xmlSession() []core.Message {
	m := []core.Message{User(core.Text("<task>\nFind out why the build fails.\n</task>"))}
	for i := range 10 {
		m = append(
			m,
			Assistant(core.Text(fmt.Sprintf("Step %d.\n<read_file>\n<path>src/f%d.go</path>\n</read_file>", i, i))),
			User(core.Text(fmt.Sprintf("[read_file for 'src/f%d.go'] Result:", i)), core.Text(prose(20+13*i%90))),
		)
	}
	return Conversation(append(m, Assistant(core.Text("<attempt_completion>\n<result>It passes.</result>\n</attempt_completion>")))...)
}

// protecting returns a session in which message i is protected, counted from the end if
// it is negative.
func protecting(i int) func() []core.Message {
	return func() []core.Message {
		m := exchanges(8, core.RoleUser)
		m[(i+len(m))%len(m)].Protected = true
		return Conversation(m...)
	}
}
