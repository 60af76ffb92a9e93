//go:build unix

package pluginexamples_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/model"
)

// A rich is a model that answers with JSON, and a vector for each text.
type rich struct{ once }

func (*rich) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: fmt.Sprintf(`{"schema":%s,"temperature":%v,"effort":%q}`, p.Schema, *p.Temperature, p.Effort)}, nil
}

func (*rich) Embed(_ context.Context, texts []string) ([][]float32, core.Usage, error) {
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		vectors[i] = make([]float32, 8)
		vectors[i][7] = float32(len(t))
	}
	return vectors, core.Usage{Calls: 1, InputTokens: len(texts)}, nil
}

// withAll is a host that answers every callback.
func withAll(_ *supervise.Spec, o *supervise.Options) {
	m := &rich{}
	o.Client.Model = func(*core.Request, string) (model.Generator, error) { return m, nil }
	o.Client.Embedder = func() (model.Embedder, error) { return m, nil }
	reg, err := resolver.Strategies()
	if err != nil {
		panic(err)
	}
	o.Client.Run = resolver.RunnerOf(reg)
}

// TestCallbacks: plugins in other languages let a built-in strategy work on a part, read what is hidden, get vectors and JSON, and are told
// politely what a host lacks.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			testCallbacks(t, "CODE_UNSUPPORTED", func(adjust ...func(*supervise.Spec, *supervise.Options)) *plugin {
				return open(t, l.tricks, "{}", adjust...)
			})
			// One of version 1 works under a host that answers more.
			old := open(t, l.v1, "{}", withAll)
			if got := ask(t, old, request("echo"))[0]; got != "a question" {
				t.Errorf("version 1: got %q", got)
			}
		})
	}
}

// testCallbacks tries the callbacks of the plugin that opens, whose SDK calls those that a host lacks unsupported.
func testCallbacks(t *testing.T, unsupported string, opens func(...func(*supervise.Spec, *supervise.Options)) *plugin) {
	t.Helper()
	p := opens(withAll)
	var messages []core.Message
	for i := range 8 {
		id := fmt.Sprintf("c%d", i)
		text := strings.Repeat(fmt.Sprintf("%02d of the files is unchanged and has no errors\n", i), 40)
		messages = append(messages, coretest.User(core.Text("Go on.")), coretest.Assistant(coretest.Call(id)),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}))
	}
	req := request("part", append(messages, coretest.Assistant(core.Text("Done.")), coretest.User(core.Text("And now?")))...)
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	core.Measure(req.Counter, res.Messages)
	after := *req
	after.Messages = res.Messages
	note := slices.IndexFunc(res.Messages, func(m core.Message) bool {
		return m.Kind == core.KindSummary && strings.HasSuffix(fmt.Sprint(m.Parts), " tokens left]")
	})
	if note < 0 || after.Tokens() > req.Tokens()*3/4 {
		t.Errorf("%d tokens became %d, with %v", req.Tokens(), after.Tokens(), res.Messages)
	}
	for i, was := range req.Messages {
		at := slices.IndexFunc(res.Messages, func(m core.Message) bool { return m.ID == was.ID })
		if outside := i < 2 || i >= len(req.Messages)-2; outside && (at < 0 || !res.Messages[at].Equal(was)) {
			t.Errorf("message %d is outside of the part, and is changed", i)
		}
	}

	req = request("reopen")
	req.Hidden = func(ids ...string) ([]core.Message, error) {
		m := core.Message{ID: "old", Role: core.RoleUser, Tokens: 9}
		if len(ids) == 1 && ids[0] == "old" {
			m.Parts = []core.Part{core.Text("Never use tabs.")}
		}
		return []core.Message{m}, nil
	}
	if got := ask(t, p, req); !slices.Contains(got, "Never use tabs.") {
		t.Errorf("what was hidden: got %q", got)
	}
	req = request("newest", coretest.User(core.Text("Read a.go.")), coretest.Assistant(core.Text("Done.")), coretest.User(core.Text("Now?")))
	req.Messages[0].Labels = map[string]string{"kept": "pin", "topic": "files"}
	req.Cached = core.Cached{Messages: 2, Until: time.UnixMilli(1_800_000_000_123)}
	req.File = func(path string) ([]core.FilePiece, error) {
		if path != "a.go" {
			return nil, nil
		}
		return []core.FilePiece{{First: 7, Text: "package a", Unsure: true}}, nil
	}
	if got := ask(t, p, req)[0]; got != "7 package a true 0 2 1800000000123 pin" {
		t.Errorf("a file: got %q", got)
	}
	if got := ask(t, p, request("vectors")); got[0] != "2000 8 6.0" {
		t.Errorf("vectors: got %q", got)
	}
	if got := ask(t, p, request("schema")); got[0] != `{"schema":{"type":"object"},"temperature":0.5,"effort":"low"}` {
		t.Errorf("schema: got %q", got)
	}
	got := ask(t, opens(), request("lacking"))[0]
	for _, name := range []string{"hidden", "run", "embed", "file"} {
		if !strings.Contains(got, unsupported+" host: "+name+": not supported by this host") {
			t.Errorf("a host without callbacks: got %q", got)
		}
	}
}
