package value

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A mode says how a passage may be changed.
type mode uint8

const (
	modeExtract mode = iota // its message is hidden; an extract holds the chosen lines
	modeOpen                // its message stays; lines that are not chosen are left out in place
	modeFixed               // it is unchanged
)

// A layout says which messages stay.
type layout struct {
	preface
	native   []bool  // groups whose messages are kept in the view
	cut      []bool  // kept messages whose own texts are cut in place
	tight    bool    // the newest request is cut: all texts next to it are chosen by lines
	asking   float64 // the room of which messages that await an answer have shares
	passages []passageState
	picks    []float64 // picks[k] is the tokens up to pick k; picks[0] is the size without any
}

// A passageState is the part of a passage that choosing reads.
type passageState struct {
	opens  float32 // the additional cost of its first line: its header
	opened int32   // how many of its lines are kept
	mode   mode
}

// arrange decides by the shares which messages stay unchanged, and clears all other choices.
func (w *layout) arrange() {
	w.tight = false
	clear(w.native)
	clear(w.cut)
	clear(w.passages)
	for l := range w.lines {
		w.lines[l].at = 0
	}
	w.stay()
	w.keepFixed()
}

// A staying is the state of stay, which goes through the groups from the newest on.
type staying struct {
	open  []bool  // messages whose results may be shortened
	base  float64 // tokens of all that stays
	free  float64 // room after all required messages and the newest groups
	asked float64 // room left for messages that await an answer
	left  float64 // room left for the newest messages
	most  float64 // the same, at the beginning
	// Tokens that messages must leave free: the required ones above, and the user's words in messages that do not stay
	// so far.
	fixed, words float64
	tail         bool // all messages so far stay
}

// stay decides which messages stay: the required ones, those that await an answer, and the newest. A message of the
// user that is too large for its share stays, too, and is cut.
func (w *layout) stay() {
	if w.o.Only != nil {
		w.stayAll()
		return
	}
	must, fixed := w.musts()
	room := float64(w.o.Room)
	s := staying{open: make([]bool, len(w.messages)), base: headTokens, tail: true, words: w.words.sum, free: room - headTokens - fixed - w.rulesTokens()}
	s.fixed = fixed
	for g, group := range w.groups {
		if must[g] {
			s.words -= w.wordsIn(group)
		}
	}
	// Required messages may leave little. Then the shares are shares of the rest, and messages that await an answer
	// have something even if rules would fill all of it.
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
	w.keepNewestMedium(&s)
	w.picks = []float64{s.base}
	hidden := w.hidden()
	free := float64(w.o.Room) - w.picks[0] - s.words
	open := w.listOpen(hidden, func(p *Passage) bool { return s.open[p.Message] && w.long(p) }, free)
	w.picks[0] += open + w.listContents(hidden, free-open)
	w.picks[0] += w.listFiles(hidden, float64(w.o.Room)-w.picks[0]-s.words-w.rulesTokens())
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

// mediumShare is the share of the room after all that stays that the group with the newest medium may have. It was not
// learned.
const mediumShare = 0.5

// keepNewestMedium keeps the group with the newest image, document, audio or video, because no line can replace it: the
// model would answer about something that it no longer sees.
func (w *layout) keepNewestMedium(s *staying) {
	k := len(w.c.Media) - 1
	for k >= 0 && !w.c.Media[k].medium {
		k--
	}
	if k < 0 {
		return
	}
	message := w.c.Media[k].by.Message
	g := slices.IndexFunc(w.groups, func(group core.Span) bool { return message < group.End })
	cost := 0.0
	for i := w.groups[g].Start; i < w.groups[g].End; i++ {
		cost += float64(w.messages[i].Tokens)
	}
	if !w.native[g] && cost <= mediumShare*(float64(w.o.Room)-s.base) {
		s.tail = false
		w.stays(s, g, true)
	}
}

// stayAll keeps all messages, and shortens only the results that Options.Only selects.
func (w *layout) stayAll() {
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

// stays decides whether group g stays, and which parts of it may be shortened.
func (w *layout) stays(s *staying, g int, must bool) {
	group := w.groups[g]
	cost, texts, all := 0.0, 0.0, 0.0
	answers := false
	for i := group.Start; i < group.End; i++ {
		results, own := w.shortens(&w.messages[i])
		answers = answers || hasResult(&w.messages[i])
		cost += float64(w.messages[i].Tokens - results)
		all += float64(w.messages[i].Tokens)
		if !w.former[i] {
			texts += float64(own)
		}
	}
	newest := group.End > w.unread
	cut := false
	words := w.wordsIn(group)
	fits := func(cost float64) bool { return s.base+s.fixed+cost+s.words-words <= float64(w.o.Room) }
	asked, request := s.asked, newest && words > 0
	if first := &w.messages[group.Start]; first.Role == core.RoleUser && first.Kind == core.KindOriginal && !answers {
		asked *= 2 // a message, not a result
	}
	switch {
	case must, newest && cost <= asked && fits(cost), s.tail && cost <= s.left && fits(cost):
	case request && (answers || cost-words <= headerTokens) && s.base-headTokens+w.emptyExtract()+s.fixed+cost <= float64(w.o.Limit): // it is nothing but the request, and results
	case request && !answers:
		w.tight = true
		cost, cut, words = cost-w.textsIn(group), true, 0
	case texts > 0 && fits(cost-texts+words) && (newest && cost-texts <= asked || s.tail && cost > s.most && cost-texts <= s.left):
		cost, cut, words = cost-texts, true, 0
	case newest: // it does not fit even if cut; earlier messages keep their share
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
	if must {
		s.fixed -= all
	} else {
		s.words -= words
	}
	switch {
	case newest && !must: // it leaves earlier messages half of their share, or has a share of its own
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

// wordsIn returns the tokens of the user's words in a group.
func (w *layout) wordsIn(g core.Span) (n float64) {
	for _, t := range w.words.tokens[g.Start:g.End] {
		n += t
	}
	return n
}

// textsIn returns the tokens of the texts in a group.
func (w *layout) textsIn(g core.Span) (n float64) {
	for i := g.Start; i < g.End; i++ {
		for _, p := range w.messages[i].Parts {
			if t, ok := p.(core.Text); ok {
				n += float64(w.o.Counter.Count(t))
			}
		}
	}
	return n
}

// long reports whether a passage belongs to a text that may be shortened in place, and is so much larger than a mark
// that shortening pays.
func (w *layout) long(pass *Passage) bool {
	m := &w.messages[pass.Message]
	switch p := m.Parts[pass.part].(type) {
	case core.ToolResult:
		t, ok := p.Content[pass.content].(core.Text)
		return ok && w.o.Counter.Count(t) > w.short(pass.Message)
	case core.Text:
		return w.cut[pass.Message] && (w.tight && pass.Message >= w.unread || w.o.Counter.Count(p) > shortText)
	case core.ToolCall, core.Reasoning, core.Image, core.Opaque:
	}
	return false
}

// hidden returns for every message whether it is hidden.
func (w *layout) hidden() []bool {
	hidden := make([]bool, len(w.messages))
	for g, group := range w.groups {
		for i := group.Start; i < group.End; i++ {
			hidden[i] = !w.native[g]
		}
	}
	return hidden
}

// rulesTokens returns the tokens of the project's rules that are to be kept.
func (w *layout) rulesTokens() float64 {
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

// keepFixed marks the lines of fixed passages as kept.
func (w *layout) keepFixed() {
	for p := range w.c.Passages {
		if w.passages[p].mode != modeFixed {
			continue
		}
		lines := w.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			w.lines[l].at = 1
			w.passages[p].opened++
		}
	}
}

func hasResult(m *core.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
}

// Estimated tokens around lines.
const (
	headTokens = 80
	stubTokens = 14
	gapTokens  = 2
	// shortText is the size up to which unread texts and the newest results stay unchanged: a mark would save little.
	shortText = 60
	// smallText is the same for other kept results, whose mark is shorter.
	smallText = 30
	// recentResults is the number of results that count as the newest.
	recentResults = 10
)
