package need

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
)

// The form of an extract: a message that holds lines of messages that are hidden. A
// later condensation reads it again, as what it is made of.
const (
	// Head is its first line.
	Head = "[Extract of the conversation so far; … stands for lines left out]"
	// GapMark is the line that stands for lines left out.
	GapMark = "…"

	handleMark = "h:"
)

// LostMark returns the mark that ends a result of which so many lines, or only pieces of lines,
// are missing: "[… 120 lines h:0123456789]".
func LostMark(lines int, handle string) string {
	switch lines {
	case 0:
		return markStart + handleMark + handle + "]"
	case 1:
		return markStart + "1 line " + handleMark + handle + "]"
	}
	return markStart + strconv.Itoa(lines) + " lines " + handleMark + handle + "]"
}

// Header returns the line above the lines of p: who said it, the tool and what it was about,
// and the handle of the whole, unless it is empty. If known is set that need not be said: the
// call stands right above a result, or the file in what is kept of a call.
func (p *Passage) Header(known bool, handle string) string {
	s := p.Kind.String()
	switch p.Kind {
	case Call:
		if p.Name != "" {
			s = p.Name
		}
		if f := p.File(); !known && isTarget(f) {
			s += " " + f
		}
	case Output, Failure:
		if !known && p.Name != "" {
			s += " " + p.Name
			if t := digest(p.Target); t != "" {
				s += " " + t
			}
		}
	case Human, Injected, Agent, Thought, kinds:
	}
	if handle != "" {
		s += " " + handleMark + handle
	}
	return "[" + s + "]"
}

// File returns what the file is called that p is about; empty if it is not about one.
func (p *Passage) File() string {
	if p.file < 0 {
		return ""
	}
	return digest(p.Target)
}

// isTarget reports whether s can stand behind the name of a tool in the header of a call.
func isTarget(s string) bool { return s != "" && !strings.ContainsAny(s, " \t[]") }

// digest shortens what a call is about to what tells it apart: the name of a file, the
// beginning of a command or a pattern.
func digest(target string) string {
	const most = 32
	target, _, _ = strings.Cut(strings.TrimSpace(target), "\n")
	if !strings.ContainsAny(target, " \t*?|\"'()[]{}\\^$<>;=&") {
		target = strings.TrimRight(target, "/")
		target = target[strings.LastIndexByte(target, '/')+1:]
	}
	if len(target) <= most {
		return target
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(target[cut]) {
		cut--
	}
	return target[:cut] + GapMark
}

// extract reads a former extract, if m is one.
func (r *reader) extract(i int, m *core.Message) bool {
	if len(m.Parts) == 0 {
		return false
	}
	for _, p := range m.Parts {
		if t, ok := p.(core.Text); !ok || !strings.HasPrefix(string(t), Head[:1]) {
			return false
		}
	}
	if t, _ := m.Parts[0].(core.Text); !strings.HasPrefix(string(t), Head) {
		return false
	}
	for j, p := range m.Parts {
		t, _ := p.(core.Text)
		r.extractPart(i, j, strings.TrimPrefix(strings.TrimPrefix(string(t), Head), "\n"))
	}
	return true
}

func (r *reader) extractPart(i, j int, s string) {
	at, gap := -1, false
	var call Passage // the last one, which a result without a name answers
	by := Passage{Kind: Agent, Message: i}
	var media []Media // of the passage that is open
	done := func() {
		if at >= 0 {
			r.close(at)
		}
		for _, m := range media {
			m.Before = len(r.c.Passages)
			r.c.Media = append(r.c.Media, m)
		}
		at, media = -1, nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		if p, ok := readHeader(line); ok {
			done()
			r.field = 0
			if (p.Kind == Output || p.Kind == Failure) && p.Name == "" {
				p.Name, p.Target = call.Name, call.Target
			}
			if p.Kind == Call {
				call = p
			}
			p.Message, p.Part, p.Partial = i, j, true
			at, gap, by = r.open(p, fileOf(p.Target)), false, p
			continue
		}
		if mark, ok := readMark(line); ok {
			media = append(media, Media{By: by, mark: mark})
			continue
		}
		if line == GapMark {
			gap = true
			continue
		}
		if at < 0 {
			at = r.open(Passage{Kind: Agent, Message: i, Part: j, Partial: true}, "")
		}
		if says(line) {
			if r.c.Passages[at].Kind == Call {
				if key, _, ok := strings.Cut(line, ": "); ok && fields[key] != 0 {
					r.field = fields[key]
				}
			}
			r.line(Line{Text: line, Passage: int32(at), Gap: gap})
			gap = false
		}
	}
	r.field = 0
	done()
}

// fileOf returns target if it can be the path of a file.
func fileOf(target string) string {
	if strings.ContainsAny(target, " …") {
		return ""
	}
	return target
}

// readHeader reads what Header wrote.
func readHeader(line string) (Passage, bool) {
	s, ok := strings.CutPrefix(line, "[")
	if !ok || !strings.HasSuffix(s, "]") || len(s) < 2 {
		return Passage{}, false
	}
	s = s[:len(s)-1]
	var p Passage
	if i := strings.LastIndex(s, " "+handleMark); i >= 0 && isHandle(s[i+1+len(handleMark):]) {
		s, p.Handle = s[:i], s[i+1+len(handleMark):]
	}
	who, rest, more := strings.Cut(s, " ")
	for k := range kinds {
		if kindNames[k] != who {
			continue
		}
		p.Kind = k
		if k == Call || more && k != Output && k != Failure {
			return Passage{}, false
		}
		if more {
			p.Name, p.Target, _ = strings.Cut(rest, " ")
		}
		return p, true
	}
	name, target, about := strings.Cut(s, " ")
	if about && !isTarget(target) {
		return Passage{}, false
	}
	p.Kind, p.Name, p.Target = Call, name, target
	for i := range len(name) {
		if b := name[i]; bytesOf[b]&isWord == 0 && b != '-' && b != '.' && b != ':' || i == 0 && bytesOf[b]&(isLower|isUpper) == 0 {
			return Passage{}, false
		}
	}
	return p, true
}

// Escape returns line as it has to stand in an extract: what others wrote must not be read as
// a header, which says whose the lines below it are. Many files have lines like that: [user],
// [package].
func Escape(line string) string {
	if _, ok := readHeader(line); !ok {
		if _, ok = readMark(line); !ok {
			return line
		}
	}
	return " " + line
}

func isHandle(s string) bool {
	if len(s) != 10 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
