package secret_test

import (
	"testing"

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
