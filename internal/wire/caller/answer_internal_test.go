package caller

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/byhand"
	"github.com/condensehq/condense/internal/wire/condensepb"
)

// FuzzAnswer: whatever a plugin sends, the host has an error or messages that it can
// judge: it never panics, and what was not named is what it was.
func FuzzAnswer(f *testing.F) {
	messages := coretest.Session()
	add := func(envs ...*condensepb.CondenseResponse) {
		var data []byte
		for _, e := range envs {
			raw, err := proto.Marshal(e)
			if err != nil {
				f.Fatal(err)
			}
			data = protowire.AppendBytes(data, raw)
		}
		f.Add(data)
	}
	edit := func(e *condensepb.Edit) *condensepb.CondenseResponse {
		return &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Edit{Edit: e}}
	}
	done := &condensepb.CondenseResponse{Kind: &condensepb.CondenseResponse_Done{Done: &condensepb.Done{Usage: &condensepb.Usage{Calls: 1}}}}
	add(done)
	add(edit(&condensepb.Edit{Hide: []*condensepb.MessageRange{{First: "m4", Last: "m7"}}}), done)
	add(edit(&condensepb.Edit{Rewrite: []*condensepb.Rewrite{{Id: "m5", Parts: []*condensepb.NewPart{
		{Kind: &condensepb.NewPart_Keep{Keep: 1}},
		{Kind: &condensepb.NewPart_Result{Result: &condensepb.ResultEdit{Content: []*condensepb.NewPart{{Kind: &condensepb.NewPart_Keep{}}}}}},
		{Kind: &condensepb.NewPart_Put{Put: &condensepb.Part{Kind: &condensepb.Part_Text{Text: []byte("x")}}}},
	}}}}), done)
	add(edit(&condensepb.Edit{Insert: []*condensepb.Insert{{After: "m2", Role: "user", Kind: "summary", Parts: []*condensepb.Part{
		{Kind: &condensepb.Part_ToolResult{ToolResult: &condensepb.ToolResult{CallId: "c1"}}},
	}}}}), done)
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newAnswer(messages, Limits{NewMessages: 100, NewParts: 1000, AnswerBytes: 1 << 20}.withDefaults())
		asm := wire.Assembler{Max: 1 << 16, Fault: func(err error) error { return err }}
		for len(data) > 0 {
			raw, n := protowire.ConsumeBytes(data)
			if n < 0 {
				return
			}
			data = data[n:]
			env := &condensepb.CondenseResponse{}
			if err := wire.Unmarshal(raw, env); err != nil {
				return
			}
			switch k := env.GetKind().(type) {
			case *condensepb.CondenseResponse_Fragment:
				if _, err := asm.Add(k.Fragment); err != nil {
					return
				}
			case *condensepb.CondenseResponse_Callback:
				req := coretest.HalfRequest(messages)
				(&itemCounter{req.Messages, req.Counter, byhand.Index(req.Messages)}).reply(t.Context(), k.Callback)
			case *condensepb.CondenseResponse_Edit:
				if err := a.add(k.Edit, len(raw)); err != nil {
					return
				}
			case *condensepb.CondenseResponse_Done:
				res, err := a.result(k.Done)
				if err != nil {
					return
				}
				judge(t, messages, &a, res)
				return
			}
		}
	})
}

// judge checks what holds for every result, valid or not.
func judge(t *testing.T, messages []core.Message, a *answer, res *core.Result) {
	t.Helper()
	_ = core.Verify(coretest.HalfRequest(messages), res) // does not panic
	last := -1
	at := map[string]int{}
	for i := range messages {
		at[messages[i].ID] = i
	}
	for _, m := range res.Messages {
		if m.ID == "" {
			continue
		}
		i, ok := at[m.ID]
		if !ok || i <= last {
			t.Fatalf("message %q is unknown, or out of order", m.ID)
		}
		if last = i; a.rewritten[i] == nil && !m.Equal(messages[i]) {
			t.Fatalf("message %q was not named and is another", m.ID)
		}
	}
	if len(a.hidden) == 0 && len(res.Messages) != len(messages) {
		t.Fatalf("%d messages became %d", len(messages), len(res.Messages))
	}
}
