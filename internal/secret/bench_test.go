package secret_test

import (
	"os"
	"testing"

	"github.com/condensehq/condense/internal/secret"
)

// BenchmarkScrub scrubs this package's own sources.
func BenchmarkScrub(b *testing.B) {
	var text string
	for _, file := range []string{"secret.go", "scrub.go", "scrub_test.go", "../../core/chain.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Skip(err)
		}
		text += string(data)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		secret.Scrub(text)
	}
}
