package dialog

import (
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Dialog is a conversation that was read. It refers to the texts of its messages.
type Dialog struct {
	Messages [][]Part // by message and part
	Uses     []*Use   // in the order in which they begin
}

// A Part is the content of one part of a message.
type Part struct {
	// Passages are its texts by kind. Joined they are the text of the part: for a result, of all its contents, each
	// on lines of its own. Images and opaque parts have none.
	Passages []Passage
	Use      *Use // of a call or a result in a part of its own
	of       *message
	at       int32 // its index in the message
	Media    bool  // a result that holds more than text
	again    bool  // a text of a program by its repetition
}

// A Passage is a text of one kind.
type Passage struct {
	Kind Kind
	Use  *Use // of a call, of a result and of the user's remarks on it; nil if none
	File File // that the result of a read shows; without a path if unknown
	Text string
}

// Answer returns the authors in text, which is content i of the result that p is.
func (p *Part) Answer(i int, text core.Text) []Segment {
	answers := at(&at(&p.of.answers, p.of.parts)[p.at], i+1)
	for len(answers) <= i {
		answers = append(answers, nil)
	}
	if answers[i] == nil {
		answers[i] = SplitResult(string(text))
	}
	p.of.answers[p.at] = answers
	return answers[i]
}

// A Use is a call to a tool with its result. Either may be missing.
type Use struct {
	Name    string
	Info    CallInfo
	Called  bool // the call is there
	Message int  // of the result; of the call if there is none
	Index   int  // in Dialog.Uses

	answer string    // the text of the result
	failed bool      // the result is marked so or, once judged, its text says it
	judge  sync.Once // reads the text, which few readers want to know of
}

// IsError reports whether the result is marked so, or its text says it; see [Failed].
func (u *Use) IsError() bool {
	u.judge.Do(func() { u.failed = u.failed || Failed(u.Info.Family, u.Info.Target, u.answer) })
	return u.failed
}

// Read reads a conversation.
func Read(messages []core.Message) *Dialog { return new(Reader).Read(messages) }

// A Reader reads conversations. It remembers every message that it has parsed: a message in several conversations,
// such as a conversation before and after some messages were shortened, is parsed once. The content of a message must
// not be changed in place. The zero value is ready. It is not safe for concurrent use.
type Reader struct {
	known  map[*core.Part]*message // by the first part; nil before the second conversation
	fresh  [][]message             // that are not in known
	calls  []CallInfo              // memory for messages' calls
	parsed int
}

// Parsed returns how many messages were taken apart.
func (r *Reader) Parsed() int { return r.parsed }

// A message is the content of a message, read by itself. Of earlier messages, only aider's notices matter.
type message struct {
	key     *core.Part // its first part
	role    core.Role
	parts   int
	user    *userMessage  // nil if it is not a user's
	runs    [][]CallRun   // of an assistant's texts with calls, by part
	calls   []CallInfo    // of calls in parts of their own, in order
	answers [][][]Segment // of results, by part and content; made when they are asked for
}

type userMessage struct {
	segments      [][]Segment // of texts, by part
	before, after AuthorReader
}

// add adds m to fresh, in a list with that room if the last one is full.
func (r *Reader) add(m message, room int) *message {
	last := len(r.fresh) - 1
	if last < 0 || len(r.fresh[last]) == cap(r.fresh[last]) {
		r.fresh = append(r.fresh, make([]message, 0, room))
		last++
	}
	r.fresh[last] = append(r.fresh[last], m)
	return &r.fresh[last][len(r.fresh[last])-1]
}

// message takes m apart unless that was done before. See add for room.
func (r *Reader) message(m *core.Message, talk *AuthorReader, room int) *message {
	if len(m.Parts) == 0 {
		return &message{}
	}
	talk.aider.ran = false // it is about one message
	if m.Role == core.RoleAssistant {
		talk.Message(m)
	}
	key := &m.Parts[0]
	if k := r.known[key]; k != nil && k.role == m.Role && k.parts == len(m.Parts) && (k.user == nil || k.user.before == *talk) {
		if k.user != nil {
			*talk = k.user.after
		}
		return k
	}
	r.parsed++
	k := r.add(message{key: key, role: m.Role, parts: len(m.Parts)}, room)
	if m.Role == core.RoleUser {
		k.user = &userMessage{before: *talk}
		k.user.segments = talk.Message(m)
		k.user.after = *talk
	}
	if cap(r.calls)-len(r.calls) < len(m.Parts) {
		r.calls = make([]CallInfo, 0, max(64, len(m.Parts)))
	}
	begun := len(r.calls)
	for j, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			if m.Role != core.RoleAssistant {
				continue
			}
			if runs := SplitCalls(string(p)); runs != nil {
				at(&k.runs, len(m.Parts))[j] = runs
			}
		case core.ToolCall:
			r.calls = append(r.calls, ParseCall(p.Name, p.Args))
		case core.ToolResult, core.Reasoning, core.Image, core.Opaque:
		}
	}
	k.calls = r.calls[begun:len(r.calls):len(r.calls)]
	return k
}

// at returns *list, made with n elements if it has none.
func at[T any](list *[]T, n int) []T {
	if *list == nil {
		*list = make([]T, n)
	}
	return *list
}

// Read reads a conversation. The cost is linear.
func (r *Reader) Read(messages []core.Message) *Dialog {
	k := linker{
		d:     &Dialog{Messages: make([][]Part, len(messages)), Uses: make([]*Use, 0, len(messages)/2)},
		open:  map[string][]*Use{},
		alike: alike(messages),
	}
	parts := plain.Sum(messages, func(x core.Message) int { return len(x.Parts) })
	room := len(messages)
	for _, list := range r.fresh {
		if r.known == nil {
			r.known = make(map[*core.Part]*message, len(list))
		}
		for i := range list {
			r.known[list[i].key] = &list[i]
		}
	}
	if r.fresh = nil; r.known != nil {
		room = min(room, 64) // most are known
	}
	all := make([]Part, parts)
	k.passages = make([]Passage, 0, parts+parts/4)
	var talk AuthorReader
	for i := range messages {
		m := &messages[i]
		k.at, k.parts = i, all[:len(m.Parts):len(m.Parts)]
		all = all[len(m.Parts):]
		k.message(m, r.message(m, &talk, room))
		k.d.Messages[i] = k.parts
	}
	return k.d
}

// A linker finds the calls that results answer.
type linker struct {
	d        *Dialog
	uses     []Use             // to be taken
	passages []Passage         // of all messages
	at       int               // the message that is read
	parts    []Part            // of it
	open     map[string][]*Use // ID of a native call to the uses that are not answered
	alike    map[string]int    // the user's texts by form
	called   []*Use            // in the last assistant's message, and not answered
	answer   *Use              // whose result continues in the next text; nil if none
}

func (k *linker) message(m *core.Message, known *message) {
	k.answer = nil
	if m.Role == core.RoleAssistant {
		k.called = k.called[:0]
	}
	calls := known.calls
	for j, p := range m.Parts {
		part := &k.parts[j]
		part.of, part.at = known, int32(j)
		begun := len(k.passages)
		switch p := p.(type) {
		case core.Text:
			k.text(m.Role, string(p), part)
		case core.ToolCall:
			part.Use = k.use(p.Name, calls[0], true)
			calls = calls[1:]
			k.add(KindToolCall, part.Use, p.Args)
			k.open[p.ID] = append(k.open[p.ID], part.Use)
			k.called = append(k.called, part.Use) // Cline answers in a text
		case core.ToolResult:
			k.result(p, part)
		case core.Reasoning:
			k.add(KindReasoning, nil, p.Text)
		case core.Image, core.Opaque:
		}
		part.Passages = k.passages[begun:len(k.passages):len(k.passages)]
	}
}

func (k *linker) use(name string, info CallInfo, called bool) *Use {
	if len(k.uses) == 0 {
		k.uses = make([]Use, 64)
	}
	u := &k.uses[0]
	k.uses = k.uses[1:]
	*u = Use{Name: name, Info: info, Called: called, Message: k.at, Index: len(k.d.Uses)}
	k.d.Uses = append(k.d.Uses, u)
	return u
}

func (k *linker) add(kind Kind, u *Use, text string) {
	k.passages = append(k.passages, Passage{Kind: kind, Use: u, Text: text})
}

// text adds the passages of a text.
func (k *linker) text(role core.Role, text string, part *Part) {
	switch role {
	case core.RoleAssistant:
		if part.of.runs == nil || part.of.runs[part.at] == nil {
			if text != "" {
				k.add(KindAssistant, nil, text)
			}
			return
		}
		for _, run := range part.of.runs[part.at] {
			if run.Tool == "" {
				k.add(KindAssistant, nil, run.Text)
				continue
			}
			u := k.use(run.Tool, run.About, true)
			k.called = append(k.called, u)
			k.add(KindToolCall, u, run.Text)
		}
	case core.RoleUser:
		part.again = k.alike[statusOf(text)] > mostAlike
		for _, s := range part.Segments() {
			k.segment(s)
		}
	case core.RoleSystem:
		k.add(KindSystem, nil, text)
	case core.RoleTool:
		k.add(KindOther, nil, text)
	}
}

// segment adds the passages of one segment of a user's text.
func (k *linker) segment(s Segment) {
	switch {
	case s.Kind == KindHeader:
		k.answer = k.find(s)
		k.add(KindHeader, nil, s.Text)
	case s.Kind != KindToolResult:
		k.add(s.Kind, nil, s.Text)
	default:
		u := k.answer
		if u == nil { // more of a result, or one without a call
			u = k.use("tool", CallInfo{}, false)
			u.Message = 0
		}
		if strings.TrimSpace(s.Text) == "" {
			k.add(KindOther, nil, s.Text)
			return
		}
		u.answer, u.failed, u.Message = s.Text, strings.Contains(s.Text[:min(len(s.Text), 300)], "<error>"), k.at
		k.answered(u, s.Text)
		k.answer = nil
	}
}

// find returns the use that a header announces the result of: the oldest call of that tool
// that is not answered, or a new one if there is none.
func (k *linker) find(s Segment) *Use {
	for i, u := range k.called {
		if u.Name == s.Tool {
			k.called = append(k.called[:i:i], k.called[i+1:]...)
			return u
		}
	}
	info := CallInfo{Family: FamilyOf(s.Tool), Target: s.Target}
	if s.Target != "" && info.Family == FamilyRead {
		info.Files = []File{{Path: toolcall.CleanPath(s.Target)}}
	}
	u := k.use(s.Tool, info, false)
	u.Message = 0
	return u
}

// result adds the passages of a native result.
func (k *linker) result(t core.ToolResult, part *Part) {
	u := (*Use)(nil)
	if open := k.open[t.CallID]; len(open) > 0 {
		u = open[0]
		k.called = slices.DeleteFunc(k.called, func(c *Use) bool { return c == u })
		if len(open) == 1 {
			delete(k.open, t.CallID)
		} else {
			k.open[t.CallID] = open[1:]
		}
	} else {
		u = k.use("tool", CallInfo{}, false)
		u.Message = 0
	}
	part.Use = u
	var texts []string
	for _, c := range t.Content {
		if s, ok := c.(core.Text); ok {
			texts = append(texts, string(s))
		} else {
			part.Media = true
		}
	}
	if len(texts) == 0 && !part.Media {
		return // the tool said nothing
	}
	text := strings.Join(texts, "\n")
	u.Message, u.answer, u.failed = k.at, text, t.IsError
	k.answered(u, text)
}

// answered adds the passages of a tool's result: one for each file, if it shows several in Roo-Code's form, and else
// one; and the user's remarks on it.
func (k *linker) answered(u *Use, text string) {
	if u.Info.Family != FamilyRead {
		result, said, rest := SplitFeedback(u.Name, text)
		switch {
		case u.Info.Family == FamilyAsk && (said == "" || strings.HasPrefix(said, feedbackMark)):
			for _, s := range SplitAnswer(text) {
				k.add(s.Kind, u, s.Text)
			}
			return
		case u.Info.Family == FamilyAsk && result != "":
			k.add(KindUser, u, result)
		case u.Info.Family != FamilyAsk && (result != "" || said == ""):
			k.add(KindToolResult, u, result)
		}
		if said != "" {
			k.add(KindUser, u, said)
		}
		if rest != "" {
			k.add(KindInjected, u, rest)
		}
		return
	}
	shown := splitFiles(text)
	if files := u.Info.Files; len(shown) == 1 && shown[0].File.Path == "" && len(files) == 1 {
		shown[0].File = files[0]
		if files[0].Range.whole() && cutByTool(text) {
			shown[0].File.Range = LineRange{First: 1, Last: CountLines(text)}
		}
	}
	for i := range shown {
		shown[i].Kind, shown[i].Use = KindToolResult, u
	}
	k.passages = append(k.passages, shown...)
}

// cutByTool reports whether a tool that was asked for a whole file says at the end of its
// answer that it did not show all of it. Tools show 2,000 lines at most, or less.
func cutByTool(text string) bool {
	end := text[max(0, len(text)-600):]
	return strings.Count(text, "\n") >= 1999 || strings.Contains(end, "truncated") || strings.Contains(end, "more lines") || strings.Contains(end, "offset")
}

// splitFiles finds the files in the result of a read, in Roo-Code's form:
//
//	<file><path>src/a.ts</path>
//	<content lines="1-50">
//	…
//	</content>
//	</file>
//
// The runs, put together, are the text. A text that is not of this form is one run of no
// file.
func splitFiles(text string) []Passage {
	const open, end = "<file>", "</file>"
	if !strings.Contains(text, open) {
		return []Passage{{Text: text}}
	}
	var out []Passage
	from := 0
	for at, tries := 0, 0; tries < maxOpen; tries++ {
		i := strings.Index(text[at:], open)
		if i < 0 {
			break
		}
		i += at
		at = i + len(open)
		block := text[i:]
		if n := strings.Index(block, "\n"+end); n >= 0 {
			block = block[:n+1+len(end)]
		} else if n := strings.Index(block, end); n >= 0 {
			block = block[:n+len(end)]
		} else {
			break
		}
		f, ok := fileOf(block)
		if !ok {
			continue
		}
		if i > from {
			out = append(out, Passage{Text: text[from:i]})
		}
		out = append(out, Passage{Text: block, File: f})
		from, at = i+len(block), i+len(block)
	}
	if from < len(text) {
		out = append(out, Passage{Text: text[from:]})
	}
	return out
}

func fileOf(block string) (File, bool) {
	p := Element(block, "path")
	if p == "" {
		return File{}, false
	}
	f := File{Path: toolcall.CleanPath(p)}
	runs := strings.Count(block, "\n<content lines=\"")
	_, lines, ok := strings.Cut(block, "<content lines=\"")
	if !ok || runs > 1 {
		f.Range = SeveralRanges // or an error, or a file whose content was not shown
		return f, true
	}
	lines, _, _ = strings.Cut(lines, "\"")
	f.Range = parseRange(lines)
	if strings.Contains(block, "<notice>") {
		return f, true // only the first lines were shown
	}
	if f.Range.First == 1 {
		f.Range = LineRange{} // from its first line to the last one that there was
	}
	return f, true
}

// CountLines returns the lines of s; a newline at the end begins none.
func CountLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && s[len(s)-1] != '\n' {
		n++
	}
	return n
}
