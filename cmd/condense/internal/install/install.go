// Package install brings plugins from their releases onto this machine: from a folder, an HTTPS address or GitHub, checked
// against the checksums of the release and of condense.lock. A failed installation leaves nothing behind.
//
// Installed is not approved: a plugin starts only if the user agreed to its checksum (package internal/trust).
package install

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/registry"
)

// Folder has the installed plugins, each in a folder of its name, next to condense.lock.
const Folder = ".condense/plugins"

// An Installer installs plugins for one project.
type Installer struct {
	Dir string // of the project: has condense.lock and [Folder]
	// Client makes the requests; nil means one with time-outs.
	Client *http.Client
	// GitHub is the address of GitHub; empty means https://github.com.
	GitHub string
	// OS and Arch are the platform, as Go names it; empty means this one.
	OS, Arch string
	// SHA256 is the checksum that SHA256SUMS must have, or a file without a release around it; optional.
	SHA256 string
	// Version is that of this program, which a manifest may require. One that is no release, or empty, is new enough.
	Version string
}

// A Manifest is a release's description of its plugin: the file condense-plugin.json, written by 'condense plugin docs --as json'.
type Manifest struct {
	Name      string             `json:"name"` // of the strategy
	Version   string             `json:"version"`
	Doc       string             `json:"doc"`
	SDK       string             `json:"sdk,omitempty"`
	Abilities core.Abilities     `json:"abilities"`
	Env       []string           `json:"env,omitempty"`       // variables that it reads, if the user lets it
	Program   string             `json:"program,omitempty"`   // in a plugin of several files, its program
	Requires  string             `json:"requires,omitempty"`  // the oldest condense that it works with, such as v1.2.0
	Stability string             `json:"stability,omitempty"` // in its author's words: experimental, beta, stable
	Settings  []registry.Setting `json:"settings"`
}

// ManifestFile is the name of a manifest, in a release and in an archive.
const ManifestFile = "condense-plugin.json"

// A Staged plugin is complete and checked, and not installed yet. Close it.
type Staged struct {
	Name     string // of the plugin here
	Source   Source
	Asset    string
	Size     int64     // of the asset, in bytes
	SHA256   string    // of the asset
	Release  string    // what [Installer.SHA256] must be for this release
	About    *Manifest // nil if the release says nothing
	Approves string    // the checksum that an approval is about: of the program, or of the folder
	Was      *Pin      // the release in condense.lock before; nil if there was none

	in      *Installer
	root    *os.Root
	temp    string // in root, with everything that is to be removed
	made    bool   // [Folder] was made for it
	content string // in root: the folder to install
	program string // in content
	tree    bool   // it has several files
	pin     Pin
}

// Program returns where the program will be, and its folder if it has several files.
func (s *Staged) Program() (program, folder string) {
	home := filepath.Join(s.in.Dir, filepath.FromSlash(Folder), s.Name)
	if program = filepath.Join(home, filepath.FromSlash(s.program)); s.tree {
		folder = home
	}
	return program, folder
}

// File returns the program where it is now, before it is installed.
func (s *Staged) File() string {
	return filepath.Join(s.in.Dir, filepath.FromSlash(s.content), filepath.FromSlash(s.program))
}

// Files returns the names of the release's files with the plugin, for all platforms, and of its manifest.
func (s *Staged) Files() []string { return slices.Sorted(maps.Keys(s.pin.Assets)) }

// Same reports whether condense.lock has this release already.
func (s *Staged) Same() bool {
	return s.Was != nil && s.Was.Source == s.pin.Source && maps.Equal(s.Was.Assets, s.pin.Assets)
}

// Sizes in bytes, and the most files of an archive.
const (
	maxSums     = 1 << 20
	maxManifest = 4 << 20
	maxAsset    = 256 << 20
	maxUnpacked = 1 << 30
	maxFiles    = 20_000
)

// stale is the age of a temporary folder that a killed installation left.
const stale = time.Hour

// Stage fetches the release of src and checks it: the asset for this platform, and the manifest. The checksums of a release
// in condense.lock must match. An empty name accepts every plugin.
func (in *Installer) Stage(ctx context.Context, src Source, name string) (*Staged, error) {
	src, err := in.resolve(ctx, src)
	if err != nil {
		return nil, err
	}
	sums, sum, err := in.sums(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src, err)
	}
	return in.stage(ctx, src, name, sums, sum)
}

// StageLocked stages the plugin of that name in condense.lock. Only the checksums there count, wherever the files come from.
func (in *Installer) StageLocked(ctx context.Context, name string) (*Staged, error) {
	lock, err := in.Lock()
	if err != nil {
		return nil, err
	}
	pin, ok := lock.Plugins[name]
	if !ok {
		return nil, fmt.Errorf("%s has no plugin %q", LockFile, name)
	}
	src, err := in.Parse(pin.Source, in.Dir)
	if err != nil {
		return nil, err
	}
	switch {
	case src.file != "" && pin.Assets[src.file] == "":
		return nil, fmt.Errorf("%s: the source of %s is %s, and there is no checksum of %s", LockFile, name, src, src.file)
	case src.repo != "" && src.tag == "":
		return nil, fmt.Errorf("%s: the source %s names no release: write its tag, as in %s@v1.0.0", LockFile, src, src)
	}
	return in.stage(ctx, src, name, maps.Clone(pin.Assets), "")
}

// stage is Stage with the checksums that count, and the checksum of the file that has them.
func (in *Installer) stage(ctx context.Context, src Source, name string, sums map[string]string, sum string) (_ *Staged, err error) {
	lock, err := in.Lock()
	if err != nil {
		return nil, err
	}
	s := &Staged{in: in, Source: src}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", src, err), s.Close())
		}
	}()
	a, err := in.choose(src, sums)
	switch {
	case err != nil:
		return nil, err
	case name != "" && a.plugin != name:
		return nil, fmt.Errorf("%s is the plugin %s, not %s: install it by its source if you want it", a.file, a.plugin, name)
	}
	s.Name, s.Asset = a.plugin, a.file
	if known, ok := lock.Plugins[a.plugin]; ok {
		s.Was = &known
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	if err := s.download(ctx, sums[a.file]); err != nil {
		return nil, err
	}
	sums[a.file] = s.SHA256
	s.Release = cmp.Or(sum, s.SHA256)
	s.pin = Pin{Source: src.text, Assets: assetsOf(sums, a.plugin)}
	if s.Was != nil && in.canonical(s.Was.Source) == src.text && !maps.Equal(s.Was.Assets, s.pin.Assets) && src.fixed() {
		return nil, fmt.Errorf("the release is not the one that was installed: condense.lock has other checksums for it (%s); find out who changed it, or forget it with 'condense plugin remove %s'",
			differing(s.Was.Assets, s.pin.Assets), s.Name)
	}
	if sum, ok := sums[ManifestFile]; ok {
		if s.About, err = in.manifest(ctx, src, sum); err != nil {
			return nil, err
		}
	}
	return s, cmp.Or(s.unpack(&a), in.supports(s))
}

// makeRoom makes the temporary folder.
func (s *Staged) makeRoom() (err error) {
	if s.root, err = os.OpenRoot(s.in.Dir); err != nil {
		return err
	}
	_, err = s.root.Stat(path.Dir(Folder))
	s.made = errors.Is(err, fs.ErrNotExist)
	if err := s.root.MkdirAll(Folder, 0o755); err != nil {
		return err
	}
	// Programs do not belong into the project's history: condense.lock does.
	if err := writeNew(s.root, ".condense/.gitignore", []byte("*\n")); err != nil {
		return err
	}
	entries, err := fs.ReadDir(s.root.FS(), Folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), ".") && time.Since(info.ModTime()) > stale {
			if err := s.root.RemoveAll(path.Join(Folder, e.Name())); err != nil {
				return err
			}
		}
	}
	s.temp = path.Join(Folder, ".new-"+rand.Text()[:12])
	return s.root.Mkdir(s.temp, 0o700)
}

// writeNew writes a file unless there is one.
func writeNew(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// download writes the asset to the temporary folder and checks it, if it is known which checksum it must have.
func (s *Staged) download(ctx context.Context, want string) error {
	f, err := s.root.OpenFile(path.Join(s.temp, "asset"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.SHA256, s.Size, err = s.in.fetch(ctx, s.Source, s.Asset, maxAsset, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if want != "" && s.SHA256 != want {
		return damaged(s.Asset, s.SHA256, want)
	}
	return nil
}

func damaged(file, is, want string) error {
	return fmt.Errorf("%s was tampered with or is damaged: its SHA-256 is %s, want %s", file, is, want)
}

// manifest returns the release's manifest, which has a checksum like every asset.
func (in *Installer) manifest(ctx context.Context, src Source, want string) (*Manifest, error) {
	var b strings.Builder
	sum, _, err := in.fetch(ctx, src, ManifestFile, maxManifest, &b)
	if err != nil {
		return nil, err
	}
	if sum != want {
		return nil, damaged(ManifestFile, sum, want)
	}
	return parseManifest(b.String())
}

func parseManifest(text string) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	m.Name, m.Version, m.SDK, m.Doc, m.Stability = shown(m.Name, 80), shown(m.Version, 80), shown(m.SDK, 80), shown(m.Doc, 600), shown(m.Stability, 40)
	for i := range m.Env {
		m.Env[i] = shown(m.Env[i], 80)
	}
	for i := range m.Settings {
		m.Settings[i].Name = shown(m.Settings[i].Name, 80)
	}
	return &m, nil
}

// shown returns a text of a release for a question, which it must not push off the screen: at most so many characters, none of control.
func shown(s string, most int) string { return plain.First(plain.Strip(s, ""), most) }

// unpack makes the folder to install from the asset.
func (s *Staged) unpack(a *asset) error {
	file, raw := path.Join(s.temp, "asset"), path.Join(s.temp, "raw")
	if err := s.root.Mkdir(raw, 0o755); err != nil {
		return err
	}
	s.content, s.program = raw, "condense-"+s.Name+a.suffix
	if a.archive() {
		if err := s.unpackArchive(a, file, raw); err != nil {
			return err
		}
	} else {
		to := path.Join(raw, s.program)
		if err := errors.Join(s.root.Rename(file, to), s.root.Chmod(to, 0o755)); err != nil {
			return err
		}
		if err := s.in.runsHere(s.root, to); err != nil {
			return fmt.Errorf("%s: %w", a.file, err)
		}
	}
	home := filepath.Join(s.in.Dir, filepath.FromSlash(s.content))
	spec := supervise.Spec{Path: filepath.Join(home, filepath.FromSlash(s.program))}
	if s.tree {
		spec.Tree = home
	}
	var err error
	s.Approves, err = supervise.Digest(spec)
	return err
}

// unpackArchive unpacks a plugin of several files. A folder around all of them, as 'git archive --prefix' makes it, is left out.
func (s *Staged) unpackArchive(a *asset, file, raw string) error {
	if err := unpackArchive(s.root, file, raw, a.suffix); err != nil {
		return fmt.Errorf("%s: %w", a.file, err)
	}
	entries, err := fs.ReadDir(s.root.FS(), raw)
	if err != nil {
		return err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		s.content = path.Join(raw, entries[0].Name())
	}
	if s.About == nil {
		text, err := s.root.ReadFile(path.Join(s.content, ManifestFile))
		if err == nil {
			s.About, err = parseManifest(string(text))
		}
		if err != nil {
			return fmt.Errorf("%s is not in the release and cannot be read in %s, and it names the program: %w", ManifestFile, a.file, err)
		}
	}
	s.tree, s.program = true, s.About.Program
	switch info, err := s.root.Stat(path.Join(s.content, s.program)); {
	case !filepath.IsLocal(filepath.FromSlash(s.program)) || strings.Contains(s.program, `\`):
		return fmt.Errorf("%s: program is %q; want a file of the archive", ManifestFile, plain.Line(s.program))
	case err != nil:
		return fmt.Errorf("%s: program: %w", ManifestFile, err)
	case !info.Mode().IsRegular() || info.Mode()&0o100 == 0 && s.in.platform() != "windows":
		return fmt.Errorf("%s: program: %s is not executable in %s", ManifestFile, s.program, a.file)
	}
	return nil
}

func (in *Installer) platform() string { return cmp.Or(in.OS, runtime.GOOS) }
func (in *Installer) arch() string     { return cmp.Or(in.Arch, runtime.GOARCH) }

// Commit installs the plugin, in place of a former one, and writes condense.lock. After an error the former one is there.
func (s *Staged) Commit() error {
	home, old := path.Join(Folder, s.Name), path.Join(s.temp, "old")
	err := s.root.Rename(home, old)
	replaced := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = s.root.Rename(s.content, home)
	if err == nil {
		if err = s.in.change(s.root, func(l *Lock) { l.Plugins[s.Name] = s.pin }); err == nil {
			return nil
		}
		err = errors.Join(err, s.root.RemoveAll(home))
	}
	if replaced {
		err = errors.Join(err, s.root.Rename(old, home))
	}
	return err
}

// Close removes a stage that was not installed.
func (s *Staged) Close() (err error) {
	if s.root == nil {
		return nil
	}
	if s.temp != "" {
		err = s.root.RemoveAll(s.temp)
	}
	if s.made && s.root.Remove(Folder) == nil { // nothing is in it
		err = errors.Join(err, s.root.RemoveAll(path.Dir(Folder)))
	}
	return errors.Join(err, s.root.Close())
}

// Outdated returns the newest release of a plugin and whether it differs from the one in condense.lock. It fetches checksums only.
func (in *Installer) Outdated(ctx context.Context, name string, src Source) (newest Source, changed bool, err error) {
	if newest, err = in.Newest(ctx, src); err != nil || newest.text != src.text {
		return newest, err == nil, err
	}
	lock, err := in.Lock()
	if err != nil {
		return newest, false, err
	}
	sums, sum, err := in.sums(ctx, newest)
	if sum == "" && err == nil {
		sums[newest.file], _, err = in.fetch(ctx, newest, newest.file, maxAsset, io.Discard)
	}
	return newest, err == nil && !maps.Equal(lock.Plugins[name].Assets, assetsOf(sums, name)), err
}

// Remove removes an installed plugin and its entry in condense.lock. It reports whether there was either.
func (in *Installer) Remove(name string) (bool, error) {
	if !pluginName().MatchString(name) {
		return false, nil
	}
	root, err := os.OpenRoot(in.Dir)
	if err != nil {
		return false, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	lock, err := in.Lock()
	if err != nil {
		return false, err
	}
	_, found := lock.Plugins[name]
	if _, err := root.Stat(path.Join(Folder, name)); err == nil {
		found = true
	}
	if err := root.RemoveAll(path.Join(Folder, name)); err != nil || !found {
		return found, err
	}
	return true, in.change(root, func(l *Lock) { delete(l.Plugins, name) })
}

// differing names the files whose checksums differ, for an error.
func differing(a, b map[string]string) string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(name, _ string) bool { return a[name] == b[name] })
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

// runsHere reports a program that is for another system, by its first bytes.
func (in *Installer) runsHere(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 20)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("is not a program: %w", err)
	}
	is, machine := "", ""
	for _, known := range formats {
		if strings.HasPrefix(string(head[:n]), known.magic) {
			is = known.os
		}
	}
	if is == "elf" && n == len(head) {
		machine = elfMachines[head[18]]
	}
	here := in.platform()
	switch {
	case is == "":
		return errors.New("is not a program, but starts with " + hex.EncodeToString(head[:min(n, 4)]))
	case is == "any", is == here, is == "elf" && here != "darwin" && here != "windows" && (machine == "" || machine == in.arch()):
		return nil
	}
	return fmt.Errorf("is a program for %s, and this is %s/%s", strings.TrimSpace(is+" "+machine), here, in.arch())
}

// formats of programs, by their first bytes.
var formats = []struct{ magic, os string }{
	{"#!", "any"},
	{"\x00asm", "any"},
	{"\x7fELF", "elf"},
	{"MZ", "windows"},
	{"\xcf\xfa\xed\xfe", "darwin"},
	{"\xca\xfe\xba\xbe", "darwin"},
}

// elfMachines are the low bytes of e_machine that are worth a name.
var elfMachines = map[byte]string{62: "amd64", 183: "arm64", 243: "riscv64", 40: "arm", 3: "386"}
