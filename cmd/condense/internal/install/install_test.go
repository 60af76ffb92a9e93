package install_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/install"
)

// elf is the beginning of a program for Linux on amd64.
func elf(machine byte) []byte {
	return append(append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...), 2, 0, machine, 0, 1, 2, 3, 4)
}

// release returns the files of a release with these assets and their checksums.
func release(assets map[string][]byte) map[string][]byte {
	all, sums := map[string][]byte{}, ""
	for name, data := range assets {
		all[name] = data
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	}
	all["SHA256SUMS"] = []byte(sums)
	return all
}

const manifest = `{"name": "tidy", "version": "v1.2.0", "doc": "Tidies.\u001b[2J", "abilities": ["rewrites"], "program": "plugin.py"}`

func programs() map[string][]byte {
	return map[string][]byte{
		"condense-tidy-linux-amd64": elf(62), "condense-tidy-linux-arm64": elf(183), "condense-tidy-windows-amd64.exe": []byte("MZ program of twenty bytes"),
		"condense-plugin.json": []byte(manifest), "CARD.md": []byte("verdict"),
	}
}

// serve starts a server with TLS and returns an installer that trusts it.
func serve(t *testing.T, h http.Handler) (*install.Installer, string) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	return installer(t, server), server.URL + "/"
}

func installer(t *testing.T, server *httptest.Server) *install.Installer {
	t.Helper()
	in := &install.Installer{Dir: t.TempDir(), OS: "linux", Arch: "amd64"}
	if server != nil {
		in.Client, in.GitHub = server.Client(), server.URL
	}
	return in
}

func files(all map[string][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, ok := all[filepath.Base(r.URL.Path)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}
}

// put installs from a source.
func put(ctx context.Context, in *install.Installer, source string) (*install.Staged, error) {
	src, err := in.Parse(source, in.Dir)
	if err != nil {
		return nil, err
	}
	return commit(in.Stage(ctx, src, ""))
}

func commit(s *install.Staged, err error) (*install.Staged, error) {
	if err != nil {
		return nil, err
	}
	return s, errors.Join(s.Commit(), s.Close())
}

// left returns the files of the project.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != ".gitignore" {
			rel, _ := filepath.Rel(dir, p)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The checksum of SHA256SUMS pins every file of a release at an address, and the checksum of a file pins a file that is alone.
func TestPinnedSource(t *testing.T) {
	all := release(programs())
	in, base := serve(t, files(all))
	sum := func(file string) string { return fmt.Sprintf("%x", sha256.Sum256(all[file])) }
	s, err := put(t.Context(), in, base)
	if err != nil {
		t.Fatal(err)
	}
	if s.Release != sum("SHA256SUMS") || len(s.Files()) != 4 || s.Files()[0] != "condense-plugin.json" {
		t.Errorf("got %s with %s", s.Release, s.Files())
	}
	in.SHA256 = s.Release
	if _, err := put(t.Context(), in, base); err != nil {
		t.Error(err)
	}
	in.SHA256 = sum("CARD.md")
	if _, err := put(t.Context(), in, base); err == nil || !strings.Contains(err.Error(), "SHA256SUMS was tampered with or is damaged: its SHA-256 is "+s.Release) {
		t.Errorf("got %v", err)
	}
	delete(all, "SHA256SUMS")
	const file = "condense-tidy-linux-amd64"
	if _, err := put(t.Context(), in, base+file); err == nil || !strings.Contains(err.Error(), file+" was tampered with or is damaged") {
		t.Errorf("got %v", err)
	}
	in.SHA256 = sum(file)
	if s, err := put(t.Context(), in, base+file); err != nil || s.Release != sum(file) {
		t.Error(err)
	}
}

// A release is installed from an address and from GitHub, which redirects, and condense.lock has the checksums of all platforms.
// With the lock another platform installs the same release.
func TestInstall(t *testing.T) {
	all := release(programs())
	mux := http.NewServeMux()
	mux.HandleFunc("/dist/", files(all))
	mux.HandleFunc("/acme/tidy/releases/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/acme/tidy/releases/tag/v1.2.0", http.StatusFound)
	})
	mux.HandleFunc("/acme/tidy/releases/download/v1.2.0/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/dist/"+filepath.Base(r.URL.Path)+"?signed=1", http.StatusFound)
	})
	in, address := serve(t, mux)
	for _, source := range []string{address + "dist/", address + "dist/SHA256SUMS", address + "dist/condense-tidy-linux-amd64", "github:acme/tidy@v1.2.0", "github:acme/tidy"} {
		in.Dir = t.TempDir()
		s, err := put(t.Context(), in, source)
		if err != nil {
			t.Fatal(err)
		}
		program, folder := s.Program()
		got, err := os.ReadFile(program)
		if err != nil || folder != "" || !bytes.Equal(got, elf(62)) || s.Name != "tidy" || s.About.Doc != "Tidies.[2J" {
			t.Errorf("%s: got %q in %q, %v, %+v", source, got, folder, err, s.About)
		}
		if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: got mode %v, %v", source, info.Mode(), err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(got)) != s.Approves {
			t.Errorf("%s: it approves %s", source, s.Approves)
		}
		lock, err := in.Lock()
		if err != nil || len(lock.Plugins["tidy"].Assets) != 4 {
			t.Errorf("%s: got %+v, %v", source, lock, err)
		}
		want := []string{".condense/plugins/tidy/condense-tidy", "condense.lock"}
		if got := left(t, in.Dir); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}

		in.OS = "windows"
		if s, err = commit(in.StageLocked(t.Context(), "tidy")); err != nil && !strings.HasSuffix(source, "amd64") {
			t.Errorf("%s: %v", source, err)
		} else if err == nil && (s.Asset != "condense-tidy-windows-amd64.exe" || !s.Same()) {
			t.Errorf("%s: got %+v", source, s)
		}
		in.OS = "linux"
	}
}

// What is wrong with a release is said, and nothing of it stays.
func TestRefused(t *testing.T) {
	whole := func(name string, data []byte) map[string][]byte { // a release in which one file was exchanged
		all := release(programs())
		if all[name] = data; data == nil {
			delete(all, name)
		}
		return all
	}
	only := func(names ...string) map[string][]byte {
		assets := map[string][]byte{}
		for _, name := range names {
			assets[name] = elf(62)
		}
		return release(assets)
	}
	for name, tt := range map[string]struct {
		all  map[string][]byte
		want string
	}{
		"tampered":            {whole("condense-tidy-linux-amd64", elf(0)), "condense-tidy-linux-amd64 was tampered with or is damaged: its SHA-256 is "},
		"manifest tampered":   {whole("condense-plugin.json", []byte("{}")), "condense-plugin.json was tampered with"},
		"no checksums":        {whole("SHA256SUMS", nil), "a release has the file SHA256SUMS"},
		"other checksums":     {whole("SHA256SUMS", []byte("<html>")), `SHA256SUMS:1: "<html>" is not a checksum`},
		"sums with a path":    {whole("SHA256SUMS", []byte(strings.Repeat("a", 64)+"  ../condense-tidy\n")), "SHA256SUMS:1: "},
		"asset missing":       {whole("condense-tidy-linux-amd64", nil), "condense-tidy-linux-amd64: 404 Not Found"},
		"wrong platform":      {only("condense-tidy-darwin-arm64"), "there is no asset for linux/amd64, only for darwin/arm64"},
		"two plugins":         {only("condense-a", "condense-b"), "there are several plugins, a, b: name the asset of one"},
		"two for this one":    {only("condense-a", "condense-a.tgz"), "there are several assets for this platform"},
		"no plugin":           {only("tidy"), "no file is named like a plugin"},
		"for another system":  {release(map[string][]byte{"condense-tidy-linux-amd64": []byte("MZ program of twenty bytes")}), "is a program for windows, and this is linux/amd64"},
		"for another machine": {release(map[string][]byte{"condense-tidy-linux-amd64": elf(183)}), "is a program for elf arm64, and this is linux/amd64"},
		"a page":              {release(map[string][]byte{"condense-tidy": []byte("<!doctype html> and so on")}), "is not a program, but starts with 3c21646f"},
	} {
		t.Run(name, func(t *testing.T) {
			in, address := serve(t, files(tt.all))
			refuse(t, in, address, tt.want)
		})
	}
}

func refuse(t *testing.T, in *install.Installer, source, want string) {
	t.Helper()
	_, err := put(t.Context(), in, source)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if got, err := os.ReadDir(in.Dir); err != nil || len(got) > 0 {
		t.Errorf("there is still %v (%v)", got, err)
	}
}

// An address that cannot be reached is no release without checksums.
func TestUnreachable(t *testing.T) {
	in, address := serve(t, files(release(programs())))
	in.Client = &http.Client{} // which does not trust the server
	_, err := put(t.Context(), in, address)
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "SHA256SUMS, as") {
		t.Errorf("got %v, want the error of the certificate alone", err)
	}
}

// An answer that ends early, is endless or leads elsewhere.
func TestRefusedAnswers(t *testing.T) {
	all := release(programs())
	elsewhere := httptest.NewTLSServer(files(all))
	defer elsewhere.Close()
	plain := httptest.NewServer(files(all))
	defer plain.Close()
	for _, tt := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		{"truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(elf(62))
		}, "after 24 bytes: unexpected EOF"},
		{"giant", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "300000000000")
			_, _ = w.Write(elf(62))
		}, "condense-tidy-linux-amd64 is larger than 256 MiB"},
		{"to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
		}, "redirected to another host, 127.0.0.1:"},
		{"to plain http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusFound)
		}, "only https:// is followed"},
		{"in circles", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, "more than five redirections"},
		{"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "403 Forbidden"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "amd64") {
					tt.answer(w, r)
					return
				}
				files(all)(w, r)
			}))
			refuse(t, in, address, tt.want)
		})
	}
}

// An installation that is interrupted leaves nothing.
func TestInterrupted(t *testing.T) {
	all := release(programs())
	ctx, stop := context.WithCancel(t.Context())
	in, address := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "linux-amd64") {
			files(all)(w, r)
			return
		}
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(elf(62))
		_ = http.NewResponseController(w).Flush()
		stop()
		<-r.Context().Done()
	}))
	if _, err := put(ctx, in, address); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := left(t, in.Dir); len(got) > 0 {
		t.Errorf("there is still %q", got)
	}
}

// A tag must not move: condense.lock has other checksums for it.
func TestMovedTag(t *testing.T) {
	all := release(programs())
	in, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { files(all)(w, r) }))
	if _, err := put(t.Context(), in, "github:acme/tidy@v1"); err != nil {
		t.Fatal(err)
	}
	other := programs()
	other["condense-tidy-linux-amd64"] = append(elf(62), 0)
	all = release(other)
	for _, locked := range []bool{false, true} {
		_, err := put(t.Context(), in, "github:acme/tidy@v1")
		if locked {
			_, err = commit(in.StageLocked(t.Context(), "tidy"))
		}
		want := map[bool]string{false: "condense.lock has other checksums for it (condense-tidy-linux-amd64)", true: "was tampered with"}[locked]
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	program := filepath.Join(in.Dir, ".condense/plugins/tidy/condense-tidy")
	if got, err := os.ReadFile(program); err != nil || !bytes.Equal(got, elf(62)) {
		t.Errorf("the installed one is %q, %v", got, err)
	}
	// Another tag is another release.
	if _, err := put(t.Context(), in, "github:acme/tidy@v2"); err != nil {
		t.Error(err)
	}
	if removed, err := in.Remove("tidy"); err != nil || !removed {
		t.Errorf("got %v, %v", removed, err)
	}
	if _, err := os.Stat(filepath.Dir(program)); err == nil {
		t.Error("it is still there")
	}
}

// An entry of an archive.
type entry struct {
	name, text string
	mode       fs.FileMode
	kind       byte // of tar
	link       string
}

func tarGz(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.text)), Typeflag: e.kind, Linkname: e.link}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stored is an archive with a file that is not compressed.
func stored(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateHeader(&zip.FileHeader{Name: "plugin.py", Method: zip.Store})
	if err == nil {
		_, err = io.WriteString(f, "import os")
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var script = entry{name: "tidy/plugin.py", text: "#!/usr/bin/python3\n", mode: 0o755, kind: tar.TypeReg}

// A plugin of several files comes in an archive, with or without a folder around it.
func TestArchives(t *testing.T) {
	inside := entry{name: "tidy/condense-plugin.json", text: manifest, mode: 0o644, kind: tar.TypeReg}
	more := entry{name: "tidy/condense/x.py", text: "pass", mode: 0o644, kind: tar.TypeReg}
	flat := []entry{script, inside, more}
	for i := range flat {
		flat[i].name = strings.TrimPrefix(flat[i].name, "tidy/")
	}
	for name, assets := range map[string]map[string][]byte{
		"tar":              {"condense-tidy.tar.gz": tarGz(t, script, inside, more)},
		"flat":             {"condense-tidy.tgz": tarGz(t, flat...)},
		"zip":              {"condense-tidy.zip": zipped(t, script, inside, more)},
		"manifest outside": {"condense-tidy.zip": zipped(t, script, more), "condense-plugin.json": []byte(manifest)},
		"by platform":      {"condense-tidy-linux-amd64.zip": zipped(t, script, inside, more), "condense-tidy.tar.gz": []byte("for others")},
	} {
		in, address := serve(t, files(release(assets)))
		s, err := put(t.Context(), in, address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		program, folder := s.Program()
		if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 || filepath.Dir(program) != folder {
			t.Errorf("%s: got %v, %v in %s", name, info, err, folder)
		}
		if _, err := os.Stat(filepath.Join(folder, "condense", "x.py")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Archives that would write elsewhere, or fill the disk.
func TestHostileArchives(t *testing.T) {
	var big bytes.Buffer // its header is enough
	z := gzip.NewWriter(&big)
	_ = tar.NewWriter(z).WriteHeader(&tar.Header{Name: "big", Size: 1<<30 + 1, Mode: 0o644, Typeflag: tar.TypeReg})
	_ = z.Close()
	many := make([]entry, 20_001)
	for i := range many {
		many[i] = entry{name: "d/", kind: tar.TypeDir}
	}
	file := func(name string) entry { return entry{name: name, text: "x", mode: 0o644, kind: tar.TypeReg} }
	link := func(kind byte) entry { return entry{name: "plugin.py", link: "/bin/sh", kind: kind} }
	whole := tarGz(t, script)
	damaged := slices.Clone(whole)
	damaged[len(damaged)-6]++
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"slip":          {tarGz(t, file("../../evil")), "leads out of the archive"},
		"absolute":      {tarGz(t, file("/etc/evil")), "leads out of the archive"},
		"backslash":     {tarGz(t, file(`..\evil`)), "leads out of the archive"},
		"drive":         {tarGz(t, file("C:evil")), "leads out of the archive"},
		"line break":    {tarGz(t, file("a\nb")), "a name with a control character"},
		"symlink":       {tarGz(t, link(tar.TypeSymlink)), "is a link or a device"},
		"hard link":     {tarGz(t, link(tar.TypeLink)), "is a link or a device"},
		"device":        {tarGz(t, entry{name: "null", kind: tar.TypeChar}), "is a link or a device"},
		"through a dir": {tarGz(t, file("a"), file("a/b")), "file exists"},
		"twice":         {tarGz(t, file("a"), file("./a")), `"./a" is there twice`},
		"many":          {tarGz(t, many...), "has more than 20000 files"},
		"bomb":          {big.Bytes(), "is larger than 1024 MiB unpacked"},
		"cut off":       {whole[:len(whole)-20], "unexpected EOF"},
		"damaged":       {damaged, "gzip: invalid checksum"},
		"no archive":    {[]byte("hello"), "is not an archive in gzip format"},
	} {
		t.Run(name, func(t *testing.T) {
			in, address := serve(t, files(release(map[string][]byte{"condense-tidy.tar.gz": tt.data, "condense-plugin.json": []byte(manifest)})))
			refuse(t, in, address, tt.want)
		})
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"slip":    {zipped(t, file("../evil")), "leads out of the archive"},
		"escape":  {zipped(t, file("a\x1b[2J")), "a name with a control character"},
		"symlink": {zipped(t, entry{name: "a", text: "/etc", mode: fs.ModeSymlink | 0o777}), "is a link or a device"},
		"no zip":  {[]byte("hello"), "not a valid zip file"},
		"damaged": {bytes.Replace(stored(t), []byte("import os"), []byte("import 0s"), 1), "checksum error"},
		"program": {zipped(t, file("plugin.py")), "program: plugin.py is not executable"},
		"missing": {zipped(t, file("other.py")), "program: statat"},
	} {
		t.Run("zip "+name, func(t *testing.T) {
			in, address := serve(t, files(release(map[string][]byte{"condense-tidy.zip": tt.data, "condense-plugin.json": []byte(manifest)})))
			refuse(t, in, address, tt.want)
		})
	}
}

// A repository cannot make an installation write elsewhere, through a link or a name in condense.lock.
func TestHostileProject(t *testing.T) {
	in, address := serve(t, files(release(programs())))
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(in.Dir, ".condense")); err != nil {
		t.Skip(err)
	}
	if _, err := put(t.Context(), in, address); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v", err)
	}
	if got := left(t, outside); len(got) > 0 {
		t.Errorf("it wrote %q", got)
	}
	for name, text := range map[string]string{
		"a path":       `{"version": 1, "plugins": {"../evil": {"source": "x", "assets": {"condense-evil": "%s"}}}}`,
		"other assets": `{"version": 1, "plugins": {"tidy": {"source": "x", "assets": {"condense-evil": "%s"}}}}`,
		"later":        `{"version": 2, "plugins": {}}`,
		"old":          `%s  evil.sh`,
	} {
		if err := os.WriteFile(filepath.Join(in.Dir, install.LockFile), fmt.Appendf(nil, text, strings.Repeat("a", 64)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Lock(); err == nil || !strings.Contains(err.Error(), "condense.lock: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSources(t *testing.T) {
	in := installer(t, nil)
	for source, want := range map[string]string{
		"github:acme":                   "want github:OWNER/REPO or github:OWNER/REPO@TAG",
		"github:acme/..@v1":             "want github:OWNER/REPO",
		"github:acme/tidy@../../x":      "want github:OWNER/REPO",
		"http://example.com/x/":         "only https:// addresses are fetched",
		"ftp://example.com/x/":          "only https:// addresses are fetched",
		"https://me:pw@example.com/x/":  "an address with a user, ? or # is not accepted",
		"https://example.com/x?token=1": "an address with a user, ? or # is not accepted",
		"./nowhere":                     "no such file",
	} {
		if _, err := in.Parse(source, in.Dir); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "token") {
			t.Errorf("%s: got %v, want %s", source, err, want)
		}
	}
}

// A folder outside of the project that was given relative to it is found from another place of the project and the folder.
func TestRelativeSource(t *testing.T) {
	in := installer(t, nil)
	in.Dir = filepath.Join(in.Dir, "project")
	for _, dir := range []string{in.Dir, filepath.Join(in.Dir, "..", "release")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s, err := in.Parse("../release", in.Dir)
	if err != nil || s.String() != "../release" {
		t.Errorf("got %q, %v; want ../release", s, err)
	}
}

// The newest release is known without fetching it.
func TestVersions(t *testing.T) {
	all, versions := release(programs()), "{"
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/versions.json") {
			_, _ = w.Write([]byte(versions))
			return
		}
		files(all)(w, r)
	})
	in, address := serve(t, mux)
	src, err := in.Parse(address+"tidy/v1.9.0/", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ versions, newest, wrong string }{
		{`{"v1.9.0": "../v1.9.0/", "v1.10.0": "../v1.10.0", "v1.11.0-rc.1": "../rc/"}`, "tidy/v1.10.0/", ""},
		{`{"v1.9.0": "."}`, "tidy/v1.9.0/", ""},
		{`{}`, "tidy/v1.9.0/", ""},
		{`{"v2.0.0": "https://example.com/v2/"}`, "", "versions.json: https://example.com/v2/ is not on the same host"},
		{`{"v2.0.0": "http:/v2/"}`, "", "http"},
		{`<html>`, "", "versions.json: invalid character"},
	} {
		versions = tt.versions
		newest, _, err := in.Outdated(t.Context(), "tidy", src)
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("%s: got %v, want %s", tt.versions, err, tt.wrong)
		case tt.wrong == "" && (err != nil || newest.String() != address+tt.newest):
			t.Errorf("%s: got %s, %v; want %s", tt.versions, newest, err, tt.newest)
		}
	}
}

// A plugin that needs a newer condense is refused before it is installed, by a release; a build of this program is no release.
func TestRequires(t *testing.T) {
	for _, tt := range []struct{ requires, version, want string }{
		{"v1.10.0", "v1.9.5", "it requires condense v1.10.0 or later, and this is v1.9.5: update condense"},
		{"v1.10.0", "v1.10.0", ""},
		{"v1.10.0", "v2.0.0", ""},
		{"v1.10.0", "(devel)", ""},
		{"soon", "v1.9.5", "it requires condense soon or later"},
	} {
		all := programs()
		all["condense-plugin.json"] = fmt.Appendf(nil, `{"name": "tidy", "requires": %q, "stability": "beta"}`, tt.requires)
		in, address := serve(t, files(release(all)))
		in.Version = tt.version
		if tt.want != "" {
			refuse(t, in, address, tt.want)
		} else if s, err := put(t.Context(), in, address); err != nil || s.About.Stability != "beta" {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestOutdated(t *testing.T) {
	all, tag := release(programs()), "v1"
	mux := http.NewServeMux()
	mux.HandleFunc("/acme/tidy/releases/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/acme/tidy/releases/tag/"+tag, http.StatusFound)
	})
	mux.HandleFunc("/acme/none/releases/latest", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/acme/none/releases", http.StatusFound)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { files(all)(w, r) })
	in, address := serve(t, mux)
	check := func(source, want string, wantChanged bool) {
		t.Helper()
		src, err := in.Parse(source, in.Dir)
		if err != nil {
			t.Fatal(err)
		}
		newest, changed, err := in.Outdated(t.Context(), "tidy", src)
		if err != nil || newest.String() != want || changed != wantChanged {
			t.Errorf("%s: got %s, %v, %v; want %s, %v", source, newest, changed, err, want, wantChanged)
		}
	}
	if _, err := put(t.Context(), in, "github:acme/tidy@v1"); err != nil {
		t.Fatal(err)
	}
	check("github:acme/tidy@v1", "github:acme/tidy@v1", false)
	tag = "v2"
	check("github:acme/tidy@v1", "github:acme/tidy@v2", true)
	if _, err := put(t.Context(), in, address+"x/"); err != nil {
		t.Fatal(err)
	}
	check(address+"x/", address+"x/", false)
	other := programs()
	other["condense-tidy-darwin-arm64"] = []byte("x")
	all = release(other)
	check(address+"x/", address+"x/", true)
	src, err := in.Parse("github:acme/none", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Newest(t.Context(), src); err == nil || err.Error() != "github:acme/none has no release" {
		t.Errorf("got %v", err)
	}
}
