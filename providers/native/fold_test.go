package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core/coretest"
)

// TestFoldedFiles: the signatures of the files that were read are next to the
// summary, newest first, each in a block of its own, within the limit; none of a file that
// lies elsewhere or is not wanted.
func TestFoldedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, functions int) {
		var b strings.Builder
		b.WriteString("package main\n\n")
		for i := range functions {
			fmt.Fprintf(&b, "func %s%d(addr string) error {\n\tif addr == \"\" {\n\t\treturn nil\n\t}\n\treturn nil\n}\n\n", strings.TrimSuffix(filepath.Base(name), ".go"), i)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("work/serve.go", 3)
	write("work/old.go", 50)
	write("work/gen/made.go", 3)
	write("outside.go", 3)
	if err := os.WriteFile(filepath.Join(dir, "work", ".rooignore"), []byte("gen/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	req := session(10, 20_000)
	req.Dir = filepath.Join(dir, "work")
	req.FilesRead = []string{"serve.go", "gen/made.go", "../outside.go", "gone.go", "old.go"}
	res, err := open(t, `{"folded_chars":1000}`, new(fake)).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, p := range res.Messages[0].Parts {
		if s := text(coretest.User(p)); strings.Contains(s, "## File Context: ") {
			blocks = append(blocks, s)
		}
	}
	if len(blocks) != 2 {
		t.Fatalf("got %d blocks, want 2:\n%s", len(blocks), strings.Join(blocks, "\n"))
	}
	wantAll(t, "the first block", blocks[0], "## File Context: serve.go", "func serve2(addr string) error")
	wantAll(t, "the second block", blocks[1], "## File Context: old.go", "func old0(addr string) error", "(truncated)")
	if n := len(blocks[0]) + len(blocks[1]); n > 1100 {
		t.Errorf("the blocks have %d characters, want about 1000", n)
	}
}
