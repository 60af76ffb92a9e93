package truth

import (
	"hash/maphash"
	"iter"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// longestRun is the number of words of the runs by which texts are compared.
const longestRun = 5

// A text is searched for sentences and lines: it has each run of one to five words.
type text struct {
	seed maphash.Seed
	runs map[uint64]bool
}

// newText returns the texts of messages.
func newText(messages []core.Message) *text {
	t := &text{seed: maphash.MakeSeed(), runs: map[uint64]bool{}}
	for i := range messages {
		for _, p := range messages[i].Parts {
			for s := range texts(p) {
				t.add(s)
			}
		}
	}
	return t
}

func (t *text) add(all ...string) {
	for _, s := range all {
		words := t.hashes(s)
		for i := range words {
			run := uint64(0)
			for _, w := range words[i:min(i+longestRun, len(words))] {
				run = longer(run, w)
				t.runs[run] = true
			}
		}
	}
}

// has reports whether every run of s is in the text: s as a whole, if it is no longer than a run.
func (t *text) has(s string) bool {
	words := t.hashes(s)
	n := min(longestRun, len(words))
	for i := 0; i+n <= len(words); i++ {
		run := uint64(0)
		for _, w := range words[i : i+n] {
			run = longer(run, w)
		}
		if !t.runs[run] {
			return false
		}
	}
	return true
}

// hashes returns the hashes of the words of s.
func (t *text) hashes(s string) []uint64 {
	words := wordsOf(s)
	return plain.Each(words, func(w string) uint64 { return maphash.String(t.seed, w) })
}

// longer returns the hash of a run with one more word.
func longer(run, word uint64) uint64 { return (run+1)*0x9E3779B97F4A7C15 ^ word }

// wordsOf returns the words and numbers of s in lower case; characters of languages without spaces are words of their own.
func wordsOf(s string) (words []string) {
	begin := -1
	for i, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			if begin >= 0 {
				words = append(words, strings.ToLower(s[begin:i]))
				begin = -1
			}
			words = append(words, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			if begin < 0 {
				begin = i
			}
		case begin >= 0:
			words = append(words, strings.ToLower(s[begin:i]))
			begin = -1
		}
	}
	if begin >= 0 {
		words = append(words, strings.ToLower(s[begin:]))
	}
	return words
}

// texts yields the texts of a part: of a call its name and the strings in its arguments.
func texts(p core.Part) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch p := p.(type) {
		case core.Text:
			yield(string(p))
		case core.ToolCall:
			if !yield(p.Name) {
				return
			}
			if raw := []byte(p.Args); !rawjson.IsObject(raw) && !rawjson.IsArray(raw) {
				yield(p.Args)
				return
			}
			for _, leaf := range rawjson.Leaves([]byte(p.Args)) {
				text := string(leaf)
				if rawjson.IsString(leaf) {
					text = rawjson.Unquote(leaf)
				}
				if !yield(text) {
					return
				}
			}
		case core.ToolResult:
			for _, c := range p.Content {
				if t, ok := c.(core.Text); ok && !yield(string(t)) {
					return
				}
			}
		case core.Reasoning:
			yield(p.Text)
		case core.Image, core.Opaque:
		}
	}
}

// sentences yields the sentences and lines of s that have letters.
func sentences(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(s, "\n") {
			for from := 0; from < len(line); {
				end := len(line)
				if at := sentenceEnd().FindStringIndex(line[from:]); at != nil {
					end = from + at[1]
				}
				if one := strings.TrimSpace(line[from:end]); strings.ContainsFunc(one, unicode.IsLetter) && !yield(one) {
					return
				}
				from = end
			}
		}
	}
}

var sentenceEnd = plain.Pattern(`[.!?]+["')\]]*\s|[。！？]`)

// marks are the elements and beginnings of programs' texts, and the elements in them that hold words of the user.
var marks = sync.OnceValue(func() (m struct {
	element, user *regexp.Regexp
	begin         []string
},
) {
	elements, users, begin := toolcall.Programs()
	// Go's expressions cannot refer back, so an element may end with another's tag: they are not nested.
	of := func(names []string) *regexp.Regexp {
		for i := range names {
			names[i] = regexp.QuoteMeta(names[i])
		}
		list := strings.Join(names, "|")
		return regexp.MustCompile(`(?s)<(?:` + list + `)(?:\s[^>]*)?>.*?</(?:` + list + `)>`)
	}
	m.element, m.user, m.begin = of(elements), of(users), begin
	return m
})

// apart divides a text of a user message into the words of the user and those of programs.
func apart(s string) (said, programs []string) {
	programs = append(programs, marks().element.FindAllString(s, -1)...)
	for _, rest := range marks().element.Split(s, -1) {
		trimmed := strings.TrimSpace(rest)
		program := dialog.Inserted(trimmed)
		for _, b := range marks().begin {
			program = program || strings.HasPrefix(trimmed, b)
		}
		switch {
		case trimmed == "":
		case program:
			programs = append(programs, rest)
			said = append(said, marks().user.FindAllString(rest, -1)...)
		default:
			for _, part := range dialog.SplitInsertions(rest) {
				if part.Kind == dialog.KindUser {
					said = append(said, part.Text)
				} else {
					programs = append(programs, part.Text)
				}
			}
		}
	}
	return said, programs
}

// divide returns the words of the user in a part of a message, and those of others.
func divide(m *core.Message, p core.Part, typed bool) (said, others []string) {
	if t, ok := p.(core.Text); ok && typed && m.Role == core.RoleUser && m.Kind == core.KindOriginal {
		return apart(string(t))
	}
	for s := range texts(p) {
		if _, ok := p.(core.ToolResult); ok {
			result, words, rest := dialog.SplitFeedback("", s)
			if s = result + rest; words != "" {
				said = append(said, strings.TrimPrefix(words, "the user said:"))
			}
		}
		if _, ok := p.(core.Text); ok && m.Role == core.RoleUser { // a program's text can hold words of the user
			said = append(said, marks().user.FindAllString(s, -1)...)
		}
		others = append(others, s)
	}
	return said, others
}

// heading matches a line that says who wrote the next ones: group 1 is its sign, group 2 the name.
var heading = plain.Pattern(`^\s*([¶§#*\[>-]+)\s*[*\[]?(\w+)`)

// claimed yields the lines that a message of a view gives as the user's: in an original message what is outside of programs' elements, in
// a text of a provider what is under a heading with the user's name. A text that a program wrote, or a part that begins as one and has its
// closing tag, says itself whose it is.
func (h *History) claimed(m *core.Message) iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.Role != core.RoleUser {
			return
		}
		for _, p := range m.Parts {
			t, ok := p.(core.Text)
			theirs := m.Kind == core.KindSummary || dialog.Inserted(string(t)) // a provider's
			if !ok || h.programs[string(t)] || !theirs && h.programs[firstLine(string(t))] && closed(string(t)) {
				continue
			}
			users, sign, all := !theirs, "", []string{string(t)}
			if users {
				all, _ = apart(string(t))
			}
			for _, s := range all {
				for line := range strings.SplitSeq(s, "\n") {
					if h := heading().FindStringSubmatch(line); h != nil && (sign == "" || h[1] == sign) {
						name := strings.ToLower(h[2])
						is := name == "user" || name == "human" || name == "person"
						if is {
							sign = h[1]
						}
						if is || sign != "" {
							users = is
							continue
						}
					}
					if users && len(wordsOf(line)) >= minClaim && !yield(line) {
						return
					}
				}
			}
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// closed reports whether s, if it begins with a tag, has its end.
func closed(s string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(s), "<"), ">")
	name, _, _ = strings.Cut(name, " ")
	return !strings.HasPrefix(strings.TrimSpace(s), "<") || strings.Contains(s, "</"+name+">")
}

// minClaim is the number of words of a line whose author can be told.
const minClaim = 4
