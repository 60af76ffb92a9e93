// Package tidy is a strategy for tests and benchmarks of guests in Go: it shortens old tool results, and does what its setting says.
package tidy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

type config struct {
	Do string `json:"do" doc:"What it does besides." enum:"|asks|asks-more|panics|exits|eats-memory|tells"`
}

type provider struct {
	config

	env registry.Env
}

// Strategy returns the strategy.
func Strategy() registry.Strategy {
	return registry.Define("tidy", "Shortens old tool results.", func() config { return config{} },
		func(_ context.Context, c config, env registry.Env) (core.CondensationProvider, error) {
			return &provider{c, env}, nil
		})
}

// Condense shortens the results.
func (p *provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	res := &core.Result{Messages: append([]core.Message(nil), req.Messages...)}
	for i, m := range req.Messages[:max(0, len(req.Messages)-4)] {
		for j, part := range m.Parts {
			r, ok := part.(core.ToolResult)
			if !ok || m.Protected {
				continue
			}
			size := core.ContentBytes(r.Content...)
			if size < 200 {
				continue
			}
			r.Content = []core.Part{core.Text(fmt.Sprintf("[%d bytes of an old result were left out.]", size))}
			res.Messages[i].Parts = append([]core.Part(nil), res.Messages[i].Parts...)
			res.Messages[i].Parts[j] = r
		}
	}
	switch p.Do {
	case "asks":
		return res, p.ask(ctx, req, res)
	case "asks-more":
		return p.askMore(ctx, req)
	case "panics":
		var m map[string]int
		m["x"] = 1
	case "exits":
		os.Exit(7)
	case "eats-memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 16<<20)) //nolint:staticcheck // so that it is not freed
		}
	case "tells":
		_, err := os.ReadFile("/etc/passwd")
		entries, err2 := os.ReadDir("/")
		return nil, fmt.Errorf("file %t, folder %t with %d, environment %v, arguments %d, year %d", err == nil, err2 == nil, len(entries), os.Environ(), len(os.Args), time.Now().Year())
	}
	return res, nil
}

// ask uses everything of the host: a model, its counter, its log, its progress and its report.
func (p *provider) ask(ctx context.Context, req *core.Request, res *core.Result) error {
	m, err := p.env.Model("")
	if err != nil {
		return err
	}
	core.Progress(ctx, 0.5, "half")
	say := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("Summarize this.")}}
	answer, err := m.Generate(ctx, &model.Prompt{System: "You summarize.", Messages: append(req.Messages[:2:2], say), MaxOutput: 100})
	if err != nil {
		return err
	}
	summary := core.Text(answer.Text)
	p.env.Logger.InfoContext(ctx, "asked", "tokens", req.Counter.Count(summary))
	res.Usage = answer.Usage
	res.Messages = append(res.Messages, core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{summary}})
	res.Steps = []core.Step{{Name: "summary", Looked: 2, Changed: 1, Saved: map[string]int{"tool_result": 5}, Duration: 3 * time.Millisecond, Note: "done"}}
	return nil
}

// askMore uses what a host may lack: a strategy on the middle of the conversation, vectors, hidden messages and files.
func (p *provider) askMore(ctx context.Context, req *core.Request) (*core.Result, error) {
	vectors, usage, err := p.env.Embed(ctx, []string{"", "a text"})
	if err != nil {
		return nil, err
	}
	part := *req
	part.Messages = slices.Clone(req.Messages)
	for i := range part.Messages {
		part.Messages[i].Protected = i < 2 || i > len(part.Messages)-4
	}
	res, err := p.env.Run(ctx, &part, "smart", []byte(`{"preset":"aggressive"}`))
	if err != nil {
		return nil, err
	}
	hidden, err := req.Hidden("old")
	if err != nil {
		return nil, err
	}
	if _, err = req.Hidden("unknown"); err == nil {
		return nil, fmt.Errorf("an unknown message is no error")
	}
	file, fault := req.File("a.go")
	if fault != nil {
		return nil, fault
	}
	note := fmt.Sprint(len(vectors), vectors[1], usage.Calls, hidden[0].Parts, err, file, req.Cached.Messages, req.Messages[0].Labels)
	res.Messages = slices.Insert(res.Messages, 0, core.Message{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text(note)}})
	return res, nil
}
