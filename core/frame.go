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

// Frame returns the first line of the texts that the provider of that name inserts into a conversation. A [Chain]
// adds it to every text of a new message, unless the provider is a [Framer]. Formats that do not record the author of
// a text keep it, so that such a text is never taken for the user's.
func Frame(provider string) string { return frameStart + Label(provider) + frameEnd }

// Framed reports whether text begins with a line that [Frame] wrote.
func Framed(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if !strings.HasPrefix(text, frameStart) {
		return false
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.HasSuffix(strings.TrimRight(line, " \t\r"), frameEnd)
}

// A Framer is a provider whose new messages show by themselves that the user did not write them, in words that
// package dialog of this module knows. A [Chain] adds no frame to them.
type Framer interface{ Frames() bool }

// framed returns res with a frame on every text of its new messages that has none.
func framed(by *NamedProvider, res *Result) *Result {
	if f, ok := by.Provider.(Framer); res == nil || ok && f.Frames() {
		return res
	}
	out := *res
	out.Messages = slices.Clone(res.Messages)
	for i := range out.Messages {
		m := &out.Messages[i]
		if m.ID != "" {
			continue
		}
		parts := m.Parts
		m.Parts = slices.Clone(parts)
		for j, p := range parts {
			if t, ok := p.(Text); ok && !blank(string(t)) && !Framed(string(t)) {
				m.Parts[j] = Text(Frame(by.Name)+"\n") + t
			}
		}
	}
	return &out
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
