package remote_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/testkit/modeltest"
	"github.com/condensehq/condense/model"
)

// long is a session of an agent with some 160,000 tokens.
func long() *model.Prompt {
	p := &model.Prompt{System: "You write summaries.", Tools: `[{"name":"read_file","input_schema":{"type":"object"}}]`, MaxOutput: 1000}
	add := func(role core.Role, parts ...core.Part) {
		p.Messages = append(p.Messages, core.Message{Role: role, Parts: parts})
	}
	for i := range 200 {
		id := fmt.Sprintf("call_%d", i)
		add(core.RoleUser, core.Text("Go on with the next file, please."))
		add(core.RoleAssistant, core.Text("I read it."), core.ToolCall{ID: id, Name: "read_file", Args: `{"path":"a.go"}`})
		add(core.RoleTool, core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("func f(a, b int) \"quoted\" {\n\treturn a + b\n}\n", 55))}})
	}
	add(core.RoleUser, core.Text("Summarize."))
	return p
}

// BenchmarkRequest measures all work of a client without waiting: writing the request and
// reading the answer.
func BenchmarkRequest(b *testing.B) {
	for _, v := range vendors {
		for _, cached := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cached=%v", v.name, cached), func(b *testing.B) {
				stream := "data: " + strings.Join(v.says("Said."), "\n\ndata: ") + "\n\n"
				c, err := v.open(remote.Options{ID: "m", BaseURL: "http://localhost", HTTPClient: &http.Client{
					Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
						b.SetBytes(r.ContentLength)
						return modeltest.Response(r, stream), nil
					}),
				}})
				if err != nil {
					b.Fatal(err)
				}
				p := long()
				p.Cached = cached
				for b.Loop() {
					if _, err := c.Generate(b.Context(), p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
