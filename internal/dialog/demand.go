package dialog

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// A Demand says how a sentence of the user binds the agent for longer than the next step.
type Demand uint8

// The demands, the weakest first.
const (
	NoDemand Demand = iota
	Prefers         // wishes and habits: I prefer, rather, if possible
	Requires        // must, need, make sure, before you
	Forbids         // never, do not, off limits; and limits: only, at most
)

// demandLong is the size of a sentence in bytes above which it is no demand but a paste.
const demandLong = 400

// DemandOf classifies a sentence of the user by its form: by words that forbid, require, limit or prefer, in the
// languages of [tongues]. Questions demand nothing, except demands that are politely put as questions. The subject of
// the sentence is unknown, so there are errors on both sides: "the team never ships on a Friday" counts, and so does
// "I leave that to the others".
func DemandOf(sentence string) Demand {
	s := strings.TrimSpace(sentence)
	if len(s) > demandLong || Asks(s) {
		return NoDemand
	}
	return demands().of(s, (strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")) && !confirms(s))
}

// Asks reports whether a sentence asks for an answer. "Could you …?" does not, and neither does a request for
// confirmation: "no new files, ok?".
func Asks(sentence string) bool {
	s := strings.TrimRight(strings.TrimSpace(sentence), "\"'”»)")
	marked := strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
	if !marked && !strings.HasSuffix(s, "吗") && !strings.HasSuffix(s, "吗。") {
		return false
	}
	w := wordsOf(s)
	for i := range w {
		if i > 0 && !w[i].begins {
			continue
		}
		for _, rest := range politely[w[i].text] {
			if slices.EqualFunc(w[i+1:min(len(w), i+1+len(rest))], rest, func(w word, r string) bool { return w.text == r }) {
				return false
			}
		}
		if asking[w[i].text] {
			return true
		}
	}
	for _, end := range favors {
		if strings.HasSuffix(strings.TrimRight(s, "?？"), end) {
			return false
		}
	}
	return !confirms(s)
}

// confirms reports whether all that a question asks is whether the other one agrees: "no new files, ok?".
func confirms(s string) bool {
	tag := strings.LastIndexAny(s, ",，、;–—")
	return tag >= 0 && tags[strings.ToLower(strings.Trim(s[tag:], ",，、;–—?？ ¿"))]
}

// A word is one of a sentence, in lower case.
type word struct {
	text   string
	begins bool // a clause begins with it
}

// wordsOf returns the words of a sentence.
func wordsOf(s string) []word {
	s = strings.ToLower(strings.ReplaceAll(s, "’", "'"))
	out := make([]word, 0, len(s)/5+1)
	begins := true
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isWordRune(r) {
			begins = begins || strings.ContainsRune(",;:.!*—–(，；：。！（、", r)
			i += n
			continue
		}
		if unicode.Is(unicode.Han, r) { // written without spaces: every sign is a word
			out = append(out, word{text: s[i : i+n], begins: begins})
			begins = false
			i += n
			continue
		}
		start := i
		for i < len(s) {
			if r, n = utf8.DecodeRuneInString(s[i:]); !isWordRune(r) && r != '\'' && r != '-' || unicode.Is(unicode.Han, r) {
				break
			}
			i += n
		}
		w := word{text: strings.TrimRight(s[start:i], "'-"), begins: begins}
		out = append(out, w)
		begins = begins && softens[w.text] || joins[w.text]
	}
	return out
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// phrases returns an index of phrases, given with spaces between them, and a "_" for a space in one.
func phrases(list string) map[string][][]string {
	out := map[string][][]string{}
	for p := range strings.FieldsSeq(list) {
		w := plain.Each(wordsOf(strings.ReplaceAll(p, "_", " ")), func(x word) string { return x.text })
		out[w[0]] = append(out[w[0]], w[1:])
	}
	return out
}

// phraseSet returns the phrases of a list, with a "_" for a space in one.
func phraseSet(list string) map[string]bool {
	out := map[string]bool{}
	for p := range strings.FieldsSeq(list) {
		out[strings.ReplaceAll(p, "_", " ")] = true
	}
	return out
}

// both returns all pairs of a word of one list and one of another, as phrases.
func both(first, second string) string {
	var b strings.Builder
	for x := range strings.FieldsSeq(first) {
		for y := range strings.FieldsSeq(second) {
			b.WriteString(" " + x + "_" + y)
		}
	}
	return b.String()
}

var (
	asking   = plain.Words("so and but well why what how where who which when can could would should is are am do does did has have had will was were warum wieso wie was wo wer kannst pourquoi comment peux por cómo puedes onde como quando perché dove quando 为 什 怎 哪 谁")
	politely = phrases(both("could can would will", "you we i") + ` would_it_be_possible could_it is_it_possible_to would_you_mind how_about what_about
		kannst_du könntest_du können_wir könnten_wir wäre_es_möglich peux-tu pourrais-tu pouvez-vous est-il_possible puedes podrías podemos podríamos pode poderia podes você_pode você_poderia puoi potresti può 能不能 可以 能否 麻烦`)
	// favors end a question of Japanese that asks for something; tags, after a comma, one that asks for agreement.
	favors  = strings.Fields("てくれますか てもらえますか ていただけますか てくれませんか てもらえませんか てくれる てもらえる")
	tags    = phraseSet(`ok okay yes deal please pls clear understood got_it is_that_clear alright agreed verstanden klar ja oder gell einverstanden d'accord compris vale entendido de_acuerdo sí certo viu tá combinado beleza capito va_bene chiaro 好吗 行吗 可以吗 明白吗 いい いいですか`)
	softens = plain.Words("please pls plz also just and but so ok okay again really remember note bitte")
	joins   = plain.Words("and but so then also or please pls bitte und aber")
)

// Sentences returns where the sentences of a line are. Put together they are the line: the space between two
// begins the second.
func Sentences(line string) []core.Span {
	var out []core.Span
	start := 0
	for i := 0; i+2 < len(line); i++ {
		b := line[i]
		if rest := line[i+1:]; (strings.HasPrefix(line[i:], "。") || strings.HasPrefix(line[i:], "！") || strings.HasPrefix(line[i:], "？")) && len(rest) > 2 {
			out = append(out, core.Span{Start: start, End: i + len("。")})
			start = i + len("。")
			continue
		}
		if line[i+1] == ' ' && i-start >= 3 && (b == '!' || b == '?' || b == '.' && line[i-1] != '.' && !short(line[start:i])) {
			out = append(out, core.Span{Start: start, End: i + 1})
			start = i + 1
		}
	}
	return append(out, core.Span{Start: start, End: len(line)})
}

// short reports whether s ends with an abbreviation or a number of a list, after which a sentence goes on.
func short(s string) bool {
	w := strings.ToLower(s[strings.LastIndexByte(s, ' ')+1:])
	switch w {
	case "e.g", "i.e", "z.b", "etc", "vs", "cf", "no", "nr", "ca", "approx":
		return true
	}
	return len(w) == 1 || len(w) <= 2 && strings.Trim(w, "0123456789") == ""
}
