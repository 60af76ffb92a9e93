package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/parallel"
)

// An extract begins with an index of the hidden messages: handles that together lead to all of their content, each
// with labels of its subjects. A handle with a + leads to everything from its part on.

const (
	// leftName begins the header of the index. It is part of the form of an extract; the text after it is for models
	// and may change.
	leftName  = "hidden:"
	leftHand  = leftName + " h:…+ recalls all from there on"
	leftShort = leftName + " recall"
	leftPaths = leftName + " files read and not changed since"
	// fromMark follows a handle that leads to everything from its part on.
	fromMark = "+"
	// leftPage is the amount of content, in bytes, that one entry should lead to: as much as one recall returns.
	leftPage = 20_000
	// leftLeast is the share of the room that a single handle may have if the index has no room even for one.
	leftLeast = 0.035
	// leftLabels is the largest share of the index for labels, leftNames for handles if not all fit. A handle without
	// a label tells a model nothing but its place.
	leftLabels, leftNames = 0.6, 0.5
	// leftPoor is how many times its room an index must need to get only two fifths of it: such an index could list
	// too little to be worth more.
	leftPoor = 1.5
)

// A leftPart is an entry of the index for one part of a message.
type leftPart struct {
	message int
	handle  string
	first   bool // no earlier part has the same content
	bytes   int
	about   string // a label, of a result
	again   bool   // a recall or its result: what it has is elsewhere
}

// leftParts returns the parts of all messages, as they were before any shortening.
func (w *reading) leftParts() []leftPart {
	var parts []leftPart
	var was []core.Part
	for i := range w.messages {
		for j := range w.messages[i].Parts {
			was = append(was, w.o.Original(&w.messages[i], j))
			parts = append(parts, leftPart{message: i})
		}
	}
	const least = 64 // parts that justify a goroutine
	parallel.Ranges(len(was), least, func(from, to int) {
		for k := from; k < to; k++ {
			parts[k].handle, parts[k].bytes = core.Handle(was[k]), textBytes(was[k])
		}
	})
	labels, recalls := map[string]string{}, map[string]bool{} // by call
	seen := make(map[string]bool, len(was))
	next := parts
	for i := range w.messages {
		for _, p := range w.messages[i].Parts {
			at := &next[0]
			next = next[1:]
			switch p := p.(type) {
			case core.ToolCall:
				if at.again = dialog.Recalls(p.Name, p.Args); at.again {
					recalls[p.ID] = true
				} else {
					labels[p.ID] = leftLabel(p)
				}
			case core.ToolResult:
				at.about, at.again = labels[p.CallID], recalls[p.CallID]
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
			at.first = !seen[at.handle]
			seen[at.handle] = true
		}
	}
	return parts
}

func textBytes(p core.Part) int {
	switch p := p.(type) {
	case core.Text:
		return len(p)
	case core.ToolCall:
		return len(p.Name) + len(p.Args)
	case core.ToolResult:
		n := 0
		for _, q := range p.Content {
			n += textBytes(q)
		}
		return n
	case core.Reasoning:
		return len(p.Text)
	case core.Image, core.Opaque:
	}
	return 0
}

// A leftEntry is a line of the index: a handle, with + or without, or a path with lines.
type leftEntry struct {
	name   string
	labels []string
	bytes  int // that it leads to, if it is new
}

// cutLabels splits the labels of an entry.
func cutLabels(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ", ")
}

// listLeft writes the index of the hidden messages, and returns its tokens. It may use its share of the room, less
// the spent tokens if the index is rich, and at most free. If that is too little, it drops labels, then keeps only
// every second, third and so on of the handles: each leads on to the next.
func (w *preface) listLeft(hidden []bool, spent int, free float64) float64 {
	w.left = ""
	room := int(min(w.o.Shares.Index*float64(w.o.Room), free))
	if room <= 0 || !slices.Contains(hidden, true) {
		return 0
	}
	var entries []leftEntry
	for _, line := range w.c.left {
		name, labels, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, handleMark) != w.o.NoHandles {
			entries = append(entries, leftEntry{name: name, labels: cutLabels(labels)})
		}
	}
	head := leftHand
	if w.o.NoHandles {
		head = leftPaths
		entries = w.unchanged(append(entries, w.leftFiles(hidden)...))
	} else {
		entries = append(entries, w.leftHandles(hidden)...)
	}
	tokens := func(text string) int { return w.o.Counter.Count(core.Text(text)) }
	room -= tokens(head) + 3
	sizes, names := nameSizes(entries, tokens)
	if len(entries) > 0 && !w.o.NoHandles && room < slices.Min(sizes) { // the room is too small for any entry: one handle may have more
		w.left = " " + leftShort + "\n" + entries[0].name
		if n := float64(tokens(UsualMark + w.left + "\n")); n <= min(leftLeast*float64(w.o.Room), free) {
			return n
		}
		w.left = ""
		return 0
	}
	if float64(names) > leftPoor*float64(room) {
		room = room * 2 / 5
	} else {
		room = max(room-spent, room/2)
	}
	entries, names = w.leftNamed(entries, sizes, names, room, tokens)
	room = min(room-names, int(leftLabels*w.o.Shares.Index*float64(w.o.Room)))
	if len(entries) == 0 {
		return 0
	}
	w.left = " " + head + labelled(entries, room, tokens)
	return float64(tokens(UsualMark + w.left + "\n"))
}

// leftNamed returns the entries whose names fit into their share of the room, and the size of these names. Sizes has the size of each
// name, names their sum.
func (w *preface) leftNamed(entries []leftEntry, sizes []int, names, room int, tokens func(string) int) (fitting []leftEntry, size int) {
	var lead *leftEntry // an entry from which a reader can go on to all that follow
	for i := range entries {
		if strings.HasSuffix(entries[i].name, fromMark) {
			lead = &leftEntry{name: entries[i].name}
			break
		}
	}
	if most := int(leftNames * float64(room)); names > most && len(entries) > 0 {
		if known := slices.DeleteFunc(slices.Clone(entries), func(e leftEntry) bool { return len(e.labels) == 0 }); !w.o.NoHandles && len(known) > 0 {
			entries = known // a handle without labels gives a reader no reason to follow it
			sizes, names = nameSizes(entries, tokens)
		}
	}
	if most := int(leftNames * float64(room)); names > most && len(entries) > 0 {
		n := max(most, 0) * len(entries) / names
		some := entries[:0]
		names = 0
		for i, e := range entries {
			if (i+1)*n/len(entries) > i*n/len(entries) {
				some, names = append(some, e), names+sizes[i]
			}
		}
		entries = some
		if lead != nil && !slices.ContainsFunc(entries, func(e leftEntry) bool { return strings.HasSuffix(e.name, fromMark) }) {
			if len(entries) > 0 {
				names -= tokens(entries[0].name + "\n")
				entries = entries[1:]
			}
			entries, names = slices.Insert(entries, 0, *lead), names+tokens(lead.name+"\n")
		}
	}
	return entries, names
}

// nameSizes returns the size of each entry's name, and their sum.
func nameSizes(entries []leftEntry, tokens func(string) int) (sizes []int, sum int) {
	sizes = make([]int, len(entries))
	for i, e := range entries {
		sizes[i] = tokens(e.name + "\n")
		sum += sizes[i]
	}
	return sizes, sum
}

// labelled returns a line for each entry, with as many labels as fit.
func labelled(entries []leftEntry, room int, tokens func(string) int) string {
	for _, e := range entries { // files are better labels than programs
		slices.SortStableFunc(e.labels, func(a, b string) int { return strings.Count(a, " ") - strings.Count(b, " ") })
	}
	said := make([]int, len(entries)) // labels
	for more := true; more; {         // newest entries first, one label of each at a time
		more = false
		for i := len(entries) - 1; i >= 0; i-- {
			e := &entries[i]
			if said[i] == len(e.labels) {
				continue
			}
			n := tokens(", " + e.labels[said[i]])
			if n > room {
				continue
			}
			room -= n
			said[i]++
			more = true
		}
	}
	var b strings.Builder
	for i, e := range entries {
		b.WriteString("\n" + e.name)
		if said[i] > 0 {
			b.WriteString(" " + strings.Join(e.labels[:said[i]], ", "))
		}
	}
	return b.String()
}

// leftHandles returns handles that lead to all content of the hidden messages, each to as much as one recall returns.
func (w *preface) leftHandles(hidden []bool) []leftEntry {
	var out []leftEntry
	page := 0 // bytes that the last entry still leads to
	if w.parts == nil {
		w.parts = w.leftParts()
	}
	for _, p := range w.parts {
		switch {
		case p.bytes <= page:
			page -= p.bytes
		case !hidden[p.message] || w.former[p.message] || p.bytes == 0 || p.again:
			page = 0
			continue
		case p.bytes > leftPage || !p.first:
			out, page = append(out, leftEntry{name: handleMark + p.handle}), 0
		default:
			out, page = append(out, leftEntry{name: handleMark + p.handle + fromMark}), leftPage-p.bytes
		}
		if len(out) == 0 {
			continue
		}
		last := &out[len(out)-1]
		last.bytes += p.bytes
		if p.about != "" && !slices.Contains(last.labels, p.about) {
			last.labels = append(last.labels, p.about)
		}
	}
	return slices.DeleteFunc(out, func(e leftEntry) bool { return e.bytes < dialog.BriefBytes })
}

// leftFiles returns the files, with lines, that calls in hidden messages read.
func (w *reading) leftFiles(hidden []bool) []leftEntry {
	reads := map[string]dialog.File{} // by call
	var out []leftEntry
	for i := range w.messages {
		for j, p := range w.messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if info := dialog.ParseCall(p.Name, p.Args); info.Family == dialog.FamilyRead && len(info.Files) == 1 && info.Files[0].Range != dialog.SeveralRanges {
					reads[p.ID] = info.Files[0]
				}
			case core.ToolResult:
				f, ok := reads[p.CallID]
				r, _ := w.o.Original(&w.messages[i], j).(core.ToolResult)
				if !ok || !hidden[i] || p.IsError || len(r.Content) != 1 || strings.ContainsAny(f.Path, " \t\n") {
					continue
				}
				t, _ := r.Content[0].(core.Text)
				first := max(f.Range.First, 1)
				last := max(f.Range.Last, first+strings.Count(strings.TrimRight(string(t), "\n"), "\n"))
				name := core.Label(f.Path) + ":" + strconv.Itoa(first) + "-" + strconv.Itoa(last)
				if !slices.ContainsFunc(out, func(e leftEntry) bool { return e.name == name }) {
					out = append(out, leftEntry{name: name})
				}
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return out
}

// unchanged returns the entries whose files were only read since, never named by another call.
func (w *reading) unchanged(entries []leftEntry) []leftEntry {
	return slices.DeleteFunc(entries, func(e leftEntry) bool {
		path, _, _ := strings.Cut(e.name, ":")
		base := path[strings.LastIndexByte(path, '/')+1:]
		changed := false
		for i := range w.messages {
			for _, p := range w.messages[i].Parts {
				c, ok := p.(core.ToolCall)
				if !ok || !strings.Contains(c.Args, base) {
					continue
				}
				if info := dialog.ParseCall(c.Name, c.Args); info.Family != dialog.FamilyRead {
					changed = true // it may have been read again since: then it is omitted without need
				}
			}
		}
		return changed
	})
}

// A display prints the files that it names, which are better labels than its own name.
var displays = []string{"sed", "cat", "head", "tail", "nl", "bat", "less"}

// leftLabel returns a label for a call in a word or two: the name of a file, or a program with its first argument.
func leftLabel(c core.ToolCall) string {
	info := dialog.ParseCall(c.Name, c.Args)
	if info.Family != dialog.FamilyCommand {
		f := digest(info.File())
		if !isTarget(f) || strings.Contains(f, ",") {
			return ""
		}
		if r := info.Files[0].Range; len(info.Files) == 1 && r.First > 0 && r.Last > r.First {
			f += ":" + strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
		}
		return f
	}
	command := info.Target
	for {
		first, rest, ok := strings.Cut(command, "&&")
		if w := strings.Fields(first); !ok || len(w) > 0 && w[0] != "cd" && w[0] != "export" && w[0] != "source" {
			break
		}
		command = rest
	}
	command, _, _ = strings.Cut(strings.TrimSpace(command), "\n")
	var label []string
	for f := range strings.FieldsSeq(command) {
		f = strings.Trim(f, "\"'")
		switch {
		case strings.ContainsAny(f, "|<>;&") && len(label) > 0, slices.Contains([]string{"for", "while", "if", "{", "("}, f):
			return strings.Join(label, " ")
		case f == "" || f[0] == '-' || strings.ContainsAny(f, "=\"'`$|<>;&,(){}[]*?\\:"):
			continue
		}
		if label = append(label, digest(f)); len(label) == 2 {
			break
		}
	}
	if len(label) > 0 && slices.Contains(displays, label[0]) {
		label = label[1:]
	}
	return strings.Join(label, " ")
}
