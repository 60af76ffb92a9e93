package value

import (
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
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
	r        *reading
	v        *rating
	pre      *preface
	native   []bool  // groups whose messages are kept in the view
	cut      []bool  // kept messages whose own texts are cut in place
	tight    bool    // the newest request is cut: all texts next to it are chosen by lines
	asking   float64 // the room of which messages that await an answer have shares
	passages []passageState
	base     float64 // tokens of all that stays, and of the preface
}

// A passageState is the part of a passage that choosing reads.
type passageState struct {
	opens  float32 // the additional cost of its first line: its header
	opened int32   // how many of its lines are kept
	mode   mode
}

// arrange decides by the shares which messages stay unchanged, and has the preface written for the others.
func arrange(v *rating, pre *preface) *layout {
	lay := &layout{
		r: v.r, v: v, pre: pre,
		native: make([]bool, len(v.r.groups)), cut: make([]bool, len(v.r.messages)), passages: make([]passageState, len(v.r.c.Passages)),
	}
	if v.r.o.Only != nil {
		lay.stayAll()
	} else {
		lay.stay()
	}
	return lay
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
func (lay *layout) stay() {
	must, fixed := lay.r.musts()
	room := float64(lay.r.o.Room)
	s := staying{open: make([]bool, len(lay.r.messages)), base: headTokens, tail: true, words: lay.v.words.sum, free: room - headTokens - fixed - lay.rulesTokens()}
	s.fixed = fixed
	for g, group := range lay.r.groups {
		if must[g] {
			s.words -= lay.wordsIn(group)
		}
	}
	// Required messages may leave little. Then the shares are shares of the rest, and messages that await an answer
	// have something even if rules would fill all of it.
	least := 0.4 * (room - fixed)
	lay.asking = max(0, min(room, max(s.free, least)))
	s.asked = lay.r.o.Shares.Newest * max(0, min(room, max(1.7*s.free, least)))
	s.most = lay.r.o.Shares.Tail * room
	s.left = s.most
	for g, group := range slices.Backward(lay.r.groups) {
		newest := group.End > lay.r.unread
		if !newest {
			s.left = min(s.left, lay.r.o.Shares.Tail*2*s.free)
		}
		if must[g] || s.tail || newest {
			lay.stays(&s, g, must[g])
		}
	}
	lay.keepNewestMedium(&s)
	lay.base = s.base
	hidden := lay.hidden()
	free := float64(lay.r.o.Room) - lay.base - s.words
	open := lay.pre.listOpen(hidden, func(p *Passage) bool { return s.open[p.Message] && lay.long(p) }, free)
	lay.base += open + lay.pre.listContents(hidden, free-open)
	lay.base += lay.pre.listFiles(hidden, float64(lay.r.o.Room)-lay.base-s.words-lay.rulesTokens())
	for p := range lay.r.c.Passages {
		pass := &lay.r.c.Passages[p]
		switch {
		case hidden[pass.Message]:
			lay.passages[p].opens = float32(lay.r.o.Counter.Count(core.Text(UsualMark+" "+pass.Header(pass.Kind == dialog.KindToolCall, ""))) + 1)
		case s.open[pass.Message] && lay.long(pass):
			lay.passages[p].mode = modeOpen
		default:
			lay.passages[p].mode = modeFixed
		}
	}
}

// mediumShare is the share of the room after all that stays that the group with the newest medium may have. It was not
// learned.
const mediumShare = 0.5

// keepNewestMedium keeps the group with the newest image, document, audio or video, because no line can replace it: the
// model would answer about something that it no longer sees.
func (lay *layout) keepNewestMedium(s *staying) {
	k := len(lay.r.c.Media) - 1
	for k >= 0 && !lay.r.c.Media[k].medium {
		k--
	}
	if k < 0 {
		return
	}
	message := lay.r.c.Media[k].by.Message
	g := slices.IndexFunc(lay.r.groups, func(group core.Span) bool { return message < group.End })
	cost := float64(core.TotalTokens(lay.r.messages[lay.r.groups[g].Start:lay.r.groups[g].End]))
	if !lay.native[g] && cost <= mediumShare*(float64(lay.r.o.Room)-s.base) {
		s.tail = false
		lay.stays(s, g, true)
	}
}

// stayAll keeps all messages, and shortens only the results that Options.Only selects.
func (lay *layout) stayAll() {
	lay.native = slices.Repeat([]bool{true}, len(lay.native))
	lay.base = float64(core.TotalTokens(lay.r.messages))
	for p := range lay.r.c.Passages {
		pass := &lay.r.c.Passages[p]
		lay.passages[p].mode = modeFixed
		m := &lay.r.messages[pass.Message]
		r, ok := m.Parts[pass.part].(core.ToolResult)
		if !ok || m.Protected || !lay.r.o.Only(m, pass.part) {
			continue
		}
		if _, ok := r.Content[pass.content].(core.Text); ok {
			lay.passages[p].mode = modeOpen
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				lay.base -= float64(lay.v.lines[l].tokens)
			}
		}
	}
}

// stays decides whether group g stays, and which parts of it may be shortened.
func (lay *layout) stays(s *staying, g int, must bool) {
	group := lay.r.groups[g]
	cost, texts, all := 0.0, 0.0, 0.0
	answers := false
	for i := group.Start; i < group.End; i++ {
		results, own := lay.r.shortens(&lay.r.messages[i])
		answers = answers || slices.ContainsFunc(lay.r.messages[i].Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
		cost += float64(lay.r.messages[i].Tokens - results)
		all += float64(lay.r.messages[i].Tokens)
		if !lay.r.former[i] {
			texts += float64(own)
		}
	}
	newest := group.End > lay.r.unread
	cut := false
	words := lay.wordsIn(group)
	fits := func(cost float64) bool { return s.base+s.fixed+cost+s.words-words <= float64(lay.r.o.Room) }
	asked, request := s.asked, newest && words > 0
	if first := &lay.r.messages[group.Start]; first.Role == core.RoleUser && first.Kind == core.KindOriginal && !answers {
		asked *= 2 // a message, not a result
	}
	switch {
	case must, newest && cost <= asked && fits(cost), s.tail && cost <= s.left && fits(cost):
	case request && (answers || cost-words <= headerTokens) && s.base-headTokens+lay.v.emptyExtract()+s.fixed+cost <= float64(lay.r.o.Limit): // it is nothing but the request, and results
	case request && !answers:
		lay.tight = true
		cost, cut, words = cost-lay.textsIn(group), true, 0
	case texts > 0 && fits(cost-texts+words) && (newest && cost-texts <= asked || s.tail && cost > s.most && cost-texts <= s.left):
		cost, cut, words = cost-texts, true, 0
	case newest: // it does not fit even if cut; earlier messages keep their share
		return
	default:
		s.tail = false
		return
	}
	lay.native[g] = true
	for i := group.Start; i < group.End; i++ {
		m := &lay.r.messages[i]
		s.open[i] = s.tail && !m.Protected && m.Role != core.RoleSystem
		lay.cut[i] = cut && s.open[i] && m.Role == core.RoleUser && !lay.r.former[i]
		if !s.open[i] {
			results, _ := lay.r.shortens(m)
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
			s.free -= lay.r.o.Shares.Asked * lay.asking
		}
	}
}

// wordsIn returns the tokens of the user's words in a group.
func (lay *layout) wordsIn(g core.Span) float64 {
	return plain.Sum(lay.v.words.tokens[g.Start:g.End], func(t float64) float64 { return t })
}

// textsIn returns the tokens of the texts in a group.
func (lay *layout) textsIn(g core.Span) (n float64) {
	for i := g.Start; i < g.End; i++ {
		for _, p := range lay.r.messages[i].Parts {
			if t, ok := p.(core.Text); ok {
				n += float64(lay.r.o.Counter.Count(t))
			}
		}
	}
	return n
}

// long reports whether a passage belongs to a text that may be shortened in place, and is so much larger than a mark
// that shortening pays.
func (lay *layout) long(pass *Passage) bool {
	m := &lay.r.messages[pass.Message]
	switch p := m.Parts[pass.part].(type) {
	case core.ToolResult:
		t, ok := p.Content[pass.content].(core.Text)
		return ok && lay.r.o.Counter.Count(t) > lay.r.short(pass.Message)
	case core.Text:
		return lay.cut[pass.Message] && (lay.tight && pass.Message >= lay.r.unread || lay.r.o.Counter.Count(p) > shortText)
	case core.ToolCall, core.Reasoning, core.Image, core.Opaque:
	}
	return false
}

// hidden returns for every message whether it is hidden.
func (lay *layout) hidden() []bool {
	hidden := make([]bool, len(lay.r.messages))
	for g, group := range lay.r.groups {
		for i := group.Start; i < group.End; i++ {
			hidden[i] = !lay.native[g]
		}
	}
	return hidden
}

// rulesTokens returns the tokens of the project's rules that are to be kept.
func (lay *layout) rulesTokens() float64 {
	n := 0.0
	for p := range lay.r.c.Passages {
		if pass := &lay.r.c.Passages[p]; pass.rules != "" && !pass.outdated {
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				n += float64(lay.v.lines[l].tokens)
			}
		}
	}
	return min(n, lay.r.rulesRoom())
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
