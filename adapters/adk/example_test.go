package condenseadk_test

import (
	"context"
	"fmt"
	"iter"
	"log"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/genai"

	"github.com/condensehq/condense"

	condenseadk "github.com/condensehq/condense/adapters/adk"
)

// An agent of the kit asks before each call of its model; each session has a memory of its own.
func Example() {
	ctx := context.Background()
	h, err := condense.Open(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	sessions := condenseadk.NewSessions(h, condense.Turn{NoRecall: true})
	helper, err := llmagent.New(llmagent.Config{
		Name: "helper", Model: polite{}, BeforeModelCallbacks: []llmagent.BeforeModelCallback{sessions.BeforeModel},
	})
	if err != nil {
		log.Fatal(err)
	}
	service := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: helper, SessionService: service})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := service.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "u", SessionID: "s"}); err != nil {
		log.Fatal(err)
	}
	for e, err := range r.Run(ctx, "u", "s", genai.NewContentFromText("Hello", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Content.Parts[0].Text)
	}
	memory := sessions.Of(condenseadk.Name("s", "", "helper"))
	fmt.Println(len(memory.Conversation().View()), "message was sent;", memory.Report().Acted)
	// Output:
	// Good day.
	// 1 message was sent; false
}

// A polite model has one answer.
type polite struct{}

func (polite) Name() string { return "polite" }

func (polite) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText("Good day.", genai.RoleModel)}, nil)
	}
}
