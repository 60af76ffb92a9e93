package value

import (
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// kinds is the number of kinds of passages: the first ones of package dialog, up to errors. Project rules and
// descriptions of the environment count as injected.
const kinds = int(dialog.KindError) + 1

// A Passage is the text of one author in one part of a message.
type Passage struct {
	Kind    dialog.Kind
	Message int    // its index
	part    int    // the index of the part in the message
	content int    // the index in the content of a result
	Name    string // of the tool that was called
	Target  string // of the call: a path, a command
	call    string // the ID of the call, for calls and results; empty in a former extract
	Handle  string // of the part that it is from, if a former extract has it
	partial bool   // a former extract has only some of it
	// rules is the name of its project rules; empty if it has none. All lines of rules are read, even empty ones.
	rules string
	// outdated marks rules with a newer version in a later passage.
	outdated bool
	demands  bool // it is a former extract's block of the user's demands
	newest   bool // it is the user's last message, which is hidden
	ends     bool // a former extract left out its end
	Lines    core.Span
	file     int32 // the term that names the file it is about; -1 if none
	family   uint8 // of the tool; see families
	later    uint8 // how many passages of its kind and tool follow, in steps
	back     int32 // how often a term came back after its last occurrence here; see cameBack
	reuse    uint8 // share of its new terms that was used again; see reuseSteps
	old      bool  // a newer passage is about the same file or command
}

// answers reports whether a tool wrote p.
func (p *Passage) answers() bool {
	return p.Kind == dialog.KindToolResult || p.Kind == dialog.KindError
}

// failed reports whether p is the result of a failed call: it is marked so, or its text says it.
func (p *Passage) failed(text string) bool {
	return p.Kind == dialog.KindError || p.answers() && (endsFailed(text) || dialog.Failed(dialog.FamilyOf(p.Name), p.Target, text))
}

// A Line is one line of a passage. Lines without a letter or digit are left out.
type Line struct {
	Text    string
	Passage int32
	// after holds the lines without a letter or digit that follow it and belong to it; elsewhere than in the user's text no blank ones.
	after string
	joins bool // it continues a long line that was divided
	// Gap is the least number of lines that a former condensation left out before it.
	Gap int32
	// flat marks a value of JSON, which is not a line of the text.
	flat     bool
	apart    bool // it follows a blank line
	outdated bool // the account says the same; see heed
	replaced bool // an edit replaced it; see findReplaced
	// void marks a line that is never shown: one that no file has any more, an opaque run, the wrapper of a file.
	void     bool
	repeated bool // a newer message has a line of the same shape; see findRepeated
	demand   dialog.Demand
	under    int32     // in search results, the line with the path that it belongs to; 0 if it needs none
	mentions core.Span // in Conversation.mentions
	phrases  core.Span // in Conversation.phrases
	start    int       // bytes of all lines before it
	shape    uint8     // see shapeOf
	template bool      // see findTemplates
	field    uint8     // of a call; see fieldOf
	lineUse
}

// A lineUse tells when the subject of a line was last used.
type lineUse struct {
	hot     [2]int32 // the last two messages in which the user or the agent wrote one of its rare terms
	hotTerm int32    // the term of hot[0]
	near    int32    // the last message in which a rare term of a line close by was written
	back    bool     // a term came back from here; see cameBack
	// Lines up and down to the next line from which a term came back.
	backAbove, backBelow uint16
}

// prose reports whether the line is made of words, four or more: neither code nor data.
func (l *Line) prose() bool { return l.shape == shapeProse }

// A Conversation is a conversation as lines. It refers to the texts of the messages from which it was read.
type Conversation struct {
	Passages []Passage
	Lines    []Line
	Media    []Media  // oldest first
	left     []string // the entries of the indices of former extracts
	open     []string // the last former extract's list of open work

	messages int
	bytes    int
	mentions []int32 // numbers of terms
	phrased  []int32 // numbers of phrases; negative (^n) if it begins in the line before
	termAt   table
	phraseAt table
	terms    []term
	phrases  []phrase
	partAt   table
	parts    []part
	// Numbers of the parts of terms, term by term.
	termParts []int32
}

// Read divides messages into passages and lines. The cost is linear.
func Read(messages []core.Message) *Conversation {
	return read(messages, new(dialog.Reader).Read(messages), true, false)
}

// read divides messages that were read as d. Demands says whether to find the user's demands.
func read(messages []core.Message, d *dialog.Dialog, demands, framed bool) *Conversation {
	size := plain.Sum(messages, func(x core.Message) int { return x.Tokens * 4 })
	// Typical numbers for texts of this size, so that little is moved while they are read.
	c := &Conversation{
		messages: len(messages),
		termAt:   newTable(size / 32), phraseAt: newTable(size / 6), partAt: newTable(size / 64),
		Passages: make([]Passage, 0, 2*len(messages)), Lines: make([]Line, 0, size/40),
		mentions: make([]int32, 0, size/14), phrased: make([]int32, 0, size/10),
		terms: make([]term, 0, size/64), phrases: make([]phrase, 0, size/12),
	}
	r := reader{c: c, framed: framed}
	for i := range messages {
		r.message(i, &messages[i], d.Messages[i])
	}
	if demands {
		c.demands()
	}
	c.findPaths()
	c.findTemplates()
	c.index()
	if demands {
		c.findRepeated()
		c.findReplaced()
	}
	return c
}

// An announced is the call in a text whose result comes next, as its header names it.
type announced struct{ name, target string }

type reader struct {
	c      *Conversation
	field  uint8
	flat   bool // a value of JSON is being read
	apart  bool // the last line was blank
	framed bool // see [Options]
	plain  bool // text of the user is being read: its lines are used verbatim, even if they are JSON
	words  bool // only passages of the user are wanted
}

func (r *reader) message(i int, m *core.Message, parts []dialog.Part) {
	if m.Role == core.RoleSystem || m.Kind != core.KindOriginal && r.extract(i, m) {
		return
	}
	// A message that we inserted may also have text of the user: formats that forbid two consecutive user messages
	// join them.
	said := m.Role == core.RoleUser && (m.Kind == core.KindOriginal || dialog.HoldsInserted(m))
	answered := announced{}
	for j, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			at := Passage{Kind: dialog.KindAssistant, Message: i, part: j}
			if body, mark, ok := r.cutHead(p); ok && m.Role == core.RoleUser && answered.name == "" {
				r.extractPart(i, j, body, mark) // from a file that does not record insertions
				continue
			}
			if said && answered.name == "" && dialog.Inserted(string(p)) ||
				m.Role == core.RoleAssistant && dialog.Repeated(string(p), m.Kind == core.KindSummary) != nil {
				r.inserted(at, string(p))
				continue
			}
			switch {
			case m.Role == core.RoleTool:
				at.Kind = dialog.KindToolResult
			case said:
				r.plain = true
				for _, s := range parts[j].Segments() {
					answered = r.segment(at, s, answered)
				}
				r.plain = false
				continue
			}
			r.add(at, "", string(p))
		case core.Reasoning:
			r.add(Passage{Kind: dialog.KindReasoning, Message: i, part: j}, "", p.Text)
		case core.ToolCall:
			r.call(i, j, &p, parts[j].Use)
		case core.ToolResult:
			r.result(i, j, &p, &parts[j])
		case core.Opaque, core.Image:
			by := Passage{Kind: dialog.KindAssistant, Message: i}
			switch {
			case m.Role == core.RoleTool || answered.name != "":
				by.Kind, by.Name, by.Target = dialog.KindToolResult, answered.name, answered.target
			case m.Role == core.RoleUser && m.Kind == core.KindOriginal:
				by.Kind = dialog.KindUser
			}
			r.media(by, p)
		}
	}
}

// inserted adds a strategy's text, as a model's words except where it quotes the user.
func (r *reader) inserted(p Passage, text string) {
	words := dialog.Repeated(text, true)
	if words != nil {
		text, _, _ = strings.Cut(text, dialog.WordsOpen)
	}
	r.add(p, "", text)
	p.Kind = dialog.KindUser
	for _, w := range words {
		r.add(p, "", w)
	}
}

// segment adds one author's segment of a user message, and returns the call whose result comes next.
func (r *reader) segment(p Passage, s dialog.Segment, answered announced) announced {
	if s.Kind == dialog.KindHeader {
		return announced{s.Tool, s.Target}
	}
	if s.Kind == dialog.KindToolResult {
		p.Kind, p.Name, p.Target = dialog.KindToolResult, answered.name, answered.target
		r.answer(p, answered.target, s.Text, false)
		return answered
	}
	p.Kind = dialog.KindUser
	if s.Kind == dialog.KindProjectRules {
		p.Kind, p.rules = dialog.KindInjected, dialog.RulesName(s.Text)
	}
	if s.Kind == dialog.KindInjected || s.Kind == dialog.KindEnvironment {
		p.Kind = dialog.KindInjected
	}
	r.add(p, "", s.Text)
	return answered
}

func (r *reader) call(i, j int, p *core.ToolCall, u *dialog.Use) {
	if r.words {
		return
	}
	at := r.open(Passage{Kind: dialog.KindToolCall, Message: i, part: j, Name: p.Name, Target: u.Info.Target, call: p.ID}, u.Info.File())
	if !flatten(p.Args, func(key, s string) { r.field = fieldOf(key); r.text(s) }) {
		if len(toolcall.PatchIn([]byte(p.Args))) > 0 {
			r.field = fieldNew
		}
		r.text(p.Args)
	}
	r.field = 0
	r.close(at)
}

func (r *reader) result(i, j int, p *core.ToolResult, part *dialog.Part) {
	of := Passage{Kind: dialog.KindToolResult, Message: i, part: j, call: p.CallID}
	file := ""
	if u := part.Use; u.Called {
		of.Name, of.Target, file = u.Name, u.Info.Target, u.Info.File()
	}
	if p.IsError {
		of.Kind = dialog.KindError
	}
	for k, q := range p.Content {
		of.content = k
		t, ok := q.(core.Text)
		if !ok {
			r.media(of, q)
			continue
		}
		answer := part.Answer(k, t)
		for _, s := range answer {
			if s.Kind == dialog.KindToolResult || p.IsError && len(answer) == 1 { // Claude Code puts an error into an element
				r.answer(of, file, s.Text, p.IsError)
			} else {
				r.add(Passage{Kind: dialog.KindInjected, Message: i, part: j, content: k, call: p.CallID}, "", s.Text)
			}
		}
	}
}

// answer adds the text of a result. What the user said in it is the user's.
func (r *reader) answer(of Passage, file, text string, failed bool) {
	for _, s := range dialog.SplitRemarks(of.Name, text, failed) {
		p := of
		if s.Kind != dialog.KindToolResult {
			p.Kind = s.Kind
		}
		r.add(p, file, s.Text)
	}
}

// add adds a passage, unless it has no content.
func (r *reader) add(p Passage, file, text string) {
	if r.words && p.Kind != dialog.KindUser {
		return
	}
	at := r.open(p, file)
	r.text(text)
	r.close(at)
}

func (r *reader) open(p Passage, file string) int {
	p.file = -1
	p.family = families[dialog.FamilyOf(p.Name)]
	p.Lines = core.Span{Start: len(r.c.Lines), End: len(r.c.Lines)}
	if file != "" {
		if i := strings.LastIndexByte(strings.TrimRight(file, "/"), '/'); i >= 0 {
			file = file[i+1:]
		}
		p.file = r.c.termAt.number(hashOf(file))
	}
	r.c.Passages = append(r.c.Passages, p)
	return len(r.c.Passages) - 1
}

func (r *reader) close(at int) {
	p := &r.c.Passages[at]
	p.Lines.End = len(r.c.Lines)
	if p.Lines.Start == p.Lines.End {
		r.c.Passages = r.c.Passages[:at]
	}
	r.avoid(p)
}

// findPaths finds, in search results, the lines that belong to a line with their path.
func (c *Conversation) findPaths() {
	for p := range c.Passages {
		pass := &c.Passages[p]
		if !pass.answers() {
			continue
		}
		path := 0
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			switch {
			case underPath(c.Lines[l].Text):
				c.Lines[l].under = int32(path)
			case l+1 < pass.Lines.End && isPath(c.Lines[l].Text) && underPath(c.Lines[l+1].Text):
				path = l
			}
		}
	}
}

// underPath reports whether a line begins like 12: or 12-.
func underPath(line string) bool {
	rest := strings.TrimLeft(line, "0123456789")
	return rest != line && rest != "" && (rest[0] == ':' || rest[0] == '-')
}

// isPath reports whether a line is the path of a file and nothing else.
func isPath(line string) bool {
	return !strings.ContainsAny(line, " \t") && strings.ContainsAny(line, "./\\") && strings.ContainsFunc(line, unicode.IsLetter)
}

// text adds the lines of a text to the passage that is open.
func (r *reader) text(s string) {
	at := int32(len(r.c.Passages) - 1)
	rules := r.c.Passages[at].rules != ""
	if rules {
		s = strings.Trim(s, "\n")
	}
	for line := range strings.SplitSeq(s, "\n") {
		if !hasWord(line) {
			if rules {
				r.line(Line{Text: line, Passage: at})
			} else {
				r.follow(line, at)
			}
			continue
		}
		if !r.plain && isJSON(line) {
			r.flat = true
			done := flatten(line, func(_, text string) { r.lines(text, at) })
			r.flat = false
			if done {
				continue
			}
		}
		r.lines(line, at)
	}
}

// follow attaches a line without letters and digits to the line before it.
func (r *reader) follow(line string, at int32) {
	const most = 200 // bytes: more is decoration
	pass := &r.c.Passages[at]
	if first := len(r.c.Lines) == pass.Lines.Start; first && pass.Kind == dialog.KindUser && strings.TrimSpace(line) != "" {
		r.line(Line{Text: line, Passage: at}) // "?" is a message, too
		return
	} else if r.apart = true; first || Literal(line) {
		return
	}
	last := &r.c.Lines[len(r.c.Lines)-1]
	exact := pass.Kind == dialog.KindUser || pass.partial && pass.Name == fileName
	if last.flat || !exact && strings.TrimSpace(line) == "" || len(last.after)+len(line) > most {
		return
	}
	last.after += "\n" + line
}

// lines adds lines that hold no JSON.
func (r *reader) lines(s string, at int32) {
	for line := range strings.SplitSeq(s, "\n") {
		if len(line) <= longLine {
			if hasWord(line) {
				r.line(Line{Text: line, Passage: at})
			}
			continue
		}
		first := true
		add := func(piece string) {
			if hasWord(piece) {
				r.line(Line{Text: piece, Passage: at, joins: !first})
				first = false
			}
		}
		for from, end := opaque(line, opaqueLeast); end > 0; from, end = opaque(line, opaqueLeast) {
			pieces(line[:from], add)
			add(line[from:end])
			line = line[end:]
		}
		pieces(line, add)
	}
}

// Bounds of opaque runs, in bytes. What the user wrote may be a key.
const (
	opaqueLeast = 256
	opaqueUser  = 4096
	opaqueLine  = 60 // of a divided run
)

// opaque returns the first run of at least so many bytes of base64 or hexadecimal digits in s; 0, 0 if there is none.
func opaque(s string, least int) (from, end int) {
	if len(s) < least {
		return 0, 0
	}
	seen, hex := uint8(0), true
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (bytesOf[s[i]]&isWord != 0 || strings.IndexByte("+/=-", s[i]) >= 0) {
			seen |= bytesOf[s[i]]
			hex = hex && strings.IndexByte("0123456789abcdefABCDEF", s[i]) >= 0
			continue
		}
		if all := uint8(isLower | isUpper | isDigit); i-from >= least && (seen&all == all || hex && seen&isDigit != 0) {
			return from, i
		}
		from, seen, hex = i+1, 0, true
	}
	return 0, 0
}

// avoid marks the lines of a passage that are worth nothing.
func (r *reader) avoid(p *Passage) {
	least, size := opaqueLeast, 0 // size: bytes of the lines of a divided run
	if p.Kind == dialog.KindUser {
		least = opaqueUser
	}
	for l := p.Lines.Start; l < p.Lines.End; l++ {
		line := &r.c.Lines[l]
		line.void = p.answers() && p.family == families[dialog.FamilyRead] && toolcall.Wraps(line.Text)
		shortest := opaqueLine
		if size >= least {
			shortest = 4 // the end of the run
		}
		if _, end := opaque(line.Text, shortest); end < max(shortest, len(line.Text)) {
			size = 0
			continue
		}
		if size += len(line.Text); size < least {
			continue
		}
		for k, left := l, size; left > 0; k-- {
			r.c.Lines[k].void = true
			left -= len(r.c.Lines[k].Text)
		}
		size = least // the lines before are marked
	}
}

func (r *reader) line(l Line) {
	l.start, l.field, l.flat, l.apart = r.c.bytes, r.field, r.flat, r.apart
	r.apart = false
	r.c.bytes += len(l.Text) + 1
	r.c.Lines = append(r.c.Lines, l)
}
