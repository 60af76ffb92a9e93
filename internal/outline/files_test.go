package outline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/outline"
)

const fileSrc = "func A() {\n}\n"

// tree makes a directory with files of each kind, and one next to it that is outside of the
// root.
func tree(t *testing.T) (root, outside string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside = filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	for name, text := range map[string]string{
		"root/a.go":               fileSrc,
		"root/sub/b.py":           "class B:\n    def run(self):\n        pass\n",
		"root/.gitignore":         "gen/\n/ignored.go\n",
		"root/.rooignore":         "secret.*\n",
		"root/sub/.gitignore":     "*.js\n!keep.js\n",
		"root/gen/c.go":           fileSrc,
		"root/ignored.go":         fileSrc,
		"root/secret.go":          fileSrc,
		"root/sub/drop.js":        "function f() {}\n",
		"root/sub/keep.js":        "function f() {}\n",
		"root/binary.go":          "func A() {}\x00",
		"root/large.go":           strings.Repeat("// x\n", 1000) + fileSrc,
		"root/empty.go":           "package a\n",
		"root/notes.txt":          "text\n",
		"root/dir.go/x":           "",
		"root/vendor/v.go":        fileSrc,
		"root/.git/info/exclude":  "excluded.go\n",
		"root/.git/hooks/hook.py": "def f():\n    pass\n",
		"root/excluded.go":        fileSrc,
		"root/sub/excluded.go":    fileSrc,
		"outside/x.go":            fileSrc,
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, outside
}

func fold(t *testing.T, paths []string, o outline.Options) (blocks []string, skipped map[string]string) {
	t.Helper()
	f, err := outline.Files(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Blocks)+len(f.Skipped) != len(paths) {
		t.Errorf("got %d blocks and %d skipped of %d paths", len(f.Blocks), len(f.Skipped), len(paths))
	}
	skipped = make(map[string]string)
	for _, b := range f.Blocks {
		blocks = append(blocks, b.Path)
	}
	for _, s := range f.Skipped {
		skipped[s.Path] = s.Err.Error()
	}
	return blocks, skipped
}

func TestFiles(t *testing.T) {
	t.Parallel()
	root, outside := tree(t)
	paths := []string{
		"sub/b.py", filepath.Join(root, "a.go"), "a.go", "gen/c.go", "ignored.go", "secret.go", "sub/drop.js", "sub/keep.js", "binary.go",
		"large.go", "empty.go", "notes.txt", "dir.go", "missing.go", "vendor/v.go", "../outside/x.go", filepath.Join(outside, "x.go"),
		".git/hooks/hook.py", "excluded.go", "sub/../gen/c.go", "a.go/b.go", "x\x00.go", "",
	}
	blocks, skipped := fold(t, paths, outline.Options{Root: root, MaxBytes: 4000, Ignore: []string{"/vendor"}})
	if diff := cmp.Diff([]string{"sub/b.py", filepath.Join(root, "a.go"), "sub/keep.js"}, blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	for p, want := range map[string]string{
		"a.go":                         "named before",
		"gen/c.go":                     "ignored by .gitignore: gen/",
		"ignored.go":                   "ignored by .gitignore: /ignored.go",
		"secret.go":                    "ignored by .rooignore: secret.*",
		"sub/drop.js":                  "ignored by sub/.gitignore: *.js",
		"binary.go":                    "binary",
		"large.go":                     "larger than 4000 bytes",
		"empty.go":                     "nothing to outline",
		"notes.txt":                    "no outline for this kind of file",
		"dir.go":                       "not a regular file",
		"missing.go":                   "no such file",
		"vendor/v.go":                  "ignored by the settings: /vendor",
		"../outside/x.go":              "outside the root directory",
		filepath.Join(outside, "x.go"): "outside the root directory",
		".git/hooks/hook.py":           "ignored: part of a git repository",
		"excluded.go":                  "ignored by .git/info/exclude: excluded.go",
		"sub/../gen/c.go":              "ignored by .gitignore: gen/",
		"a.go/b.go":                    "a.go/b.go",
		"x\x00.go":                     "outside",
		"":                             "no outline",
	} {
		if got := skipped[p]; !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", p, got, want)
		}
	}
}

// TestFilesLinks follows links within the root, and none that leads out of it or to what is
// ignored.
func TestFilesLinks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	root, outside := tree(t)
	for link, target := range map[string]string{
		"link.go":     "a.go",
		"absolute.go": filepath.Join(root, "vendor", "v.go"),
		"out.go":      filepath.Join(outside, "x.go"),
		"up.go":       "../outside/x.go",
		"outdir":      outside,
		"secrets.go":  "secret.go",
		"generated":   "gen",
		"loop.go":     "loop.go",
		"deep/l.go":   "../../root/a.go",
		"deep/sub":    "../sub",
	} {
		p := filepath.Join(root, filepath.FromSlash(link))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, p); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{"link.go", "absolute.go", "out.go", "up.go", "outdir/x.go", "secrets.go", "generated/c.go", "loop.go", "deep/l.go", "deep/sub/b.py"}
	blocks, skipped := fold(t, paths, outline.Options{Root: root})
	if diff := cmp.Diff([]string{"link.go", "absolute.go", "deep/sub/b.py"}, blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	for p, want := range map[string]string{
		"out.go": "outside the root", "up.go": "outside the root", "outdir/x.go": "outside the root", "deep/l.go": "outside the root",
		"secrets.go": "ignored by .rooignore", "generated/c.go": "ignored by .gitignore: gen/", "loop.go": "too many symbolic links",
	} {
		if got := skipped[p]; !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", p, got, want)
		}
	}
}

// TestFilesBelowRepository knows what the repository around the root ignores, and takes
// paths through a link to the root.
func TestFilesBelowRepository(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	sub := filepath.Join(root, "sub")
	blocks, skipped := fold(t, []string{"b.py", "drop.js", "excluded.go"}, outline.Options{Root: sub})
	if diff := cmp.Diff([]string{"b.py"}, blocks); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if got := skipped["excluded.go"]; !strings.Contains(got, "ignored by .git/info/exclude") {
		t.Errorf("got %q, want it ignored", got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	link := filepath.Join(filepath.Dir(root), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	blocks, _ = fold(t, []string{filepath.Join(root, "a.go"), filepath.Join(link, "sub", "b.py")}, outline.Options{Root: link})
	if len(blocks) != 2 {
		t.Errorf("got %v, want both spellings of the root", blocks)
	}
}

// TestFilesBudget reads nothing once the budget is spent.
func TestFilesBudget(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	f, err := outline.Files(t.Context(), []string{"a.go", "sub/b.py", "missing.go"}, outline.Options{Root: root, Chars: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Blocks) != 1 || f.Blocks[0].Cut || len(f.Skipped) != 2 || f.Skipped[1].Err.Error() != "over the budget" {
		t.Errorf("got %+v", f)
	}
	if want := "<system-reminder>\n## File Context: a.go\n# a.go\n1--2 | func A()\n\n</system-reminder>"; f.Blocks[0].Text != want {
		t.Errorf("got %q, want %q", f.Blocks[0].Text, want)
	}
}

// TestFilesRooignoreLink holds to a .rooignore that is a link, and reads nothing if the
// link leads where it must not be followed.
func TestFilesRooignoreLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows")
	}
	root, _ := tree(t)
	if err := os.Rename(filepath.Join(root, ".rooignore"), filepath.Join(root, "rules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("rules", filepath.Join(root, ".rooignore")); err != nil {
		t.Fatal(err)
	}
	blocks, skipped := fold(t, []string{"a.go", "secret.go"}, outline.Options{Root: root})
	if len(blocks) != 1 || !strings.Contains(skipped["secret.go"], ".rooignore") {
		t.Errorf("got %v, %v", blocks, skipped)
	}
	if err := os.Rename(filepath.Join(root, "rules"), filepath.Join(filepath.Dir(root), "rules")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, ".rooignore")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../rules", filepath.Join(root, ".rooignore")); err != nil {
		t.Fatal(err)
	}
	if f, err := outline.Files(t.Context(), []string{"a.go"}, outline.Options{Root: root}); err == nil {
		t.Errorf("got %v, want an error: what is ignored is not known", f)
	}
}

func TestFilesErrors(t *testing.T) {
	t.Parallel()
	root, _ := tree(t)
	if _, err := outline.Files(t.Context(), nil, outline.Options{}); err == nil {
		t.Error("no root: got no error")
	}
	if _, err := outline.Files(t.Context(), nil, outline.Options{Root: filepath.Join(root, "missing")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing root: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, err := outline.Files(ctx, []string{"a.go"}, outline.Options{Root: root})
	if !errors.Is(err, context.Canceled) || len(f.Blocks) != 0 {
		t.Errorf("canceled: got %v, %v", f, err)
	}
}
