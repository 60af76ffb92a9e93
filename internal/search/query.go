// Package search ranks texts by the words of a query: passages of a conversation for agents and users and, through
// [Query], the passages that an index of many conversations finds.
package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// MaxQuery is the length of the longest query, in bytes.
const MaxQuery = 1000

// maxTerms is the number of different words of a query that count; more words add little.
const maxTerms = 48

// A Query is what to look for.
type Query struct {
	terms   []term
	index   map[string]int // in terms, by stem
	phrases [][]string     // stems of the words of a quoted phrase, stop words included
	files   []string       // parts of paths, in lower case
	tools   []string       // parts of names of tools, in lower case
	person  bool           // it is about the user
	begins  [256]bool      // first bytes of the stems of terms and phrases, which are those of their words
}

type term struct {
	stem   string
	weight float64
	parts  []string // stems of the parts of a name, without stop words
}

// field matches a phrase in quotes, or file:NAME and tool:NAME.
var field = plain.Pattern(`"([^"]*)"|(?:^|\s)(file|path|tool):("[^"]*"|\S+)`)

// person matches words with which a person asks about themselves, and an agent about its user.
var person = plain.Pattern(`(?i)\b(i|me|my|mine|we|us|our|ours|user)\b`)

// Parse reads a query: words, "phrases in quotes" that must be there, file:PART of the path of a call and tool:PART of
// the name of its tool.
func Parse(text string) (*Query, error) {
	if len(text) > MaxQuery {
		return nil, fmt.Errorf("the query has %s bytes; at most %s are allowed", size.Group(len(text)), size.Group(MaxQuery))
	}
	q := &Query{index: map[string]int{}, person: person().MatchString(text)}
	var stemmer Stemmer
	var words strings.Builder
	rest := field().ReplaceAllStringFunc(text, func(match string) string {
		m := field().FindStringSubmatch(match)
		value := strings.ToLower(strings.Trim(m[3], `"`))
		switch {
		case m[2] == "tool":
			q.tools = append(q.tools, value)
		case m[2] != "":
			q.files = append(q.files, value)
		default:
			if phrase := stemsOf(&stemmer, m[1]); len(phrase) > 1 {
				q.phrases = append(q.phrases, phrase)
			}
			words.WriteString(m[1] + " ")
		}
		return " "
	})
	words.WriteString(rest)
	q.add(&stemmer, words.String(), false)
	if len(q.terms) == 0 {
		q.add(&stemmer, words.String(), true)
	}
	for _, t := range q.terms {
		q.begins[t.stem[0]] = true
	}
	for _, stem := range slices.Concat(q.phrases...) {
		q.begins[stem[0]] = true
	}
	if len(q.terms) == 0 && len(q.files) == 0 && len(q.tools) == 0 {
		return nil, errors.New("the query has no words: name some that the text has, such as a function, a file or an error")
	}
	return q, nil
}

// A Term is a word that is looked for.
type Term struct {
	Stem  string
	Parts []string // stems of the parts of a name, which texts with the name have, too
	Must  bool     // it is in a phrase
}

// Terms returns the words that are looked for, without the parts of names.
func (q *Query) Terms() []Term {
	var terms []Term
	for _, t := range q.terms {
		if t.weight >= 1 {
			must := slices.ContainsFunc(q.phrases, func(phrase []string) bool { return slices.Contains(phrase, t.stem) })
			terms = append(terms, Term{t.stem, t.parts, must})
		}
	}
	return terms
}

// Files and Tools return the parts of paths and of names of tools that hits have, in lower case; one of each is enough.
func (q *Query) Files() []string { return q.files }

// Tools is described at Files.
func (q *Query) Tools() []string { return q.tools }

// stemsOf returns the stems of the words of text.
func stemsOf(s *Stemmer, text string) []string {
	var stems []string
	Words(text, func(w []byte, part bool) {
		if !part {
			stems = append(stems, s.Stem(w))
		}
	})
	return stems
}

// add adds the words of text. Stop words count only if asked for.
func (q *Query) add(s *Stemmer, text string, stop bool) {
	var parts []string
	isName := false
	Words(text, func(w []byte, part bool) {
		t := term{weight: 1}
		switch {
		case part:
			isName, t.weight = true, partWeight
		case isName:
			t.weight, t.parts = nameWeight, parts
			parts, isName = nil, false
		}
		if stopWords[string(w)] && !stop {
			return
		}
		t.stem = s.Stem(w)
		if part {
			parts = append(parts, t.stem)
		}
		if i, ok := q.index[t.stem]; ok {
			known := &q.terms[i]
			if known.weight = max(known.weight, t.weight); len(t.parts) > 0 {
				known.parts = t.parts
			}
			return
		}
		if len(q.terms) < maxTerms {
			q.index[t.stem] = len(q.terms)
			q.terms = append(q.terms, t)
		}
	})
}

// stopWords are the English words that questions consist of, whatever they are about. Names in programs are found by
// them if the query has nothing else.
var stopWords = plain.Words(`a about after again all also am an and any are as at be because been before being but by can could did
	do does doing for from had has have having he her here hers him his how i if in into is it its just let like many may me
	might more most much must my no nor not now of off on once only or other our out over own please s same shall she should
	so some such t tell than that the their theirs them then there these they this those through to too under until up upon
	us very was we were what when where which while who whom whose why will with would you your yours d ll m re ve im ive
	id dont didnt doesnt isnt wasnt whats thats cant`)

// Stop reports whether a word is so common that it says nothing.
func Stop(word []byte) bool { return stopWords[string(word)] }

// A Stemmer reduces words to stems, so that configured and configuration are found by configure. It remembers the
// words that it has seen, and is not safe for concurrent use. The zero value is ready.
type Stemmer struct {
	stems map[string]string
	env   *snowballstem.Env
}

// maxRemembered bounds the words that a stemmer remembers.
const maxRemembered = 1 << 18

// Stem returns the stem of a word in lower case. Words with digits or letters of other alphabets are their own stems.
func (s *Stemmer) Stem(word []byte) string {
	if stem, ok := s.stems[string(word)]; ok {
		return stem
	}
	if s.stems == nil || len(s.stems) >= maxRemembered {
		s.stems, s.env = map[string]string{}, snowballstem.NewEnv("")
	}
	stem := string(word)
	if plainWord(word) {
		s.env.SetCurrent(stem)
		english.Stem(s.env)
		stem = s.env.Current()
	}
	s.stems[string(word)] = stem
	return stem
}

func plainWord(word []byte) bool {
	for _, b := range word {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return len(word) > 2 && len(word) < 32
}

// Words calls word for every word of text in lower case, a run of letters, digits and underscores, and for the parts of
// a name such as readFile or read_file before the name itself. Characters of languages that are written without spaces
// are words of their own. The slice is overwritten by the next call.
func Words(text string, word func(w []byte, part bool)) {
	var s splitter
	s.word = word
	for i := 0; i < len(text); {
		b := text[i]
		switch {
		case b >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(text[i:])
			s.rune(r)
			i += n
			continue
		case 'a' <= b && b <= 'z' || '0' <= b && b <= '9':
			if s.capitals > 1 && b >= 'a' { // HTTPServer
				s.endAcronym()
			}
			s.whole, s.part, s.capitals = append(s.whole, b), append(s.part, b), 0
		case 'A' <= b && b <= 'Z':
			s.capital(rune(b))
		case b == '_':
			s.whole = append(s.whole, '_')
			s.endPart()
			s.capitals = 0
		default:
			s.end()
		}
		i++
	}
	s.end()
}

// A splitter splits a text for [Words].
type splitter struct {
	word        func(w []byte, part bool)
	whole, part []byte
	parts       int
	capitals    int // that came last
}

func (s *splitter) capital(r rune) {
	low := unicode.ToLower(r)
	s.whole = utf8.AppendRune(s.whole, low)
	if s.capitals == 0 {
		s.endPart()
	}
	s.part = utf8.AppendRune(s.part, low)
	s.capitals++
}

// endAcronym ends a part before its last capital, which begins a word.
func (s *splitter) endAcronym() {
	_, n := utf8.DecodeLastRune(s.part)
	if first := len(s.part) - n; first > 0 {
		last := string(s.part[first:])
		s.part = s.part[:first]
		s.endPart()
		s.part = append(s.part, last...)
	}
}

func (s *splitter) rune(r rune) {
	switch {
	case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
		s.end()
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai): // written without spaces
		s.end()
		s.whole = utf8.AppendRune(s.whole, r)
		s.end()
	case unicode.IsUpper(r):
		s.capital(r)
	default:
		s.whole, s.part, s.capitals = utf8.AppendRune(s.whole, r), utf8.AppendRune(s.part, r), 0
	}
}

func (s *splitter) endPart() {
	if len(s.part) > 0 && len(s.part) < len(s.whole) {
		s.word(s.part, true)
		s.parts++
	}
	s.part = s.part[:0]
}

func (s *splitter) end() {
	if len(s.whole) == 0 {
		return
	}
	if s.parts > 0 {
		s.endPart()
	}
	s.word(s.whole, false)
	s.whole, s.part, s.parts, s.capitals = s.whole[:0], s.part[:0], 0, 0
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b >= utf8.RuneSelf
}
