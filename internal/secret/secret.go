// Package secret knows what the keys of APIs look like, so that a pasted one is noticed and
// none gets into what people read.
package secret

import (
	"regexp"
	"strings"
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

// Redact returns s without the secrets known and without what looks like a key.
func Redact(s string, known ...string) string {
	for _, k := range known {
		if k != "" {
			s = strings.ReplaceAll(s, k, Redacted)
		}
	}
	return masked.ReplaceAllString(shapes.ReplaceAllString(s, Redacted), Redacted)
}
