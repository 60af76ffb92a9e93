package outline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/outline"
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

// BenchmarkFiles50 reads and folds 50 files of 20 kB, as after a long session.
func BenchmarkFiles50(b *testing.B) {
	root := b.TempDir()
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("node_modules/\n*.min.js\n/dist\n!/dist/keep\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	all := samples(b)
	var paths []string
	total := 0
	for i := range 50 {
		s := all[i%len(all)]
		src := strings.Repeat(s.src, 1+20_000/len(s.src))
		name := filepath.Join(fmt.Sprintf("d%d", i%7), strconv.Itoa(i)+"-"+s.file)
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(src), 0o600); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, name)
		total += len(src)
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	for b.Loop() {
		f, err := outline.Files(b.Context(), paths, outline.Options{Root: root, Chars: 10_000_000})
		if err != nil || len(f.Blocks) != 50 {
			b.Fatalf("got %d blocks, %v: %v", len(f.Blocks), err, f.Skipped)
		}
	}
}
