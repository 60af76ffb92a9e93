package account

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// A model that believes the output of a tool writes that the user wants, approved or forbade something. Such an item, and any item of
// the request and its constraints, needs words of the user: it says of the user what one message of theirs says.

// speaksForUser matches items about the user's will, in the languages in which models write them.
var speaksForUser = plain.Pattern(`(?i)\b(?:user|customer|client|they)s?\s+(?:(?:has|have|also|now|explicitly|already|is|was|are|were)\s+)*(?:want|ask|sa(?:id|` +
	`ys?)\b|approv|permit|allow|request|requir|t(?:old|ells?)\b|insist|prefer|agree|confirm|instruct|demand|authori[sz]|accept|` +
	`forb|decid|wish|expect|sign(?:s|ed)? off|ok(?:s|ed|ay\w*)?\b|happy|fine\b|gave|gives|grant|green-?li|let\b)|^user:|\b(?:by|` +
	`from|of) the user\b|\buser'?s?'? (?:request|approval|consent|permission)|\bas (?:requested|instructed|agreed|approved)\b|` +
	`\bgreen-?li(?:t|ght)|\bgo-ahead\b|\b(?:was|were|is|are|been|has|have|and) approved\b|\bapprov(?:es|al)\b|\bpermit(?:s|` +
	`ted)?\b|\bconsent|\bpermission to\b|\ballowed to\b|\bauthori[sz]ed to\b|\b(?:Nutzer|Benutzer|Anwender)(?:in|s|n)?\s+(?:will|` +
	`wollte|hat|ist|möchte|wünscht|erlaubt)|\b(?:genehmigt|zugestimmt|einverstanden)\b|\busu[aá]ri[oa]|\butilisat(?:eur|` +
	`rice)\b|\butente\b|пользовател|用户|使用者|ユーザー|사용자|المستخدم`)

// denies matches words that turn a sentence round.
var denies = plain.Pattern(`(?i)\b(?:not|never|no|none|don't|do not|doesn't|didn't|can't|cannot|mustn't|won't|without|avoid|stop|nicht|nie|niemals|kein\w*|ohne|jamais|ne|pas|sans|nunca|sin|nem)\b|不|禁止|ない`)

// unsettled matches sentences that leave open what the user wants.
var unsettled = plain.Pattern(`(?i)\bwhether\b|\bun(?:known|decided|confirmed|answered|settled|clear)\b|\b(?:not|never|none|nothing)\b[^.;]{0,30}\b(?:said|asked|confirmed|answered|decided|approved|known)\b|\b(?:waits? for|needs?)\b.{0,80}\b(?:from|of) the user\b`)

// saysOfUser reports whether a sentence of text is about the user's will.
func saysOfUser(text string) bool {
	return slices.ContainsFunc(ends().Split(text, -1), func(s string) bool { return speaksForUser().MatchString(s) && !unsettled().MatchString(s) })
}

// sources matches the source that an item begins with, if it is not the user.
var sources = plain.Pattern(`(?i)^(?:\(reported: tool\)|(?:\S*\.\p{L}{1,5}\b|(?:the )?(?:readme|shell|sandbox|environment|system|harness|project|repository|backlog|agents?)\b)[^:"]{0,40}: )`)

// quotesUser reports whether text quotes the user: some words of a message, or a whole one.
func (h *History) quotesUser(text string) bool {
	return slices.ContainsFunc(quoteOnly().FindAllString(text, -1), func(q string) bool {
		q = strings.Trim(unmarked(strings.Trim(strings.ReplaceAll(q, `\"`, `"`), quotes)), " .,;:!?")
		return max(len(strings.Fields(q)), len(content(q))) >= minQuote && quoted(h.users, q) ||
			q != "" && slices.ContainsFunc(h.messages, func(m string) bool { return len(m) < 2*len(q)+9 && strings.Trim(unmarked(m), " .,;:!?") == q })
	})
}

// common are words of the form of a statement, not of its content, in the form of stem.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`the user wants want wanted asked asks said says told tells requires required requested requests request must should shall will would could
may might can never always only also that this these those with from into for and but nor yet about before after when then than there here have has had been being are was were
it its they them their he she his her you your our all any each every some everything anything now please make made keep not don't doesn't didn't can't cannot without do does
done be is to of in on at by as or if so up out no none because while until unless explicitly explicit use approval approve approves approved permission allow allows allowed permits
permitted consent agreed der die das den dem ein eine und oder nicht nie kein keine mit von für auf dass soll muss will wird ist sind nur immer el la los las un una que con para no
le les des une dans pour est pas`) {
		m[stem(w)] = true
	}
	return m
}()

// stem cuts a word where forms of it begin to differ.
func stem(w string) string {
	const long = 5
	if utf8.RuneCountInString(w) <= long {
		return strings.TrimSuffix(w, "s")
	}
	n := 0
	for i := range w {
		if n++; n > long {
			return w[:i]
		}
	}
	return w
}

// content returns the stems of the words of text that say what it is about, in order.
func content(text string) (all []string) {
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		runes := []rune(w)
		if slices.ContainsFunc(runes, func(r rune) bool { return unicode.In(r, spaceless...) }) { // pairs of signs
			for i := range len(runes) - 1 {
				all = append(all, string(runes[i:i+2]))
			}
		} else if s := stem(strings.Trim(w, "'")); utf8.RuneCountInString(s) > 1 && !common[s] {
			all = append(all, s)
		}
	}
	return all
}

// saidByUser reports whether one message of the user has the content of an item: more than half of its words, all of its
// numbers, the word after its "never", and the same direction in a sentence with most of these words.
func (h *History) saidByUser(text string) bool {
	words := content(text)
	if len(words) == 0 {
		return true
	}
	denied := denies().FindStringIndex(text)
	var forbidden []string
	if denied != nil {
		forbidden = content(text[denied[1]:])
	}
	for _, message := range h.messages {
		n, numbers := shared(words, message)
		if 2*n <= len(words) || !numbers || len(forbidden) > 0 && !slices.Contains(content(message), forbidden[0]) {
			continue
		}
		most, same := 1, false
		for sentence := range strings.FieldsFuncSeq(ends().ReplaceAllString(joinLines(message), "\x00"), func(r rune) bool { return strings.ContainsRune("\x00\n;。！？，", r) }) {
			n, _ := shared(words, sentence)
			if is := denies().MatchString(sentence) == (denied != nil); n > most {
				most, same = n, is
			} else if n == most {
				same = same || is
			}
		}
		if same {
			return true
		}
	}
	return false
}

// joinLines returns text without the line breaks inside of sentences: those before a small letter.
func joinLines(text string) string { return inSentence().ReplaceAllString(text, " $1") }

var inSentence = plain.Pattern(`\r?\n(\p{Ll})`)

// shared returns how many of words are in text, and whether all numbers among them are.
func shared(words []string, text string) (n int, numbers bool) {
	has := map[string]bool{}
	for _, w := range content(text) {
		has[w] = true
	}
	numbers = true
	for _, w := range words {
		if has[w] {
			n++
		} else if strings.ContainsAny(w, "0123456789") {
			numbers = false
		}
	}
	return n, numbers
}
