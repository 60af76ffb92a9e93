package value

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value/ledger"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A conversation passes through values, each with those before as fields: a reading, a rating and a preface, a layout, a choice, an
// extraction.

// A reading is a conversation divided into passages, with the facts about its messages that are known before rating
// and choosing.
type reading struct {
	o        *Options
	messages []core.Message
	said     *dialog.Dialog // the messages as read
	groups   []core.Span
	c        *Conversation
	blocks   []int32             // of each line of a result: the number of its block in the passage; see findBlocks
	former   []bool              // messages that a former condensation made
	unread   int                 // the first message after the last of the model's
	recent   int                 // the first message that is unread or has one of the newest results
	talks    bool                // it is talk; see isTalk
	handles  map[*Passage]string // handles that were requested
	replayed *ledger.Ledger      // the files as the conversation shows them
	folder   string              // of these files; see rootOf
}

// readAll divides messages into passages. It completes o, with the shares of talk if the conversation is talk.
func readAll(messages []core.Message, o *Options) *reading {
	if o.Original == nil {
		o.Original = func(m *core.Message, part int) core.Part { return m.Parts[part] }
	}
	said := o.Reader.Read(messages)
	r := &reading{
		o: o, messages: messages, said: said, groups: core.Groups(messages), c: read(messages, said, o.Shares.Demands >= 0, o.Framed),
		handles: map[*Passage]string{},
	}
	r.findRecent()
	r.findBlocks()
	r.replayed, r.folder = r.replay()
	r.findSuperseded()
	if r.talks = o.Only == nil && r.c.isTalk(); r.talks {
		shares := *o.Shares
		shares.Tail, shares.Index, shares.Open, shares.Files, shares.Demands = talkTail, 0, 0, 0, 0
		shares.HandleFrom = math.MaxInt
		o.Shares = &shares
		for l := range r.c.Lines { // in talk, an old value is a part of the statement
			r.c.Lines[l].repeated = false
		}
	}
	return r
}

// findRecent finds the messages that the model has not read and the messages with the newest results.
func (r *reading) findRecent() {
	r.former = make([]bool, len(r.messages))
	for p := range r.c.Passages {
		if pass := &r.c.Passages[p]; pass.partial {
			r.former[pass.Message] = true
		}
	}
	r.unread = len(r.messages)
	for i := r.unread - 1; i >= 0 && r.messages[i].Role != core.RoleAssistant; i-- {
		r.former[i] = r.former[i] || r.messages[i].Kind != core.KindOriginal
		if r.former[i] {
			break
		}
		r.unread = i
	}
	r.recent = r.unread
	for n, i := 0, len(r.messages)-1; i >= 0 && n < recentResults; i-- {
		for _, p := range r.messages[i].Parts {
			if _, ok := p.(core.ToolResult); ok {
				n, r.recent = n+1, min(r.recent, i)
			}
		}
	}
}

// musts returns the groups that must be kept, and their tokens.
func (r *reading) musts() (must []bool, tokens float64) {
	first := len(r.messages) // the first message of an unfinished turn
	if pending := core.Pending(r.messages); len(pending) > 0 {
		first = pending[0]
	}
	must = make([]bool, len(r.groups))
	for g, group := range r.groups {
		must[g] = group.End > first
		n := 0
		for i := group.Start; i < group.End; i++ {
			m := &r.messages[i]
			must[g] = must[g] || m.Protected || m.Role == core.RoleSystem
			n += m.Tokens
		}
		if must[g] {
			tokens += float64(n)
		}
	}
	return must, tokens
}

// shortens returns how many tokens of m its results could lose, and how many more its own texts could, which only a
// user's message may.
func (r *reading) shortens(m *core.Message) (results, texts int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolResult:
			for _, q := range p.Content {
				if t, ok := q.(core.Text); ok {
					results += max(0, r.o.Counter.Count(t)-stubTokens)
				}
			}
		case core.Text:
			if n := r.o.Counter.Count(p); m.Role == core.RoleUser && n > shortText {
				texts += n - stubTokens
			}
		case core.ToolCall, core.Reasoning, core.Image, core.Opaque:
		}
	}
	return results, texts
}

// short returns the size in tokens up to which a result in message i is left unchanged.
func (r *reading) short(i int) int {
	if i >= r.recent {
		return shortText
	}
	return smallText
}

// original returns the text of passage p before any shortening.
func (r *reading) original(p *Passage) string {
	switch q := r.o.Original(&r.messages[p.Message], p.part).(type) {
	case core.Text:
		return string(q)
	case core.ToolCall:
		return q.Args
	case core.ToolResult:
		if p.content < len(q.Content) {
			t, _ := q.Content[p.content].(core.Text)
			return string(t)
		}
	case core.Image, core.Reasoning, core.Opaque, nil:
	}
	return ""
}

// handle returns the handle of the original of p; empty if nothing can be recalled, or p is itself recalled content.
func (r *reading) handle(p *Passage) string {
	if r.o.NoHandles || r.recalled(p) {
		return ""
	}
	if p.Handle != "" || p.partial {
		return p.Handle
	}
	h, ok := r.handles[p]
	if !ok {
		h = handleMark + core.Handle(r.o.Original(&r.messages[p.Message], p.part))
		r.handles[p] = h
	}
	return h
}

// recalled reports whether p is a call of the tool recall or its result.
func (r *reading) recalled(p *Passage) bool {
	if p.Kind != dialog.KindToolCall && !p.answers() {
		return false
	}
	args := ""
	if p.Kind == dialog.KindToolCall && !p.partial {
		args = r.original(p)
	}
	return dialog.Recalls(p.Name, args)
}

func (r *reading) allSystem(g core.Span) bool {
	return !slices.ContainsFunc(r.messages[g.Start:g.End], func(m core.Message) bool { return m.Role != core.RoleSystem })
}

// prose reports whether line l is made of words and is not a value of a call.
func (r *reading) prose(l int) bool {
	line := &r.c.Lines[l]
	return line.prose() && !line.flat && r.c.Passages[line.Passage].Kind != dialog.KindToolCall
}

// size returns the bytes of lines.
func (r *reading) size(lines core.Span) int {
	return plain.Sum(r.c.Lines[lines.Start:lines.End], func(l Line) int { return len(l.Text) })
}

// passageOf returns the first passage of message i or a later one.
func (r *reading) passageOf(i int) int {
	return sort.Search(len(r.c.Passages), func(p int) bool { return r.c.Passages[p].Message >= i })
}

// A reservation keeps room for required content before lines compete for the rest.
type reservation struct {
	keep func(context.Context, *choice) error
	work bool // only in conversations about work: neither talk nor Options.Only
}

// reservations are in the order in which they are made. Lines kept by an earlier one cost a later one nothing.
var reservations = []reservation{
	{keep: keepNamed},
	{keep: keepWords},
	{keep: keepTasks},
	{keep: keepRules},
	{keep: keepAsked},
	{keep: keepDemands},
	{keep: keepNamedByAccount},
	{keep: keepCreated},
	{keep: keepSaved},
	{keep: keepUnread},
	{keep: keepTalk},
	{keep: keepPasted},
	{keep: keepMedia},
	{keep: keepQuestions, work: true},
	{keep: keepReports, work: true},
	{keep: keepNewestResults, work: true},
	{keep: keepClosings, work: true},
	{keep: keepDecisions, work: true},
	{keep: keepOutcomes, work: true},
	{keep: keepRecent},
}

// reserveAll makes all reservations.
func reserveAll(ctx context.Context, w *choice) error {
	for _, k := range reservations {
		if k.work && (w.r.talks || w.r.o.Only != nil) {
			continue
		}
		if err := k.keep(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// A preface is the part of an extract before its first quote: the table of contents of hidden messages, the open work, and the
// newest text of files.
type preface struct {
	r      *reading
	all    []unit // all units of a table of contents
	listed []unit // of these, the hidden ones
	// listRoom is what the table of listed may have, in tokens, and key is in its first line.
	listRoom int
	key      uint32
	left     string     // the list of files, without recall
	open     string     // the open work among them
	opened   []int      // lines with the same content
	made     []creation // identifiers that calls started or created
	files    []string   // blocks of files, see listFiles
	filed    []int      // lines with the same content
	out      []bool     // lines that are excluded from the choice because files has them
	root     string     // the folder of the files that the conversation shows, once it is used; see rootOf
}

// prepare rates r, and concurrently makes everything that does not depend on the values.
func prepare(ctx context.Context, r *reading) (v *rating, pre *preface, err error) {
	pre = &preface{r: r, made: r.created(), out: make([]bool, len(r.c.Lines))}
	tasks := []func(){func() { v, err = rate(ctx, r) }}
	if r.o.Only == nil && r.o.Shares.Index > 0 && !r.o.NoHandles {
		tasks = append(tasks, func() { pre.all, pre.key = r.units(), r.contentKey() })
	}
	parallel.Do(tasks...)
	return v, pre, err
}
