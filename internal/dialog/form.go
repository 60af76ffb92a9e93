package dialog

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Form is regular expressions of which a text may match any. Each runs only on texts with a word that all of its matches
// have: to look for the words of all takes less time than one expression. They are compiled when they are first used.
type Form struct {
	expressions func(yield func(string) bool)
	once        sync.Once
	list        []*regexp.Regexp
	words       words
	always      uint64 // the bits of those whose matches have no word in common
}

// NewForm returns the form of regular expressions.
func NewForm(expressions ...string) *Form { return &Form{expressions: slices.Values(expressions)} }

// ReadForm returns the form of the regular expressions in a table, each between before and after. Lines that begin with "# " are comments.
func ReadForm(before, table, after string) *Form {
	return &Form{expressions: func(yield func(string) bool) {
		for line := range strings.FieldsFuncSeq(table, unicode.IsControl) {
			if !strings.HasPrefix(line, "# ") && !yield(before+line+after) {
				return
			}
		}
	}}
}

func (f *Form) compile() {
	for expression := range f.expressions {
		bit := uint64(1) << (len(f.list) % 64)
		f.list = append(f.list, regexp.MustCompile(expression))
		tree, _ := syntax.Parse(expression, syntax.Perl) // it was compiled
		if list := required(tree); shortest(list) < minWord {
			f.always |= bit
		} else {
			f.words.add(bit, list...)
		}
	}
}

// Match reports whether text holds a match.
func (f *Form) Match(text string) bool {
	f.once.Do(f.compile)
	may := f.always | f.words.in(text)
	for i, form := range f.list {
		if may&(1<<(i%64)) != 0 && form.MatchString(text) {
			return true
		}
	}
	return false
}

// required returns words of which every match has one; none if there are no such words.
func required(re *syntax.Regexp) (list []string) {
	switch re.Op { //nolint:exhaustive // the others may match without a word
	case syntax.OpLiteral:
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if r := required(sub); shortest(r) > shortest(list) {
				list = r
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			r := required(sub)
			if len(r) == 0 {
				return nil
			}
			list = append(list, r...)
		}
	}
	return list
}

func shortest(list []string) int {
	n := 0
	for i, w := range list {
		if i == 0 || len(w) < n {
			n = len(w)
		}
	}
	return n
}

// minWord is the least length of a word, in bytes, that [words] find.
const minWord = 2

// words find words in texts, in upper or lower case, in one pass.
type words struct {
	pairs [32 * 32]bool // whether a word begins with these two letters
	by    [32][]sought  // by their first letters
}

type sought struct {
	text string
	of   uint64 // the bits of its expressions
}

func (w *words) add(of uint64, list ...string) {
	for _, text := range list {
		w.by[text[0]%32] = append(w.by[text[0]%32], sought{text, of})
		w.pairs[pair(text, 0)] = true
	}
}

// pair is the same for letters in upper and lower case.
func pair(text string, i int) int { return int(text[i]%32)*32 + int(text[i+1]%32) }

// in returns the bits of the words in text.
func (w *words) in(text string) (of uint64) {
	for i := range len(text) - 1 {
		if !w.pairs[pair(text, i)] {
			continue
		}
		for _, word := range w.by[text[i]%32] {
			if of&word.of != word.of && len(text)-i >= len(word.text) && strings.EqualFold(text[i:i+len(word.text)], word.text) {
				of |= word.of
			}
		}
	}
	return of
}

// protocolTags are the elements of the agents' text protocols: calls, their arguments, wrappers of results, and the
// blocks that agents put into users' texts. Any other tag is content.
var protocolTags = sync.OnceValue(func() map[string]bool {
	m := maps.Clone(textual())
	for n := range toolcall.Elements() {
		m[n] = true
	}
	for n := range strings.FieldsSeq(`path file files content diff args arguments result results regex file_pattern
		recursive command cwd requires_approval question follow_up suggest options mode mode_slug message reason
		server_name tool_name uri task thinking line_range line_count start_line end_line todos operations operation
		search replace query action url coordinate text prompt image error notice metadata definitions
		file_write_result`) {
		m[n] = true
	}
	return m
})

// maxOpen is how many elements may be open at once.
const maxOpen = 64

// maxTag is the longest tag in bytes, attributes included.
const maxTag = 200

// A Pair is where the two tags are of an element that agents use in texts.
type Pair struct {
	Name        string
	Open, Close core.Span
}

// Pairs returns the elements in text that have both tags, in the order of their last ones. A tag
// without its like is passed over. The cost is linear, but for the depth of elements.
func Pairs(text string) []Pair {
	var (
		out  []Pair
		open []core.Span
	)
	name := func(s core.Span) string { n, _ := tagName(text[s.Start+1 : s.End-1]); return n }
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '<')
		if i < 0 {
			return out
		}
		i += at
		at = i + 1
		s, closes, ok := protocolTag(text, i)
		if !ok {
			continue
		}
		at = s.End
		if !closes {
			if len(open) < maxOpen {
				open = append(open, s)
			}
			continue
		}
		for k, o := range slices.Backward(open) {
			if name(o) == text[s.Start+2:s.End-1] {
				out = append(out, Pair{Name: name(o), Open: o, Close: s})
				open = open[:k]
				break
			}
		}
	}
}

// First returns the element that text begins with, whatever its name.
func First(text string) (e Pair, ok bool) {
	from, open := len(text)-len(strings.TrimLeft(text, " \t\r\n")), strings.IndexByte(text, '>')+1
	if open <= from || text[from] != '<' {
		return Pair{}, false
	}
	name, _, _ := strings.Cut(text[from+1:open-1], " ")
	end := strings.Index(text[open:], "</"+name+">") + open
	return Pair{name, core.Span{Start: from, End: open}, core.Span{Start: end, End: end + len(name) + len("</>")}}, end >= open
}

// protocolTag returns the tag of the protocol that begins at i, and whether it ends an
// element.
func protocolTag(text string, i int) (s core.Span, closes, ok bool) {
	rest := text[i+1 : min(len(text), i+maxTag)]
	n := strings.IndexAny(rest, "<>\n")
	if n < 0 || rest[n] != '>' || strings.HasSuffix(rest[:n], "/") {
		return core.Span{}, false, false
	}
	inner, closes := strings.CutPrefix(rest[:n], "/")
	name, attributes := tagName(inner)
	if !protocolTags()[name] || closes && attributes {
		return core.Span{}, false, false
	}
	return core.Span{Start: i, End: i + n + 2}, closes, true
}

func tagName(inner string) (name string, attributes bool) {
	name, _, attributes = strings.Cut(inner, " ")
	return name, attributes
}
