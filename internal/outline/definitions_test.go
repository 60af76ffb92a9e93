package outline_test

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/outline"
)

var update = flag.Bool("update", false, "rewrite testdata/samples.outline")

// A sample is a file of testdata/samples: small, and full of traps. What must not be found
// has "no" or "local" in its name.
type sample struct{ file, src string }

func samples(tb testing.TB) []sample {
	tb.Helper()
	names, err := filepath.Glob("testdata/samples/*")
	if err != nil || len(names) == 0 {
		tb.Fatalf("got %d samples, %v", len(names), err)
	}
	slices.Sort(names)
	var out []sample
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		// go.txt is a sample of Go that the go command does not take for a package.
		out = append(out, sample{strings.Replace(filepath.Base(name), ".go.txt", ".go", 1), string(src)})
	}
	return out
}

// TestSamples holds the outlines of the samples against testdata/samples.outline.
func TestSamples(t *testing.T) {
	t.Parallel()
	const golden = "testdata/samples.outline"
	var b strings.Builder
	seen := make(map[string]bool)
	for _, s := range samples(t) {
		seen[outline.Language(s.file)] = true
		b.WriteString(outline.Fold(s.file, s.src) + "\n")
	}
	for _, file := range languages {
		if l := outline.Language(file); !seen[l] && l != "tsx" && l != "javascript" {
			t.Errorf("no sample of %s", l)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("outlines differ (-want +got); if rightly, run go test ./outline -update:\n%s", diff)
	}
}

// TestBrokenGo reads Go that does not parse, which Roo and the compiler give up on.
func TestBrokenGo(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		if outline.Language(s.file) != "go" {
			continue
		}
		for _, broken := range []string{s.src + "\nfunc half(a int", "<<<<<<< HEAD\n" + s.src} {
			var whole, half []string
			for _, d := range outline.Definitions("go", s.src) {
				if d.Depth == 0 {
					whole = append(whole, d.Name)
				}
			}
			for _, d := range outline.Definitions("go", broken) {
				if d.Name != "half" {
					half = append(half, d.Name)
				}
			}
			for _, name := range whole {
				if !slices.Contains(half, name) && name != "Key" && name != "Store" { // in a group
					t.Errorf("%s: got %v without %s", s.file, half, name)
				}
			}
		}
	}
}

// TestDefinition says what the fields mean, for a function, a member and a declaration.
func TestDefinition(t *testing.T) {
	t.Parallel()
	src := "class A extends B<\n  C> {\n\n  run(\n    a,\n  ) {\n    go()\n  }\n}\n"
	want := []outline.Definition{
		{Name: "A", Kind: "class", Start: 1, Body: 3, End: 9},
		{Name: "run", Kind: "method", Start: 4, Body: 7, End: 8, Depth: 1},
	}
	if diff := cmp.Diff(want, outline.Definitions("typescript", src)); diff != "" {
		t.Errorf("definitions differ (-want +got):\n%s", diff)
	}
	want = []outline.Definition{{Name: "f", Kind: "function", Start: 1, Body: 2, End: 1}}
	if diff := cmp.Diff(want, outline.Definitions("c", "int f(int a);\n")); diff != "" {
		t.Errorf("definitions differ (-want +got):\n%s", diff)
	}
	if got := outline.Definitions("cobol", src); got != nil {
		t.Errorf("unknown language: got %v, want none", got)
	}
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.go": "go", "dir.py/a": "", `C:\x\A.PY`: "python", "a.d.ts": "typescript", "x/y.TSX": "tsx", "a.mjs": "javascript",
		"a.h": "c", "a.hpp": "cpp", "README.md": "markdown", "Makefile": "", "": "", ".go": "go", "a.cs": "csharp",
	} {
		if got := outline.Language(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// TestFoldSignature keeps one line for a signature, whatever it holds.
func TestFoldSignature(t *testing.T) {
	t.Parallel()
	long := "function f(" + strings.Repeat("äöü, ", 200) + ") {\r\n}\r\n"
	got := outline.Fold("a/b.js", "\tfunction g(a,\r\n\t\tb) {\r\n\t}\r\n"+long)
	lines := strings.Split(got, "\n")
	if len(lines) != 4 || lines[0] != "# b.js" || lines[1] != "1--3 | \tfunction g(a, b)" {
		t.Errorf("got %q", lines)
	}
	if l := lines[2]; len(l) > 300 || !strings.HasSuffix(l, " …") || strings.ToValidUTF8(l, "") != l {
		t.Errorf("got %q, want a signature that is cut between characters", l)
	}
	if got := outline.Fold(path.Join("x", "empty.js"), "var a = 1\n"); got != "" {
		t.Errorf("nothing defined: got %q, want nothing", got)
	}
	// A bundle on one line is one line.
	if got := outline.Fold("a.js", strings.Repeat("function a(){}", 1000)); strings.Count(got, "\n") != 2 {
		t.Errorf("got %d lines, want 2", strings.Count(got, "\n"))
	}
}
