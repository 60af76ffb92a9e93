package main

import (
	"hash/fnv"
	"math/rand/v2"
	"path"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/toolcall"
)

// vocabulary returns the plain words of steps.
func vocabulary(all []step) []string {
	seen := map[string]bool{}
	var words []string
	for _, s := range all {
		for i := range s {
			for _, p := range s[i].Parts {
				for w := range strings.FieldsFuncSeq(textOf(p), func(r rune) bool { return r < 'a' || r > 'z' }) {
					if len(w) > 3 && len(w) < 16 && !seen[w] {
						seen[w] = true
						words = append(words, w)
					}
				}
			}
		}
	}
	return words
}

// replace returns a text with other numbers, two in five plain words replaced by others, and names by invented ones,
// which the sessions of a project share.
func (m *maker) replace(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/16)
	for i := 0; i < len(text); {
		kind := kindOf[text[i]]
		from := i
		for i < len(text) && kindOf[text[i]] == kind {
			i++
		}
		run := text[from:i]
		switch {
		case kind == letter && len(run) > 3:
			b.WriteString(m.substitute(run))
		case kind == digit && len(run) > 1:
			for range run {
				b.WriteByte('0' + byte(m.rng.IntN(10)))
			}
		default:
			b.WriteString(run)
		}
	}
	return b.String()
}

const letter, digit = 1, 2

var kindOf = func() (is [256]byte) {
	for c := range 26 {
		is['a'+c], is['A'+c] = letter, letter
	}
	for c := range 10 {
		is['0'+c] = digit
	}
	return is
}()

// maxNames bounds the words whose substitutes are remembered, as long runs of letters would fill memory.
const maxNames = 1 << 17

func (m *maker) substitute(word string) string {
	if s, ok := m.names[word]; ok {
		return s
	}
	s := word
	low := strings.ToLower(word)
	if plain := word == low; plain {
		h := hash(word) ^ uint64(m.number)*0x9E3779B97F4A7C15
		r := rand.New(rand.NewPCG(h, 3)) //nolint:gosec // repeatable
		if r.IntN(5) < 2 {
			s = m.words[r.IntN(len(m.words))]
		}
	} else if len(word) < 40 {
		h := hash(word) ^ uint64(m.number/perProject)*0x9E3779B97F4A7C15
		r := rand.New(rand.NewPCG(h, 4)) //nolint:gosec // repeatable
		if r.IntN(5) < 3 {
			s = invented(word, r)
		}
	}
	if len(m.names) < maxNames {
		m.names[word] = s
	}
	return s
}

func hash(word string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(word)) // a hash never fails
	return h.Sum64()
}

// invented returns a name with the capitals of word.
func invented(word string, r *rand.Rand) string {
	const syllables = "balocaducefogiharejuktimonupuqirosatevuwixyzabrecrodrafligrupletrosku"
	b := make([]byte, 0, len(word)+1)
	for len(b) < len(word) {
		at := r.IntN(len(syllables)/2) * 2
		b = append(b, syllables[at], syllables[at+1])
	}
	b = b[:len(word)]
	for i := range b {
		if 'A' <= word[i] && word[i] <= 'Z' {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}

// A query finds a session by a name, four words that follow each other, the path of a file in a text, seven
// words of a sentence, or a part of the path that a call names.
type query struct{ Kind, Text string }

var kinds = []string{"name", "phrase", "path", "prose", "file"}

// ask makes the queries that are missing, from a text of the session.
func (m *maker) ask(p core.Part, text string) {
	set := func(kind int, text string) {
		if m.queries[kind].Text == "" {
			m.queries[kind] = query{kinds[kind], text}
		}
	}
	if call, ok := p.(core.ToolCall); ok {
		if file := toolcall.First([]byte(call.Args), toolcall.Path); len(file) > 4 && !strings.ContainsAny(file, " \"") {
			set(4, "file:"+path.Base(file))
		}
		return
	}
	lines := strings.Split(text, "\n")
	first := m.rng.IntN(len(lines))
	for i := range lines {
		line := lines[(first+i)%len(lines)]
		words := strings.FieldsFunc(line, func(r rune) bool { return r > 'z' || kindOf[r] != letter })
		fields := strings.Fields(line)
		for _, w := range words {
			if len(w) > 6 && w != strings.ToLower(w) {
				set(0, w)
			}
		}
		if len(fields) > 5 && !strings.ContainsAny(line, `"\`) {
			set(1, `"`+strings.Join(fields[1:5], " ")+`"`)
		}
		for _, f := range fields {
			if strings.Count(f, "/") > 1 && len(f) > 12 && strings.IndexFunc(f, func(r rune) bool { return r > 'z' || r < '-' }) < 0 {
				set(2, f)
			}
		}
		if len(words) > 8 {
			set(3, strings.Join(words[1:8], " "))
		}
	}
}
