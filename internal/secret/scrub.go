package secret

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Scrub returns s without keys, for a store and for other readers than the user: without text in the form of a key, private keys,
// passwords in addresses, values with a label such as password or token, and long random words. It finds more than [Redact], and
// sometimes too much. It leaves hexadecimal numbers without a label, which look as the names of commits do, and passwords that
// nothing announces.
func Scrub(s string) string {
	var b strings.Builder
	for {
		begin := strings.Index(s, "-----BEGIN ")
		if begin < 0 {
			break
		}
		b.WriteString(scrubLines(s[:begin]))
		b.WriteString(Redacted)
		end := strings.Index(s[begin:], "-----END ")
		if end < 0 {
			return b.String()
		}
		s = s[begin+end+len("-----END "):]
		if rest := strings.Index(s, "-----"); rest >= 0 && !strings.Contains(s[:rest], "\n") {
			s = s[rest+len("-----"):]
		}
	}
	if b.Len() == 0 {
		return scrubLines(s)
	}
	b.WriteString(scrubLines(s))
	return b.String()
}

func scrubLines(s string) string {
	s = withoutKeys(s)
	if strings.Contains(s, "://") {
		s = userinfo.ReplaceAllString(s, "://"+Redacted+"@")
	}
	var b strings.Builder
	kept, at := 0, 0
	for line := range strings.Lines(s) {
		if len(line) <= longestLine && labelIn(line) {
			if short := withoutValues(line); short != line {
				b.WriteString(s[kept:at])
				b.WriteString(short)
				kept = at + len(line)
			}
		}
		at += len(line)
	}
	if kept > 0 {
		b.WriteString(s[kept:])
		s = b.String()
	}
	return randomWords(s)
}

// longestLine is the length in bytes of the longest line in which labels are looked for: a longer one is data.
const longestLine = 1 << 14

// withoutValues returns a line without the values of its labels.
func withoutValues(line string) string {
	return labelled().ReplaceAllStringFunc(line, func(found string) string {
		m := labelled().FindStringSubmatchIndex(found)
		for k := 2; k < len(m); k += 2 {
			if m[k] >= 0 && !expression().MatchString(found[m[k]:m[k+1]]) {
				return found[:m[k]] + Redacted + found[m[k+1]:]
			}
		}
		return found
	})
}

// lazily compiles an expression when it is first used: all together would take longer than the shortest commands.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var (
	unfixedForm = lazily(`\b(?:` + unfixed + `)`)
	userinfo    = regexp.MustCompile(`://[^\s/@:"']*:[^\s/@"']+@`)
)

// labels are parts of names of secrets, in lower case, and programs is what takes a password as an option of one letter. One of them is
// in each match of labelled.
var (
	labels   = byFirstLetter("pass", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "_pat", "bearer", "ssws")
	programs = byFirstLetter("mysql", "mariadb", "redis-cli", "curl", "wget", "http ")
)

func byFirstLetter(words ...string) (by [256][]string) {
	for _, w := range words {
		by[w[0]] = append(by[w[0]], w)
	}
	return by
}

const (
	labelName = `[\w.-]*(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|` +
		`encryption[_-]?key|signing[_-]?key|master[_-]?key|auth[_-]?key|x-[a-z-]*key|credentials?|authorization|cookie|_key|_pat|_auth)`
	labelValue = `"((?:[^"\\\n]|\\.){4,})"|'([^'\n]{4,})'|([^\s"'` + "`" + `,;)}\]]{4,})`
)

// labelled matches a label and its value: NAME=value, "name": "value", --name value, a header, the options of some programs, and "the
// password is value". Each group is a value.
var labelled = lazily(`(?i)(?:` +
	`(?:\b|_|-|["'])` + labelName + `["']?\s*(?::=|=>|[:=])\s*(?:(?:basic|bearer|token|ssws|apikey|digest)\s+)?(?:` + labelValue + `)` +
	`|--?[a-z-]*(?:pass(?:word|wd|phrase)?|secret|token|api-?key|access-?key|auth)(?:[ =]+)(?:` + labelValue + `)` +
	`|\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n|;&]*?\s-p\s?(?:` + labelValue + `)` +
	`|\b(?:redis-cli)\b[^\n|;&]*?\s-a\s?(?:` + labelValue + `)` +
	`|\b(?:curl|wget|http)\b[^\n|;&]*?\s(?:-u|--user)[ =]?["']?[^\s:"']+:([^\s"']+)` +
	`|\b(?:password|passphrase|passcode|secret|token|api key|pin)\s+(?:is|was|ist|lautet|es|est)\s+(?:` + labelValue + `)` +
	`|\b(?:bearer|ssws)\s+([A-Za-z0-9._~+/=-]{8,})` +
	`)`)

// expression matches a value that is code, a variable, a type or a word for the absence of a value.
var expression = lazily(`(?i)^(?:[$<{%&*(\[]|\.\.\.|\\?\(|[a-z_]\w*(?:\.[a-z_]\w*)+\b|[a-z_]\w*(?:\(|\[|->|::)|(?:await|async|new|function|this|self|return|not|and|or|if|is|to|in|for|from|string|str|bool|boolean|int|number|bytes?|any|object|null|nil|none|undefined|` +
	`true|false|required|optional|missing|invalid|expired|empty|unset|redacted|header|value|\[redacted\]|x{3,}|\*{3,})[,;.:!?)]*$)`)

// labelIn reports whether a line may have a label with a value.
func labelIn(s string) bool {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		for _, l := range labels[c] {
			if len(s)-i > len(l) && strings.EqualFold(s[i:i+len(l)], l) && announces(s[i+len(l):]) {
				return true
			}
		}
		for _, p := range programs[c] {
			if strings.HasPrefix(s[i:], p) {
				return true
			}
		}
	}
	return false
}

// announces reports whether text after a label may begin with a value: after the rest of a name, a quote and a sign, or after a space.
func announces(rest string) bool {
	rest = strings.TrimLeftFunc(rest, func(r rune) bool {
		return r == '_' || r == '-' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
	})
	rest = strings.TrimLeft(rest, `"'`)
	if rest == "" {
		return false
	}
	if rest[0] == ' ' || rest[0] == '\t' {
		word := strings.TrimLeft(rest, " \t")
		return word != "" && word[0] != '\n'
	}
	return rest[0] == ':' || rest[0] == '='
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
