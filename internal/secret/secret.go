// Package secret recognizes API keys, to detect a pasted one and to keep keys out of output.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// forms are the forms of the keys of vendors, which begin with fixed characters. The list need not be complete: it serves to
// detect keys that were pasted by mistake.
var forms = []string{
	`sk-[A-Za-z0-9_-]{16,}`, `AKIA[0-9A-Z]{16}`, `gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_[A-Za-z0-9_]{20,}`,
	`xox[abprs]-[A-Za-z0-9-]{10,}`, `AIza[0-9A-Za-z_-]{30,}`, `glpat-[A-Za-z0-9_-]{16,}`, `gsk_[A-Za-z0-9]{20,}`, `xai-[A-Za-z0-9]{20,}`,
	`hf_[A-Za-z0-9]{20,}`, `eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.`, `ASIA[0-9A-Z]{16}`, `npm_[A-Za-z0-9]{20,}`,
	`pypi-[A-Za-z0-9_-]{16,}`, `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, `sk_(?:live|test)_[A-Za-z0-9]{16,}`,
	`rk_(?:live|test)_[A-Za-z0-9]{16,}`, `whsec_[A-Za-z0-9+/=]{16,}`, `ya29\.[A-Za-z0-9_-]{20,}`, `AGE-SECRET-KEY-1[0-9A-Z]{40,}`,
	`do[opr]_v1_[a-f0-9]{40,}`, `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}`, `hv[sbr]\.[A-Za-z0-9_-]{20,}`, `ATATT3[A-Za-z0-9_=-]{20,}`,
	`lin_api_[A-Za-z0-9]{20,}`, `ntn_[A-Za-z0-9]{20,}`, `fig[dour]_[A-Za-z0-9_-]{20,}`, `r8_[A-Za-z0-9]{20,}`, `pplx-[A-Za-z0-9]{20,}`,
	`tvly-[A-Za-z0-9-]{16,}`, `dapi[a-f0-9]{32}`, `rubygems_[a-f0-9]{40,}`, `sntry[su]_[A-Za-z0-9+/=_-]{20,}`, `xapp-[A-Za-z0-9-]{10,}`,
	`glsa_[A-Za-z0-9_]{20,}`, `nvapi-[A-Za-z0-9_-]{20,}`, `dckr_pat_[A-Za-z0-9_-]{20,}`, `PMAK-[A-Za-z0-9-]{20,}`,
	`ph[cx]_[A-Za-z0-9]{20,}`, `key-[0-9a-f]{32}`,
}

// shapes matches a key, where a word begins.
var shapes = regexp.MustCompile(`\b(` + strings.Join(forms, "|") + ")")

// A form is a key at the beginning of a text; head are its first characters.
type form struct {
	head string
	all  *regexp.Regexp
}

// byFirst are the forms by their first byte. Trying those that may begin somewhere is many times as fast as shapes.
var byFirst = sync.OnceValue(func() (by [256][]form) {
	for _, f := range forms {
		head, _ := regexp.MustCompile(f).LiteralPrefix()
		by[head[0]] = append(by[head[0]], form{head, regexp.MustCompile("^(?:" + f + ")")})
	}
	return by
})

// masked are keys in the form in which vendors quote them, partly hidden.
var masked = regexp.MustCompile(`\bsk-[A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_*-]*`)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Shown reports whether s contains text in the form of a key.
func Shown(s string) bool {
	by := byFirst()
	inWord := false
	for i := range len(s) {
		if !inWord {
			for _, f := range by[s[i]] {
				if strings.HasPrefix(s[i:], f.head) && f.all.MatchString(s[i:]) {
					return true
				}
			}
		}
		inWord = s[i] == '_' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'z' || 'A' <= s[i] && s[i] <= 'Z'
	}
	return false
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
	return masked.ReplaceAllString(shapes.ReplaceAllString(s, Redacted), Redacted)
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
