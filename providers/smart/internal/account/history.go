package account

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
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
	lenient  bool // everything is there but links and handles
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
						all.WriteString(unmarked(item.Text) + "\n")
					}
					h.handles[item.Handle] = true
				}
				continue
			}
			written := textOf(p)
			meant := unescaped(written)
			text := unmarked(meant)
			if text == "" {
				continue
			}
			all.WriteString(text + "\n")
			for _, form := range []string{written, margins().ReplaceAllString(meant, "")} { // a model may quote it in each form
				if form != meant {
					all.WriteString(unmarked(form) + "\n")
				}
			}
			if m.Kind != core.KindOriginal || dialog.HoldsInserted(m) {
				users.WriteString(text + "\n")
				h.messages = append(h.messages, written)
				continue
			}
			for k := range read.Messages[i][j].Passages {
				if s := &read.Messages[i][j].Passages[k]; s.Kind == dialog.KindUser || s.Kind == dialog.KindProjectRules {
					users.WriteString(unmarked(s.Text) + "\n")
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
		for part := range strings.SplitSeq(n, ",") { // as in 830,855p
			h.numbers[bare(part)] = true
		}
	}
	for _, f := range noHandle().FindAllString(h.all, -1) {
		h.handles[strings.TrimPrefix(strings.TrimSpace(f), "h:")] = true
	}
	return h
}

// textOf returns the text of a part as it is written.
func textOf(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		return string(p)
	case core.ToolCall:
		return p.Name + " " + p.Args
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
	digits   = plain.Pattern(`\d+(?:[.,]\d+)*`)
	// coded matches characters by their number; colours and moves match sequences of terminals, the former also without their first character.
	coded   = plain.Pattern(`\\u[0-9a-fA-F]{4}`)
	colours = plain.Pattern(sequence + `\[[0-9;:]*m|\[\d+(?:;\d+)+m|\[0m`)
	moves   = plain.Pattern(sequence + `\[[0-9;?]*[A-Za-z]`)
	margins = plain.Pattern(`(?m)^[ \t]*(?:npm (?:ERR!|error|WARN|warn)|remote:|[>#+|│]|//|\d+(?:\t|→))[ \t]+`) // what programs write before each line
)

const sequence = `(?:\x1b|\\(?:u00|x)1[bB]|\\0?33|\\e)`

// unescaped returns text without sequences of terminals, and with line breaks, quotes and other characters as JSON and code mean them.
func unescaped(text string) string {
	text = moves().ReplaceAllString(colours().ReplaceAllString(text, ""), " ")
	return unescape.Replace(coded().ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.ParseUint(s[2:], 16, 32) // hexadecimal digits
		return string(rune(n))
	}))
}

// unmarked returns text in the form in which the history is searched: in lower case, on one line, with straight
// quotes and without emphasis.
func unmarked(text string) string {
	return strings.Join(strings.Fields(straight.Replace(strings.ToLower(text))), " ")
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
	return r != utf8.RuneError && (r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, spaceless...)
}

// spaceless are scripts without spaces between words.
var spaceless = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai}

// A kind says how a claim is looked up.
type kind uint8

const (
	aWord kind = iota // not looked up
	aNumber
	aHash
	aPath
	aName
	aLink
	aHandle
	aList // of words, or a folder: as in fmt/lint/test
)

var (
	numberForm = plain.Pattern(`^[#$€£~±<>=+-]*\d[\d.,:_/x–-]*(?:%|[a-zµ]{1,3})?$`)
	hashForm   = plain.Pattern(`^[0-9a-f]{7,64}$`)
	nameForm   = plain.Pattern(`_|\p{Ll}\p{Lu}|\p{L}\d|\d\p{L}|::|->|\p{L}\(|^--?\p{L}|^[@$]\p{L}`)
	dotted     = plain.Pattern(`^[\p{L}\d_-]{2,}(?:\.[\p{L}\d_-]{2,}|\.[chr])+$`)
	listForm   = plain.Pattern(`^[\p{L}\d_:-]+(?:/[\p{L}\d_:-]+)+$`)
	pathForm   = plain.Pattern(`^(?:~|\.{1,2})?[/\\]\S*\p{L}|/[^/]*\.[\p{L}\d]{1,6}(?::\d+(?:-\d+)?)?$|[/\\].*[/\\].`)
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
	case listForm().MatchString(token) && !code && (strings.Count(token, "/") > 1 || nameForm().MatchString(token)):
		return aList
	case pathForm().MatchString(token), code && strings.ContainsAny(token, `/\`) && len(token) > 1:
		return aPath
	case nameForm().MatchString(token), dotted().MatchString(token):
		return map[bool]kind{true: aPath, false: aName}[strings.ContainsAny(token, `/\`)]
	case code && len(token) > 2 && strings.ContainsFunc(token, unicode.IsLetter):
		return aName
	}
	return aWord
}

// A standing says how much of a claim the history has.
type standing uint8

const (
	absent standing = iota
	joined          // its parts
	present
)

// find looks a claim up.
func (h *History) find(k kind, token string) standing {
	text := unmarked(strings.ReplaceAll(token, "*", hole)) // which plain leaves out
	known := true
	switch {
	case k == aHandle:
		known = h.handles[strings.TrimPrefix(text, "h:")]
	case k == aLink:
		known = has(h.all, strings.TrimRight(text, "/"))
	case h.lenient:
	case k == aPath:
		return h.findPath(text)
	case k == aHash:
		known = h.knowsHash(text)
	case k == aNumber:
		known = has(h.all, text) || h.knowsNumbers(text)
	case k == aName:
		known = h.knowsName(text) || h.computes(text)
	case k == aList:
		known = h.like(text) || h.hasEach(strings.Split(text, "/"))
	}
	return map[bool]standing{true: present}[known]
}

// hasEach reports whether the history has every one of parts, which may be patterns.
func (h *History) hasEach(parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !h.like(p) })
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
		// A decimal may have fewer digits than in the history, cut or rounded.
		if !strings.Contains(n, ".") || holds(h.all, n, false) {
			return !strings.Contains(n, ".")
		}
		down := n[:len(n)-1] + string(n[len(n)-1]-1)
		return !slices.ContainsFunc([]string{"5", "6", "7", "8", "9"}, func(next string) bool { return holds(h.all, down+next, false) })
	})
}

var (
	placeForm = plain.Pattern(`(?:#l|[:(]l?)(\d+)(?:[-–:,]l?(\d+))?\)?$`)
	arityForm = plain.Pattern(`^([\p{L}\d_.!?]+)/\d$`) // of functions
	driveForm = plain.Pattern(`^(?:[a-z]:)?[/\\]`)
	rootForm  = plain.Pattern(`^(?:\./|file://|[ab]/|` + variable + `)`)
	holeForm  = plain.Pattern(`<[^<>]*>|…|\\\.\\\.\\\.|` + hole + `+`) // in an expression
)

const (
	variable = `(?:~|\$\{?(?:env:)?\w+\}?|%\w+%)[/\\]` // for a folder
	hole     = "\x00"                                  // in place of an asterisk
	noWord   = `(?:[^\p{L}\p{N}_]|^|$)`
)

// findPath finds a path with or without its root: an absolute path is a folder of the history with a path of
// the history in it.
func (h *History) findPath(text string) standing {
	if f := placeForm().FindStringSubmatchIndex(text); f != nil {
		if !h.knowsNumbers(text[f[0]:]) {
			return absent
		}
		text = text[:f[0]]
	}
	text = strings.TrimRight(text, `/\.…`)
	rootless := rootForm().ReplaceAllString(text, "")
	if slices.ContainsFunc([]string{text, rootless, strings.ReplaceAll(rootless, `\`, "/")}, h.like) {
		return present
	}
	if f := arityForm().FindStringSubmatch(text); f != nil && h.knowsName(f[1]) || h.computes(text) {
		return present
	}
	for i, r := range text {
		if (r == '/' || r == '\\') && i > 1 && driveForm().MatchString(text) && has(h.all, text[:i]) && h.relative(text[i+1:]) {
			return present
		}
	}
	steps := strings.FieldsFunc(strings.ReplaceAll(rootless, "::", "/"), func(r rune) bool { return r == '/' || r == '\\' })
	if len(steps) > 1 && h.hasEach(steps) {
		return joined
	}
	return absent
}

// relative reports whether the history has path, and not as the end of a longer one.
func (h *History) relative(path string) bool {
	begins := `(?:^|[^\p{L}\p{N}_/\\.-]|` + variable + `)`
	return strings.Contains(h.all, path) && h.matches(begins+regexp.QuoteMeta(path)+noWord)
}

func (h *History) matches(expression string) bool {
	found, err := regexp.MatchString(expression, h.all)
	return found && err == nil
}

// like reports whether the history has text, in which holes stand for anything but space.
func (h *History) like(text string) bool {
	exact := regexp.QuoteMeta(text)
	pattern := holeForm().ReplaceAllString(exact, `\S*`)
	if pattern == exact {
		return has(h.all, text)
	}
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	edge := map[bool]string{true: noWord}
	return h.matches(edge[inWord(first)] + pattern + edge[inWord(last)])
}

// knowsName also knows a name by its parts, as in type.method.
func (h *History) knowsName(text string) bool {
	text = strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(text, "()"), "("), ".,;:")
	if h.like(text) || holds(h.all, strings.TrimRight(text, "_")+"_", false) || // as V2 of V2__add.sql
		strings.Contains(text, "_") && strings.Contains(h.all, "_"+text) && h.matches("_"+regexp.QuoteMeta(text)+noWord) { // as get_x of mcp__get_x
		return true
	}
	cuts := `.:>()[]{}<=,;"'&|!`
	if strings.ContainsAny(text, "0123456789") { // as in gqc.1-3
		cuts += "-–"
	}
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(cuts, r) })
	return len(parts) > 1 && h.hasEach(slices.DeleteFunc(parts, func(p string) bool { return p == "-" }))
}

var (
	formula = plain.Pattern(`[\p{L}\p{N}_)][+@` + hole + `]\d|\d\+[\p{L}_]`) // as in a_b*0.9
	divided = plain.Pattern(`/(\d)`)
)

// computes reports whether text is a formula of numbers and names that the history has.
func (h *History) computes(text string) bool {
	terms := strings.FieldsFunc(divided().ReplaceAllString(text, "+$1"), func(r rune) bool { return strings.ContainsRune("+@"+hole, r) })
	return formula().MatchString(text) && !slices.ContainsFunc(terms, func(p string) bool {
		return !has(h.all, p) && !map[bool]func(string) bool{true: h.knowsNumbers, false: h.knowsName}[numberForm().MatchString(p)](p)
	})
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
