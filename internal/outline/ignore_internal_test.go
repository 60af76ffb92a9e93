package outline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// write makes files from "name": "text"; a name that ends with / is a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ignoredBy asks an ignorer of dir about every path.
func ignoredBy(t *testing.T, dir string, extra []string, paths []string) map[string]bool {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	g, err := newIgnorer(root, extra)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bool)
	for _, p := range paths {
		if g.ignored(p) != nil {
			out[p] = true
		}
	}
	return out
}

// git runs git in dir without the settings of the machine.
func git(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.excludesFile=/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!asExit(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError) //nolint:errorlint // Output never wraps it
	*to = e
	return ok
}

// TestIgnoredAsGit makes repositories at random and asks git about every path in them.
func TestIgnoredAsGit(t *testing.T) {
	t.Parallel()
	testkit.Process(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed; nothing to compare with")
	}
	const rounds = 8
	names := []string{"a", "b", "ab", "a.go", "b.py", ".x", "a b", "a]", "foo", "x-1", "#c", "!d", "é", `q\r`}
	atoms := []string{
		"a", "b", "ab", "foo", ".go", ".x", "x-1", "*", "**", "?", "/", "/", "**/", "/**", "[ab]", "[!a]", "[^b]", "[a-f]", "[]]",
		`\a`, `\*`, "#c", `\#c`, "!d", `\!d`, " ", `\ `, "[[:alpha:]]", "[[:punct:]]", "[", "é", `\`, "a b", "[a-", "[[:x:]]", `[\]]`, "*.go", "*.p*",
	}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		git(t, dir, "", "init", "-q")
		files := map[string]string{}
		var paths []string
		dirs := []string{""}
		for range 6 {
			d := dirs[rng.IntN(len(dirs))] + names[rng.IntN(len(names))] + "/"
			if _, taken := files[strings.TrimSuffix(d, "/")]; !taken {
				dirs = append(dirs, d)
			}
		}
		for range 60 {
			p := dirs[rng.IntN(len(dirs))] + names[rng.IntN(len(names))]
			if slices.Contains(dirs, p+"/") {
				continue
			}
			if _, twice := files[p]; !twice {
				files[p] = "x"
				paths = append(paths, p)
			}
		}
		rules := func() string {
			var b strings.Builder
			for range 1 + rng.IntN(5) {
				if rng.IntN(4) == 0 {
					b.WriteByte('!')
				}
				for range 1 + rng.IntN(4) {
					b.WriteString(atoms[rng.IntN(len(atoms))])
				}
				if rng.IntN(5) == 0 {
					b.WriteByte('/')
				}
				if rng.IntN(8) == 0 {
					b.WriteByte('\r')
				}
				b.WriteByte('\n')
			}
			return b.String()
		}
		files[".gitignore"] = rules()
		files[".git/info/exclude"] = rules()
		for _, d := range dirs[1:] {
			if rng.IntN(2) == 0 {
				files[d+".gitignore"] = rules()
			}
		}
		write(t, dir, files)
		for name := range files {
			if strings.HasSuffix(name, ".gitignore") {
				paths = append(paths, name)
			}
		}
		want := make(map[string]bool)
		for p := range strings.SplitSeq(git(t, dir, strings.Join(paths, "\x00"), "check-ignore", "-z", "--stdin"), "\x00") {
			want[p] = p != ""
		}
		check := func(sub string) {
			var below []string
			for _, p := range paths {
				if s, ok := strings.CutPrefix(p, sub); ok {
					below = append(below, s)
				}
			}
			got := ignoredBy(t, filepath.Join(dir, filepath.FromSlash(sub)), nil, below)
			for _, p := range below {
				if got[p] != want[sub+p] {
					t.Errorf("seed %d, root %q: %q: got ignored %v, git says %v\n%s", seed, sub, p, got[p], want[sub+p], show(files))
				}
			}
		}
		check("")
		// A root that is itself ignored was chosen on purpose; git has no such notion.
		out := "\x00" + git(t, dir, strings.Join(dirs[1:], "\x00"), "check-ignore", "-z", "--stdin")
		for _, d := range dirs[1:] {
			if !strings.Contains(out, "\x00"+d+"\x00") {
				check(d)
			}
		}
		if t.Failed() {
			return
		}
	}
}

func show(files map[string]string) string {
	var b strings.Builder
	for name, text := range files {
		if strings.HasSuffix(name, "ignore") || strings.HasSuffix(name, "exclude") {
			fmt.Fprintf(&b, "%s: %q\n", name, text)
		}
	}
	return b.String()
}

// TestIgnoredExtra says what holds beyond git.
func TestIgnoredExtra(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		".gitignore":  "gen/\n*.pb.go\n",
		".rooignore":  "secret*\n",
		"gen/":        "",
		".git/hooks/": "",
	})
	paths := []string{"a.go", "gen/a.go", "x.pb.go", "secret.go", "sub/secret.py", ".git/hooks/a.py", "old/b.go"}
	tests := []struct {
		name  string
		extra []string
		want  string
	}{
		{"files alone", nil, "gen/a.go x.pb.go secret.go sub/secret.py .git/hooks/a.py"},
		{"a setting adds", []string{"/old/"}, "gen/a.go x.pb.go secret.go sub/secret.py .git/hooks/a.py old/b.go"},
		{"a setting overrides .gitignore only", []string{"!*.pb.go", "!gen", "!secret.go", "!.git"}, "secret.go sub/secret.py .git/hooks/a.py"},
	}
	for _, tt := range tests {
		got := ignoredBy(t, dir, tt.extra, paths)
		var list []string
		for _, p := range paths {
			if got[p] {
				list = append(list, p)
			}
		}
		if s := strings.Join(list, " "); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, s, tt.want)
		}
	}
}

// TestGlobIsBounded matches patterns that make a naive matcher take exponential time.
func TestGlobIsBounded(t *testing.T) {
	t.Parallel()
	segs := strings.Split(strings.Repeat("a/", 400)+"b", "/")
	if matchSegments(strings.Split(strings.Repeat("**/a/", 100)+"c", "/"), segs) {
		t.Error("got a match, want none")
	}
	if glob(strings.Repeat("*a", 200)+"c", strings.Repeat("a", 4000)) {
		t.Error("got a match, want none")
	}
}
