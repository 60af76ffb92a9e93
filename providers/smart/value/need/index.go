package need

// who may have written something, for counting.
const (
	byHuman = iota
	byAgent
	byCall
	byTool
	authors
)

func author(k Kind) int {
	switch k {
	case Human:
		return byHuman
	case Agent, Thought:
		return byAgent
	case Call:
		return byCall
	case Injected, Output, Failure, kinds:
	}
	return byTool
}

// A term is a name or a rare word, and where it was seen.
type term struct {
	class     class
	size      uint8
	firstKind Kind
	lastKind  Kind
	inFailure bool
	messages  int32 // that have it
	by        [authors]int32
	first     int32 // message
	last      int32
	asked     int32 // the last message in which the person wrote it; -1 if none
	lastByUs  int32 // the last message in which the person or the agent wrote it; -1 if none did
	lastLine  int32
	head      int32 // the least number of a line, in its passage, that has it
}

// A phrase is four words in a row.
type phrase struct {
	content  uint8 // words that are no fillers
	kind     Kind  // of the passage that had it last
	first    Kind
	messages int32
	ours     int32 // messages of the person and the agent among them
	last     int32
	lastOurs int32 // -1 if none
	lastLine int32
}

// index finds the terms and phrases of all lines.
func (c *Conversation) index() {
	var x lexer
	for p := range c.Passages {
		pass := &c.Passages[p]
		var ring [4]token
		var began [4]int
		n := 0
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			line := &c.Lines[l]
			x.read(line.Text)
			line.shape = shapeOf(line.Text, len(x.tokens))
			line.mentions.Start = len(c.mentions)
			for _, m := range x.mentions {
				c.mention(pass, l, m)
			}
			line.mentions.End = len(c.mentions)
			line.phrases.Start = len(c.phrased)
			if line.Gap {
				n = 0
			}
			for _, t := range x.tokens {
				ring[n&3], began[n&3] = t, l
				if n++; n >= 4 {
					c.phrase(pass, l, began[n&3], &ring, n)
				}
			}
			line.phrases.End = len(c.phrased)
		}
	}
	c.findReuse()
	c.findHot()
	c.findNear()
	c.countLater()
	for p := range c.Passages { // terms that only name a file
		if f := c.Passages[p].file; int(f) >= len(c.terms) {
			c.Passages[p].file = -1
		}
	}
}

func (c *Conversation) mention(p *Passage, l int, m mention) {
	n, _ := c.termAt.number(m.hash)
	for int(n) >= len(c.terms) {
		c.terms = append(c.terms, term{lastByUs: -1, last: -1, asked: -1})
	}
	t := &c.terms[n]
	msg := int32(p.Message)
	at := int32(l - p.Lines.Start)
	if t.messages == 0 {
		t.class, t.size, t.firstKind, t.first, t.head = m.class, uint8(min(255, m.size)), p.Kind, msg, at
	}
	who := author(p.Kind)
	if t.last != msg {
		t.messages++
		t.by[who]++
	}
	t.last, t.lastKind, t.lastLine = msg, p.Kind, int32(l)
	t.head = min(t.head, at)
	if who != byTool {
		t.lastByUs = msg
	}
	if who == byHuman {
		t.asked = msg
	}
	if p.Kind == Failure {
		t.inFailure = true
	}
	c.mentions = append(c.mentions, n)
}

// phrase adds the phrase that ends with the last of n words, in line l; it begins in line
// from.
func (c *Conversation) phrase(p *Passage, l, from int, ring *[4]token, n int) {
	if l-from > 1 {
		return // one word a line is no phrase
	}
	h := uint64(hashSeed)
	content := uint8(0)
	for k := n - 4; k < n; k++ {
		t := ring[k&3]
		h ^= t.hash
		h *= 0x9E3779B97F4A7C15
		h ^= h >> 31
		if !t.filler {
			content++
		}
	}
	if content < 2 {
		return
	}
	at, isNew := c.phraseAt.number(h)
	msg := int32(p.Message)
	if isNew {
		c.phrases = append(c.phrases, phrase{content: content, first: p.Kind, last: -1, lastOurs: -1})
	}
	f := &c.phrases[at]
	if f.last != msg {
		f.messages++
		if author(p.Kind) != byTool {
			f.ours++
		}
	}
	f.last, f.kind, f.lastLine = msg, p.Kind, int32(l)
	if author(p.Kind) != byTool {
		f.lastOurs = msg
	}
	if from < l {
		at = ^at
	}
	c.phrased = append(c.phrased, at)
}

// Shapes of lines.
const (
	shapeProse = iota // words
	shapeCode         // words and punctuation
	shapeData         // mostly digits and punctuation
	shapes
)

func shapeOf(s string, words int) uint8 {
	letters, punctuation := 0, 0
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 0x80 || bytesOf[b]&(isLower|isUpper) != 0:
			letters++
		case b == ' ' || b == '\t':
		case bytesOf[b]&isDigit != 0, b != '.' && b != ',' && b != '-' && b != '\'':
			punctuation++
		}
	}
	switch {
	case letters < 2*punctuation:
		return shapeData
	case words >= 4 && letters >= 12*punctuation:
		return shapeProse
	}
	return shapeCode
}

// Terms returns how many terms there are. They are numbered from 0.
func (c *Conversation) Terms() int { return len(c.terms) }

// Phrases returns how many phrases there are. They are numbered from 0.
func (c *Conversation) Phrases() int { return len(c.phrases) }

// TermsOf returns the numbers of the terms of line l, each once.
func (c *Conversation) TermsOf(l int) []int32 {
	s := c.Lines[l].mentions
	return c.mentions[s.Start:s.End]
}

// PhrasesOf returns the numbers of the phrases that end in line l. A phrase that begins in
// the line before is ^n.
func (c *Conversation) PhrasesOf(l int) []int32 {
	s := c.Lines[l].phrases
	return c.phrased[s.Start:s.End]
}

// lines of a passage that is about a file or a command which a newer one is about, too.
func (c *Conversation) superseded(p *Passage) bool {
	if p.Target == "" || author(p.Kind) != byTool {
		return false
	}
	n, ok := c.newest[p.Name+"\x00"+p.Target]
	return ok && c.Passages[n].Message > p.Message
}
