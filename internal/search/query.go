package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
