//go:build unix

// Package pluginexamples_test runs the examples and templates of plugins in other languages than
// Go, as real processes under a real host.
package pluginexamples_test

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
	"github.com/condensehq/condense/plugin-sdk/host/wasm"
)

// requirePeers makes a test fail, instead of being skipped, if a runtime that it needs is
// not there. CI sets it to 1.
const requirePeers = "CONDENSE_REQUIRE_PEERS"

// A language has an SDK.
type language struct {
	name   string
	suffix string   // of programs
	tests  []string // the command that runs the tests in the working directory
	// setUp returns the folder with the packages to copy into plugins, or "" if they are
	// installed in the system. The error names what is missing.
	setUp func(ctx context.Context) (packages string, err error)

	exampleName string
	example     folder // the one in examples/plugins
	tricks      folder // follows the instructions of a call
	v1          folder // the same with the SDK as of version 1: it must work for as long as protocol 1 does
}

// version1 has the SDKs as of version 1, November 2026, with the programs that use them; that for Go with the packages that it imports. They
// never change, so they are packed.
func version1() fs.FS {
	r, err := zip.OpenReader("testdata/v1.zip")
	if err != nil {
		panic(err)
	}
	return r
}

var languages []*language // set by TestMain

func newLanguages() []*language {
	all := []*language{
		{name: "node", suffix: ".mjs", tests: []string{"node", "--test", "--test-reporter=dot"}, setUp: setUpNode, exampleName: "dedupe"},
		{name: "python", suffix: ".py", tests: []string{python, "-B", "-m", "unittest"}, setUp: setUpPython, exampleName: "headtail"},
	}
	for _, l := range all {
		l.example = l.folder(l.exampleName, map[string]string{".": filepath.Join(examples, l.exampleName)})
		tricks := "tricks" + l.suffix
		l.tricks = l.folder("tricks", map[string]string{tricks: filepath.Join("testdata", tricks)})
		v1 := filepath.Join(scratch, "v1", l.name)
		l.v1 = l.folder("tricks", map[string]string{tricks: filepath.Join(v1, tricks), "condense": filepath.Join(v1, "condense")})
	}
	return all
}

// python is Debian's: only this one finds Debian's packages.
const python = "/usr/bin/python3"

func setUpPython(ctx context.Context) (string, error) {
	const packages = "python3-grpcio python3-protobuf python3-cryptography"
	if _, err := os.Stat(python); err != nil {
		return "", fmt.Errorf("%s is not installed (apt-get install %s)", python, packages)
	}
	if out, err := exec.CommandContext(ctx, python, "-c", "import grpc, google.protobuf, cryptography").CombinedOutput(); err != nil {
		return "", fmt.Errorf("python has not all that it needs (apt-get install %s): %w\n%s", packages, err, out)
	}
	return "", nil
}

// setUpNode returns the packages that the lockfile of the example pins. They are installed
// once for each lockfile, in the user's cache directory.
func setUpNode(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not installed", program)
		}
	}
	manifests := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(examples, "dedupe", name))
		if err != nil {
			return "", err
		}
		manifests[name] = text
		sum.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "condense", "plugin-examples", hex.EncodeToString(sum.Sum(nil))[:16])
	packages := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(dir); err == nil {
		return packages, nil
	}
	// Installed in a temporary folder and then renamed, dir is complete whenever it exists.
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "install-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is there after the rename
	for name, text := range manifests {
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return packages, nil
}

// A folder has a plugin as its author would, with the packages that it needs. Tests share it,
// because plugins do not write to it.
type folder struct {
	program string // name of the file in it
	make    func(ctx context.Context) (path string, err error)
}

// folder returns a folder with the SDK of l and sources: for each path in the folder, the file or folder to copy.
func (l *language) folder(program string, sources map[string]string) folder {
	var mu sync.Mutex
	var path string
	return folder{program + l.suffix, func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if path != "" {
			return path, nil
		}
		packages, err := l.setUp(ctx)
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(scratch, "")
		if err != nil {
			return "", err
		}
		all := map[string]string{"condense": filepath.Join(sdks, l.name, "condense")}
		if l.name == "node" && sources["condense"] == "" {
			all["condense/condense.proto"] = protocol
		}
		maps.Copy(all, sources)
		if packages != "" {
			all["node_modules"] = packages
		}
		for _, to := range slices.Sorted(maps.Keys(all)) {
			if err := copyAny(filepath.Join(dir, to), all[to]); err != nil {
				return "", err
			}
		}
		path = dir
		return dir, nil
	}}
}

// folderAt returns the folder at path.
func folderAt(path, program string) folder {
	return folder{program, func(context.Context) (string, error) { return path, nil }}
}

// scratch is the parent of all folders.
var scratch string

func TestMain(m *testing.M) {
	if os.Getenv(envSame) != "" {
		pluginsdk.Main(sameEdit)
	}
	wasm.Init()
	flag.Parse()
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "plugins-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch) //nolint:errcheck // best effort
		if err := os.CopyFS(filepath.Join(scratch, "v1"), version1()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		languages = newLanguages()
		return m.Run()
	}())
}

// dir returns the path of f. The test is skipped if what f needs is missing.
func (f folder) dir(tb testing.TB) string {
	tb.Helper()
	testkit.Process(tb)
	dir, err := f.make(tb.Context())
	if err != nil {
		if os.Getenv(requirePeers) == "1" {
			tb.Fatalf("%v, and %s=1 demands it", err, requirePeers)
		}
		tb.Skipf("%s is not tried: %v", f.program, err)
	}
	return dir
}

// copyAny copies a file, or a folder without what a user may have added to it.
func copyAny(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, withoutPackages{os.DirFS(from)})
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode())
}

// withoutPackages hides what a user may have added to the folder of an example (packages, the SDK), and symbolic links, which are
// not part of a plugin.
type withoutPackages struct{ fs.FS }

// ReadDir implements [fs.ReadDirFS].
func (w withoutPackages) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	kept := entries[:0]
	for _, e := range entries {
		if e.Name() != "node_modules" && e.Name() != "__pycache__" && e.Name() != "condense" && e.Type()&fs.ModeSymlink == 0 {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// A plugin is a process under a host, with the host's log.
type plugin struct {
	*supervise.Process

	log *testkit.Log
}

// open opens the plugin in f as if a user had pinned it, and closes it when the test ends. Its
// process must have ended then.
func open(tb testing.TB, f folder, settings string, adjust ...func(*supervise.Spec, *supervise.Options)) *plugin {
	tb.Helper()
	dir := f.dir(tb)
	spec := supervise.Spec{Name: "acme", Path: filepath.Join(dir, f.program), Tree: dir, Settings: []byte(settings)}
	spec.Limits.Start = time.Minute // the machine may be busy
	spec.Limits.Health = time.Minute
	var err error
	if spec.SHA256, err = supervise.Digest(spec); err != nil {
		tb.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "p") //nolint:usetesting // tb.TempDir is too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	log := &testkit.Log{}
	opts := &supervise.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), TempDir: temp}
	for _, f := range adjust {
		f(&spec, opts)
	}
	p, err := supervise.Open(spec, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		pid := p.Status().PID
		if err := p.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
		if err := syscall.Kill(pid, 0); pid != 0 && !errors.Is(err, syscall.ESRCH) {
			tb.Errorf("process %d is still there (%v)", pid, err)
		}
		if err := os.RemoveAll(temp); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("log:\n%s", log)
		}
	})
	return &plugin{p, log}
}
