package misbehaving

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// editor returns a provider whose result is f of the messages, a copy that f may modify. They are a little shorter
// than the request's, in a valid way, so that a result to which f adds something is not longer than the request.
func editor(f func([]core.Message) []core.Message) core.CondensationProvider {
	return attentive(func(req *core.Request) (*core.Result, error) {
		m := cloneMessages(req.Messages)
		makeRoom(m)
		return &core.Result{Messages: f(m)}, nil
	})
}

// rewriter is an editor that calls f with each message until f has changed one.
func rewriter(f func(*core.Message) bool) core.CondensationProvider {
	return editor(func(m []core.Message) []core.Message {
		for i := range m {
			if f(&m[i]) {
				break
			}
		}
		return m
	})
}

// makeRoom cuts the longest text in tool results, or else in messages that are neither
// protected nor system messages, nor requests without an answer.
func makeRoom(m []core.Message) {
	var best []core.Part
	length := 40 // shorter ones are not worth it
	longest := func(parts []core.Part) {
		for i, p := range parts {
			if t, ok := p.(core.Text); ok && len(t) > length {
				best, length = parts[i:], len(t)
			}
		}
	}
	asked := (&core.Request{Messages: m}).Unanswered()
	for i := range m {
		if mustStay(m[i]) {
			continue
		}
		if !slices.Contains(asked, i) {
			longest(m[i].Parts)
		}
		for _, p := range m[i].Parts {
			if r, ok := p.(core.ToolResult); ok {
				longest(r.Content)
			}
		}
	}
	if best != nil {
		best[0] = best[0].(core.Text)[:10] + core.LeftOut //nolint:errcheck // seen above
	}
}

// insertNote inserts a new message before m[i], or at the end if m is shorter.
func insertNote(m []core.Message, i int, note core.Message) []core.Message {
	return slices.Insert(m, min(i, len(m)), note)
}

// find returns the index of the first part of type T in m, or -1.
func find[T core.Part](m core.Message) int {
	return slices.IndexFunc(m.Parts, func(p core.Part) bool { _, ok := p.(T); return ok })
}

func has[T core.Part](m core.Message) bool { return find[T](m) >= 0 }

// replace replaces every part p of type T by f(p) and reports whether that changed m.
func replace[T core.Part](m *core.Message, f func(T) core.Part) bool {
	parts := slices.Clone(m.Parts)
	for i, p := range parts {
		if t, ok := p.(T); ok {
			parts[i] = f(t)
		}
	}
	changed := !core.EqualParts(parts, m.Parts)
	m.Parts = parts
	return changed
}

// dropper returns a provider that removes the first part of type T from a message that has
// other content.
func dropper[T core.Part]() core.CondensationProvider {
	return rewriter(func(m *core.Message) bool {
		i := find[T](*m)
		if i < 0 || m.Protected {
			return false
		}
		rest := core.Message{Parts: slices.Delete(slices.Clone(m.Parts), i, i+1)}
		if rest.Blank() {
			return false
		}
		m.Parts = rest.Parts
		return true
	})
}

func mustStay(m core.Message) bool { return m.Protected || m.Role == core.RoleSystem }

func cloneMessages(messages []core.Message) []core.Message {
	return plain.Each(messages, func(x core.Message) core.Message { return x.Clone() })
}

// usersText returns a provider that applies f to the first long text of a user.
func usersText(f func(core.Text) core.Text) core.CondensationProvider {
	return rewriter(func(m *core.Message) bool {
		if m.Role != core.RoleUser || m.Kind != core.KindOriginal || m.Protected {
			return false
		}
		return replace(m, func(t core.Text) core.Part {
			if len(t) < 12 {
				return t
			}
			return f(t)
		})
	})
}
