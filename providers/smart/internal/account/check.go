package account

import (
	"slices"
	"strings"
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
