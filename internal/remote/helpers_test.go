package remote_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/remote/anthropic"
	"github.com/condensehq/condense/internal/remote/openai"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/model"
)

const (
	keyEnv = "REMOTE_TEST_KEY"
	key    = "sk-test-0123456789abcdefghij"
)

// A vendor is one of the two ways to say the same.
type vendor struct {
	name string
	open func(remote.Options) (*remote.Client, error)
	says func(text string) []string
}

var vendors = []vendor{
	{"anthropic", anthropic.New, modeltest.Anthropic},
	{"openai", openai.New, modeltest.OpenAI},
}

var (
	price  = model.Price{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25}
	prompt = &model.Prompt{
		System:    "You write summaries.",
		Messages:  []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text("Summarize: we fixed the parser.")}}},
		MaxOutput: 1000,
	}
)

// options are those of a client that does not wait long between attempts.
func options(base string) remote.Options {
	return remote.Options{
		Name: "cheap", ID: "model-1", BaseURL: base, KeyEnv: keyEnv, MaxOutput: 8000, Price: price,
		Retry: remote.Retry{Attempts: 3, First: time.Millisecond, Longest: 2 * time.Millisecond},
	}
}

func open(t *testing.T, v vendor, o remote.Options) *remote.Client {
	t.Helper()
	t.Setenv(keyEnv, key)
	c, err := v.open(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask returns the answer and the error, which must be typed. An answer that is missing
// together with an error is an empty one.
func ask(ctx context.Context, t *testing.T, c *remote.Client) (*model.Answer, *remote.Error) {
	t.Helper()
	answer, err := c.Generate(ctx, prompt)
	if err == nil {
		return answer, nil
	}
	if answer == nil {
		answer = &model.Answer{}
	}
	var e *remote.Error
	if !errors.As(err, &e) {
		t.Fatalf("got the error %T %v, want a *remote.Error", err, err)
	}
	return answer, e
}

func kindOf(e *remote.Error) remote.Kind {
	if e == nil {
		return ""
	}
	return e.Kind
}
