package transcript_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/condensehq/condense/transcript"
)

// A zeros is an input without an end. It fails the test if it is read far beyond the limit.
type zeros struct {
	t    *testing.T
	read int64
	most int64
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.read += int64(len(p)); z.read > z.most {
		z.t.Fatalf("%d bytes were asked for", z.read)
	}
	clear(p)
	return len(p), nil
}

func TestEndlessInputIsRefused(t *testing.T) {
	const limit = 1 << 20
	_, err := transcript.Read(&zeros{t: t, most: 4 * limit}, &transcript.ReadOptions{Name: "zero", MaxBytes: limit})
	if large := (*transcript.TooLargeError)(nil); !errors.As(err, &large) || large.Limit != limit || err.Error() != "zero: larger than 1 MiB" {
		t.Errorf("got %v", err)
	}
}

// A small file that unpacks to a large one is counted while it is unpacked.
func TestGzipBombIsRefused(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(z, strings.NewReader(strings.Repeat(" ", 64<<20)), 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if bomb.Len() > 1<<20 {
		t.Fatalf("%d bytes are no bomb", bomb.Len())
	}
	const limit = 32 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := transcript.ReadAll(&bomb, limit)
	runtime.ReadMemStats(&after)
	if !errors.As(err, new(*transcript.TooLargeError)) {
		t.Errorf("got %v, want it refused", err)
	}
	// The limit itself, what is read beyond it, and the reader of gzip: twice the limit and a little. Room that doubles would take four times.
	if used := after.TotalAlloc - before.TotalAlloc; used > 3*limit {
		t.Errorf("%d MB were allocated before it was refused at %d", used>>20, limit>>20)
	}
}

func TestInputOfExactlyTheLimitIsRead(t *testing.T) {
	const text = `[{"role":"user","content":"Hello"}]`
	if _, err := transcript.Read(strings.NewReader(text), &transcript.ReadOptions{MaxBytes: int64(len(text))}); err != nil {
		t.Error(err)
	}
	_, err := transcript.Read(strings.NewReader(text), &transcript.ReadOptions{MaxBytes: int64(len(text)) - 1})
	if !errors.As(err, new(*transcript.TooLargeError)) {
		t.Errorf("got %v, want it refused", err)
	}
}
