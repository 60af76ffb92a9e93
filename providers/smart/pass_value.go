package smart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value"
	"github.com/condensehq/condense/providers/smart/internal/account"
)

type valueSettings struct {
	Tail      float64 `json:"tail" doc:"share of the room for the newest messages, which are kept except for lines of long results; 0 means the measured default"`
	Human     float64 `json:"human" doc:"share of the room for texts of more than 2,000 tokens that the user pasted; 0 means the measured default. What the user typed has all of the room"`
	Demands   float64 `json:"demands" doc:"share of the room for sentences of pasted texts that forbid, require, limit or prefer; 0 means the measured default"`
	NoDemands bool    `json:"no_demands" doc:"do not look for such sentences"`
	NoIndex   bool    `json:"no_index" doc:"writes no table of contents at the head of the extract, and no open work"`
}

// Validate says which setting is out of range.
func (s *valueSettings) Validate() error {
	if !(s.Tail >= 0 && s.Tail <= 1 && s.Human >= 0 && s.Human <= 1 && s.Demands >= 0 && s.Demands <= 1) {
		return fmt.Errorf("tail, human and demands: %v, %v, %v; want shares between 0 and 1", s.Tail, s.Human, s.Demands)
	}
	return nil
}

var valuePass = onDemand(choosing(define("value", classLossy, "",
	"Keeps the newest messages, and in one message what is most likely to be used of all earlier ones: the user's messages whole, blocks of the files under work, and of the rest what has the highest expected use per token, which was learned from recorded sessions (docs/decisions/0017-line-selection.md).",
	valueSettings{},
	func(ctx context.Context, w *work, c valueSettings) error { return chooseLines(ctx, w, &c) })))

// chooseLines keeps the newest messages and the best lines of the others.
func chooseLines(ctx context.Context, w *work, c *valueSettings) error {
	if w.fits() {
		return nil
	}
	shares := value.DefaultShares()
	if c.Tail > 0 {
		shares.Tail = c.Tail
	}
	if c.NoIndex {
		shares.Index, shares.Open = 0, 0
	}
	if c.Human > 0 {
		shares.Human = c.Human
	}
	if c.Demands != 0 {
		shares.Demands = c.Demands
	}
	if c.NoDemands {
		shares.Demands = -1
	}
	shortenNewestCalls(w)
	before, head := withoutHead(w)
	before = withoutReferences(w, before)
	told := ""
	for i := range head {
		if text, _ := account.In(&head[i]); text != "" {
			told = text
		}
	}
	budget, above := w.req.Budget, core.TotalTokens(head)
	o := value.Options{
		Room: w.room - above, Words: budget.Room() - above, Limit: budget.Limit - budget.Overhead - above,
		Account: told, Counter: w.req.Counter, Shares: &shares, Reader: w.reader, Original: w.originalOf, NoHandles: w.req.NoRecall, Framed: w.req.Host != "",
	}
	res, err := value.Shorten(ctx, before, o)
	// The user's words go last, but a third of the room is left to what the account has of all epochs.
	if err == nil && res.Lost > 0 && len(head) > 0 && (told == "" || above > w.room/3) {
		head, o.Account = third(w, told)
		less := above - core.TotalTokens(head)
		o.Room, o.Words, o.Limit, o.Shares = o.Room+less, o.Words+less, o.Limit+less, &shares
		res, err = value.Shorten(ctx, before, o)
	}
	if err == nil {
		res, err = besideRequest(ctx, w, before, res, o)
	}
	if err != nil {
		return err
	}
	took(w, before, &res)
	if res.Tokens >= core.TotalTokens(before) {
		return nil
	}
	continueWith(w, slices.Insert(res.Messages, systems(before), head...))
	return nil
}

// third returns a head of an account that takes a third of the room, and that.
func third(w *work, text string) ([]core.Message, string) {
	const part = 3
	a := account.Read(text)
	if a.Fit(w.room/part, w.count); len(a.Items) == 0 {
		return nil, ""
	}
	m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(a.Text())}}
	m.Tokens = core.MessageTokens(w.req.Counter, m)
	return []core.Message{m}, a.Text()
}

// besideRequest returns res, the result for messages, or one with less of all else if the user's newest request returns to it, cut as short
// as it must stay. What the user said in it takes no room if that alone exceeds the limit: truncation will cut it.
func besideRequest(ctx context.Context, w *work, messages []core.Message, res value.Result, o value.Options) (value.Result, error) {
	req := *w.req
	req.Messages = messages
	shown, back, sum := map[string]bool{"": true}, map[string]core.Message{}, 0
	for i := range res.Messages {
		shown[res.Messages[i].ID] = true
	}
	for _, m := range core.KeepRequest(&req, res.Messages) {
		if !shown[m.ID] {
			back[m.ID] = m
			sum += m.Tokens
		}
	}
	if sum == 0 {
		return res, nil
	}
	said := func(p core.Part) bool { _, result := p.(core.ToolResult); return !result }
	messages = slices.Clone(messages)
	for i := range messages {
		m, ok := back[messages[i].ID]
		if m.Protected = true; ok {
			if sum > o.Limit && m.Role == core.RoleUser && slices.ContainsFunc(m.Parts, said) {
				m.Parts = append(slices.DeleteFunc(slices.Clone(m.Parts), said), core.Text(value.GapMark))
				m.Tokens = core.MessageTokens(req.Counter, m)
			}
			messages[i] = m
		}
	}
	res, err := value.Shorten(ctx, messages, o)
	for i := range res.Messages {
		if m, ok := back[res.Messages[i].ID]; ok {
			res.Tokens += m.Tokens - res.Messages[i].Tokens
			res.Messages[i] = m
		}
	}
	return res, err
}

// took reports the effect of the choice of lines.
func took(w *work, before []core.Message, res *value.Result) {
	changed := 0
	for kind, a := range res.Kinds {
		w.step.Looked += a.Lines
		changed += a.Lines - a.LinesKept
		if gone := a.Tokens - a.TokensKept; gone > 0 {
			w.step.Saved[kind] += gone
		}
	}
	if res.Tokens >= core.TotalTokens(before) {
		return
	}
	w.step.Changed += max(1, changed) // at least 1: it may have removed only pictures
	there := plain.Set(plain.Each(res.Messages, func(x core.Message) string { return x.ID }))
	for i := range before {
		if m := &before[i]; m.Number > 0 && !there[m.ID] && !w.req.NoRecall {
			for j := range m.Parts { // the table of contents leads to them by number
				w.step.Handles = append(w.step.Handles, core.Handle(w.originalOf(m, j)))
			}
		}
	}
	were := handlesIn(before)
	for h := range handlesIn(res.Messages) {
		if !were[h] {
			w.step.Handles = append(w.step.Handles, h)
		}
	}
}

var handleMark = plain.Pattern(`\bh:([0-9a-f]{10})\b`)

// handlesIn returns the handles that texts and results name.
func handlesIn(messages []core.Message) map[string]bool {
	all := map[string]bool{}
	var look func(parts []core.Part)
	look = func(parts []core.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case core.Text:
				const mark, size = "h:", 12
				for s, at := string(p), 0; ; at += len(mark) {
					i := strings.Index(s[at:], mark) // a regular expression takes ten times as long
					if i < 0 {
						break
					}
					at += i
					if found := handleMark().FindStringSubmatch(s[max(0, at-1):min(len(s), at+size+1)]); found != nil {
						all[found[1]] = true
					}
				}
			case core.ToolResult:
				look(p.Content)
			default:
			}
		}
	}
	for i := range messages {
		look(messages[i].Parts)
	}
	return all
}

// shortenNewestCalls shortens the arguments of the newest calls that are larger than the share of
// the newest message. Otherwise neither the calls nor their unread results could be kept.
func shortenNewestCalls(w *work) {
	last := len(w.msgs) - 1
	for last >= 0 && w.msgs[last].Role != core.RoleAssistant {
		last--
	}
	calls := plain.Only(w.uses, func(u use) bool { return u.Called && w.message(u.call) >= last && last >= 0 })
	most := int(value.DefaultShares().Newest*float64(w.room)) / max(1, len(calls))
	for _, u := range calls {
		if w.segments[u.call].tokens > most {
			const part = 0.5 // of that share; the rest is better spent on other lines
			w.shortenCall(u.call, int(part*4*float64(most)), "")
		}
	}
	w.settle()
}

// withoutHead returns the conversation as it is now, and separately the digest and the account at its head.
// These are kept unless the account takes three quarters of the room, and lines that they repeat need not be.
func withoutHead(w *work) (rest, head []core.Message) {
	rest = w.result()
	n := systems(rest)
	end := n
	for end < len(rest) && (isDigest(&rest[end]) || isAccount(&rest[end]) && rest[end].Tokens < w.room*3/4) {
		end++
	}
	head = slices.Clone(rest[n:end])
	return slices.Delete(rest, n, end), head
}

// systems returns how many system messages a conversation begins with.
func systems(messages []core.Message) int {
	n := 0
	for n < len(messages) && messages[n].Role == core.RoleSystem {
		n++
	}
	return n
}

// withoutReferences returns messages in which the stubs of earlier condensations no longer say
// where their content is, since it may be cut by now.
func withoutReferences(w *work, messages []core.Message) []core.Message {
	for i := range messages {
		m := &messages[i]
		if m.Protected || m.Role == core.RoleSystem {
			continue
		}
		if parts, changed := mapTexts(m.Parts, withoutPlace); changed {
			if m.Role == core.RoleUser && m.Kind == core.KindOriginal {
				keepWords(parts, m.Parts, w.req.Originals)
			}
			m.Parts, m.Source = parts, nil
			m.Tokens = core.MessageTokens(w.req.Counter, *m)
		}
	}
	return messages
}

// keepWords restores the texts of was in parts in which more than stubs was changed: the user
// typed those words.
func keepWords(parts, was []core.Part, originals string) {
	for j, p := range parts {
		t, ok := p.(core.Text)
		if before, _ := was[j].(core.Text); ok && !core.Shortens(string(before), string(t), originals) {
			parts[j] = before
		}
	}
}

// original returns m as it was in the request; nil for a new message.
func (w *work) original(m *core.Message) *core.Message {
	if m.ID == "" {
		return nil
	}
	if w.base == nil {
		w.base = plain.Index(w.first, func(m core.Message) string { return m.ID })
	}
	if i, ok := w.base[m.ID]; ok {
		return &w.first[i]
	}
	return nil
}

// counterpart returns the index in was of the part that p, at index j of n, was made from; -1 if
// unknown.
func counterpart(was []core.Part, p core.Part, j, n int) int {
	switch p := p.(type) {
	case core.ToolCall:
		for k, q := range was {
			if c, ok := q.(core.ToolCall); ok && c.ID == p.ID {
				return k
			}
		}
	case core.ToolResult:
		for k, q := range was {
			if r, ok := q.(core.ToolResult); ok && r.CallID == p.CallID {
				return k
			}
		}
	case core.Text:
		if n == len(was) {
			if _, ok := was[j].(core.Text); ok {
				return j
			}
		}
	case core.Reasoning, core.Image, core.Opaque:
	}
	return -1
}

// continueWith replaces the messages of the work by those that a pass made from them.
func continueWith(w *work, messages []core.Message) {
	req := *w.req
	req.Messages = messages
	next := newWork(&req, w.room, w.reader)
	next.first, next.base, next.dry = w.first, w.base, w.dry
	next.usage, next.step, next.steps, next.placed = w.usage, w.step, w.steps, w.placed
	*w = *next
}

// mapTexts returns parts with f applied to their texts, results and arguments, and whether one
// changed.
func mapTexts(parts []core.Part, f func(string) (string, bool)) (_ []core.Part, changed bool) {
	put := func(i int, p core.Part) {
		if !changed {
			parts, changed = slices.Clone(parts), true
		}
		parts[i] = p
	}
	for i, p := range parts {
		switch p := p.(type) {
		case core.Text:
			if s, ok := f(string(p)); ok {
				put(i, core.Text(s))
			}
		case core.ToolCall:
			if s, ok := f(p.Args); ok {
				p.Args = s
				put(i, p)
			}
		case core.ToolResult:
			if content, ok := mapTexts(p.Content, f); ok {
				p.Content = content
				put(i, p)
			}
		case core.Reasoning, core.Image, core.Opaque:
		}
	}
	return parts, changed
}
