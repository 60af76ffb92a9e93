package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// longSession returns 10,000 messages of an agent at work: of ten, four call a tool,
// four answer, and two are talk. They have about 1.2 million tokens.
func longSession() []core.Message {
	var m []core.Message
	text := fmt.Sprintf("%-500s", "what a tool said, or a model, or a user")
	for i := range 1000 {
		m = append(m, coretest.User(core.Text(fmt.Sprint(i, text))))
		for j := range 4 {
			id := fmt.Sprintf("call_%d_%d", i, j)
			m = append(m, coretest.Assistant(core.Text(fmt.Sprint(j, text)), coretest.Call(id)), coretest.User(coretest.Result(id, text)))
		}
		m = append(m, coretest.Assistant(core.Text(text)))
	}
	return coretest.Conversation(m...)
}

// halved returns a provider's result for the messages: the older half is replaced by
// a summary, and of what stays every tenth message is rewritten.
func halved(m []core.Message) []core.Message {
	out := []core.Message{summary(core.Text("in short"))}
	for i, msg := range m[len(m)/2:] {
		if i%10 == 9 {
			msg.Parts = []core.Part{note}
		}
		out = append(out, msg)
	}
	return out
}

func BenchmarkVerify(b *testing.B) {
	req := coretest.HalfRequest(longSession())
	for name, res := range map[string]*core.Result{
		"unchanged": {Messages: req.Clone().Messages},
		"halved":    {Messages: halved(req.Clone().Messages)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := core.Verify(req, res); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	before := longSession()
	after := halved((&core.Request{Messages: before}).Clone().Messages)
	after[0].ID = "new"
	b.ReportAllocs()
	for b.Loop() {
		core.Diff(before, after)
	}
}

func BenchmarkApply(b *testing.B) {
	before := longSession()
	after := halved((&core.Request{Messages: before}).Clone().Messages)
	after[0].ID = "new"
	edit := core.Diff(before, after)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := edit.Apply(before); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGroups(b *testing.B) {
	m := longSession()
	b.ReportAllocs()
	for b.Loop() {
		core.Groups(m)
	}
}

// BenchmarkChain measures the cost of a chain without that of its provider.
func BenchmarkChain(b *testing.B) {
	req := coretest.HalfRequest(longSession())
	p := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		return &core.Result{Messages: halved(req.Messages)}, nil
	})
	chain, err := core.NewChain([]core.NamedProvider{{Name: "halves", Provider: p}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chain.Run(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFixedTokens measures what a host computes when a condensation is due: with
// nothing fixed, and with a system message.
func BenchmarkFixedTokens(b *testing.B) {
	for _, first := range []core.Role{core.RoleUser, core.RoleSystem} {
		req := coretest.HalfRequest(longSession())
		req.Messages[0].Role = first
		b.Run(string(first), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				core.FixedTokens(req)
			}
		})
	}
}
