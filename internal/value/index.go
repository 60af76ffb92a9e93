package value

import (
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/parallel"
)

// Authors, for counting.
const (
	byUser = iota
	byAgent
	byCall
	byTool
	authors
)

// whose is the author of the passages of each kind.
var whose = [kinds]int{
	dialog.KindUser: byUser, dialog.KindAssistant: byAgent, dialog.KindReasoning: byAgent, dialog.KindToolCall: byCall,
	dialog.KindInjected: byTool, dialog.KindToolResult: byTool, dialog.KindError: byTool,
}

// A term is a name or a rare word, with its occurrences.
type term struct {
	class     class
	size      uint8
	firstKind dialog.Kind
	lastKind  dialog.Kind
	inFailure bool
	partCount uint8 // number of its parts; see takeApart
	parts     int32 // where they begin
	messages  int32 // messages that have it
	by        [authors]int32
	first     int32 // message
	last      int32
	asked     int32 // the last message in which the user wrote it; -1 if none
	lastByUs  int32 // the last message in which the user or the agent wrote it; -1 if none
	edited    int32 // the last message in which a call changed the file of this name; -1 if none
	planned   int32 // the last message in which a plan had it; -1 if none
	back      int32 // how often the user or the agent wrote it after a while without it
	far       int32 // the same, after a long while
	lastLine  int32
	head      int32 // the lowest position of a line, in its passage, that has it
}

// A phrase is four words in a row. There are many of them.
type phrase struct {
	content  uint8       // words that are not fillers
	first    dialog.Kind // of the passage that had it first
	messages uint8       // 255 if more
	ours     uint8       // messages of the user and the agent among them; 255 if more
	last     int32       // message
	lastOurs int32       // -1 if none
	lastLine int32
}

// index finds the terms and phrases of all lines.
func (c *Conversation) index() {
	x := finder{c: c}
	var next, last block
	for more := true; more || len(last.mentions)+len(last.phrases) > 0; next, last = last, next {
		// Each task writes to data of its own and goes through the lines in order.
		parallel.Do(
			func() { more = x.find(&next) },
			func() { c.numberMentions(last.mentions) },
			func() { c.numberPhrases(last.phrases) },
		)
	}
	c.findReuse()
	c.findHot()
	c.findNear()
	c.countLater()
	c.findSuperseded()
	c.findOutdated()
	for p := range c.Passages { // terms that only name a file
		if f := c.Passages[p].file; int(f) >= len(c.terms) {
			c.Passages[p].file = -1
		}
	}
	c.findWork()
	c.findPartUse()
	c.findBacks()
}

// A block holds finds of some lines that have no number yet.
type block struct{ mentions, phrases []found }

// found is a mention or a phrase.
type found struct {
	hash    uint64
	text    string // of a mention
	line    int32
	class   class // of a mention
	size    uint8 // of a mention, in bytes; of a phrase, in words that are no fillers
	carries bool  // the phrase began in the line before
}

const (
	// blockSize is the number of finds that completes a block: one written by one processor and read by two others
	// should fit in their caches.
	blockSize = 1 << 13
	// batch is the number of finds that are looked up at once. See [table.numbers].
	batch = 512
)

// A finder goes through lines.
type finder struct {
	c     *Conversation
	lexer lexer
	line  int // the next

	words int      // words of the passage since the last omission
	ring  [4]token // the last of them
	began [4]int   // and their lines

	mentions, phrases int // in all lines before
}

// find fills a block from the next lines, and reports whether there are
// find fills a block from the next lines, and reports whether there are more.
func (x *finder) find(b *block) (more bool) {
	b.mentions, b.phrases = b.mentions[:0], b.phrases[:0]
	for x.line < len(x.c.Lines) && len(b.mentions)+len(b.phrases) < blockSize {
		x.next(b)
	}
	return x.line < len(x.c.Lines)
}

func (x *finder) next(b *block) {
	l := x.line
	x.line++
	line := &x.c.Lines[l]
	if line.Gap > 0 || l == 0 || line.Passage != x.c.Lines[l-1].Passage {
		x.words = 0
	}
	text := line.Text
	if line.void {
		text = ""
	}
	x.lexer.read(text)
	line.shape = shapeOf(line.Text, len(x.lexer.tokens))
	line.mentions.Start = x.mentions
	for _, m := range x.lexer.mentions {
		b.mentions = append(b.mentions, found{hash: m.hash, line: int32(l), class: m.class, size: uint8(min(255, len(m.text))), text: m.text})
	}
	x.mentions += len(x.lexer.mentions)
	line.mentions.End = x.mentions
	line.phrases.Start = x.phrases
	before := len(b.phrases)
	for _, t := range x.lexer.tokens {
		x.ring[x.words&3], x.began[x.words&3] = t, l
		if x.words++; x.words >= 4 {
			x.phrase(b, l)
		}
	}
	x.phrases += len(b.phrases) - before
	line.phrases.End = x.phrases
}

// phrase adds the phrase that ends with the last word, in line l.
func (x *finder) phrase(b *block, l int) {
	from := x.began[x.words&3]
	if l-from > 1 {
		return // one word a line is no phrase
	}
	h := uint64(hashSeed)
	content := uint8(0)
	for k := x.words - 4; k < x.words; k++ {
		t := x.ring[k&3]
		h ^= t.hash
		h *= 0x9E3779B97F4A7C15
		h ^= h >> 31
		if !t.filler {
			content++
		}
	}
	if content >= 2 {
		b.phrases = append(b.phrases, found{hash: h, line: int32(l), size: content, carries: from < l})
	}
}

// numberMentions gives numbers to terms, and notes where they were.
func (c *Conversation) numberMentions(list []found) {
	for mentions := range slices.Chunk(list, batch) {
		start := len(c.mentions)
		c.mentions = c.termAt.numbers(mentions, c.mentions)
		if more := len(c.termAt.keys) - cap(c.terms); more > 0 {
			c.terms = slices.Grow(c.terms, len(c.terms)+more) // the elements are large: moving them often takes longer than clearing more
		}
		for len(c.terms) < len(c.termAt.keys) {
			c.terms = append(c.terms, term{lastByUs: -1, last: -1, asked: -1, edited: -1, planned: -1})
		}
		for i, n := range c.mentions[start:] {
			c.mention(n, &mentions[i])
		}
	}
}

// numberPhrases gives numbers to phrases, and notes where they were.
func (c *Conversation) numberPhrases(list []found) {
	for phrases := range slices.Chunk(list, batch) {
		start := len(c.phrased)
		c.phrased = c.phraseAt.numbers(phrases, c.phrased)
		for len(c.phrases) < len(c.phraseAt.keys) {
			c.phrases = append(c.phrases, phrase{last: -1, lastOurs: -1})
		}
		numbers := c.phrased[start:]
		last := int32(0)
		for _, n := range numbers {
			last |= c.phrases[n].last // all are fetched at once; see [table.numbers]
		}
		runtime.KeepAlive(last)
		for i, n := range numbers {
			c.phrase(n, &phrases[i])
			if phrases[i].carries {
				numbers[i] = ^n
			}
		}
	}
}

func (c *Conversation) mention(n int32, m *found) {
	t := &c.terms[n]
	p := &c.Passages[c.Lines[m.line].Passage]
	msg := int32(p.Message)
	at := m.line - int32(p.Lines.Start)
	if t.messages == 0 {
		t.class, t.size, t.firstKind, t.first, t.head = m.class, m.size, p.Kind, msg, at
		t.parts, t.partCount = c.takeApart(m.text)
	}
	who := whose[p.Kind]
	if who != byTool && t.messages > 0 {
		c.cameBack(t, msg)
	}
	if t.last != msg {
		t.messages++
		t.by[who]++
	}
	t.last, t.lastKind, t.lastLine = msg, p.Kind, m.line
	t.head = min(t.head, at)
	if who != byTool {
		t.lastByUs = msg
	}
	if who == byUser {
		t.asked = msg
	}
	t.inFailure = t.inFailure || p.Kind == dialog.KindError
}

func (c *Conversation) phrase(n int32, m *found) {
	p := &c.Passages[c.Lines[m.line].Passage]
	msg := int32(p.Message)
	f := &c.phrases[n]
	if f.messages == 0 {
		f.content, f.first = m.size, p.Kind
	}
	ours := whose[p.Kind] != byTool
	if f.last != msg {
		f.messages = min(f.messages, math.MaxUint8-1) + 1
		if ours {
			f.ours = min(f.ours, math.MaxUint8-1) + 1
		}
	}
	f.last, f.lastLine = msg, m.line
	if ours {
		f.lastOurs = msg
	}
}

// Shapes of lines.
const (
	shapeProse = iota // words
	shapeCode         // words and punctuation
	shapeData         // mostly digits and punctuation
	shapes
)

// shapeCounts adds one to the letters (the low half) or to the punctuation (the high half)
// for a byte.
var shapeCounts = func() (t [256]uint64) {
	const letter, punctuation = 1, 1 << 32
	for i := range t {
		switch b := byte(i); {
		case b >= 0x80 || bytesOf[b]&(isLower|isUpper) != 0:
			t[i] = letter
		case strings.IndexByte(" \t.,-'", b) < 0:
			t[i] = punctuation
		}
	}
	return t
}()

func shapeOf(s string, words int) uint8 {
	n := uint64(0)
	for i := range len(s) {
		n += shapeCounts[s[i]]
	}
	letters, punctuation := n&math.MaxUint32, n>>32
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

// TermsOf returns the numbers of the terms of line l, each once.
func (c *Conversation) TermsOf(l int) []int32 {
	s := c.Lines[l].mentions
	return c.mentions[s.Start:s.End]
}

// phrasesOf returns the numbers of the phrases that end in line l. A phrase that begins in
// the line before is ^n.
func (c *Conversation) phrasesOf(l int) []int32 {
	s := c.Lines[l].phrases
	return c.phrased[s.Start:s.End]
}

// findSuperseded finds the passages about a file or a command that the result of a later message is about, too.
func (c *Conversation) findSuperseded() {
	type target struct{ name, target string }
	newest := map[target]int{} // to the last message with results about it
	for p := len(c.Passages) - 1; p >= 0; p-- {
		pass := &c.Passages[p]
		if pass.Target == "" || whose[pass.Kind] != byTool {
			continue
		}
		t := target{pass.Name, pass.Target}
		last, ok := newest[t]
		pass.old = ok && last > pass.Message
		if !ok && pass.Kind != dialog.KindInjected {
			newest[t] = pass.Message
		}
	}
}

// findOutdated finds project rules with a newer version in a later passage.
func (c *Conversation) findOutdated() {
	seen := map[string]bool{}
	for p := len(c.Passages) - 1; p >= 0; p-- {
		if pass := &c.Passages[p]; pass.rules != "" {
			pass.outdated = seen[pass.rules]
			seen[pass.rules] = true
		}
	}
}
