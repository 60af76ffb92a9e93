package score

import (
	"slices"
	"strings"
	"testing"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"open src/cmd/main.go:12 now", "p:main.go"},
		{`C:\work\app\Program.cs`, "p:Program.cs"},
		{"see README.md.", "p:README.md"},
		{"in /home/dev/project/internal there", "p:project/internal"},
		{"https://example.com/docs/page.html", "p:page.html"},
		{"call parseConfig and load_file, then kebab-case", "i:parseConfig i:load_file i:kebab-case"},
		{"utf8 is", "i:utf8"},
		{"go and the dog", ""},
		{"port 8080, id 12", "n:8080"},
		{"version v1.26.0 or 3.11", "n:v1.26.0 n:3.11"},
		{"commit deadbeef42 fixed", "n:deadbeef42"},
		{"os.Args holds", ""},
		{"we asked Berlin about it", "c:Berlin"},
		{"Berlin is here. There too", ""},
		{`it says "no such file" twice`, "q:no such file"},
		{`"one"`, ""},
		{"don't stop, it's fine", ""},
		{"", ""},
	} {
		var got []string
		for _, u := range appendUnits(nil, c.line) {
			got = append(got, string(rune(u.kind))+":"+c.line[u.start:u.end])
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: got %q, want %q", c.line, s, c.want)
		}
	}
}

// The same file is the same unit however the path is written, and a hash is its first
// seven digits.
func TestUnitsAreTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"src/a/parse.go", "./parse.go:31"},
		{"deadbeef42aa", "deadbeef4"},
		{`"No such  file"`, "'no such file'"},
		{"v1.2.3", "1.2.3"},
	} {
		a, b := appendUnits(nil, c[0]), appendUnits(nil, c[1])
		if len(a) != 1 || len(b) != 1 || a[0].hash != b[0].hash {
			t.Errorf("%q and %q: got %v and %v, want one unit, the same", c[0], c[1], a, b)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"The quick-fix in src/main.go, twice.", "The|quick-fix|in|src/main.go|twice"},
		{"a->b == c_d", "a|b|c_d"},
		{"end-. -x", "end|x"},
		{"naïve Über", "naïve|Über"},
		{"中文 ok", "中|文|ok"},
		{"→ “quoted”", "quoted"},
	} {
		var got []string
		for _, w := range appendWords(nil, c.line) {
			got = append(got, c.line[w.start:w.end])
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%q: got %q, want %q", c.line, s, c.want)
		}
	}
}

func readLines(text string) []string {
	var out []string
	lines(text, func(l string) { out = append(out, l) })
	return out
}

// A call's arguments are the same lines as JSON, as indented JSON and as text.
func TestLinesOfJSON(t *testing.T) {
	t.Parallel()
	hashesOf := func(text string) []uint64 {
		var out []uint64
		for _, l := range readLines(text) {
			if h := lineHash(l); h != 0 {
				out = append(out, h)
			}
		}
		return out
	}
	want := hashesOf("command: go test ./...\ntimeout: 30\ncontent: package main\n\nfunc main() {}\n")
	for _, text := range []string{
		`{"command":"go test ./...","timeout":30,"content":"package main\n\nfunc main() {}\n"}`,
		"{\n  \"command\": \"go test ./...\",\n  \"timeout\": 30,\n  \"content: package main\n\nfunc main() {}\n}",
	} {
		if got := hashesOf(text); !slices.Equal(got, want) {
			t.Errorf("%q: other lines than as text", text)
		}
	}
}

func TestLongLinesAreSplit(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("A sentence of some words ends here. ", 100)
	got := readLines(text)
	if len(got) < 10 {
		t.Fatalf("%d pieces of %d bytes", len(got), len(text))
	}
	if strings.Join(got, "") != text {
		t.Error("text is missing")
	}
	// A line that lost its end has the same pieces up to there.
	short := readLines(text[:2000])
	for i := range len(short) - 2 {
		if short[i] != got[i] {
			t.Fatalf("piece %d is %q, of the whole line %q", i, short[i], got[i])
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"plain words", `{"a":"b\nc","d":[1,{"e":null}]}`, `x {"path":"a/b.go"}`, "\xff\xfe{", strings.Repeat("[", 50) + `"a"` + strings.Repeat("]", 50),
		strings.Repeat("long ", 300), `{"k":"{\"inner\":\"value\"}"}`, "\"a b\" 'c d e' `f g`", "~/x/../y.go:1:2 #12 @me", strings.Repeat("x", 2000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, l := range readLines(text) {
			if strings.Contains(l, "\n") {
				t.Fatalf("a line with a line end: %q", l)
			}
			for _, w := range appendWords(nil, l) {
				if w.start < 0 || w.end > len(l) || w.start >= w.end {
					t.Fatalf("word %v of %q", w, l)
				}
			}
			for _, u := range appendUnits(nil, l) {
				if u.start < 0 || u.end > len(l) || u.start >= u.end {
					t.Fatalf("unit %v of %q", u, l)
				}
			}
			sentences(l, func(start, end int) {
				if start < 0 || end > len(l) || start >= end {
					t.Fatalf("sentence %d to %d of %q", start, end, l)
				}
			})
			// A line by itself is read the same way.
			if again := readLines(l); len(l) <= longLine && (len(again) != 1 || again[0] != l) {
				t.Fatalf("%q is read as %q", l, again)
			}
		}
	})
}
