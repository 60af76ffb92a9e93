package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/secret"
)

func TestRedact(t *testing.T) {
	for _, tt := range []struct {
		in    string
		known []string
		want  string
		shown bool
	}{
		{"nothing to hide", []string{""}, "nothing to hide", false},
		{"key sk-ant-api03-abcdefghijklmnop is wrong", nil, "key [redacted] is wrong", true},
		{"Incorrect API key provided: sk-abc***********wxyz.", nil, "Incorrect API key provided: [redacted].", false},
		{"a plain-word twice: plain-word", []string{"plain-word"}, "a [redacted] twice: [redacted]", false},
		{"AIza0123456789012345678901234567890123, gsk_abcdefghijklmnopqrst", nil, "[redacted], [redacted]", true},
		{"risk-free task-based", nil, "risk-free task-based", false},
	} {
		if got := secret.Redact(tt.in, tt.known...); got != tt.want {
			t.Errorf("Redact(%q): got %q, want %q", tt.in, got, tt.want)
		}
		if got := secret.Shown(tt.in); got != tt.shown {
			t.Errorf("Shown(%q): got %v, want %v", tt.in, got, tt.shown)
		}
	}
}

// TestOtherWritingsOfAKeyAreRedacted: a key that a vendor quotes in base64, with escapes or in
// hexadecimal is redacted.
func TestOtherWritingsOfAKeyAreRedacted(t *testing.T) {
	for _, key := range []string{"hunter2-hunter2-hunter2", "a+b/c=d?e&f:ghijk", "0123456789", "\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"} {
		var all strings.Builder
		for _, b := range []byte(key) {
			fmt.Fprintf(&all, "%%%02X", b)
		}
		var unicode strings.Builder
		for _, b := range []byte(key) {
			fmt.Fprintf(&unicode, "\\u%04x", b)
		}
		forms := []string{
			key, url.QueryEscape(key), url.PathEscape(key), strings.ToLower(url.QueryEscape(key)), url.QueryEscape(url.QueryEscape(key)),
			all.String(), unicode.String(), hex.EncodeToString([]byte(key)), strings.ToUpper(hex.EncodeToString([]byte(key))),
		}
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			for _, before := range []string{"", "u", "u:", "user:", "Bearer "} {
				for _, after := range []string{"", "\n", "!!", "and"} {
					forms = append(forms, encoding.EncodeToString([]byte(before+key+after)))
				}
			}
		}
		for _, form := range forms {
			if !utf8.ValidString(form) {
				continue // this key has no other encoding
			}
			if strings.ToLower(key) != key && form == strings.ToLower(url.QueryEscape(key)) {
				continue // another key
			}
			got := secret.Redact("the key "+form+" is wrong", key)
			if got != "the key "+secret.Redacted+" is wrong" {
				t.Errorf("%q as %q: got %q", key, form, got)
			}
		}
		if text := "nothing of it is here: aHVudGVy, 0123"; secret.Redact(text, key) != text {
			t.Errorf("%q: got %q", key, secret.Redact(text, key))
		}
	}
}
