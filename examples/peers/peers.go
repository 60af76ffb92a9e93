// Package peers has the algorithms of other projects as strategies of condense, written from their documentation. Each is one file.
package peers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// All returns the strategies.
func All() []registry.Strategy {
	return []registry.Strategy{OpenHands(), LangChain(), ClearToolUses(), Episodes(), Tree()}
}

// left is a mark that hosts know, so that they add no line of their own to a result that has only it.
const left = core.LeftOut

// emptied returns m with each result that pick reports replaced by a mark, and whether there was one.
func emptied(m core.Message, pick func(core.ToolResult) bool) (core.Message, bool) {
	if m.Protected {
		return m, false
	}
	changed := false
	parts := slices.Clone(m.Parts)
	for i, p := range parts {
		mark := []core.Part{core.Text(left)}
		if r, ok := p.(core.ToolResult); ok && pick(r) && !core.EqualParts(r.Content, mark) && core.ContentBytes(r.Content...) > len(left) {
			r.Content = mark
			parts[i], changed = r, true
		}
	}
	m.Parts = parts
	return m, changed
}

// kept returns the messages of kept groups, with summary in the place of the hidden ones that are oldest; an empty summary is none.
func kept(messages []core.Message, keep func(i int) bool, summary string) []core.Message {
	out := core.KeepGroups(messages, keep)
	talks := func(m core.Message) bool { return m.Role != core.RoleSystem }
	first := slices.IndexFunc(messages, talks)
	if n := slices.IndexFunc(out, talks); summary == "" && (n < 0 || out[n].Role != core.RoleUser) && first >= 0 && messages[first].Role == core.RoleUser {
		out = core.KeepGroups(messages, func(i int) bool { return i == first || keep(i) }) // it has to begin with the user
	}
	if summary == "" || len(out) == len(messages) {
		return out
	}
	at := 0
	for at < len(out) && out[at].ID == messages[at].ID {
		at++
	}
	return slices.Insert(out, at, core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(summary)}})
}

// hidden returns the messages that are not in view.
func hidden(messages, view []core.Message) []core.Message {
	in := map[string]bool{}
	for _, m := range view {
		in[m.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return in[m.ID] })
}

// written returns messages as text for a model, each text cut to so many bytes.
func written(messages []core.Message, most int) string {
	var b strings.Builder
	line := func(who, text string) {
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		fmt.Fprintf(&b, "%s: %s\n", who, text)
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				line(string(m.Role), string(p))
			case core.ToolCall:
				line("call of "+p.Name, p.Args)
			case core.ToolResult:
				for _, c := range p.Content {
					if t, ok := c.(core.Text); ok {
						line("result", string(t))
					}
				}
			case core.Image, core.Reasoning, core.Opaque: // no text
			}
		}
	}
	return b.String()
}

// A writer asks the host's model.
type writer struct {
	env   registry.Env
	name  string
	usage core.Usage
}

func (w *writer) ask(ctx context.Context, order, text string, most int) (string, error) {
	g, err := w.env.Model(w.name)
	if err != nil {
		return "", err
	}
	answer, err := g.Generate(ctx, &model.Prompt{
		System:    order,
		Messages:  []core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}},
		MaxOutput: most,
	})
	if answer != nil {
		w.usage = w.usage.Add(answer.Usage)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(answer.Text), nil
}

// tail returns the index from which the newest messages have at most so many tokens.
func tail(messages []core.Message, tokens int) int {
	i := len(messages)
	for i > 0 && messages[i-1].Tokens <= tokens {
		i--
		tokens -= messages[i].Tokens
	}
	return i
}

// answer returns a result of these messages, or of those of the request if they are no fewer tokens: a summary may be longer than its
// source.
func answer(ctx context.Context, req *core.Request, messages []core.Message, usage core.Usage) (*core.Result, error) {
	messages = slices.Clone(messages)
	for i := range messages {
		if messages[i].ID == "" {
			messages[i].Tokens = core.MessageTokens(req.Counter, messages[i])
		}
	}
	if core.TotalTokens(messages) >= core.TotalTokens(req.Messages) {
		messages = req.Messages
	}
	return &core.Result{Messages: messages, Usage: usage}, ctx.Err()
}
