package online

import (
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// What is kept of an epoch takes the memory that is counted for it: the texts of 200 conversations held 300 MB, and
// 10 were counted.
func TestKeptTextsTakeWhatIsCounted(t *testing.T) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	w := &Watch{pack: pack}
	text := strings.Repeat("a line of a log that says little\n", 20_000)
	if kept := w.compressed([]byte(text)); cap(kept) > 2*len(kept)+64 {
		t.Errorf("%d bytes are held for %d", cap(kept), len(kept))
	}
}
