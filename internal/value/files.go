package value

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/value/ledger"
	"github.com/condensehq/condense/internal/value/parallel"
)

// Files under work. An agent's next edit is mostly in a file that it has read once and not edited yet, and a reader
// who continues the work needs the current text: whole blocks, each once, without text that a later edit replaced. So
// an extract begins with blocks of the newest text that hidden messages showed: recent blocks, blocks of files under
// discussion, and blocks that define names under discussion.

const (
	// fileName is the name of the tool in the headers of these blocks.
	fileName = "file"
	// sinceMark ends the header of a block of a file that was changed in a way that is not known.
	sinceMark = ", edited since"

	filesMost  = 2500 // tokens
	filesLeast = 120  // with less room there is none
	// filesNear is the number of newest messages, one of which must have read or changed a file for its blocks to
	// qualify.
	filesNear = 40
	// filesSeen is the share of a block's lines that, if visible elsewhere, makes the block unnecessary.
	filesSeen = 0.7
	fileLine  = 14 // bytes: a shorter line is in many files
)

// A fileBlock is a block that may be shown.
type fileBlock struct {
	ledger.Block
	score  float64
	text   string // as written in the extract
	tokens int
}

// listFiles chooses the blocks of files to show, and returns their tokens, at most free.
func (pre *preface) listFiles(hidden []bool, free float64) float64 {
	pre.files, pre.filed = nil, nil
	room := min(pre.r.o.Shares.Files*float64(pre.r.o.Room), filesMost, free)
	if room < filesLeast || pre.r.o.Only != nil {
		return 0
	}
	l := pre.r.replayed
	pre.root = pre.r.folder
	near := len(pre.r.messages) - filesNear
	if !slices.ContainsFunc(l.Files, func(f *ledger.File) bool { return f.Touched >= near || f.Edited >= 0 }) {
		return 0
	}
	blocks := pre.rateFiles(l, hidden)
	used := 0.0
	var chosen []*fileBlock
	for i := range blocks {
		b := &blocks[i]
		b.text = b.write(pre.root)
		b.tokens = pre.r.o.Counter.Count(core.Text(UsualMark+" "+b.text)) + 1
		if used+float64(b.tokens) <= room {
			used += float64(b.tokens)
			chosen = append(chosen, b)
		}
		if room-used < 80 { // tokens: no block is that small
			break
		}
	}
	slices.SortStableFunc(chosen, func(a, b *fileBlock) int {
		if a.File != b.File {
			if a.File.Touched != b.File.Touched {
				return a.File.Touched - b.File.Touched
			}
			return strings.Compare(a.File.Path, b.File.Path)
		}
		return a.First - b.First
	})
	shown := map[string]map[string]bool{} // by the name of the file
	for _, b := range joined(chosen, pre.root) {
		pre.files = append(pre.files, b.text)
		base := b.File.Path[strings.LastIndexByte(b.File.Path, '/')+1:]
		if shown[base] == nil {
			shown[base] = map[string]bool{}
		}
		for _, line := range b.Lines {
			shown[base][strings.TrimSpace(line.Text)] = true
		}
	}
	pre.settleFiles(shown, hidden)
	return used
}

// joined joins consecutive blocks.
func joined(blocks []*fileBlock, root string) (out []*fileBlock) {
	for _, b := range blocks {
		if n := len(out); n > 0 && b.First > 0 && out[n-1].File == b.File && out[n-1].First > 0 {
			last := out[n-1]
			if end := last.First + len(last.Lines); b.First >= end && b.First-end <= 2 { // blank lines between them
				for range b.First - end {
					last.Lines = append(slices.Clip(last.Lines), ledger.Line{})
				}
				last.Lines = append(slices.Clip(last.Lines), b.Lines...)
				last.text = last.write(root)
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// replay replays the conversation, and returns the files and their common folder.
func (r *reading) replay() (files *ledger.Ledger, folder string) {
	l, at := new(ledger.Ledger), -1
	shortened := func(p core.Part) bool { // with the extract; a result that is too large is shortened when it comes
		t, ok := p.(core.Text)
		mark := endMark(string(t))
		return ok && mark != "" && !strings.Contains(mark, " left out")
	}
	// A former extract stands in front, and has the files as they were behind the results that were shortened with it.
	for i := range r.messages {
		for _, p := range r.messages[i].Parts {
			if r, ok := p.(core.ToolResult); ok && slices.ContainsFunc(r.Content, shortened) {
				at = i
			}
		}
	}
	l.Replay(r.messages, r.said, 0, at+1)
	for p := range r.c.Passages { // blocks of a former extract
		pass := &r.c.Passages[p]
		if !pass.partial || pass.Name != fileName {
			continue
		}
		path, first := splitPlace(pass.Target)
		var lines []string
		for k := pass.Lines.Start; k < pass.Lines.End; k++ {
			line := &r.c.Lines[k]
			if text := line.Text + line.after; line.joins && len(lines) > 0 {
				lines[len(lines)-1] += text
			} else {
				lines = append(lines, strings.Split(text, "\n")...)
			}
		}
		f, seen := l.File(path), max(at, pass.Message)
		if strings.HasSuffix(pass.Target, sinceMark) {
			f.Unsure = seen
			seen--
		}
		f.Show(first, lines, seen)
	}
	l.Replay(r.messages, r.said, at+1, len(r.messages))
	return l, rootOf(l)
}

var placeForm = plain.Pattern(`:(\d{1,7})(?:-\d{1,7})?$`)

// splitPlace splits the target of a block, such as a/b.go:12-40, into the path and the number of the first line; 0
// without lines.
func splitPlace(target string) (path string, first int) {
	target = strings.TrimSuffix(target, sinceMark)
	at := placeForm().FindStringSubmatchIndex(target)
	if at == nil {
		return target, 0
	}
	first, _ = strconv.Atoi(target[at[2]:at[3]])
	return target[:at[0]], first
}

// rootOf returns the folder with most of the files that have absolute paths.
func rootOf(l *ledger.Ledger) string {
	const most = 2.0 / 3
	in, all := map[string]int{}, 0
	for _, f := range l.Files {
		if !strings.HasPrefix(f.Path, "/") && !strings.HasPrefix(f.Path[min(1, len(f.Path)):], ":/") {
			continue
		}
		all++
		for i := range len(f.Path) {
			if f.Path[i] == '/' {
				in[f.Path[:i+1]]++
			}
		}
	}
	root := ""
	for dir, n := range in {
		if len(dir) > len(root) && n > 1 && float64(n) >= most*float64(all) {
			root = dir
		}
	}
	return root[:strings.LastIndexByte(strings.TrimSuffix(root, "/"), '/')+1] // keep the last folder: it tells where a file is
}

// write returns the header of b without its mark, and its lines.
func (b *fileBlock) write(root string) string {
	name := shortPath(b.File.Path, root)
	if b.First > 0 {
		name += ":" + strconv.Itoa(b.First) + "-" + strconv.Itoa(b.First+len(b.Lines)-1)
	}
	if b.Past() {
		name += sinceMark
	}
	var s strings.Builder
	size := len(name) + 20
	for i := range b.Lines {
		size += len(b.Lines[i].Text) + 1
	}
	s.Grow(size)
	s.WriteString(headings[dialog.KindToolResult] + " " + fileName + " " + name)
	for i := range b.Lines {
		s.WriteString("\n" + strings.TrimRight(b.Lines[i].Text, " \t\r"))
	}
	return s.String()
}

// Weights of the names in the newest texts. They are from a prototype that was checked on sessions of projects it had
// not seen; none was fitted.
const (
	talkTexts   = 5 // newest texts of the assistant
	talkUsers   = 3 // newest texts of the user
	nameLeast   = 5 // bytes
	mentioned   = 1.0
	mentionedBy = 0.5 // added if two of plan, assistant and user mention it
	defines     = 1.0 // for each mentioned name that a block defines, two at most
	uses        = 0.5
)

// A talk is the newest texts.
type talk struct {
	texts [3]string // of the assistant, the plan, the user
	names map[string]bool
}

func (r *reading) talk() talk {
	t := talk{names: map[string]bool{}}
	var texts [3]strings.Builder
	said, users := 0, 0
	for _, pass := range slices.Backward(r.c.Passages) {
		k := -1
		switch {
		case pass.Kind == dialog.KindAssistant && said < talkTexts:
			k, said = 0, said+1
		case pass.Kind == dialog.KindToolCall && pass.family == families[dialog.FamilyPlan] && texts[1].Len() == 0:
			k = 1
		case pass.Kind == dialog.KindUser && users < talkUsers:
			k, users = 2, users+1
		}
		if k < 0 {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			_, _ = texts[k].WriteString(r.c.Lines[l].Text + "\n")
		}
	}
	for k := range texts {
		t.texts[k] = texts[k].String()
		for name := range names(t.texts[k]) {
			t.names[name] = true
		}
	}
	return t
}

// names yields the program-like words in s of five or more bytes, each with the word before it.
func names(s string) iter.Seq2[string, string] {
	return func(yield func(name, before string) bool) {
		before := ""
		for i := 0; i < len(s); {
			start := i
			for i < len(s) && bytesOf[s[i]]&isWord != 0 {
				i++
			}
			if word := s[start:i]; word != "" {
				if len(word) >= nameLeast && bytesOf[word[0]]&isDigit == 0 && !yield(word, before) {
					return
				}
				before = word
			}
			i = max(i, start+1)
		}
	}
}

// defining are the keywords before a name that a line defines.
var defining = rawjson.Set("func", "function", "def", "class", "const", "let", "var", "type", "interface", "struct", "enum", "fn", "impl", "trait", "module")

// rateFiles returns the blocks that may be shown, best first.
func (pre *preface) rateFiles(l *ledger.Ledger, hidden []bool) []fileBlock {
	since := make([]float64, len(pre.r.messages)+1) // tokens from a message to the end
	for i := len(pre.r.messages) - 1; i >= 0; i-- {
		since[i] = since[i+1] + float64(pre.r.messages[i].Tokens)
	}
	visible := map[string]bool{}
	for p := range pre.r.c.Passages {
		if pass := &pre.r.c.Passages[p]; !hidden[pass.Message] {
			for k := pass.Lines.Start; k < pass.Lines.End; k++ {
				text, _ := content(pre.r.c.Lines[k].Text)
				visible[text] = true
			}
		}
	}
	talk := pre.r.talk()
	rated := make([][]fileBlock, len(l.Files))
	const least = 16 // files that justify a goroutine
	parallel.Ranges(len(l.Files), least, func(from, to int) {
		for i := from; i < to; i++ {
			rated[i] = talk.blocks(l.Files[i], visible, since)
		}
	})
	out := slices.Concat(rated...)
	slices.SortStableFunc(out, func(a, b fileBlock) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return out
}

// blocks returns the blocks of a file, rated, that are not visible elsewhere. Since has, for each message, the tokens
// from it to the end.
func (t *talk) blocks(f *ledger.File, visible map[string]bool, since []float64) (out []fileBlock) {
	base := f.Path[strings.LastIndexByte(f.Path, '/')+1:]
	about := len(plain.Only(t.texts[:], func(text string) bool { return strings.Contains(text, base) }))
	for _, b := range f.Blocks() {
		if len(b.Lines) == 0 || isShown(&b, visible) {
			continue
		}
		seen := 0
		for i := range b.Lines {
			seen = max(seen, b.Lines[i].Seen)
		}
		score := -math.Log1p(since[min(seen+1, len(since)-1)]) - 0.5*math.Log1p(since[min(f.Touched+1, len(since)-1)])
		if about > 0 {
			score += mentioned
		}
		if about > 1 {
			score += mentionedBy
		}
		out = append(out, fileBlock{Block: b, score: score + t.rate(&b)})
	}
	return out
}

// isShown reports whether most lines of b are visible elsewhere.
func isShown(b *ledger.Block, visible map[string]bool) bool {
	n, seen := 0, 0
	for i := range b.Lines {
		if text := strings.TrimSpace(b.Lines[i].Text); len(text) >= fileLine {
			n++
			if visible[text] {
				seen++
			}
		}
	}
	return float64(seen) >= filesSeen*float64(n)
}

// rate returns how closely a block is related to the newest texts.
func (t *talk) rate(b *ledger.Block) float64 {
	defined, used := map[string]bool{}, map[string]bool{}
	for i := range b.Lines {
		for name, before := range names(b.Lines[i].Text) {
			if t.names[name] {
				used[name] = true
				if defining[before] {
					defined[name] = true
				}
			}
		}
	}
	return defines*float64(min(2, len(defined))) + uses*min(3, float64(len(used))/math.Sqrt(float64(len(b.Lines))))
}

// settleFiles excludes from the choice the lines of shown blocks and the outdated lines of their files.
func (pre *preface) settleFiles(shown map[string]map[string]bool, hidden []bool) {
	clear(pre.out)
	if len(shown) == 0 {
		return
	}
	bases := slices.Sorted(maps.Keys(shown)) // a command may name several
	for p := range pre.r.c.Passages {
		pass := &pre.r.c.Passages[p]
		if !hidden[pass.Message] || pass.Message >= pre.r.unread || pass.Kind != dialog.KindToolCall && !pass.answers() {
			continue
		}
		target, _ := splitPlace(pass.Target)
		lines := shown[target[strings.LastIndexByte(target, '/')+1:]]
		if pass.family == families[dialog.FamilyCommand] {
			lines = nil
			for _, base := range bases {
				if strings.Contains(target, base) {
					lines = shown[base]
				}
			}
		}
		for l := pass.Lines.Start; lines != nil && l < pass.Lines.End; l++ {
			text, _ := content(pre.r.c.Lines[l].Text)
			if lines[text] {
				pre.out[l] = true
				pre.filed = append(pre.filed, l)
			}
		}
	}
}

// gone reports whether line l is not to be chosen because it is outdated or already shown. Redundant lines and the
// old text of edits qualify only once all other lines have room.
func (w *choice) gone(l int) bool {
	line := &w.r.c.Lines[l]
	return line.outdated || line.void || w.pre.out[l] || line.stale() && !w.filling && w.r.o.Only == nil
}

// renderFiles writes the blocks of files.
func (b *extractWriter) renderFiles(files []string) {
	for _, text := range files {
		for i, line := range strings.Split(text, "\n") {
			b.text.WriteByte('\n')
			switch {
			case i == 0:
				b.marks = append(b.marks, b.text.Len())
				b.text.WriteByte(' ')
			case Literal(line):
				b.marks = append(b.marks, b.text.Len())
				b.text.WriteByte('|')
			}
			b.text.WriteString(line)
		}
	}
	if len(files) > 0 {
		b.call, b.under = nil, nil
	}
}
