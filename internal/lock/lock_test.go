package lock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lock"
)

var (
	one = strings.Repeat("1", 64)
	two = strings.Repeat("2a", 32)
)

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, lock.Name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) *lock.File {
	t.Helper()
	f, err := lock.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What sha256sum writes is understood, whatever way the path is written; a file and a
// folder of the same name are not the same.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "# ours\n\n"+one+"  ./a/../ours\r\n"+strings.ToUpper(two)+"  tools/my tool/\n"+two+"  ../up\n"+one+"  /opt/x")
	f := read(t, dir)
	for _, tt := range []struct {
		path   string
		folder bool
		want   string
	}{
		{filepath.Join(dir, "ours"), false, one},
		{filepath.Join(dir, "ours"), true, ""},
		{filepath.Join(dir, "tools", "my tool"), true, two},
		{filepath.Join(dir, "tools", "my tool"), false, ""},
		{filepath.Join(filepath.Dir(dir), "up"), false, two},
		{filepath.Join(dir, "other"), false, ""},
	} {
		if got := f.Digest(tt.path, tt.folder); got != tt.want {
			t.Errorf("%s, folder %v: got %q, want %q", tt.path, tt.folder, got, tt.want)
		}
	}
	if got := read(t, t.TempDir()).Digest(filepath.Join(dir, "ours"), false); got != "" {
		t.Errorf("without a file: got %q", got)
	}
}

// Every line that is wrong is named: a pin that is not understood must not count as none.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, one+" ours\n"+one+"  a\n"+one[1:]+"  b\n"+two+"  ./a\n"+two+"  x\ty\n"+two+"   b\n")
	_, err := lock.Read(dir)
	if err == nil {
		t.Fatal("got no error")
	}
	want := strings.ReplaceAll(`F:1: "`+one+` ours" is not a checksum of 64 hexadecimal digits, two spaces and a path
F:3: "`+one[1:]+`  b" is not a checksum of 64 hexadecimal digits, two spaces and a path
F:4: "a" stands in line 2 already
F:5: the path "x\ty" holds a control character
F:6: "`+two+`   b" is not a checksum of 64 hexadecimal digits, two spaces and a path`, "F", filepath.Join(dir, lock.Name))
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write(t, dir, strings.Repeat("#\n", 1<<20))
	if _, err := lock.Read(dir); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("2 MiB: got error %v", err)
	}
}

// A new pin stands in its place, an old one is replaced in its own, and nothing else
// changes.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	f := read(t, dir)
	set := func(name string, folder bool, digest string) {
		t.Helper()
		if err := f.Set(filepath.Join(dir, name), folder, digest); err != nil {
			t.Fatal(err)
		}
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
		f = read(t, dir)
	}
	check := func(want string) {
		t.Helper()
		got, err := os.ReadFile(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	const head = "# Plugins that condense may start, as 'condense plugin pin' found them.\n"
	set("b", false, one)
	check(head + one + "  b\n")
	write(t, dir, "# by hand\n"+one+"  b\n# the end")
	f = read(t, dir)
	set("c", true, one)
	set("a", false, one)
	check("# by hand\n" + one + "  a\n" + one + "  b\n# the end\n" + one + "  c/\n")
	set("b", false, two)
	check("# by hand\n" + one + "  a\n" + two + "  b\n# the end\n" + one + "  c/\n")

	for path, digest := range map[string]string{"a\nb": one, "a ": one, "a": "123"} {
		if err := f.Set(filepath.Join(dir, path), false, digest); err == nil {
			t.Errorf("%q %s: got no error", path, digest)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".condense*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Whatever is pinned is found again, and nothing else is.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		if err := os.RemoveAll(filepath.Join(dir, lock.Name)); err != nil {
			rt.Fatal(err)
		}
		f, err := lock.Read(dir)
		if err != nil {
			rt.Fatal(err)
		}
		want := map[string]string{}
		for range rapid.IntRange(0, 6).Draw(rt, "pins") {
			path := filepath.Join(dir, rapid.StringMatching(`[a-c#./é"\\ ]{0,6}[a-z]`).Draw(rt, "path"))
			sum := rapid.StringMatching(`[0-9a-f]{64}`).Draw(rt, "digest")
			if f.Set(path, false, sum) == nil {
				want[path] = sum
			}
		}
		if err := f.Write(); err != nil {
			rt.Fatal(err)
		}
		if f, err = lock.Read(dir); err != nil {
			rt.Fatal(err)
		}
		for path, sum := range want {
			if got := f.Digest(path, false); got != sum {
				rt.Errorf("%q: got %q, want %q", path, got, sum)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(one + "  a\n#\n" + two + "  b/\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		write(t, dir, text)
		file, err := lock.Read(dir)
		if err != nil {
			return
		}
		if err := file.Set(filepath.Join(dir, "new"), false, one); err != nil {
			t.Fatal(err)
		}
		if err := file.Write(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir).Digest(filepath.Join(dir, "new"), false); got != one {
			t.Errorf("got %q", got)
		}
	})
}

// The configuration counts for more than the lock file.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, one+"  ours\n"+two+"  all/\n")
	lockFile := filepath.Join(dir, lock.Name)
	ours := config.Provider{Plugin: filepath.Join(dir, "ours"), PluginDir: dir}
	for name, tt := range map[string]struct {
		change func(*config.Provider)
		want   lock.Pin
	}{
		"lock":          {func(*config.Provider) {}, lock.Pin{SHA256: one, Lock: lockFile}},
		"configuration": {func(p *config.Provider) { p.SHA256 = two }, lock.Pin{SHA256: two}},
		"folder": {func(p *config.Provider) {
			p.Folder, p.Plugin = filepath.Join(dir, "all"), filepath.Join(dir, "all", "run")
		}, lock.Pin{SHA256: two, Lock: lockFile}},
		"none":      {func(p *config.Provider) { p.Plugin += "x" }, lock.Pin{}},
		"elsewhere": {func(p *config.Provider) { p.PluginDir = filepath.Dir(dir) }, lock.Pin{}},
		"nowhere":   {func(p *config.Provider) { p.PluginDir = "" }, lock.Pin{}},
	} {
		p := ours
		tt.change(&p)
		if got, err := lock.Find(p); err != nil || got != tt.want {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, tt.want)
		}
	}
}
