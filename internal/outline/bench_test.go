package outline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/outline"
)

// BenchmarkDefinitions reads the samples of each language, over and over. They hold more
// that is to be found than real files do, so this is the slow end; docs/outline.md has the
// speed on real ones.
func BenchmarkDefinitions(b *testing.B) {
	for _, s := range samples(b) {
		src := strings.Repeat(s.src, 1+100_000/len(s.src))
		if body, _, ended := strings.Cut(s.src, "__END__"); ended { // of Ruby
			src = strings.Repeat(body, 1+100_000/len(s.src))
		}
		b.Run(outline.Language(s.file), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				outline.Definitions(outline.Language(s.file), src)
			}
		})
	}
}

// BenchmarkFiles50 reads and folds 50 source files of this repository, as after a long
// session, until none is left out.
func BenchmarkFiles50(b *testing.B) {
	root, err := filepath.Abs("..")
	if err != nil {
		b.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(root, "*", "*.go"))
	if err != nil {
		b.Fatal(err)
	}
	var paths []string
	total := int64(0)
	for _, p := range all {
		if info, err := os.Stat(p); err == nil && info.Size() > 5000 && len(paths) < 50 {
			paths = append(paths, p)
			total += info.Size()
		}
	}
	b.SetBytes(total)
	b.ReportAllocs()
	for b.Loop() {
		f, err := outline.Files(b.Context(), paths, outline.Options{Root: root, Chars: 10_000_000})
		if err != nil || len(f.Blocks) != 50 {
			b.Fatalf("got %d blocks, %v: %v", len(f.Blocks), err, f.Skipped)
		}
	}
}
