package secret

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/internal/plain"
)

// Scrub returns s without keys, for a store and for other readers than the user: without text in the form of a key, private keys,
// passwords in addresses, values with a label such as password or token, and long random words. It finds more than [Redact], and
// sometimes too much. It leaves hexadecimal numbers and UUIDs without a label, which look as the names of commits do, and passwords
// that nothing announces.
func Scrub(s string) string {
	var b strings.Builder
	kept := 0
	for at := 0; ; {
		i := strings.Index(s[at:], "-----BEGIN ")
		if i < 0 {
			break
		}
		begin := at + i
		n := len(blockBegin().FindString(s[begin:min(len(s), begin+longestLabel)]))
		if n == 0 { // a text about such blocks
			at = begin + len("-----BEGIN ")
			continue
		}
		at = begin + n
		if end := blockEnd().FindStringIndex(s[at:min(len(s), at+longestBlock)]); end != nil {
			at += end[1]
		} else {
			at += len(blockLines().FindString(s[at:]))
		}
		b.WriteString(scrubLines(s[kept:begin]))
		b.WriteString(Redacted)
		kept = at
	}
	if kept == 0 {
		return scrubLines(s)
	}
	b.WriteString(scrubLines(s[kept:]))
	return b.String()
}

// The beginning of a block of text as of RFC 7468 with its first line, which may stand in a listing or as a text of a program; its end;
// and the lines of one that has no end.
var (
	blockBegin = plain.Pattern(`^-----BEGIN [A-Z0-9 ]+-----` + blockMargin + `(?:[A-Za-z-]+: [^\n]*` + blockMargin + `)*[A-Za-z0-9+/=]{4,}\s*(?:["'\\\n]|$)`)
	blockEnd   = plain.Pattern(`-----END [A-Z0-9 ]+(?:-----)?`)
	blockLines = plain.Pattern(`^(?:` + blockMargin + `[A-Za-z0-9+/=]{16,}(?:\s|["'\\]|$))*`)
)

const longestBlock = 1 << 16 // bytes

const blockMargin = `(?:[\s"'+,>|│→-]|\\+[nr]|\d+[:|→\t])*`

func scrubLines(s string) string {
	s = withoutKeys(s)
	if strings.Contains(s, "://") {
		s = userinfo().ReplaceAllString(s, "://"+Redacted+"@")
	}
	return randomWords(withoutValues(s))
}

// withoutValues returns s without the values of its labels.
func withoutValues(s string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		label, isProgram := labelAt(s, i)
		if label == 0 {
			i++
			continue
		}
		from := i
		if !isProgram {
			from = beginOf(s, i, kept)
		}
		begin, end := valueIn(s[from:min(len(s), i+longestLabel)], isProgram)
		if end == 0 {
			i += label
			continue
		}
		b.WriteString(s[kept : from+begin])
		b.WriteString(Redacted)
		kept = from + end
		i = kept
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}

// longestLabel is the length in bytes of a label with its value, and longestName that of the part before the word that makes it one.
const (
	longestLabel = 1 << 10
	longestName  = 48
)

// beginOf returns where a label begins, with the sign, the call or the command before it that announces its value, given the place of the
// word that makes it a label.
func beginOf(s string, at, least int) int {
	least = max(least, at-longestName)
	back := func(from int, is func(byte) bool) int {
		for from > least && is(s[from-1]) {
			from--
		}
		return from
	}
	at = back(at, func(c byte) bool { return inName[c] })
	blank := func(c byte) bool { return c == ' ' }
	before := s[least:at]
	switch {
	case strings.HasSuffix(before, "<"):
		return at - 1
	case strings.HasSuffix(before, ":"):
		if i := back(at-1, func(c byte) bool { return inName[c] }); i > least && s[i-1] == '<' {
			return i - 1
		}
	case strings.HasSuffix(before, `"`), strings.HasSuffix(before, "'"):
		if i := back(at-1, blank); i > least && s[i-1] == '(' {
			return i - 1
		}
	case strings.HasSuffix(before, " "):
		for _, command := range []string{"setx", "setenv", "set -x", "set -gx", "set -Ux", "login"} {
			if i := strings.LastIndex(before, command+" "); i >= 0 && (command == "login" || strings.TrimSpace(before[i:]) == command) {
				return least + i
			}
		}
	}
	return at
}

// inName are the characters of names of variables, options and headers.
var inName = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") {
		is[c] = true
	}
	return is
}()

// valueIn returns where the value of the label at the beginning of s begins and ends; 0, 0 if there is none.
func valueIn(s string, isProgram bool) (begin, end int) {
	rules := names
	switch {
	case isProgram:
		rules = options
	case s[0] == '<' || s[0] == '(' || s[0] == '-':
		rules = signs
	}
	for i := range rules {
		m := rules[i].is().FindStringSubmatchIndex(s)
		for k := 2; k < len(m); k += 2 {
			if m[k] < 0 {
				continue
			}
			value := s[m[k]:m[k+1]]
			code := expression().MatchString(value) || prose().MatchString(s[:min(len(s), m[k+1]+2)])
			if bare := !strings.ContainsAny(s[m[k]-1:m[k]], `"'`); bare && isName(value) {
				code = true
			}
			if mixed(value) || !code && !rules[i].mixed {
				return m[k], m[k+1]
			}
			return 0, 0
		}
	}
	return 0, 0
}

// mixed reports whether a value has a long word of letters and digits, as no name of a variable is.
func mixed(value string) bool {
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }) {
		letters, digits := 0, 0
		for _, r := range word {
			if unicode.IsDigit(r) {
				digits++
			} else if unicode.IsLetter(r) {
				letters++
			}
		}
		if letters+digits >= 16 && letters >= 2 && digits >= 4 {
			return true
		}
	}
	return false
}

// isName reports whether a value is a variable named after a secret, such as readPassword.
func isName(value string) bool {
	small, hump := false, false
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z':
			small = true
		case 'A' <= c && c <= 'Z':
			hump = hump || small
		default:
			return false
		}
	}
	if value = strings.ToLower(value); !hump {
		return value == "password" || value == "token" || value == "secret"
	}
	return strings.Contains(value, "pass") || strings.Contains(value, "token") || strings.Contains(value, "secret") || strings.Contains(value, "key") ||
		strings.Contains(value, "auth")
}

var (
	unfixedForm = plain.Pattern(`\b(?:` + unfixed + `)`)
	userinfo    = plain.Pattern(`://(?:[^\s/@:"']*:[^\s/"']+|[A-Za-z0-9_-]{20,})@`)
)

// labels are parts of names of secrets, in lower case, and programs is what takes a password as an option of one letter or from a pipe.
// One of them is in each match of labelled.
var (
	labels = byFirstLetter("pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "_pat", "bearer", "ssws", "kennwort", "mot de passe",
		"contrase", "senha", "wachtwoord", "identified by", "пароль", "Пароль", "密", "口令", "パスワード", "비밀번호", "hasło", "lösenord", "parola", "şifre")
	programs = byFirstLetter("mysql", "mariadb", "redis-cli", "curl", "wget", "http ", "echo ", "sshpass")
)

func byFirstLetter(words ...string) (by [256][]string) {
	for _, w := range words {
		by[w[0]] = append(by[w[0]], w)
	}
	return by
}

const (
	labelWord = `(?:pass(?:word|wd|phrase|code|wort)?|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|` +
		`encryption[_-]?key|signing[_-]?key|master[_-]?key|auth[_-]?key|x-[a-z-]*key|credentials?|authorization|cookie|(?-i:_KEY)|_pat|_auth)`
	labelName  = `[\w.-]*` + labelWord
	labelOther = `(?:kennwort|mot de passe|contrase[nñ]a|senha|wachtwoord|пароль|密码|密碼|密钥|密鑰|口令|パスワード|비밀번호|hasło|lösenord|parola|şifre)`
	labelValue = `(?:\\+"([^"\\\n]{4,})|"((?:[^"\\\n]|\\.){4,})|'([^'\n]{4,})|([^\s"'` + "`" + `,;)}\]\\<]{4,}))`
	scheme     = `(?:(?:basic|bearer|token|ssws|apikey|digest)\s+)?`
)

// A rule matches a label at the beginning of a text, and its value, which is a group.
type rule struct {
	is    func() *regexp.Regexp
	mixed bool // another value is none
}

func ruleOf(expression string) rule { return rule{is: plain.Pattern(`^(?i:` + expression + `)`)} }

// names are the rules for NAME=value, "name": "value", a header, a name and a value in two fields, and "the password is value"; signs
// those for --name value, an element, and a call with a name and a value; options those for programs.
var (
	names = []rule{
		ruleOf(labelName + `(?:\\*["'])?\]?[ \t]*(?::[ \t]*&?[a-z_<][\w<>.]*[ \t]+=|:=|=>|[:=])[ \t]*` + scheme + labelValue),
		ruleOf(labelName + `[\w.-]*["']?,?\s*["']?value["']?\s*[:=]\s*` + labelValue),
		ruleOf(`(?:setx|setenv|set\s+-\w+)\s+` + labelName + `\s+` + labelValue + `|login\s+\S+\s+password\s+` + labelValue),
		ruleOf(`(?:password|passphrase|passwd|secret_?key|api_?key|identified by)\s+["']([^"'\n]{4,})["']` +
			`|(?:password|passphrase|passcode|passwort|kennwort)\s+(?:is|was|ist|lautet)\s+` + labelValue +
			`|(?:secret|token|api key|pin)\s+(?:is|was|ist|lautet)\s+["'` + "`" + `]?(\S*\d[^\s"'` + "`" + `]*)|(?:bearer|ssws)\s+([A-Za-z0-9._~+/=-]{8,})`),
		ruleOf(labelOther + `\s*(?:[:=]|：|ist|lautet|est|es|é|is|—|это|是|为|は)\s*` + labelValue),
		ruleOf(`secrets?\b[^\n|;&]*?\s(?:--body|-b|--from-literal)[ =](?:[\w.-]+=)?` + labelValue),
		{ruleOf(`[\w.-]*(?:key|token|secret|password|credential)s?[ :="'` + "`" + `(]{1,4}([A-Za-z0-9_-]{20,})`).is, true},
	}
	signs = []rule{
		ruleOf(`--?[a-z-]*(?:pass(?:word|wd|phrase)?|secret|token|api-?key|access-?key|auth)(?:["'],\s*|[ =]+)` + labelValue),
		ruleOf(`<[\w:.-]*` + labelWord + `[\w.-]*>([^<\s]{4,})</`),
		ruleOf(`\(\s*["']` + labelName + `["']\s*,\s*["']` + scheme + `([^"'\s]*\d[^"'\s]{3,}|[^"'\s]{12,})["']`),
	}
	options = []rule{
		ruleOf(`(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n|;&]*?\s-p\s?` + labelValue + `|redis-cli\b[^\n|;&]*?\s-a\s?` + labelValue),
		ruleOf(`(?:curl|wget|http)\b[^\n|;&]*?\s(?:-u|--user)[ =]?["']?[^\s:"']+:([^\s"']+)`),
		ruleOf(`echo\s+(?:-n\s+)?` + labelValue + `["']?\s*\|[^\n|]*(?:stdin|\blogin\b|sudo -S|passwd|secret)`),
	}
)

// prose matches a label with a word that is no secret: "token: one of them", and passes of this program.
var prose = plain.Pattern(`^(?:(?i:(?:[\w-]*(?:token|cookie|authorization)|credentials?): )[a-z]+ [a-z]|pass["']?: ?["']?[a-z]+(?:[^a-z]|$))`)

// expression matches a value that is code, a variable, a type, a version or a word for the absence of a value.
var expression = plain.Pattern(`(?i)^(?:[$<{%&*(\[]|/\^|[.~]{0,2}/[\w./-]*$|0x[0-9a-f]{1,8}$|\.\.\.|!?\\?\(|!*[a-z_]\w*(?:\.[a-z_]\w*)+\b|[a-z_]\w*(?:\(|\[|->|::)|[~^<>=v]*\d+(?:\.\d+)+(?:-[\w.]+)?$|` +
	`(?:await|async|new|function|this|self|return|not|and|or|if|is|to|in|for|from|string|str|bool|boolean|int|number|bytes?|any|object|null|nil|none|undefined|` +
	`true|false|required|optional|missing|invalid|expired|empty|unset|redacted|header|value|read|write|inherit|range|every|\[redacted\]|x{3,}|\*{3,})[,;.:!?)]*$)`)

// labelAt returns the length of the part of a label at a place that may have a value, or of the program there.
func labelAt(s string, at int) (length int, isProgram bool) {
	c := s[at]
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	for _, l := range labels[c] {
		if len(s)-at > len(l) && s[at+1]|' ' == l[1]|' ' && strings.EqualFold(s[at:at+len(l)], l) && announces(s[at+len(l):]) {
			return len(l), false
		}
	}
	for _, p := range programs[c] {
		if strings.HasPrefix(s[at:], p) && (at == 0 || !inName[s[at-1]]) {
			return len(p), true
		}
	}
	return 0, false
}

// announces reports whether text after a label may begin with a value: after the rest of a name, a quote and a sign, or after a space.
func announces(rest string) bool {
	rest = strings.TrimLeftFunc(rest, func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
	})
	quoted := strings.TrimLeft(rest, `"'\]`)
	if quoted == "" {
		return false
	}
	switch quoted[0] {
	case ' ', '\t':
		word := strings.TrimLeft(quoted, " \t")
		return word != "" && word[0] != '\n'
	case ',', '\n':
		return len(quoted) < len(rest) || strings.HasPrefix(strings.TrimLeft(quoted, " \n\t\"'"), "value")
	}
	return strings.IndexByte(":=>(`", quoted[0]) >= 0 || strings.HasPrefix(quoted, "：")
}

const (
	unfixedLong = 37   // characters of the shortest key of a form that begins with nothing fixed
	randomLong  = 20   // characters of a random word, at least
	randomTurns = 0.45 // of its letters and digits, changes of class next to each other: names have fewer, random ones .6
)

// randomWords returns s without long words whose small and capital letters and digits alternate as only random ones do.
func randomWords(s string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		if !ofKey[s[i]] {
			i++
			continue
		}
		from := i
		for i < len(s) && ofKey[s[i]] {
			i++
		}
		word := s[from:i]
		if len(word) < randomLong {
			continue
		}
		short := word
		if len(word) >= unfixedLong {
			short = unfixedForm().ReplaceAllString(word, Redacted)
		}
		if short == word && slices.ContainsFunc(strings.FieldsFunc(word, func(r rune) bool { return r == '.' || r == ':' }), isRandom) {
			short = Redacted
		}
		if short != word {
			b.WriteString(s[kept:from])
			b.WriteString(short)
			kept = i
		}
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}

func isRandom(word string) bool {
	const small, capital, digit = 1, 2, 4
	seen, last, turns, pairs := 0, 0, 0, 0
	for i := range len(word) {
		class := 0
		switch c := word[i]; {
		case 'a' <= c && c <= 'z':
			class = small
		case 'A' <= c && c <= 'Z':
			class = capital
		case '0' <= c && c <= '9':
			class = digit
		default:
			continue
		}
		if last != 0 {
			pairs++
			if class != last {
				turns++
			}
		}
		seen, last = seen|class, class
	}
	return seen == small|capital|digit && pairs >= randomLong-4 && float64(turns) >= randomTurns*float64(pairs)
}

// ofKey are the characters of random words.
var ofKey = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+/=~.:") {
		is[c] = true
	}
	return is
}()
