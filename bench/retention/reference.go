package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/value"
)

// A maker makes a view of the prefix of a cut.
type maker func(s *score.Scorer, messages []core.Message, budget int, c core.Counter) ([]core.Message, error)

// references are strategies in their simplest form, without regard to what an API would
// accept: bounds, what other tools do, and what a metric should not fall for.
var references = map[string]maker{
	"oracle": func(s *score.Scorer, _ []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		return s.Oracle(budget, c), nil
	},
	"random_lines": func(s *score.Scorer, _ []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		return s.RandomLines(budget, 1, c), nil
	},
	"random_groups": func(_ *score.Scorer, m []core.Message, budget int, _ core.Counter) ([]core.Message, error) {
		return score.RandomGroups(m, budget, 1), nil
	},
	"keep_last": func(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		return score.KeepLast(m, budget, c), nil
	},
	"everything": func(_ *score.Scorer, m []core.Message, _ int, _ core.Counter) ([]core.Message, error) {
		return m, nil
	},
	"nothing": func(*score.Scorer, []core.Message, int, core.Counter) ([]core.Message, error) {
		return nil, nil
	},
	"recorded": func(s *score.Scorer, _ []core.Message, _ int, _ core.Counter) ([]core.Message, error) {
		cut := s.Cut()
		if cut.Compaction < 0 {
			return nil, errors.New("nothing was recorded here")
		}
		return cut.Recorded(), nil
	},
	"roo_halving": rooHalving,
	"masking":     masking,
	"headtail":    headTail,
	"identifiers": identifiers,
}

// chooser is the choice of lines that preset balanced of smart ends with, alone, by the
// weights of a folder.
func chooser(dir string) (maker, error) {
	model, err := value.DefaultModel()
	if dir != "" {
		var weights, common []byte
		if weights, err = os.ReadFile(filepath.Join(dir, "weights.json")); err != nil {
			return nil, err
		}
		if common, err = os.ReadFile(filepath.Join(dir, "common.txt")); err != nil {
			return nil, err
		}
		model, err = value.ParseModel(weights, string(common))
	}
	return func(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
		r, err := value.Shorten(context.Background(), m, value.Options{Room: budget, Counter: c, Model: model})
		return r.Messages, err
	}, err
}

func size(m []core.Message) int {
	n := 0
	for i := range m {
		n += m[i].Tokens
	}
	return n
}

// rooHalving is Roo-Code's truncation, again and again: the first message is kept, half of
// the rest, rounded down to even, is dropped.
func rooHalving(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	for size(m) > budget && len(m) > 1 {
		n := (len(m) - 1) / 2
		n -= n % 2
		if n == 0 {
			break
		}
		m = append([]core.Message{m[0]}, m[1+n:]...)
	}
	if size(m) > budget {
		return firstAndLast(m, budget, c), nil
	}
	return m, nil
}

// mapResults returns m with f applied to the text of every tool result but the last keep.
func mapResults(m []core.Message, keep int, c core.Counter, f func(string) string) []core.Message {
	total := 0
	for i := range m {
		for _, p := range m[i].Parts {
			if _, ok := p.(core.ToolResult); ok {
				total++
			}
		}
	}
	out := make([]core.Message, len(m))
	n := 0
	for i := range m {
		out[i] = m[i]
		var parts []core.Part
		for j, p := range m[i].Parts {
			r, ok := p.(core.ToolResult)
			if !ok {
				continue
			}
			if n++; n > total-keep {
				continue
			}
			if parts == nil {
				parts = append(parts, m[i].Parts...)
			}
			content := make([]core.Part, len(r.Content))
			for k, q := range r.Content {
				content[k] = q
				if t, ok := q.(core.Text); ok {
					content[k] = core.Text(f(string(t)))
				}
			}
			r.Content = content
			parts[j] = r
		}
		if parts != nil {
			out[i].Parts = parts
			out[i].Tokens = core.MessageTokens(c, out[i])
		}
	}
	return out
}

// masking hides the results of tools but the last ten, as SWE-agent does, then what is
// oldest.
func masking(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	if size(m) <= budget {
		return m, nil
	}
	m = mapResults(m, 10, c, func(string) string { return "[old tool result cleared]" })
	if size(m) <= budget {
		return m, nil
	}
	return firstAndLast(m, budget, c), nil
}

// firstAndLast keeps the first message, if it takes no more than a quarter of the budget,
// and the newest groups.
func firstAndLast(m []core.Message, budget int, c core.Counter) []core.Message {
	if len(m) > 0 && m[0].Tokens <= budget/4 {
		return append([]core.Message{m[0]}, score.KeepLast(m[1:], budget-m[0].Tokens, c)...)
	}
	return score.KeepLast(m, budget, c)
}

// headTail cuts the middle out of every long result, as many bytes as it takes; if that is
// not enough, what is oldest goes.
func headTail(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	if size(m) <= budget {
		return m, nil
	}
	cut := func(limit int) []core.Message {
		return mapResults(m, 0, c, func(s string) string {
			if len(s) <= limit {
				return s
			}
			return s[:limit*6/10] + "\n[…]\n" + s[len(s)-limit*4/10:]
		})
	}
	least, most := 200, 100_000
	out := cut(least)
	if size(out) > budget {
		return firstAndLast(out, budget, c), nil
	}
	for most-least > least/20 {
		limit := (least + most) / 2
		if try := cut(limit); size(try) <= budget {
			out, least = try, limit
		} else {
			most = limit
		}
	}
	return out, nil
}

// identifiers is the cheat that plain recall falls for: every name, once, and nothing said
// about it.
func identifiers(_ *score.Scorer, m []core.Message, budget int, c core.Counter) ([]core.Message, error) {
	seen := map[string]bool{}
	var out []string
	tokens := 0
	for _, msg := range slices.Backward(m) {
		text, err := json.Marshal(msg)
		if err != nil {
			return nil, err
		}
		for _, w := range strings.FieldsFunc(string(text), func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && r != '/' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			if len(w) < 4 || seen[w] || !strings.ContainsAny(w[1:], "_-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				continue
			}
			seen[w] = true
			if tokens += (len(w) + 3) / 3; tokens > budget {
				break
			}
			out = append(out, w)
		}
	}
	msg := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(strings.Join(out, " "))}}
	msg.Tokens = core.MessageTokens(c, msg)
	return []core.Message{msg}, nil
}
