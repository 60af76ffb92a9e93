package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/recall"
)

// A viewed is a strategy's result, as readers get it.
type viewed struct {
	Text    string `json:"text"` // empty in a dry run, if it is not known
	Tokens  int    `json:"tokens"`
	Recalls bool   `json:"recalls"` // it has numbers or handles with which content can be recalled
}

// views returns the results of the strategies that have one, by name.
func (v *interviews) views(ctx context.Context, w *sessionWork, name string, t task, c *recall.Conversation) (map[string]*viewed, error) {
	seen, sizes := map[string]*viewed{}, map[string]int{"": t.room}
	for i := range v.run.strategies {
		s, sized := &v.run.strategies[i], t
		var view *viewed
		err := fmt.Errorf("%s has no size", s.SizeOf)
		if sized.room = sizes[s.SizeOf]; sized.room > 0 {
			view, err = v.view(ctx, w, name, sized, s, c)
		}
		if err == nil {
			seen[s.Name], sizes[s.Name] = view, view.Tokens
		} else if err = v.missing(ctx, name, t.budget, s.Name, err); err != nil {
			return nil, err
		}
	}
	if len(seen) == 0 {
		return nil, errors.New("no strategy has a view")
	}
	return seen, nil
}

// missing notes that a strategy has no answers about a session. It fails only if ctx is done.
func (v *interviews) missing(ctx context.Context, session, budget, strategy string, err error) error {
	if ctx.Err() == nil {
		v.report.Skipped = append(v.report.Skipped, SkippedReader{session, budget + ": " + err.Error(), strategy})
	}
	return ctx.Err()
}

// view returns a strategy's result.
func (v *interviews) view(ctx context.Context, w *sessionWork, name string, t task, s *Strategy, c *recall.Conversation) (*viewed, error) {
	b := w.trial(name, t)
	key := ""
	if v.run.cache != nil && s.Key != "" {
		key = cacheKey("view 2 "+w.hash+" "+w.session.Source, s.Key, v.run.opts.Encoding, v.run.opts.Seed, t, 1)
		var k viewed
		if v.run.cache.get(key, &k) && k.Text != "" {
			return &k, nil
		}
	}
	if v.dry && !s.recorded() {
		u := core.Usage{}
		for _, c := range s.providers() {
			if e, err := core.EstimateCost(ctx, c.Provider, b.request(b.shown()).Clone()); err == nil {
				u = u.Add(e)
			}
		}
		v.spend(u)
		return &viewed{Tokens: t.room, Recalls: true}, ctx.Err()
	}
	out, _, err := b.condense(ctx, s, b.shown(), 1)
	if err != nil {
		return nil, err
	}
	v.spend(out.Usage)
	failed, why, _ := setbacks(out)
	if failed > 0 && !slices.ContainsFunc(out.Attempts, func(a core.Attempt) bool {
		return a.Err == nil && a.Provider != s.Truncation && a.TokensAfter < a.TokensBefore
	}) {
		return nil, errors.New(why) // the view is that of truncation
	}
	k := &viewed{Text: conversationText(out.Messages), Tokens: sizeOf(w.counter, out.Messages), Recalls: leadsInto(c, out.Messages)}
	if key != "" && failed == 0 {
		err = v.run.cache.put(key, k)
	}
	return k, err
}

// conversationText returns messages as the text shown to a reader.
func conversationText(messages []core.Message) string {
	var b strings.Builder
	for i := range messages {
		m := &messages[i]
		fmt.Fprintf(&b, "<%s>\n", m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				b.WriteString(string(p) + "\n")
			case core.ToolCall:
				b.WriteString("[calls " + p.Name + "] " + p.Args + "\n")
			case core.ToolResult:
				b.WriteString("[result]\n")
				for _, c := range p.Content {
					if t, ok := c.(core.Text); ok {
						b.WriteString(string(t) + "\n")
					}
				}
			case core.Image:
				b.WriteString("[image]\n")
			case core.Reasoning, core.Opaque:
			}
		}
		fmt.Fprintf(&b, "</%s>\n", m.Role)
	}
	return b.String()
}
