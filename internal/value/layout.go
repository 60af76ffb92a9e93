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
	modeFixed               // it stays as it is
)

// A layout says which messages stay.
type layout struct {
	preface
	native   []bool  // groups whose messages stay
	cut      []bool  // messages of these whose own texts are cut in place
	asking   float64 // the room of which what has to be answered may have its shares
	passages []passageState
	picks    []float64 // tokens of all picks up to each; picks[0] is what is there before any
}

// A passageState is what choosing reads of one.
type passageState struct {
	opens  float32 // what its first line costs more: its header
	opened int32   // how many of its lines are kept
	mode   mode
}

// arrange decides by the shares which messages are kept unchanged, and clears all other choices.
func (w *layout) arrange() {
	clear(w.native)
	clear(w.cut)
	clear(w.passages)
	for l := range w.lines {
		w.lines[l].at = 0
	}
	w.stay()
	w.keepFixed()
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
func (w *layout) stay() {
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
	open := w.listOpen(hidden, func(p *Passage) bool { return s.open[p.Message] && w.long(p) }, free)
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

// findNewest finds what the user said last, if that is hidden.
func (w *layout) findNewest(hidden []bool) {
	found := false
	for p := len(w.c.Passages) - 1; p >= 0; p-- {
		pass := &w.c.Passages[p]
		pass.newest = !found && pass.Kind == dialog.KindUser && !pass.demands && hidden[pass.Message]
		found = found || pass.Kind == dialog.KindUser && !pass.demands
	}
}

// stays decides whether group g stays, and what of it may be shortened.
func (w *layout) stays(s *staying, g int, must bool) {
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

// long reports whether a passage is of a text that may be shortened in place, and that a mark
// is so much smaller than that it is worth it.
func (w *layout) long(pass *Passage) bool {
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

// rulesTokens returns the tokens of the project's rules that are to stay.
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

// keepFixed takes the lines of fixed passages as kept.
func (w *layout) keepFixed() {
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

func hasResult(m *core.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok })
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
