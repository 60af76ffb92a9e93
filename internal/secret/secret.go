// Package secret knows what the keys of APIs look like, so that a pasted one is noticed and
// none gets into what people read.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// shapes are the beginnings of keys that vendors hand out. The list is not complete and
// need not be: it exists so that a pasted key is noticed, not so that one can hide.
var shapes = regexp.MustCompile(
	`\b(sk-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
		`xox[abprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{30,}|glpat-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{20,}|` +
		`xai-[A-Za-z0-9]{20,}|hf_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.)`)

// masked are keys as vendors quote them, with a part of them hidden.
var masked = regexp.MustCompile(`\bsk-[A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_*-]*`)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// Shown reports whether s holds what looks like a key.
func Shown(s string) bool { return shapes.MatchString(s) }

// Redact returns s without the secrets known and without what looks like a key. A secret that
// is known goes in other writings too: with escapes of URLs or of JSON for any of its
// characters, in hexadecimal, and in base64, alone or within something longer.
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

// shortest is the length from which other writings of a secret are looked for. Those of a
// shorter one are common text.
const shortest = 8

// written matches the writings of a secret.
func written(k string) *regexp.Regexp {
	var escaped strings.Builder
	for i := range len(k) {
		fmt.Fprintf(&escaped, `(?:%s(?i:%%(?:25)*%02x|\\+u00%02x|\\+x%02x))`, itself(k[i]), k[i], k[i], k[i])
	}
	forms := []string{escaped.String(), "(?i:" + hex.EncodeToString([]byte(k)) + ")"}
	// Within something longer the base64 depends on how many bytes stand before, modulo 3. Of
	// its first and last characters some bits are not the secret's.
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

// itself matches a byte that is a character, or something else.
func itself(b byte) string {
	if b >= utf8.RuneSelf {
		return "" // in a text that is valid it has an escape
	}
	return regexp.QuoteMeta(string(rune(b))) + "|"
}
