package value

import (
	"math"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/ledger"
	"github.com/condensehq/condense/internal/parallel"
)

// A mode says how a passage may be changed.
type mode uint8

const (
	modeExtract mode = iota // its message is hidden; an extract holds the chosen lines
	modeOpen                // its message stays; lines that are not chosen are left out in place
	modeFixed               // it stays as it is
)

// A selection is a conversation while lines of it are chosen.
type selection struct {
	o        *Options
	messages []core.Message
	said     *dialog.Dialog // what they were read as
	groups   []core.Span
	native   []bool  // groups whose messages stay
	cut      []bool  // messages of these whose own texts are cut in place
	former   []bool  // messages that a former condensation made
	unread   int     // the first message after the last of the model's
	recent   int     // the first message that was not read or has one of the newest results
	asking   float64 // the room of which what has to be answered may have its shares
	c        *Conversation
	estimate *Estimate

	lines    []lineState
	blocks   []int32 // of each line of a result: the number of its block in the passage; see findBlocks
	passages []passageState
	picks    []float64 // tokens of all picks up to each; picks[0] is what is there before any
	terms    []termState
	phrases  []float32 // the value of each; 0 if a kept line holds it
	items    []int32   // numbers of the terms and phrases of all lines that are worth anything

	handles  map[*Passage]string // of those that were rendered
	parts    []leftPart          // of all messages; see leftParts
	left     string              // the index of what is hidden
	open     string              // what is open of it
	files    []string            // blocks of files, see listFiles
	filed    []int               // lines that are shown there
	out      []bool              // lines that are not chosen
	replayed *ledger.Ledger
	folder   string // of its files; see rootOf
	root     string // the same, once it is used
	filling  bool   // all lines that are worth anything are kept; see gone
	talks    bool   // it is talk; see isTalk
	opened   []int  // lines that say the same

	taken     []float32 // the value per token at which [selection.choose] took the first line of each passage; nil without a judge
	threshold float32   // the value per token of the last that it took
	named     []bool    // terms that the account has; nil without one
	heeded    []float32 // by which an account multiplies the values of each line; nil without one
	factors   []float32 // by which the judge multiplies the values of each passage; nil without one

	marks   []string // of media that an extract may mention
	mediaAt []int32  // the pick that took the mark; 0 if none did
}

// Choosing reads lines in random order, a million times in a long conversation. Most of its time
// goes to memory access, so what it reads together is stored together.

// A lineState is what choosing reads of one.
type lineState struct {
	tokens      float32
	at          int32 // the pick that took it; 0 if none did
	passage     int32
	first, last bool // of its passage
	// Where its terms begin in selection.items, where its phrases follow, and where they end.
	terms, phrases, end int32
}

// A passageState is what choosing reads of one.
type passageState struct {
	opens  float32 // what its first line costs more: its header
	opened int32   // how many of its lines are kept
	mode   mode
}

// A termState is what choosing reads of one.
type termState struct {
	name, word float32 // what it is worth; one of them is 0
	credit     float32 // the share that the best of the kept lines gives; 0 if none holds it
}

func newSelection(messages []core.Message, o *Options) *selection {
	said := o.Reader.Read(messages)
	w := &selection{
		o: o, messages: messages, said: said, groups: core.Groups(messages), c: read(messages, said, o.Shares.Demands >= 0),
		handles: map[*Passage]string{},
	}
	if o.Original == nil {
		o.Original = func(m *core.Message, part int) core.Part { return m.Parts[part] }
	}
	if o.Judge != nil {
		w.taken = make([]float32, len(w.c.Passages))
	}
	w.native = make([]bool, len(w.groups))
	w.cut = make([]bool, len(messages))
	w.findRecent()
	w.lines = make([]lineState, len(w.c.Lines))
	w.passages = make([]passageState, len(w.c.Passages))
	w.terms = make([]termState, w.c.Terms())
	w.phrases = make([]float32, len(w.c.phrases))
	for p := range w.c.Passages {
		lines := w.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			w.lines[l].passage = int32(p)
		}
		w.lines[lines.Start].first, w.lines[lines.End-1].last = true, true
	}
	w.out = make([]bool, len(w.lines))
	w.findBlocks()
	if w.talks = o.Only == nil && w.c.isTalk(); w.talks {
		shares := *o.Shares
		shares.Tail, shares.Index, shares.Open, shares.Files, shares.Demands = talkTail, 0, 0, 0, 0
		shares.HandleFrom = math.MaxInt
		o.Shares = &shares
		for l := range w.c.Lines { // of talk, the old value is a part of what was said
			w.c.Lines[l].outdated, w.c.Lines[l].repeated = false, false
		}
	}
	return w
}

// findRecent finds the messages that the model has not read and those with the newest results.
func (w *selection) findRecent() {
	w.former = make([]bool, len(w.messages))
	for p := range w.c.Passages {
		if pass := &w.c.Passages[p]; pass.partial {
			w.former[pass.Message] = true
		}
	}
	w.unread = len(w.messages)
	for i := w.unread - 1; i >= 0 && w.messages[i].Role != core.RoleAssistant; i-- {
		w.former[i] = w.former[i] || w.messages[i].Kind != core.KindOriginal
		if w.former[i] {
			break
		}
		w.unread = i
	}
	w.recent = w.unread
	for n, i := 0, len(w.messages)-1; i >= 0 && n < recentResults; i-- {
		for _, p := range w.messages[i].Parts {
			if _, ok := p.(core.ToolResult); ok {
				n, w.recent = n+1, min(w.recent, i)
			}
		}
	}
}

// arrange decides by the shares which messages are kept unchanged, and clears all other choices.
func (w *selection) arrange() {
	clear(w.native)
	clear(w.cut)
	clear(w.passages)
	for l := range w.lines {
		w.lines[l].at = 0
	}
	w.stay()
	w.keepFixed()
}

// count counts the tokens of lines.
func (w *selection) count() {
	const least = 256 // lines that are worth a goroutine
	parallel.Ranges(len(w.c.Lines), least, func(from, to int) {
		for l := from; l < to; l++ {
			n := w.o.Counter.Count(core.Text(w.c.Lines[l].Text + w.c.Lines[l].after))
			if !w.c.Lines[l].joins {
				n++ // its end
			}
			w.lines[l].tokens = float32(n)
		}
	})
}

// A staying is what stay knows of the groups from the newest on.
type staying struct {
	open  []bool  // messages whose results may be shortened
	base  float64 // tokens of all that stays
	free  float64 // what the newest groups leave of the room, when all that must stay is there
	asked float64 // left for what has to be answered
	left  float64 // for the newest messages
	most  float64 // the same, before any
	tail  bool    // all messages so far stay
}

// stay decides which messages stay: those that must, those that have to be answered, and the
// newest. A message of the user's that is too large for what it has to fit in stays, too, and is cut.
func (w *selection) stay() {
	if w.o.Only != nil {
		w.stayAll()
		return
	}
	must, fixed := w.musts()
	room := float64(w.o.Room)
	s := staying{open: make([]bool, len(w.messages)), base: headTokens, tail: true, free: room - headTokens - fixed - w.rulesTokens()}
	// What must stay may leave little. Then the shares are of that, and what has to be answered has
	// something even if rules fill all of it.
	least := 0.4 * (room - fixed)
	w.asking = max(0, min(room, max(s.free, least)))
	s.asked = w.o.Shares.Newest * max(0, min(room, max(1.7*s.free, least)))
	s.most = w.o.Shares.Tail * room
	s.left = s.most
	for g, group := range slices.Backward(w.groups) {
		newest := group.End > w.unread
		if !newest {
			s.left = min(s.left, w.o.Shares.Tail*2*s.free)
		}
		if must[g] || s.tail || newest {
			w.stays(&s, g, must[g])
		}
	}
	w.picks = []float64{s.base}
	hidden := w.hidden()
	free := float64(w.o.Room) - w.picks[0]
	open := w.listOpen(hidden, free)
	w.picks[0] += open + w.listLeft(hidden, int(open), free-open)
	w.picks[0] += w.listFiles(hidden, float64(w.o.Room)-w.picks[0]-w.rulesTokens())
	w.findNewest(hidden)
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		switch {
		case hidden[pass.Message]:
			w.passages[p].opens = float32(w.o.Counter.Count(core.Text(UsualMark+" "+pass.Header(pass.Kind == dialog.KindToolCall, ""))) + 1)
		case s.open[pass.Message] && w.long(pass):
			w.passages[p].mode = modeOpen
		default:
			w.passages[p].mode = modeFixed
		}
	}
}

// stayAll lets all messages stay, and shortens the results that Options.Only names.
func (w *selection) stayAll() {
	for g := range w.native {
		w.native[g] = true
	}
	base := 0
	for i := range w.messages {
		base += w.messages[i].Tokens
	}
	w.picks = []float64{float64(base)}
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		w.passages[p].mode = modeFixed
		m := &w.messages[pass.Message]
		r, ok := m.Parts[pass.part].(core.ToolResult)
		if !ok || m.Protected || !w.o.Only(m, pass.part) {
			continue
		}
		if _, ok := r.Content[pass.content].(core.Text); ok {
			w.passages[p].mode = modeOpen
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				w.picks[0] -= float64(w.lines[l].tokens)
			}
		}
	}
}

// findNewest finds what the user said last, if that is hidden.
func (w *selection) findNewest(hidden []bool) {
	found := false
	for p := len(w.c.Passages) - 1; p >= 0; p-- {
		pass := &w.c.Passages[p]
		pass.newest = !found && pass.Kind == dialog.KindUser && !pass.demands && hidden[pass.Message]
		found = found || pass.Kind == dialog.KindUser && !pass.demands
	}
}

// musts returns the groups that must be kept, and their tokens.
func (w *selection) musts() (must []bool, tokens float64) {
	first := len(w.messages) // of a turn that is not over
	if pending := core.Pending(w.messages); len(pending) > 0 {
		first = pending[0]
	}
	must = make([]bool, len(w.groups))
	for g, group := range w.groups {
		must[g] = group.End > first
		n := 0
		for i := group.Start; i < group.End; i++ {
			m := &w.messages[i]
			must[g] = must[g] || m.Protected || m.Role == core.RoleSystem
			n += m.Tokens
		}
		if must[g] {
			tokens += float64(n)
		}
	}
	return must, tokens
}

// stays decides whether group g stays, and what of it may be shortened.
func (w *selection) stays(s *staying, g int, must bool) {
	group := w.groups[g]
	cost, texts := 0.0, 0.0
	answers := false
	for i := group.Start; i < group.End; i++ {
		results, own := w.shortens(&w.messages[i])
		answers = answers || hasResult(&w.messages[i])
		cost += float64(w.messages[i].Tokens - results)
		if !w.former[i] {
			texts += float64(own)
		}
	}
	newest := group.End > w.unread
	cut := false
	asked := s.asked
	if first := &w.messages[group.Start]; first.Role == core.RoleUser && first.Kind == core.KindOriginal && !answers {
		asked *= 2 // the user's words, not a result
	}
	switch {
	case must, newest && cost <= asked, s.tail && cost <= s.left:
	case newest && texts > 0 && cost-texts <= asked, s.tail && texts > 0 && cost > s.most && cost-texts <= s.left:
		cost, cut = cost-texts, true
	case newest: // it does not fit however it is cut; what was before it keeps its share
		return
	default:
		s.tail = false
		return
	}
	w.native[g] = true
	for i := group.Start; i < group.End; i++ {
		m := &w.messages[i]
		s.open[i] = s.tail && !m.Protected && m.Role != core.RoleSystem
		w.cut[i] = cut && s.open[i] && m.Role == core.RoleUser && !w.former[i]
		if !s.open[i] {
			results, _ := w.shortens(m)
			cost += float64(results)
		}
	}
	s.base += cost
	switch {
	case newest && !must: // it leaves those before it half of their share, or has a share of its own
		s.asked -= cost
		if cost <= s.left {
			s.left = max(s.left-cost, s.most/2)
		}
	case cost <= s.left:
		s.left -= cost
	}
	if newest && !must {
		s.free -= cost
		if cut {
			s.free -= w.o.Shares.Asked * w.asking
		}
	}
}

func hasResult(m *core.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
}

// long reports whether a passage is of a text that may be shortened in place, and that a mark
// is so much smaller than that it is worth it.
func (w *selection) long(pass *Passage) bool {
	m := &w.messages[pass.Message]
	switch p := m.Parts[pass.part].(type) {
	case core.ToolResult:
		t, ok := p.Content[pass.content].(core.Text)
		return ok && w.o.Counter.Count(t) > w.short(pass.Message)
	case core.Text:
		return w.cut[pass.Message] && w.o.Counter.Count(p) > shortText
	case core.ToolCall, core.Reasoning, core.Image, core.Opaque:
	}
	return false
}

// replaced reports whether p is of a text that stays, of which lines that the user replaced later are left out.
func (w *selection) replaced(p *Passage) bool {
	m := &w.messages[p.Message]
	if p.Kind != dialog.KindUser || m.Protected || m.Role != core.RoleUser {
		return false
	}
	if _, ok := m.Parts[p.part].(core.Text); !ok {
		return false
	}
	return slices.ContainsFunc(w.c.Lines[p.Lines.Start:p.Lines.End], func(l Line) bool { return l.outdated })
}

// short returns the size in tokens up to which a result in message i is left unchanged.
func (w *selection) short(i int) int {
	if i >= w.recent {
		return shortText
	}
	return smallText
}

// hidden returns for every message whether it is hidden.
func (w *selection) hidden() []bool {
	hidden := make([]bool, len(w.messages))
	for g, group := range w.groups {
		for i := group.Start; i < group.End; i++ {
			hidden[i] = !w.native[g]
		}
	}
	return hidden
}

// What is written around lines, in tokens, before it is counted.
const (
	headTokens = 80
	stubTokens = 14
	gapTokens  = 2
	// shortText is the size up to which unread texts and the newest results are left unchanged: a
	// mark would save little.
	shortText = 60
	// smallText is the same for other results that stay: a mark in their place says less and takes half as much.
	smallText = 30
	// recentResults is how many results are the newest.
	recentResults = 10
)

// shortens returns how many tokens of m can go if its results are shortened, and how many
// more if its own texts are, which only those of a user may be.
func (w *selection) shortens(m *core.Message) (results, texts int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolResult:
			for _, q := range p.Content {
				if t, ok := q.(core.Text); ok {
					results += max(0, w.o.Counter.Count(t)-stubTokens)
				}
			}
		case core.Text:
			if n := w.o.Counter.Count(p); m.Role == core.RoleUser && n > shortText {
				texts += n - stubTokens
			}
		case core.ToolCall, core.Reasoning, core.Image, core.Opaque:
		}
	}
	return results, texts
}

// rulesTokens returns the tokens of the project's rules that are to stay.
func (w *selection) rulesTokens() float64 {
	n := 0.0
	for p := range w.c.Passages {
		if pass := &w.c.Passages[p]; pass.rules != "" && !pass.outdated {
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				n += float64(w.lines[l].tokens)
			}
		}
	}
	return min(n, w.rulesRoom())
}

// keepFixed takes the lines of fixed passages as kept.
func (w *selection) keepFixed() {
	for p := range w.c.Passages {
		if w.passages[p].mode != modeFixed {
			continue
		}
		lines := w.c.Passages[p].Lines
		replaced := w.replaced(&w.c.Passages[p])
		for l := lines.Start; l < lines.End; l++ {
			if !replaced || !w.c.Lines[l].outdated {
				w.lines[l].at = 1
				w.passages[p].opened++
			}
		}
	}
}
