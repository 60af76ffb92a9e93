package core

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The first line of a provider's texts in a conversation. See [Frame].
const (
	frameStart = "[Written by provider "
	frameEnd   = " to shorten this conversation; not said by the user]"
)

// Frame returns the first line of the texts that the provider of that name puts into a conversation. A [Chain] adds it to
// every text of a new message, and to every text of a result or of the model that has lines which the tool or the model did not
// write, unless the provider is a [Framer]. Formats that do not record the author of a text keep it, so that such a text is never
// taken for the user's or a tool's.
func Frame(provider string) string { return frameStart + Label(provider) + frameEnd }

// Framed reports whether text begins with a line that [Frame] wrote.
func Framed(text string) bool {
	_, ok := CutFrame(text)
	return ok
}

// CutFrame returns text without the frame that it begins with, and text if it begins with none.
func CutFrame(text string) (rest string, ok bool) {
	line, rest, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	line = strings.TrimRight(line, " \t\r")
	if !strings.HasPrefix(line, frameStart) || !strings.HasSuffix(line, frameEnd) {
		return text, false
	}
	return rest, true
}

// A Framer is a provider whose texts show by themselves that neither the user nor a tool wrote them, in words that
// package dialog of this module knows. A [Chain] adds no frame to them.
type Framer interface{ Frames() bool }

// A framer puts the frame of a provider on its texts.
type framer struct {
	line  string
	req   *Request
	count int // frames that were added
}

// framed returns a copy of res, which its provider cannot change after the check, with the provider's frame on its texts, in place of
// any other's, and the tokens of the frames.
func framed(by *NamedProvider, req *Request, res *Result) (*Result, int) {
	if res == nil {
		return nil, 0
	}
	out, own := *res, (&Request{Messages: res.Messages, State: res.State}).Clone()
	out.Messages, out.State = own.Messages, own.State
	if f, ok := by.Provider.(Framer); ok && f.Frames() {
		return &out, 0
	}
	f, find := framer{line: Frame(by.Name) + "\n", req: req}, finder(req.Messages)
	for i := range out.Messages {
		m := &out.Messages[i]
		if j := find(m.ID); m.ID == "" || j >= 0 && req.Messages[j].Kind != KindOriginal && !EqualParts(m.Parts, req.Messages[j].Parts) {
			f.texts(m.Parts, func(t string) bool { return !blank(t) })
		} else if j >= 0 && !EqualParts(m.Parts, req.Messages[j].Parts) {
			f.rewritten(m, &req.Messages[j])
		}
	}
	return &out, f.count * req.Counter.Count(Text(f.line))
}

// signed returns the tokens of the frames on parts: no provider can do without them.
func signed(c Counter, parts []Part) (n int) {
	for _, p := range parts {
		switch p := p.(type) {
		case Text:
			if rest, ok := CutFrame(string(p)); ok {
				n += c.Count(p[:len(p)-len(rest)])
			}
		case ToolResult:
			n += signed(c, p.Content)
		default:
		}
	}
	return n
}

// texts puts a frame on the texts of parts that foreign reports.
func (f *framer) texts(parts []Part, foreign func(string) bool) {
	for i, p := range parts {
		if t, ok := p.(Text); ok && foreign(string(t)) {
			rest, signed := CutFrame(string(t))
			if !signed {
				f.count++
			}
			parts[i] = Text(f.line + rest)
		}
	}
}

// rewritten frames the texts of m that were not in o: of results, and of the model. Texts of the user and of the system have
// rules of their own.
func (f *framer) rewritten(m, o *Message) {
	results := map[string][]Part{}
	for _, p := range o.Parts {
		if r, ok := p.(ToolResult); ok {
			results[r.CallID] = append(results[r.CallID], r.Content...)
		}
	}
	if m.Role == RoleAssistant || m.Role == RoleTool {
		f.texts(m.Parts, f.foreign(o.Parts))
	}
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok && !EqualParts(r.Content, results[r.CallID]) {
			f.texts(r.Content, f.foreign(results[r.CallID]))
		}
	}
}

// foreign returns a function that reports whether a text has a line that is in none of the texts of before, whole or as
// pieces with marks between them, and that is no mark: see [Shortens]. A line in brackets that has only words of marks is one, too. The
// texts come in order. Where a provider has signed one before, all are foreign.
func (f *framer) foreign(before []Part) func(string) bool {
	if slices.ContainsFunc(before, func(p Part) bool { t, _ := p.(Text); return Framed(string(t)) }) {
		return func(text string) bool { return !blank(text) }
	}
	all := joinTexts(before, nil)
	lines := map[string]bool{"": true}
	for line := range strings.Lines(all) {
		lines[strings.TrimSpace(line)] = true
	}
	s := shortening{rest: spaced(all), paths: []string{f.req.Originals}}
	return func(text string) bool {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			stub, opens := strings.CutPrefix(line, "[")
			stub, closes := strings.CutSuffix(stub, "]")
			if lines[line] || opens && closes && describes(stub) {
				continue
			}
			if marked, ok := s.pieces(spaced(line), true); !marked || !ok {
				s.rest = "" // so that not every text is looked for in all of before
				return true
			}
		}
		return false
	}
}

// maxLabel is in bytes.
const maxLabel = 80

// Label returns s in a form for lines that a provider or the host writes: on one line, without control characters,
// invisible characters and square brackets, and no longer than 80 bytes. Names of tools, providers and files come
// from outside; none may end its line, or imitate another one.
func Label(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '[':
			r = '('
		case r == ']':
			r = ')'
		case unicode.IsSpace(r):
			r = ' '
		case r == utf8.RuneError, !unicode.IsPrint(r), unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			r = '_'
		}
		if b.Len()+utf8.RuneLen(r) > maxLabel {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}

// Handle returns a name for the content of p, with which removed content can be found again:
// ten hexadecimal digits of a SHA-256. Equal content has the same handle in every message,
// format and condensation, so the IDs of calls and messages are not part of it. Of 100,000
// contents, two share a handle with a probability of 0.5 %, so a lookup may find several.
func Handle(p Part) string {
	h := sha256.New()
	hashPart(h, p)
	return hex.EncodeToString(h.Sum(nil)[:5])
}

func hashPart(h hash.Hash, p Part) {
	fields := func(kind byte, texts ...string) {
		h.Write([]byte{kind})
		for _, t := range texts {
			var length [8]byte // so that no two lists of texts are the same bytes
			binary.BigEndian.PutUint64(length[:], uint64(len(t)))
			h.Write(length[:])
			h.Write([]byte(t))
		}
	}
	switch p := p.(type) {
	case Text:
		fields('t', string(p))
	case ToolCall:
		fields('c', p.Name, p.Args)
	case ToolResult:
		fields('r')
		for _, c := range p.Content {
			hashPart(h, c)
		}
	case Image:
		fields('i', p.MediaType, p.Data, p.URL)
	case Reasoning:
		fields('s', p.Text, p.Signature, p.Encrypted)
	case Opaque:
		fields('o', p.Kind, p.JSON)
	}
}
