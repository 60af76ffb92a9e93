package smart

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/dialog"
)

func TestUnifiedDiff(t *testing.T) {
	for _, tt := range []struct{ name, a, b, want string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"one line", "a\nb\nc\n", "a\nx\nc\n", "@@ -2 +2 @@\n-b\n+x\n"},
		{"insert, numbered as GNU diff does", "a\nb\n", "a\nx\ny\nb\n", "@@ -1,0 +2,2 @@\n+x\n+y\n"},
		{"delete", "a\nb\nc\n", "a\n", "@@ -2,2 +1,0 @@\n-b\n-c\n"},
		{"no newline at the end", "a\nb", "a\nc", "@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"},
	} {
		if got := unifiedDiff(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

func TestDiffsApply(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "@@ -1 +1 @@\n", "-x\n", "+y\n", "end", `\ No newline at end of file` + "\n"})
	rapid.Check(t, func(t *rapid.T) {
		a := strings.Join(rapid.SliceOf(line).Draw(t, "a"), "")
		b := strings.Join(rapid.SliceOf(line).Draw(t, "b"), "")
		if got, err := patch(a, unifiedDiff(a, b)); err != nil || got != b {
			t.Fatalf("got %q, %v, want %q", got, err, b)
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\n", "@@ -1 +1 @@\n-a\n+c\n")
	f.Add("", "@@ -0,0 +1 @@\n+c")
	f.Fuzz(func(_ *testing.T, a, diff string) { _, _ = patch(a, diff) })
}

func FuzzCut(f *testing.F) {
	f.Add("[{\"a\": 1},\n{\"a\": 2},{\"b\":3},4,5,6,7,8,9]", 20)
	f.Add("a\nerror: b\n\nc\n", 3)
	f.Fuzz(func(t *testing.T, text string, room int) {
		u := understand(text, nil, fileNamed("a.go"))
		if got := strings.Join(u.units, ""); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		u.cut(room, stub{gap: true})
		plainTerminal(text)
		trimSpace(text)
	})
}

func fileNamed(path string) dialog.File { return dialog.File{Path: path} }
