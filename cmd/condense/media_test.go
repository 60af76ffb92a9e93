package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// A PDF of 700 kB with three pages among 50,000 tokens of text: a file is not due at 200,000, and where it is due the PDF
// stays.
func TestPDFIsNotDroppedFromFiles(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, m := range testkit.Media {
		t.Run(m.API+"/"+m.Kind+"/"+m.Place, func(t *testing.T) {
			t.Parallel()
			messages, data := m.With(700_000)
			body := m.Request(40, 4_000, map[int]string{12: messages})
			dir := t.TempDir()
			file, out := filepath.Join(dir, "session.json"), filepath.Join(dir, "shorter.json")
			must(t, os.WriteFile(file, body, 0o600))
			if said := in(t, "check", file, "--window", "200k"); !strings.Contains(said, "not due: ") {
				t.Errorf("check: %s", said)
			}
			if said := in(t, "run", file, "--window", "200k", "-o", out); !strings.Contains(said, "not due: ") {
				t.Errorf("run: %s", said)
			}
			said := in(t, "run", file, "--window", "50k", "--max-output", "1000", "-o", out)
			got, err := os.ReadFile(out)
			must(t, err)
			if len(got) > len(body)-10_000 || !bytes.Contains(got, []byte(data)) {
				t.Errorf("%d bytes of %d, with the medium: %t\n%s", len(got), len(body), bytes.Contains(got, []byte(data)), said)
			}
		})
	}
}
