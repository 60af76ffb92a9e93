package archive

import (
	"strings"

	"github.com/condensehq/condense/internal/secret"
)

// shortestKey is the length of the shortest text that is looked at as a key, in bytes.
const shortestKey = 12

// keyless returns text without private keys, passwords in addresses, and text in the form of a key. Only long runs of
// the characters of keys are looked at: that is five times as fast as looking at everything.
func keyless(text string) string {
	var b strings.Builder
	for {
		begin := strings.Index(text, "-----BEGIN ")
		if begin < 0 {
			break
		}
		stripRuns(&b, text[:begin])
		end := strings.Index(text[begin:], "-----END ")
		if end < 0 {
			return b.String()
		}
		text = text[begin+end:]
	}
	stripRuns(&b, text)
	return b.String()
}

// stripRuns appends text without keys to b.
func stripRuns(b *strings.Builder, text string) {
	kept := 0
	for i := 0; i < len(text); {
		if !ofKey[text[i]] {
			i++
			continue
		}
		from := i
		for i < len(text) && ofKey[text[i]] {
			i++
		}
		run := text[from:i]
		clean := run
		if at := strings.LastIndexByte(run, '@'); at >= 0 && from >= 3 && text[from-3:from] == "://" {
			clean = run[at:] // user:password@host
		} else if len(run) >= shortestKey && secret.Shown(run) {
			clean = "" // a key may be longer than its form tells
		}
		if len(clean) != len(run) {
			b.WriteString(text[kept:from])
			b.WriteString(clean)
			kept = i
		}
	}
	b.WriteString(text[kept:])
}

// ofKey are the characters of keys and of the user's part of addresses.
var ofKey = func() (is [256]bool) {
	for _, c := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+=:@%~$!*#") {
		is[c] = true
	}
	return is
}()
