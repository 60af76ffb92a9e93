// Package secret recognizes API keys, to detect a pasted one and to keep keys out of output.
package secret

import (
	_ "embed" // the table is a file, which is easier to read
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// A form is a key at the beginning of a text; head are its first characters.
type form struct {
	head string
	all  func() *regexp.Regexp
}

// byFirst are the forms by their first byte. Trying those that may begin somewhere is many times as fast as one expression.
var byFirst = sync.OnceValue(func() (by [256][]form) {
	all := Forms()
	for i := range all {
		f := &all[i]
		by[f.Begin[0]] = append(by[f.Begin[0]], form{f.Begin, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^(?:" + f.expression() + ")") })})
	}
	return by
})

// masked are keys in the form in which vendors quote them, partly hidden.
var masked = plain.Pattern(`\bsk-[A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_*-]*`)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Shown reports whether s contains text in the form of a key.
func Shown(s string) bool {
	_, end := nextKey(s, 0)
	return end > 0
}

// nextKey returns where the next key begins and ends, from a place on where a word may begin; 0, 0 if there is none.
func nextKey(s string, from int) (begin, end int) {
	by := byFirst()
	inWord := false
	for i := from; i < len(s); i++ {
		if !inWord {
			for _, f := range by[s[i]] {
				if len(s)-i > len(f.head) && s[i+1] == f.head[1] && strings.HasPrefix(s[i:], f.head) { // the byte alone excludes most, fast
					if n := len(f.all().FindString(s[i:])); n > 0 {
						return i, i + n
					}
				}
			}
		}
		inWord = s[i] == '_' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'z' || 'A' <= s[i] && s[i] <= 'Z'
	}
	return 0, 0
}

// withoutKeys returns s without text in the form of a key.
func withoutKeys(s string) string {
	var b strings.Builder
	kept := 0
	for {
		begin, end := nextKey(s, kept)
		if end == 0 {
			break
		}
		b.WriteString(s[kept:begin])
		b.WriteString(Redacted)
		kept = end
	}
	if kept == 0 {
		return s
	}
	b.WriteString(s[kept:])
	return b.String()
}

// Redact returns s without the secrets in known and without text in the form of a key. Known secrets are also found
// in other encodings: with escapes of URLs or JSON for any of their characters, in hexadecimal, and in base64, alone
// or as part of a longer text.
func Redact(s string, known ...string) string {
	for _, k := range known {
		if k == "" {
			continue
		}
		s = strings.ReplaceAll(s, k, Redacted)
		if len(k) >= shortest {
			s = written(k).ReplaceAllString(s, Redacted)
		}
	}
	if s = withoutKeys(s); strings.Contains(s, "***") {
		s = masked().ReplaceAllString(s, Redacted)
	}
	return s
}

// shortest is the length of the shortest secret to find in other encodings. A shorter secret's encodings are common
// text.
const shortest = 8

// written matches the encodings of a secret.
func written(k string) *regexp.Regexp {
	var escaped strings.Builder
	for i := range len(k) {
		fmt.Fprintf(&escaped, `(?:%s(?i:%%(?:25)*%02x|\\+u00%02x|\\+x%02x))`, itself(k[i]), k[i], k[i], k[i])
	}
	forms := []string{escaped.String(), "(?i:" + hex.EncodeToString([]byte(k)) + ")"}
	// As part of a longer text, the base64 depends on the number of bytes before it, modulo 3. Its
	// first and last characters have bits of the neighboring bytes.
	const alphabet = `[A-Za-z0-9+/_=-]*`
	for before, mixed := range []int{0, 2, 3} {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + k))
		if (before+len(k))%3 != 0 {
			text = text[:len(text)-1]
		}
		own := regexp.QuoteMeta(text[mixed:])
		own = strings.NewReplacer(`\+`, `[+-]`, "/", "[/_]").Replace(own)
		forms = append(forms, alphabet+own+alphabet)
	}
	return regexp.MustCompile(strings.Join(forms, "|"))
}

// itself matches a byte literally.
func itself(b byte) string {
	if b >= utf8.RuneSelf {
		return "" // valid text has it as an escape
	}
	return regexp.QuoteMeta(string(rune(b))) + "|"
}

// Safe returns an error text that is safe to display: one line, without keys, and short. A provider's error can quote anything.
func Safe(text string) string {
	const read, longest = 4 << 10, 240 // bytes; the rest is ignored
	text = Redact(plain.Line(text[:min(len(text), read)]))
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// A Form is the form of a vendor's keys.
type Form struct {
	Begin  string // the characters that each begins with
	rest   string // a regular expression
	Issuer string // the vendor of language models that issues it; empty for any other
	Cloud  bool   // it is for this vendor only; keys of others are accepted by gateways of any kind
}

//go:embed forms.txt
var formsText string

// Forms returns the forms of keys that are known. Do not change them.
var Forms = sync.OnceValue(func() (all []Form) {
	for line := range strings.Lines(formsText) {
		columns := strings.Fields(line)
		if len(columns) < 2 || columns[0] == "#" {
			continue
		}
		issuer, cloud := strings.CutSuffix(strings.Join(columns[2:], " "), "*")
		all = append(all, Form{columns[0], columns[1], issuer, cloud})
	}
	return all
})

// unfixed are forms that begin with nothing fixed: tokens of Discord and Telegram, secrets of Microsoft Entra, keys of Azure's storage
// and of Z.ai.
const unfixed = `[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}|\d{8,10}:AA[A-Za-z0-9_-]{33}|` +
	`[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}|[A-Za-z0-9+/]{86}==|[0-9a-f]{32}\.[A-Za-z0-9]{16}\b`

func (f *Form) expression() string { return regexp.QuoteMeta(f.Begin) + f.rest }
