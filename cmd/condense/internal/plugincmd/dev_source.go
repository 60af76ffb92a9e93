package plugincmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/outline"
)

// A source is the source of a plugin in development.
type source struct {
	root    string   // the watched folder, absolute
	pkg     string   // the folder of its Go package; empty for others
	program string   // the script or what command makes, a pattern; empty for Go
	command []string // builds it, in root; nil for a script
	wasm    bool     // a Go package is built as a module of WebAssembly
}

// wasmBuilds are how modules in other languages than Go are built, as 'plugin new' says: by a file of their folders.
var wasmBuilds = []struct{ file, program, command string }{
	{"Cargo.toml", "target/wasm32-unknown-unknown/release/*.wasm", "cargo build --quiet --release --target wasm32-unknown-unknown"},
	{"assembly/index.ts", "*.wasm", "npm run --silent build"},
}

// name returns the name of the plugin for errors.
func (s *source) name() string {
	if s.program != "" && s.command == nil {
		return filepath.Base(s.program)
	}
	return filepath.Base(cmp.Or(s.pkg, s.root))
}

// findSource returns the source in a folder, or that is a script.
func findSource(arg string, wasm bool) (*source, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		if !isScript(path) {
			return nil, fmt.Errorf("%s is not a script that can run: it must be executable and begin with #!; name the folder of a plugin in Go", arg)
		}
		return &source{root: filepath.Dir(path), program: path}, nil
	}
	if root, ok := goModule(path); ok {
		return &source{root: root, pkg: path, wasm: wasm}, nil
	}
	for _, b := range wasmBuilds {
		if _, err := os.Stat(filepath.Join(path, b.file)); err == nil {
			return &source{root: path, command: strings.Fields(b.command), program: filepath.Join(path, filepath.FromSlash(b.program))}, nil
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var scripts []string
	for _, e := range entries {
		if e.Type().IsRegular() && isScript(filepath.Join(path, e.Name())) {
			scripts = append(scripts, e.Name())
		}
	}
	switch len(scripts) {
	case 0:
		return nil, fmt.Errorf("%s contains no plugin: neither a Go module, nor one of WebAssembly in Rust or AssemblyScript, "+
			"nor an executable file that begins with #! and an interpreter", arg)
	case 1:
		return &source{root: path, program: filepath.Join(path, scripts[0])}, nil
	default:
		return nil, fmt.Errorf("%s contains several scripts (%s): name the one that is the plugin", arg, strings.Join(scripts, ", "))
	}
}

// goModule returns the root of the module of a folder with Go files.
func goModule(dir string) (string, bool) {
	if files, err := filepath.Glob(filepath.Join(dir, "*.go")); err != nil || len(files) == 0 {
		return "", false
	}
	return upward(dir, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		return err == nil
	})
}

// upward returns the first folder that is the one that is sought: dir, or one that it is in.
func upward(dir string, sought func(string) bool) (string, bool) {
	for !sought(dir) {
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
	return dir, true
}

func isScript(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0 && cli.BeginsWith(path, "#!")
}

// build returns the program to run, built into temp if necessary. The compiler's messages go
// to out.
func (s *source) build(ctx context.Context, temp string, out io.Writer) (string, error) {
	command, program := s.command, filepath.Join(temp, "plugin")
	switch {
	case s.pkg == "" && command == nil:
		return s.program, nil
	case s.wasm:
		program += ".wasm"
	case runtime.GOOS == "windows":
		program += ".exe"
	}
	if command == nil {
		command = []string{"go", "build", "-o", program, "."}
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // from the table above
	cmd.Dir, cmd.Stdout, cmd.Stderr = cmp.Or(s.pkg, s.root), out, out
	if s.wasm {
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	}
	// On an interrupt the go command stops its compilers; on a kill it would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("this plugin is built with the command %s, which is not installed", command[0])
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", errDev
	case cli.BeginsWith(program, "!<arch>"):
		return "", fmt.Errorf("%s is a package, not a program: name the folder of its package main, such as cmd/condense-tidy", s.pkg)
	}
	if s.command != nil {
		made, err := filepath.Glob(s.program)
		if err != nil || len(made) != 1 {
			return "", errors.Join(err, fmt.Errorf("%s made not one module but %d: %s", command[0], len(made), s.program))
		}
		program = made[0]
	}
	return program, nil
}

// A snapshot is the state of the files of a plugin, by path.
type snapshot map[string]fileState

type fileState struct {
	size    int64
	modTime time.Time
	sum     [sha256.Size]byte
	fresh   bool // changed shortly before it was read
}

// freshFor is how long a file system may give another change the same time.
const freshFor = 3 * time.Second

// maxSource is in bytes. A larger file is not a source but probably the plugin itself, built
// in the folder of its sources.
const maxSource = 1 << 20

// takeSnapshot reads the files of a folder, and the file extra if it is not empty. A file with unchanged size and
// time is not read again, unless it was fresh in before. Hidden folders, folders of installed packages, what git ignores and
// the output of this program are ignored.
func takeSnapshot(ctx context.Context, root, extra string, before snapshot) (snapshot, error) {
	s := snapshot{}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // only read
	ignored, err := outline.Ignored(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch name := filepath.Base(path); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && path != root:
			return nil // an editor's temporary file
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__" ||
			ignored(filepath.ToSlash(rel)+"/.")):
			return fs.SkipDir
		case !d.Type().IsRegular() || ignored(filepath.ToSlash(rel)) || isOutput(d):
			return nil
		}
		return s.add(path, before)
	})
	if err == nil && extra != "" {
		err = s.add(extra, before)
	}
	return s, err
}

// isOutput reports a file that this program writes to.
func isOutput(d fs.DirEntry) bool {
	info, err := d.Info()
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if out, wrong := f.Stat(); err == nil && wrong == nil && os.SameFile(info, out) {
			return true
		}
	}
	return false
}

func (s snapshot) add(path string, before snapshot) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // ignored until it exists again
	}
	if err != nil || info.Size() > maxSource {
		return err
	}
	state := fileState{size: info.Size(), modTime: info.ModTime()}
	if b, ok := before[path]; ok && !b.fresh && b.size == state.size && b.modTime.Equal(state.modTime) {
		s[path] = b
		return nil
	}
	state.fresh = time.Since(state.modTime) < freshFor
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	state.sum = sha256.Sum256(data)
	s[path] = state
	return err
}

// changed returns the name of a file whose content differs from its content in before; empty if there is none.
func (s snapshot) changed(before snapshot) string {
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if b, ok := before[path]; !ok || b.sum != s[path].sum {
			return filepath.Base(path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, ok := s[path]; !ok {
			return filepath.Base(path)
		}
	}
	return ""
}

func (s snapshot) differs(before snapshot) bool { return s.changed(before) != "" }
