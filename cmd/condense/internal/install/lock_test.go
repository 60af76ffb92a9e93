package install_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/install"
)

// write writes the files of a release to a folder.
func write(t *testing.T, dir string, all map[string][]byte) {
	t.Helper()
	for name, data := range all {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// echoes returns a release of the plugin tidy, a script.
func echoes(text string) map[string][]byte {
	return release(map[string][]byte{"condense-tidy": []byte("#!/bin/sh\necho " + text + "\n")})
}

// respell changes the sources of condense.lock, and no checksum.
func respell(t *testing.T, in *install.Installer, from, to string) {
	t.Helper()
	file := filepath.Join(in.Dir, install.LockFile)
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"`+from+`"`) {
		t.Fatalf("%v: no source %s in %s", err, from, text)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), `"`+from+`"`, `"`+to+`"`)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The checksums of condense.lock count however its source is spelled: who changes that line alone changes no program.
func TestLockBindsEverySpelling(t *testing.T) {
	good, evil := echoes("good"), echoes("EVIL")
	now := good
	in, address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/releases/latest") {
			http.Redirect(w, r, "/acme/tidy/releases/tag/v2.0.0", http.StatusFound)
			return
		}
		files(now)(w, r)
	}))
	for source, spellings := range map[string][]string{
		"./rel":                   {"./rel", "rel", "./rel/", "./rel/../rel", ".//rel", "././rel", "ABS", "ABS/", "./rel/condense-tidy", "rel/condense-tidy", "./rel/SHA256SUMS"},
		"github:acme/tidy@v1":     {"github:acme/tidy@v1", "github:acme/tidy", "github:ACME/Tidy@v1", "github:acme/tidy@v2.0.0", "./rel"},
		address + "a/":            {address + "a/", address + "a/../b/", address + "a//", address + "a/SHA256SUMS", address + "a/condense-tidy", "./rel"},
		address + "condense-tidy": {address + "condense-tidy", address + "./condense-tidy", address},
	} {
		for _, spelling := range spellings {
			in.Dir, now = t.TempDir(), good
			write(t, filepath.Join(in.Dir, "rel"), good)
			if _, err := put(t.Context(), in, source); err != nil {
				t.Fatal(source, err)
			}
			spelling = strings.Replace(spelling, "ABS", filepath.ToSlash(filepath.Join(in.Dir, "rel")), 1)
			respell(t, in, source, spelling)
			now = evil
			write(t, filepath.Join(in.Dir, "rel"), evil)
			if err := os.RemoveAll(filepath.Join(in.Dir, ".condense")); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(in.Dir, ".condense"), 0o755); err != nil {
				t.Fatal(err)
			}
			if s, err := commit(in.StageLocked(t.Context(), "tidy")); err == nil {
				t.Errorf("%s, in the lock as %s: installed the file with the SHA-256 %s", source, spelling, s.SHA256)
			}
			if got := left(t, filepath.Join(in.Dir, ".condense")); len(got) > 0 {
				t.Errorf("%s: there is %q", spelling, got)
			}
		}
	}
}

// The lock has one spelling for each release, and the good files are installed under each.
func TestLockSpellsSourcesOneWay(t *testing.T) {
	in, address := serve(t, files(echoes("good")))
	address = strings.Replace(address, "https", "HTTPS", 1)
	for spelling, want := range map[string]string{
		"rel/": "./rel", "./rel/../rel": "./rel", "ABS/": "./rel", "github:Acme/Tidy@V1": "github:acme/tidy@V1",
		address + "x/../a//b/": address + "a/b/", address + "a/SHA256SUMS": address + "a/",
	} {
		in.Dir = t.TempDir()
		write(t, filepath.Join(in.Dir, "rel"), echoes("good"))
		spelling = strings.Replace(spelling, "ABS", filepath.ToSlash(filepath.Join(in.Dir, "rel")), 1)
		if _, err := put(t.Context(), in, spelling); err != nil {
			t.Error(err)
			continue
		}
		want = strings.Replace(want, "HTTPS", "https", 1)
		respell(t, in, want, spelling)
		s, err := commit(in.StageLocked(t.Context(), "tidy"))
		if err != nil || s.Source.String() != want {
			t.Errorf("%s: got %v, %v", spelling, s, err)
		}
		respell(t, in, want, want)
	}
}

// Each name of the lock installs its own plugin: two names at one source, none that the lock lacks, and none under another's name.
func TestLockInstallsByName(t *testing.T) {
	in := installer(t, nil)
	dir := filepath.Join(in.Dir, "rel")
	write(t, dir, release(map[string][]byte{"condense-tidy": []byte("#!/bin/sh\n"), "condense-neat": []byte("#!/bin/sh\nneat\n")}))
	for _, name := range []string{"tidy", "neat"} {
		if _, err := put(t.Context(), in, "./rel/condense-"+name); err != nil {
			t.Fatal(err)
		}
		respell(t, in, "./rel/condense-"+name, "./rel")
	}
	for _, name := range []string{"tidy", "neat"} {
		if s, err := commit(in.StageLocked(t.Context(), name)); err != nil || s.Name != name {
			t.Errorf("%s: got %v, %v", name, s, err)
		}
	}
	if _, err := in.StageLocked(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), `condense.lock has no plugin "other"`) {
		t.Errorf("got %v", err)
	}
	respell(t, in, "./rel", "./rel/condense-neat")
	if _, err := in.StageLocked(t.Context(), "tidy"); err == nil {
		t.Error("tidy was staged from the file of neat")
	}
	src, err := in.Parse("./rel/condense-neat", in.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Stage(t.Context(), src, "tidy"); err == nil || !strings.Contains(err.Error(), "condense-neat is the plugin neat, not tidy") {
		t.Errorf("an update of tidy: got %v", err)
	}
}
