package account

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// Marks of claims that the history does not support.
const (
	unknown    = "[not in the history]"
	wasUnknown = "[?]"       // in accounts of former versions
	apart      = "[joined]"  // of a path whose parts are there, but not together
	inferred   = "(inferred" // the model's mark of its own conclusions
	notUsers   = "[not said by the user]"
	noLink     = "[a link that is not in the history]"
	minQuote   = 3 // words: shorter quotes are names and are looked up as such
)

// Checks counts the claims that were looked up.
type Checks struct {
	Looked  int // paths, numbers, names, quotes, links and handles
	Unknown int // of them, those that the history does not have
	Secrets int // that were left out
}

// Share returns the share that is unknown.
func (c *Checks) Share() float64 { return float64(c.Unknown) / float64(max(1, c.Looked)) }

func (c *Checks) add(o Checks) {
	c.Looked, c.Unknown, c.Secrets = c.Looked+o.Looked, c.Unknown+o.Unknown, c.Secrets+o.Secrets
}

var (
	codeForm  = "`([^`]{1,400})`"
	quoteForm = `"(?:\\"[^"]*\\"|[^"]){0,600}"|“[^”]{3,600}”|„[^“”]{3,600}[“”]` // short ones too, or the text after them would be taken for a quote
	quotes    = `"“”„`
	linkForm  = `https?://[^\s<>"')\]]+`
	wordsForm = `[\p{L}\p{N}_./\\:@#$€£%~+<>=±*-]+(?:\(\))?`
	quoteOnly = plain.Pattern(quoteForm)
	claimForm = plain.Pattern(codeForm + "|" + quoteForm + "|(" + linkForm + ")|(" + wordsForm + ")")
	spans     = plain.Pattern(codeForm)
	ends      = plain.Pattern(`[.;!?] +`)
	// conclusion matches a sentence that is marked as the model's own, also right behind it.
	conclusion = plain.Pattern(`(?:[^.;!?]|[.;!?][^ ])+[.;!?]? *\(inferred[^)]*\)|\(inferred[^)]*\)[^.;!?]*`)
	// leading matches the number that models write before an item.
	leading = plain.Pattern(`^#?\d{1,3}[.)] `)
)

// Groups of claimForm.
const (
	groupCode  = 1
	groupLink  = 2
	groupToken = 3
)

// check returns the text of an item with marks at the claims that the history does not support. Links and
// handles of this kind, and secrets, are cut. Of a conclusion only these and its quotes are looked up.
func (h *History) check(text string, of Section) (string, Checks) {
	var c Checks
	redacted := secret.Redact(text)
	c.Secrets = strings.Count(redacted, secret.Redacted) - strings.Count(text, secret.Redacted)
	text = leading().ReplaceAllString(redacted, "")
	for _, mark := range []string{unknown, wasUnknown, apart, notUsers} { // the model copied them
		text = strings.ReplaceAll(text, " "+mark, "")
		text = strings.ReplaceAll(text, mark, "")
	}
	lenient, concluded := *h, conclusion().FindAllStringIndex(text, -1)
	lenient.lenient = true
	if sources().MatchString(text) { // a project's rules are not the user's words
		of = Notes
	}
	var b strings.Builder
	at := 0
	for _, m := range claimForm().FindAllStringSubmatchIndex(text, -1) {
		if m[0] < at {
			continue
		}
		b.WriteString(text[at:m[0]])
		at = m[1]
		whole := text[m[0]:m[1]]
		in, known := h, c.Looked-c.Unknown
		if slices.ContainsFunc(concluded, func(r []int) bool { return r[0] <= m[0] && m[0] < r[1] }) {
			in = &lenient
		}
		switch {
		case m[2*groupCode] >= 0:
			b.WriteString(in.checkCode(whole, text[m[2]:m[3]], &c))
		case m[2*groupLink] >= 0, m[2*groupToken] >= 0:
			b.WriteString(in.checkToken(whole, &c))
		default:
			b.WriteString(in.checkQuote(whole, of, &c))
		}
		if in.lenient {
			c.Looked = known + c.Unknown
		}
	}
	b.WriteString(text[at:])
	out := strings.TrimSpace(b.String())
	if !strings.Contains(out, notUsers) && (of == Request || of == Constraints || saysOfUser(spans().ReplaceAllString(text, ""))) {
		if c.Looked++; !h.quotesUser(text) && !h.saidByUser(text) {
			c.Unknown++
			out += " " + notUsers
		}
	}
	return out, c
}

// checkCode returns a code span with a mark if the history does not have it, as a whole or by every name in it.
// With a link it is cut.
func (h *History) checkCode(whole, span string, c *Checks) string {
	c.Looked++
	if has(h.all, unmarked(span)) {
		return whole
	}
	worst := present
	for _, token := range strings.FieldsFunc(span, func(r rune) bool { return strings.ContainsRune(" \t()[]{},;'\"|&", r) }) {
		token = strings.TrimLeft(strings.TrimRight(token, ".,:=!?"), ",:=!?")
		k := kindOf(token, true)
		found := h.find(k, token)
		if k == aLink && found == absent {
			c.Unknown++
			return noLink
		}
		worst = min(worst, found)
	}
	return whole + c.mark(worst)
}

// mark counts a claim and returns the mark that follows it.
func (c *Checks) mark(found standing) string {
	if found == absent {
		c.Unknown++
	}
	return [...]string{absent: " " + unknown, joined: " " + apart, present: ""}[found]
}

// checkToken returns a token outside of quotes and code with its mark. Asterisks around it may be emphasis, or make it a pattern.
func (h *History) checkToken(token string, c *Checks) string {
	bare := strings.TrimRight(strings.TrimLeft(token, "<>=~+±"), ".,:;!?<>=+-")
	inner := strings.Trim(bare, "*")
	k := kindOf(inner, false)
	if k == aWord || inner == "" {
		return token
	}
	c.Looked++
	found := h.find(k, inner)
	if found == absent && bare != inner {
		found = h.find(k, bare)
	}
	if found == absent && (k == aLink || k == aHandle) {
		c.Unknown++
		return map[kind]string{aLink: noLink}[k]
	}
	end := strings.LastIndex(token, bare) + len(bare)
	return token[:end] + c.mark(found) + token[end:]
}

// checkQuote returns a quote as it is if somebody said it. Of the request and its constraints that must be the user.
func (h *History) checkQuote(whole string, of Section, c *Checks) string {
	_, n := utf8.DecodeRuneInString(whole)
	inner := whole[n : len(whole)-n] // the marks of a pair have the same size
	if len(strings.Fields(inner)) < minQuote {
		return whole[:n] + h.checkTokens(inner, c) + whole[len(whole)-n:]
	}
	c.Looked++
	text := unmarked(strings.ReplaceAll(inner, `\"`, `"`))
	switch {
	case !quoted(h.all, text):
		c.Unknown++
		return h.checkTokens(inner, c) + " " + unknown
	case (of == Request || of == Constraints) && !quoted(h.users, text):
		c.Unknown++
		return whole + " " + notUsers
	}
	return whole
}

var shortToken = plain.Pattern(wordsForm)

func (h *History) checkTokens(text string, c *Checks) string {
	return shortToken().ReplaceAllStringFunc(text, func(t string) string { return h.checkToken(t, c) })
}

// cite returns the handle of the part of the conversation that has most of the names in text, the newest of
// equal ones; "" if none has any.
func (h *History) cite(text string) string {
	var names []string
	for _, m := range claimForm().FindAllStringSubmatch(text, -1) {
		switch {
		case m[groupCode] != "":
			names = append(names, unmarked(m[groupCode]))
		case m[groupToken] != "":
			if t := strings.Trim(m[groupToken], ".,:;!?"); kindOf(t, false) != aWord {
				names = append(names, unmarked(t))
			}
		default:
			if inner := strings.Trim(m[0], quotes); m[groupLink] == "" && len(strings.Fields(inner)) >= minQuote {
				names = append(names, strings.Trim(unmarked(inner), " .,;:!?"))
			}
		}
	}
	best, handle := 0, ""
	for i := range h.parts {
		n := 0
		for _, name := range names {
			if len(name) > 1 && strings.Contains(h.parts[i].text, name) {
				n += min(len(name), 40)
			}
		}
		if n >= best && n > 3 {
			best, handle = n, h.parts[i].handle
		}
	}
	return handle
}

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
	return string([]rune(w)[:long])
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
	has := plain.Set(content(text))
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
