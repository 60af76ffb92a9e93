package account

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A model that believes the output of a tool writes that the user wants, approved or forbade something. Such an item, and any item of
// the request and its constraints, needs words of the user: it says of the user what one message of theirs says.

// speaksForUser matches items about the user's will, in the languages in which models write them.
var speaksForUser = lazily(`(?i)\busers?\s+(?:(?:has|have|also|now|explicitly|already)\s+)*(?:want|ask|sa(?:id|ys?)\b|approv|permit|allow|request|requir|t(?:old|ells?)\b|insist|prefer|agree|` +
	`confirm|instruct|demand|authori[sz]|accept|forb|decid|wish|expect)|\b(?:by|from|of) the user\b|\bapprov(?:e|es|ed|al)\b|\bpermit(?:s|ted)?\b|\bconsent|\bpermission to\b|` +
	`\ballowed to\b|\bauthori[sz]ed to\b|\b(?:Nutzer|Benutzer|Anwender)\w*\s+(?:will|hat|möchte|wünscht|erlaubt)|\b(?:genehmigt|zugestimmt)\b|usuario (?:quiere|pide|aprob)|` +
	`utilisateur (?:veut|demande|approuv)|用户(?:要|想|同意|批准|说)`)

// denies matches words that turn a sentence round.
var denies = lazily(`(?i)\b(?:not|never|no|none|don't|do not|doesn't|didn't|can't|cannot|mustn't|won't|without|avoid|stop|nicht|nie|niemals|kein\w*|ohne|jamais|ne|pas|sans|nunca|sin|nem)\b|不|禁止|ない`)

// common are words of the form of a statement, not of its content, in the form of stem.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`the user wants want wanted asked asks said says told tells requires required requested requests request must should shall will would could
may might can never always only also that this these those with from into for and but nor yet about before after when then than there here have has had been being are was were
it its they them their he she his her you your our all any each every some everything anything now please make made keep not don't doesn't didn't can't cannot without do does
done be is to of in on at by as or if so up out no none because while until unless explicitly explicit approval approve approves approved permission allow allows allowed permits
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
		if s := stem(strings.Trim(w, "'")); utf8.RuneCountInString(s) > 1 && !common[s] {
			all = append(all, s)
		}
	}
	return all
}

const (
	leastShared = 0.5 // of an item's content words, that one message of the user must have
	leastWords  = 2   // content words: a shorter item says nothing to check
)

// saidByUser reports whether one message of the user has the content of an item: half of its words, the word after its "never", and the
// same direction in a sentence with these words.
func (h *History) saidByUser(text string) bool {
	words := content(text)
	if len(words) < leastWords {
		return true
	}
	denied := denies().FindStringIndex(text)
	var forbidden []string
	if denied != nil {
		forbidden = content(text[denied[1]:])
	}
	for _, message := range h.messages {
		has := map[string]bool{}
		for _, w := range content(message) {
			has[w] = true
		}
		n := 0
		for _, w := range words {
			if has[w] {
				n++
			}
		}
		if float64(n) < leastShared*float64(len(words)) || len(forbidden) > 0 && !has[forbidden[0]] {
			continue
		}
		for sentence := range strings.FieldsFuncSeq(message, func(r rune) bool { return strings.ContainsRune(".!?\n;。！？", r) }) {
			shares := false
			for _, w := range content(sentence) {
				for _, own := range words {
					shares = shares || w == own
				}
			}
			if shares && denies().MatchString(sentence) == (denied != nil) {
				return true
			}
		}
	}
	return false
}
