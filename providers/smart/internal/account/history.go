package account

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A History has the texts of a conversation against which an account is checked, regardless of case, line
// breaks, white space and emphasis.
type History struct {
	all   string // every text, in the form of plain
	users string // the words of the user, also as condensations kept them
	// messages are what users is made of, as it was written.
	messages []string
	numbers  map[string]bool
	handles  map[string]bool // of parts, and those that texts name
	parts    []source
}

// A source is a part of the conversation that can be recalled.
type source struct {
	text   string // in the form of plain
	handle string
}

// NewHistory reads messages. Handle returns the handle of a part of a message; nil if nothing can be recalled.
func NewHistory(messages []core.Message, read *dialog.Dialog, handle func(m *core.Message, part int) string) *History {
	h := &History{numbers: map[string]bool{}, handles: map[string]bool{}}
	var all, users strings.Builder
	for i := range messages {
		m := &messages[i]
		for j, p := range m.Parts {
			if t, ok := p.(core.Text); ok && m.Role == core.RoleUser && Is(string(t)) {
				// Content that was marked then is not known now.
				for _, item := range Read(string(t)).Items {
					if !strings.Contains(item.Text, unknown) {
						all.WriteString(plain(item.Text) + "\n")
					}
					h.handles[item.Handle] = true
				}
				continue
			}
			text := plain(textOf(p))
			if text == "" {
				continue
			}
			all.WriteString(text + "\n")
			if call, ok := p.(core.ToolCall); ok && strings.Contains(call.Args, `\`) { // a model may quote it as it is written
				all.WriteString(plain(call.Args) + "\n")
			}
			if m.Kind != core.KindOriginal || dialog.HoldsInserted(m) {
				users.WriteString(text + "\n")
				h.messages = append(h.messages, textOf(p))
				continue
			}
			for k := range read.Messages[i][j].Passages {
				if s := &read.Messages[i][j].Passages[k]; s.Kind == dialog.KindUser || s.Kind == dialog.KindProjectRules {
					users.WriteString(plain(s.Text) + "\n")
					h.messages = append(h.messages, s.Text)
				}
			}
			if _, thought := p.(core.Reasoning); handle != nil && !thought && m.Role != core.RoleSystem {
				id := handle(m, j)
				h.parts = append(h.parts, source{text, id})
				h.handles[id] = true
			}
		}
	}
	h.all, h.users = all.String(), users.String()
	for _, n := range digits().FindAllString(h.all, -1) {
		h.numbers[bare(n)] = true
	}
	for _, f := range noHandle().FindAllString(h.all, -1) {
		h.handles[strings.TrimPrefix(strings.TrimSpace(f), "h:")] = true
	}
	return h
}

// textOf returns the text of a part; of a call its arguments with line breaks and quotes as they are meant.
func textOf(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		return string(p)
	case core.ToolCall:
		return p.Name + " " + unescape.Replace(p.Args)
	case core.ToolResult:
		var b strings.Builder
		for _, c := range p.Content {
			b.WriteString(textOf(c) + "\n")
		}
		return b.String()
	case core.Reasoning:
		return p.Text
	case core.Image, core.Opaque:
	}
	return ""
}

var (
	unescape = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\n", `\"`, `"`, `\/`, "/")
	straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'", "*", "", "`", "", "\u00a0", " ", "\u2060", "")
	digits   = lazily(`\d+(?:[.,]\d+)*`)
)

// plain returns text in the form in which the history is searched: in lower case, on one line, with straight
// quotes and without emphasis.
func plain(text string) string {
	text = straight.Replace(strings.ToLower(text))
	var b strings.Builder
	b.Grow(len(text))
	space := true
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

// bare returns a number without separators of thousands.
func bare(n string) string {
	if i := strings.IndexByte(n, ','); i > 0 && len(n)-i == 4 || strings.Count(n, ",") > 1 {
		n = strings.ReplaceAll(n, ",", "")
	}
	return strings.TrimLeft(n, "0")
}

// has reports whether text, in the form of plain, is in where, not as a part of a longer word.
func has(where, text string) bool { return holds(where, text, true) }

func holds(where, text string, whole bool) bool {
	if text == "" {
		return true
	}
	begins, _ := utf8.DecodeRuneInString(text)
	ends, _ := utf8.DecodeLastRuneInString(text)
	for at := 0; ; {
		i := strings.Index(where[at:], text)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(where[:i])
		after, _ := utf8.DecodeRuneInString(where[i+len(text):])
		if joins := inWord(begins) && inWord(before) || whole && inWord(ends) && inWord(after); !joins {
			return true
		}
		at = i + len(text)
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r))
}

// A kind says how a claim is looked up.
type kind uint8

const (
	aWord kind = iota // not looked up
	aNumber
	aHash
	aPath
	aName
	aQuote
	aLink
	aHandle
	aList // of words, or a folder: as in fmt/lint/test
)

var (
	numberForm = lazily(`^[#$€£~±<>=+-]*\d[\d.,:_/x–-]*(?:%|[a-zµ]{1,3})?$`)
	hashForm   = lazily(`^[0-9a-f]{7,64}$`)
	nameForm   = lazily(`_|\p{Ll}\p{Lu}|\p{L}\d|\d\p{L}|::|->|\p{L}\(|^--?\p{L}|^[@$]\p{L}`)
	dotted     = lazily(`^[\p{L}\d_-]{2,}(?:\.[\p{L}\d_-]{2,}|\.[chr])+$`)
	listForm   = lazily(`^[\p{L}\d_:-]+(?:/[\p{L}\d_:-]+){2,}$`)
	pathForm   = lazily(`^(?:~|\.{1,2})?[/\\]\S*\p{L}|/[^/]*\.[\p{L}\d]{1,6}(?::\d+(?:-\d+)?)?$|[/\\].*[/\\].`)
)

// kindOf returns the kind of a token. Code says that the model marked it as such.
func kindOf(token string, code bool) kind {
	lower := strings.ToLower(token)
	switch {
	case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"), strings.HasPrefix(lower, "www."):
		return aLink
	case noHandle().MatchString(" "+token) && len(token) == len("h:0123456789"):
		return aHandle
	case hashForm().MatchString(lower) && strings.ContainsAny(lower, "abcdef") && strings.ContainsAny(lower, "0123456789"):
		return aHash
	case numberForm().MatchString(lower):
		return aNumber
	case listForm().MatchString(token) && !code:
		return aList
	case pathForm().MatchString(token), code && strings.ContainsAny(token, `/\`) && len(token) > 1:
		return aPath
	case nameForm().MatchString(token), dotted().MatchString(token):
		return aName
	case code && len(token) > 2 && strings.ContainsFunc(token, unicode.IsLetter):
		return aName
	}
	return aWord
}

// knows reports whether the history has a claim.
func (h *History) knows(k kind, token string) bool {
	text := plain(token)
	switch k {
	case aWord:
		return true
	case aHandle:
		return h.handles[strings.TrimPrefix(text, "h:")]
	case aLink:
		return has(h.all, strings.TrimRight(text, "/"))
	case aHash:
		return h.knowsHash(text)
	case aNumber:
		return has(h.all, text) || h.knowsNumbers(text)
	case aPath:
		return h.knowsPath(plain(strings.ReplaceAll(token, "*", "{}"))) // which plain leaves out
	case aName:
		return h.knowsName(text)
	case aQuote:
		return quoted(h.all, text)
	case aList:
		return has(h.all, text) || !slices.ContainsFunc(strings.Split(text, "/"), func(s string) bool { return !has(h.all, s) })
	}
	return false
}

// knowsHash also knows a hash that is longer or shorter than the one in the history.
func (h *History) knowsHash(text string) bool {
	const least = 7
	if holds(h.all, text, false) {
		return true
	}
	for n := len(text) - 1; n >= least; n-- {
		if has(h.all, text[:n]) {
			return true
		}
	}
	return false
}

func (h *History) knowsNumbers(text string) bool {
	return !slices.ContainsFunc(digits().FindAllString(text, -1), func(n string) bool {
		if h.numbers[bare(n)] {
			return false
		}
		// A decimal may have fewer digits than in the history.
		return !strings.Contains(n, ".") || !holds(h.all, n, false)
	})
}

var (
	placeForm = lazily(`(?:#l|[:(]l?)(\d+)(?:[-–:,]l?(\d+))?\)?$`)
	arityForm = lazily(`^([\p{L}\d_.!?]+)/\d$`) // of functions
	holeForm  = lazily(`<[^<>]*>`)
	driveForm = lazily(`^(?:[a-z]:)?[/\\]`)
)

// knowsPath knows a path with or without its root: an absolute path is a folder of the history with a path of
// the history in it.
func (h *History) knowsPath(text string) bool {
	if f := placeForm().FindStringSubmatchIndex(text); f != nil {
		if !h.knowsNumbers(text[f[0]:]) {
			return false
		}
		text = text[:f[0]]
	}
	for _, p := range []string{"./", "file://", "a/", "b/", "~/"} {
		if p != "a/" && p != "b/" || !has(h.all, text) {
			text = strings.TrimPrefix(text, p)
		}
	}
	text = strings.TrimRight(text, `/\.…`)
	if text == "" || has(h.all, text) || has(h.all, strings.ReplaceAll(text, `\`, `/`)) || strings.ContainsAny(text, "{<") && h.knowsPattern(text) {
		return true
	}
	if f := arityForm().FindStringSubmatch(text); f != nil {
		return h.knowsName(f[1])
	}
	if !driveForm().MatchString(text) {
		return false
	}
	for i, r := range text {
		if (r == '/' || r == '\\') && i > 1 && has(h.all, text[:i]) && h.relative(text[i+1:]) {
			return true
		}
	}
	return false
}

// relative reports whether the history has path, and not as the end of a longer one.
func (h *History) relative(path string) bool {
	for at := 0; ; {
		i := strings.Index(h.all[at:], path)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(path)
		before, _ := utf8.DecodeLastRuneInString(h.all[:i])
		after, _ := utf8.DecodeRuneInString(h.all[at:])
		if !inWord(before) && !strings.ContainsRune(`/\-.`, before) && !inWord(after) {
			return true
		}
	}
}

// knowsPattern knows a pattern of file names by the names in it.
func (h *History) knowsPattern(text string) bool {
	text = holeForm().ReplaceAllString(text, "{}")
	return !slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`{},/\`, r) }), func(s string) bool { return s != "." && !strings.Contains(h.all, s) })
}

// knowsName also knows a name by its parts, as in type.method.
func (h *History) knowsName(text string) bool {
	text = strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(text, "()"), "("), ".,;:")
	if text == "" || has(h.all, text) {
		return true
	}
	cuts := `.:>()[]{}<=,;"'&|!`
	if strings.ContainsAny(text, "0123456789") { // as in gqc.1-3
		cuts += "-–"
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(cuts, r) })
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool { return p != "-" && p != "" && !has(h.all, p) })
}

// quoted reports whether where has the quote text, which may leave something out with an ellipsis.
func quoted(where, text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "[…]", "…"), "...", "…")
	for part := range strings.SplitSeq(text, "…") {
		if part = strings.Trim(part, " .,;:!?()'\""); part != "" && !has(where, part) {
			return false
		}
	}
	return true
}
