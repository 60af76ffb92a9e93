package plugins

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/wire"
)

// ModuleCommand is the first argument of a process that runs a module. Programs of other versions have it, too: it stays.
const ModuleCommand = "plugin-wasm"

// moduleProgram is the program that runs modules of WebAssembly for this process; nil if there is none.
var moduleProgram atomic.Pointer[string]

// RunModulesBy makes the program in a file, an absolute path, run modules of WebAssembly when it is started with [ModuleCommand].
func RunModulesBy(program string) { moduleProgram.Store(&program) }

// started are the arguments of this process, whatever main makes of os.Args.
var started = slices.Clone(os.Args)

// ModuleArgs returns the arguments behind [ModuleCommand] if a host started this process to run a module, and else nil.
func ModuleArgs() []string {
	h := wire.Handshake
	if len(started) < 5 || started[1] != ModuleCommand || os.Getenv(h.MagicCookieKey) != h.MagicCookieValue {
		return nil
	}
	return started[2:]
}

// startModule is how long a module may take until it is ready: the first time it is compiled, which on a busy machine takes many
// times its two seconds.
const startModule = 2 * time.Minute

// base returns the program of a plugin.
func base(p config.Provider) supervise.Spec {
	s := supervise.Spec{Name: p.Name, Path: p.Plugin, Tree: p.Folder}
	if !config.IsModule(p.Plugin) {
		return s
	}
	s.Limits.Start = startModule
	s.Interpreter, s.Args = []string{"", ModuleCommand}, []string{""} // without a program, Open refuses it
	if program := moduleProgram.Load(); program != nil {
		s.Interpreter[0] = *program
	}
	if dir, err := os.UserCacheDir(); err == nil && filepath.IsAbs(dir) { // the module runs in its folder, which its author fills
		s.Args[0] = filepath.Join(dir, "condense", "wasm")
	}
	return s
}

// open opens a plugin.
func open(s supervise.Spec, opts *supervise.Options) (*supervise.Process, error) {
	if len(s.Interpreter) > 0 && s.Interpreter[0] == "" {
		return nil, fmt.Errorf("plugin %s: %s is a module of WebAssembly, and this program runs none: call Init of "+
			"plugin-sdk/host/wasm first in main, or host.ModulesBy with an installed condense", s.Name, s.Path)
	}
	if len(s.Interpreter) > 0 && ModuleArgs() != nil { // it would start another, and that one the next
		return nil, fmt.Errorf("plugin %s: this process was started to run a module: call Init of plugin-sdk/host/wasm first in main", s.Name)
	}
	return supervise.Open(s, opts)
}

// Asks returns the names that the module in a file imports from condense, without running it: its abilities beyond its own
// memory. "clock" lets it read the time.
func Asks(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxModule {
		return nil, fmt.Errorf("not a file of at most %d MiB", maxModule>>20)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	imports, err := importsOf(data)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range imports {
		if i[0] == "condense" && !slices.Contains(names, i[1]) {
			names = append(names, i[1])
		}
	}
	return names, nil
}

// Sandbox describes the sandbox of the module at a path by its imports: the host gives it nothing else. It returns false for
// other files.
func Sandbox(path string) (string, bool) {
	if !config.IsModule(path) {
		return "", false
	}
	asks, err := Asks(path)
	if err != nil {
		return "module of WebAssembly that cannot run: " + err.Error(), true
	}
	return Reach(asks), true
}

// Reach describes in words the sandbox of a module with these imports, as returned by [Asks].
func Reach(asks []string) string {
	if slices.Contains(asks, "clock") {
		return "module of WebAssembly: it has no files, no network and no environment, and knows the time"
	}
	return "module of WebAssembly: it has no files, no network, no environment and no clock"
}

// maxModule is in bytes.
const maxModule = 1 << 30

var (
	errModule = errors.New("not a module of WebAssembly")
	errCut    = errors.New("a module of WebAssembly that is cut off or damaged")
)

// importsOf returns the imports of a module: of each the other module and the name.
func importsOf(data []byte) ([][2]string, error) {
	const head, importSection = "\x00asm\x01\x00\x00\x00", 2
	if len(data) < len(head) || string(data[:len(head)]) != head {
		return nil, errModule
	}
	var all [][2]string
	r := reader{data: data[len(head):]}
	for len(r.data) > 0 && !r.failed {
		id := r.byte()
		section := reader{data: r.bytes(r.number())}
		if id != importSection {
			continue
		}
		for n := section.number(); n > 0 && !section.failed; n-- {
			all = append(all, [2]string{string(section.bytes(section.number())), string(section.bytes(section.number()))})
			section.skipImport()
		}
		r.failed = r.failed || section.failed
	}
	if r.failed {
		return nil, errCut
	}
	return all, nil
}

// A reader reads the binary format of WebAssembly. After a fault it returns zeros.
type reader struct {
	data   []byte
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.failed, r.data = true, nil
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	r.bytes(uint64(max(n, 0)))
	r.failed = r.failed || n <= 0
	return v
}

// skipImport skips the type of an import: of a function, a table, a memory or a global.
func (r *reader) skipImport() {
	limits := func() {
		flags := r.number()
		r.number()
		if flags&1 != 0 {
			r.number()
		}
	}
	switch r.byte() {
	case 0:
		r.number()
	case 1:
		r.byte()
		limits()
	case 2:
		limits()
	case 3:
		r.bytes(2)
	default:
		r.failed = true
	}
}
