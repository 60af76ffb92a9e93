package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/trust"
)

var (
	one = strings.Repeat("1", 64)
	two = strings.Repeat("2a", 32)
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTrustIsForOneContent: changed content of a trusted file is not trusted, and content
// that was trusted before still is.
func TestTrustIsForOneContent(t *testing.T) {
	s := trust.Open(filepath.Join(t.TempDir(), "trust"))
	file := filepath.Join(t.TempDir(), "condense.yaml")
	trusted := func(path, digest string, want bool) {
		t.Helper()
		if got, err := s.Trusts(trust.Entry{Kind: trust.Config, Digest: digest, Path: path}); err != nil || got != want {
			t.Errorf("trusted %t %v, want %t", got, err, want)
		}
	}
	trusted(file, one, false)
	must(t, s.Add(trust.Entry{Kind: trust.Config, Digest: one, Path: file}))
	trusted(file, one, true)
	trusted(file, two, false)
	trusted(file+"2", one, false)
	must(t, s.Add(trust.Entry{Kind: trust.Config, Digest: two, Path: file}))
	trusted(file, one, true)
	gone, err := s.Remove(file)
	if err != nil || len(gone) != 2 {
		t.Errorf("removed %v %v", gone, err)
	}
	trusted(file, one, false)
	trusted(file, two, false)
}

// TestAgreementIsKept: what the user has agreed to can be shown later, the newest first, and is not
// that of another kind; text that something else has changed trusts nothing.
func TestAgreementIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	s, file := trust.Open(dir), filepath.Join(t.TempDir(), "condense.yaml")
	odd := []trust.Claim{{Key: `serve.tenants."a b"`, Value: "a \"b\"\n\x1b\xff", Does: "x"}, {Key: "k", Value: "", Does: ""}}
	for i, claims := range [][]trust.Claim{odd, {}, odd[:1]} {
		e := trust.ConfigEntry(trust.Gateway, file, claims)
		before := s.State()
		if must(t, s.Add(e)); before == s.State() {
			t.Errorf("%d: the store looks unchanged", i)
		}
		if got, err := s.Trusts(e); err != nil || !got {
			t.Errorf("%d: trusted %t %v", i, got, err)
		}
		if got, err := s.Trusts(trust.ConfigEntry(trust.Config, file, claims)); err != nil || got {
			t.Errorf("%d: trusted as another kind: %t %v", i, got, err)
		}
		at := time.Now().Add(time.Duration(i) * time.Minute)
		all, err := s.Of(trust.Gateway, file)
		must(t, err)
		for _, stored := range all {
			if stored.Digest == e.Digest && !reflect.DeepEqual(stored.Claims, claims) {
				t.Errorf("stored %q, want %q", stored.Claims, claims)
			}
		}
		files, err := os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			if text, err := os.ReadFile(filepath.Join(dir, f.Name())); err == nil && strings.Contains(string(text), e.Digest) {
				must(t, os.Chtimes(filepath.Join(dir, f.Name()), at, at))
			}
		}
	}
	all, err := s.Of(trust.Gateway, file)
	if err != nil || len(all) != 3 || len(all[0].Claims) != 1 || all[1].Claims == nil || len(all[1].Claims) != 0 {
		t.Errorf("got %+v %v", all, err)
	}
	before := s.State()
	if _, err := s.Remove(file); err != nil || s.State() == before {
		t.Errorf("removed: %v", err)
	}
	e := trust.ConfigEntry(trust.Gateway, file, odd)
	must(t, s.Add(e))
	files, err := os.ReadDir(dir)
	must(t, err)
	stored := filepath.Join(dir, files[0].Name())
	text, err := os.ReadFile(stored)
	must(t, err)
	must(t, os.WriteFile(stored, []byte(strings.Replace(string(text), "serve", "swerve", 1)), 0o600))
	if got, err := s.Trusts(e); err == nil || got {
		t.Errorf("trusted although it was changed: %t %v", got, err)
	}
}

// TestPin: a plugin has one digest, the last approved one; a file and a folder of the
// same name differ, and a path through a link is the path that it leads to.
func TestPin(t *testing.T) {
	s := trust.Open(filepath.Join(t.TempDir(), "trust"))
	dir := t.TempDir()
	program := filepath.Join(dir, "ours")
	pinned := func(path string, folder bool, want string) {
		t.Helper()
		if got, err := s.Pin(path, folder); err != nil || got != want {
			t.Errorf("%s: pinned %q %v, want %q", path, got, err, want)
		}
	}
	pinned(program, false, "")
	must(t, s.SetPin(program, false, strings.ToUpper(two)))
	must(t, s.SetPin(program, false, one))
	pinned(program, false, one)
	pinned(program, true, "")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	pinned(filepath.Join(link, "ours"), false, one)
	if err := s.SetPin(program, false, "rubbish"); err == nil {
		t.Error("rubbish is a digest")
	}
}

// TestStoreIsPrivate: no other user can read or write the store.
func TestStoreIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "condense", "trust")
	must(t, trust.Open(dir).SetPin("/bin/true", false, one))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v %v", info, err)
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
		}
	}
}

// TestDamage: a file that is not as it was written trusts nothing, and the error names it.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := trust.Open(dir)
	must(t, s.SetPin("/bin/true", false, one))
	files, err := os.ReadDir(dir)
	must(t, err)
	file := filepath.Join(dir, files[0].Name())
	for _, text := range []string{"", "rubbish\n", "plugin " + one + " /bin/true\n", "plugin " + one + " \"\\\"\n", "plugin " + one + " \"/bin/false\"\n"} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if got, err := s.Pin("/bin/true", false); err == nil || got != "" || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
}

// TestNoFolder: without a home directory nothing is or can be trusted.
func TestNoFolder(t *testing.T) {
	s := trust.Open("")
	if got, err := s.Trusts(trust.Entry{Kind: trust.Config, Digest: one, Path: "/x"}); got || err != nil {
		t.Errorf("%t %v", got, err)
	}
	if err := s.SetPin("/x", false, one); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Errorf("%v", err)
	}
}

// TestTwoCommandsAtOnce: concurrent agreements do not overwrite each other.
func TestTwoCommandsAtOnce(t *testing.T) {
	s := trust.Open(t.TempDir())
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := s.SetPin(fmt.Sprintf("/x/%d\n\x1b[31m", i), false, one); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, err := s.All(); err != nil || len(got) != 50 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}
