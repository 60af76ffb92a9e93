package condenseadk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/core"

	condenseadk "github.com/condensehq/condense/adapters/adk"
)

// A scripted model calls tools, and says that it is done.
type scripted struct {
	watch *play.Watch
	turn  int
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		all, err := condenseadk.ToCore(req.Contents)
		if err != nil {
			yield(nil, err)
			return
		}
		s.watch.Saw(all)
		if s.turn++; s.turn > play.Turns {
			yield(&model.LLMResponse{Content: genai.NewContentFromText("Done.", genai.RoleModel)}, nil)
			return
		}
		content := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: "I think.", Thought: true, ThoughtSignature: []byte("s")}}}
		for _, c := range play.Calls(s.turn) {
			content.Parts = append(content.Parts, genai.NewPartFromFunctionCall(c.Name, map[string]any{"path": c.Path}))
		}
		yield(&model.LLMResponse{Content: content}, nil)
	}
}

type (
	in struct {
		Path string `json:"path"`
	}
	out struct {
		Text string `json:"text"`
	}
)

// TestAgent plays an agent in two runs of one session, which keeps everything.
func TestAgent(t *testing.T) {
	watch := &play.Watch{T: t}
	sessions := condenseadk.NewSessions(play.Open(t), condense.Turn{NoRecall: true})
	read, err := functiontool.New(functiontool.Config{Name: "read", Description: "Reads a file."}, func(_ tool.Context, in in) (out, error) {
		if in.Path == "src/part7/file0.go" {
			return out{}, fmt.Errorf("no such file")
		}
		return out{play.Result(in.Path)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: "reader", Instruction: "You are careful.", Model: &scripted{watch: watch}, Tools: []tool.Tool{read},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{sessions.BeforeModel},
	})
	if err != nil {
		t.Fatal(err)
	}
	service := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: service})
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range play.Words() {
		watch.Words = append(watch.Words, words)
		for _, err := range r.Run(t.Context(), "u", s.Session.ID(), genai.NewContentFromText(words, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if watch.Requests != play.Turns+2 {
		t.Errorf("%d requests", watch.Requests)
	}
	c := sessions.Of(condenseadk.Name("s", "", "reader")).Conversation()
	watch.Ended(c, len(play.Words())+1+2*play.Turns)
	whole, err := condenseadk.FromCore(c.View())
	if err != nil {
		t.Fatal(err)
	}
	got, err := service.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range whole {
		was := got.Session.Events().At(i).Content
		for _, p := range was.Parts { // the kit sends no IDs of its own
			if p.FunctionCall != nil {
				p.FunctionCall.ID = ""
			}
			if p.FunctionResponse != nil {
				p.FunctionResponse.ID = ""
			}
		}
		if encoded(t, m) != encoded(t, was) {
			t.Fatalf("content %d is %s, and was %s", i, encoded(t, m), encoded(t, was))
		}
	}
	sessions.Forget(condenseadk.Name("s", "", "reader"))
	if sessions.Of(condenseadk.Name("s", "", "reader")).Report() != nil {
		t.Error("a forgotten session is there")
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRoundTrip: contents of every kind come back as they were.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := []*genai.Content{}
		for range r.IntN(12) {
			in = append(in, random(r))
		}
		all, err := condenseadk.ToCore(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := condenseadk.FromCore(all)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if !reflect.DeepEqual(in[i], out[i]) {
				t.Fatalf("seed %d, content %d:\n%s\n%s", seed, i, encoded(t, in[i]), encoded(t, out[i]))
			}
		}
		for i := range all { // without their source they mean the same
			all[i].Source = nil
		}
		if out, err = condenseadk.FromCore(all); err != nil {
			t.Fatal(err)
		}
		again, err := condenseadk.ToCore(out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if !core.EqualParts(all[i].Parts, again[i].Parts) || all[i].Role != again[i].Role {
				t.Fatalf("seed %d, content %d:\n%+v\n%+v", seed, i, all[i], again[i])
			}
		}
	}
}

func random(r *rand.Rand) *genai.Content {
	text := func() string { return []string{"x", "word", "two\nlines", "é\u2028<&>", `{"a":1}`}[r.IntN(5)] }
	c := &genai.Content{Role: []string{"user", "model", ""}[r.IntN(3)]}
	for range 1 + r.IntN(4) {
		var p *genai.Part
		switch r.IntN(9) {
		case 0:
			p = genai.NewPartFromBytes([]byte("hi"), []string{"image/png", "audio/wav"}[r.IntN(2)])
		case 1:
			p = genai.NewPartFromURI("gs://b/a", []string{"image/png", "application/pdf"}[r.IntN(2)])
		case 2:
			p = genai.NewPartFromFunctionCall("read", map[string]any{"path": text(), "n": 1.5, "deep": []any{nil, true}})
			p.ThoughtSignature = []byte{0, 255}
		case 3:
			p = genai.NewPartFromFunctionCall("read", nil)
			p.FunctionCall.ID = "c1"
		case 4:
			p = genai.NewPartFromFunctionResponse("read", map[string]any{[]string{"output", "error", "text"}[r.IntN(3)]: text()})
			if r.IntN(2) == 0 {
				p.FunctionResponse.ID = "c1"
				p.FunctionResponse.Parts = []*genai.FunctionResponsePart{genai.NewFunctionResponsePartFromBytes([]byte("hi"), "image/png")}
			}
		case 5:
			p = &genai.Part{Text: text(), Thought: true, ThoughtSignature: []byte("sign")}
		case 6:
			p = genai.NewPartFromExecutableCode("print(1)", genai.LanguagePython)
		default:
			p = genai.NewPartFromText(text())
		}
		c.Parts = append(c.Parts, p)
	}
	return c
}

// TestChanged: fields that core does not have stay when a call or a response is shortened.
func TestChanged(t *testing.T) {
	call := genai.NewPartFromFunctionCall("write", map[string]any{"text": "long"})
	call.ThoughtSignature = []byte("sign")
	response := genai.NewPartFromFunctionResponse("write", map[string]any{"stdout": "a\nb", "exit": 0})
	response.FunctionResponse.Scheduling = genai.FunctionResponseSchedulingSilent
	all, err := condenseadk.ToCore([]*genai.Content{{Role: "model", Parts: []*genai.Part{call}}, {Role: "user", Parts: []*genai.Part{response}}})
	if err != nil {
		t.Fatal(err)
	}
	r := all[1].Parts[0].(core.ToolResult)
	if want := core.Part(core.Text("exit: 0\nstdout:\na\nb")); r.Content[0] != want {
		t.Errorf("a response is read as %q", r.Content[0])
	}
	r.Content = []core.Part{core.Text("short")}
	all[0].Parts[0], all[1].Parts[0] = core.ToolCall{ID: "function:write", Name: "write", Args: "{}"}, r
	out, err := condenseadk.FromCore(all)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := encoded(t, out), `[{"parts":[{"functionCall":{"name":"write"},"thoughtSignature":"c2lnbg=="}],"role":"model"},`+
		`{"parts":[{"functionResponse":{"scheduling":"SILENT","name":"write","response":{"output":"short"}}}],"role":"user"}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
