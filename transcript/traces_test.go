package transcript_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

func TestRecordedSessions(t *testing.T) {
	t.Parallel()
	for _, name := range testkit.Sessions(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			compressed, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			z, err := gzip.NewReader(bytes.NewReader(compressed))
			if err != nil {
				t.Fatal(err)
			}
			file, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			d, err := transcript.Read(bytes.NewReader(compressed), &transcript.ReadOptions{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if d.Format != "trace" || len(d.Warnings) > 0 {
				t.Errorf("read as %s, warnings %v", d.Format, d.Warnings)
			}
			if got, _ := write(t, d, ""); got != string(file) {
				t.Error("it was not written back byte for byte")
			}
			for _, to := range []string{"anthropic", "openai"} {
				out, _ := write(t, d, to)
				lint(t, to, out)
				read(t, out, to)
			}
			journal, _ := write(t, d, "condense")
			if got, _ := write(t, read(t, journal, ""), "trace"); got != string(file) {
				t.Error("the journal did not give it back byte for byte")
			}
		})
	}
}
