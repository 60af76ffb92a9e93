// Package supervise runs plugins: programs that serve the protocol of package wire. A
// [Process] is a plugin as a [core.CondensationProvider]. Whatever the program does (fail
// to start, crash, hang, flood its output, announce a wrong address), only its own call
// fails; the host and the conversation are not affected.
//
// # Life of a process
//
// The first call starts the program, once however many calls wait. All conversations share
// it:
//
//	stopped ──call──> starting ──ready──> ready ──idle, replaced, closed──> stopped
//	                     │                  │ crashed, hung
//	                     └──> waiting <─────┘ ──five times in a minute──> broken
//
// Ready means that the file has the pinned digest, the handshake is valid, a health check
// was answered, the plugin described itself and accepted its settings. While calls run the
// health of the process is checked, and a process that does not answer is killed. A call
// without an answer by its deadline is cancelled; when a process has as many of those as it
// may have calls at once it is replaced, because it may still be working on them.
//
// Two breakers keep a failing plugin from being asked: [Restart] counts processes that did
// not start or ended by themselves, [Breaker] counts calls. Their errors wrap
// [core.ErrUnavailable] and say why, and when the plugin will be tried again.
//
// # Safety
//
// The bytes that were hashed are the bytes that run. The program sees only the environment
// variables that it is allowed. It has a folder for its socket and temporary files that no
// other user can enter, a process group of its own, and resource limits. Both sides
// authenticate with TLS certificates made for this start. All of this holds on Linux; the
// files for other systems list the gaps.
package supervise

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"

	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
)

// Options adjust a [Process]. A nil pointer and the zero value of every field mean the
// defaults.
type Options struct {
	// Logger gets the plugin's output and the events of its life; default: nothing is logged.
	Logger *slog.Logger
	// TempDir holds the private folders; default: [os.TempDir]. It must be short: the path
	// of a socket in it may have 107 bytes on Linux, 103 on macOS.
	TempDir string
	// Client is used for every call; its Logger defaults to Logger.
	Client  caller.Options
	Restart Restart
	Breaker Breaker
	// Grace is how long a process may take to stop when asked to, and again when killed;
	// default 3 s.
	Grace time.Duration
}

// Restart says when a process that ended or did not start may be started again. After the
// n-th failure within Window the next start waits Min·2ⁿ⁻¹, at most Max, minus a random
// part of up to half. After Crashes failures the next start waits for Cooldown, and so
// after every further failure within Window.
type Restart struct {
	Min      time.Duration // default 200 ms
	Max      time.Duration // default 30 s
	Crashes  int           // default 5
	Window   time.Duration // default 1 min
	Cooldown time.Duration // default 30 s
}

// Breaker says when calls to a running process are refused for a while: after Failures
// consecutive calls without a valid answer in time. After Cooldown one call is let
// through; if it succeeds, all are.
type Breaker struct {
	Failures int           // default 5
	Cooldown time.Duration // default 30 s
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	setDefault(&d.TempDir, os.TempDir())
	setDefault(&d.Grace, 3*time.Second)
	setDefault(&d.Restart.Min, 200*time.Millisecond)
	setDefault(&d.Restart.Max, 30*time.Second)
	setDefault(&d.Restart.Crashes, 5)
	setDefault(&d.Restart.Window, time.Minute)
	setDefault(&d.Restart.Cooldown, 30*time.Second)
	setDefault(&d.Breaker.Failures, 5)
	setDefault(&d.Breaker.Cooldown, 30*time.Second)
	return d
}

// A Spec names the program to run, and its permissions and limits.
type Spec struct {
	// Name of the configured provider, for errors and logs.
	Name string
	// Path is the program: absolute, never looked up. A script with a #! line is a program
	// too; SHA256 then pins the script, not its interpreter.
	Path string
	// Tree, if set, is the absolute path of the folder of a plugin of many files. It contains
	// Path. All its files are pinned and run from a copy; see [Digest].
	Tree string
	// SHA256 is the digest, in hex, of the file or the tree that may run.
	SHA256 string
	// Unpinned allows an empty SHA256, for development: any program at Path runs, and is
	// restarted when it changes.
	Unpinned bool
	// Interpreter, if set, is the program that runs Path, and its first arguments; Path is not executed then but data, such as a
	// module of WebAssembly. The program gets the digest of the data and the path of a checked copy as further arguments. It belongs
	// to the host, so it is not pinned. It exits with [ExitData] if it is not at fault itself.
	Interpreter []string
	// Args are passed to the program.
	Args []string
	// Env selects the program's environment in addition to [baseEnv]: NAME passes the host's value, NAME* passes all
	// names with that prefix, NAME=value sets a value.
	Env []string
	// Settings are the plugin's own, a JSON object; empty means its defaults.
	Settings json.RawMessage
	// Abilities, if set, are those that the program declared when it was approved: one that declares more does not start.
	Abilities core.Abilities
	// Plaintext turns off mutual TLS. The socket is in a folder that only this user can
	// enter.
	Plaintext bool
	// Attach, if set, is the address of a plugin that runs already, for instance in a
	// debugger. Nothing is started, checked, limited or stopped, and the connection is not
	// encrypted; Path, Tree, SHA256, Args, Env and Plaintext are ignored.
	Attach *wire.Reattach
	Limits Limits
}

// ExitData is the exit code of an interpreter whose data cannot run.
const ExitData = 65

// Limits bound the resources of a plugin. The zero value of a field means its default.
type Limits struct {
	Calls  int           // at once, default 32; more wait
	Memory int64         // bytes of private memory, default 1 GiB, negative for no limit; Linux only
	Files  int           // open files, default 256, negative for no limit; Linux only
	Start  time.Duration // from launch to readiness, default 10 s
	Health time.Duration // for a health check, default 10 s; a slower process is considered hung
	Idle   time.Duration // without calls until the process is stopped, default 10 min, negative for never
	Drain  time.Duration // for the calls on a process that is being replaced, default 2 min
}

// setDefaults sets what is not set. Memory counts data as the kernel does, writable private mappings: 50 MB for a plugin in Go
// with a history of 10 MB, 150 MB for an idle one in Node. Calls are more than the turns that a gateway has for plugins.
func (l *Limits) setDefaults() {
	setDefault(&l.Calls, 32)
	setDefault(&l.Memory, 1<<30)
	setDefault(&l.Files, 256)
	setDefault(&l.Start, 10*time.Second)
	setDefault(&l.Health, 10*time.Second)
	setDefault(&l.Idle, 10*time.Minute)
	setDefault(&l.Drain, 2*time.Minute)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every fault of s that can be detected without reading a file.
func (s *Spec) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		fault("name: missing")
	}
	if s.Attach == nil {
		s.validateProgram(fault)
	} else if a := s.Attach; a.ProtocolVersion != wire.ProtocolVersion || a.Protocol != "grpc" ||
		a.Addr.Network != "unix" && a.Addr.Network != "tcp" {
		fault("attach: %s version %d at %s %q; want grpc version %d at a unix or tcp address",
			a.Protocol, a.ProtocolVersion, a.Addr.Network, a.Addr.String, wire.ProtocolVersion)
	}
	if trimmed := bytes.TrimSpace(s.Settings); len(trimmed) > 0 && (trimmed[0] != '{' || !json.Valid(trimmed)) {
		fault("settings: not a JSON object")
	}
	l := &s.Limits
	if l.Calls < 0 || l.Calls > math.MaxInt16 {
		fault("limits: %d calls at once", l.Calls)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"start", l.Start}, {"health", l.Health}, {"drain", l.Drain}} {
		if d.value < 0 {
			fault("limits: %s: %s is negative", d.name, d.value)
		}
	}
	return errors.Join(errs...)
}

func (s *Spec) validateProgram(fault func(format string, args ...any)) {
	if len(s.Interpreter) > 0 && (s.Tree != "" || len(s.Env) > 0) {
		fault("%s is data, which has neither a folder nor an environment: remove folder and env", s.Path)
	}
	if len(s.Interpreter) > 0 && !filepath.IsAbs(s.Interpreter[0]) {
		fault("the program that runs %s: %q is not absolute, and would be looked up in the folder of the plugin", s.Path, s.Interpreter[0])
	}
	switch {
	case s.Path == "":
		fault("path: missing")
	case !filepath.IsAbs(s.Path):
		fault("path: %q is not absolute; a plugin is never looked up in PATH or relative to the working directory", s.Path)
	}
	if s.Tree != "" {
		rel, err := filepath.Rel(s.Tree, s.Path)
		if !filepath.IsAbs(s.Tree) || err != nil || !filepath.IsLocal(rel) {
			fault("tree: %q is not the absolute path of a folder that contains %q", s.Tree, s.Path)
		}
	}
	switch sum, err := hex.DecodeString(s.SHA256); {
	case s.SHA256 == "" && !s.Unpinned:
		fault("sha256: missing; pin the plugin, so that only what was approved can run")
	case s.SHA256 != "" && (err != nil || len(sum) != 32):
		fault("sha256: %q is not a digest of 64 hexadecimal digits", s.SHA256)
	}
	for _, e := range s.Env {
		name, _, sets := strings.Cut(e, "=")
		if name == "" || name == "*" || strings.ContainsRune(e, 0) || strings.Contains(strings.TrimSuffix(name, "*"), "*") ||
			sets && strings.Contains(name, "*") {
			fault("env: %q is not NAME, NAME* or NAME=value", name)
		}
	}
}

// check reports every fault of s, the missing program included.
func (s *Spec) check() error {
	if err := s.validate(); err != nil || s.Attach != nil {
		return err
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	return f.Close()
}

// deaf reports whether the plugin cannot notice that a call was cancelled: its process is replaced after the first.
func (s *Spec) deaf() bool { return len(s.Interpreter) > 0 }

// open opens the file at Path. The error says why it cannot run.
func (s *Spec) open() (*os.File, error) { return openProgram(s.Path, len(s.Interpreter) == 0) }

// clone returns a copy of s that shares nothing with it, with its defaults set.
func (s *Spec) clone() Spec {
	c := *s
	c.SHA256 = strings.ToLower(c.SHA256)
	c.Args, c.Env, c.Settings = slices.Clone(s.Args), slices.Clone(s.Env), slices.Clone(s.Settings)
	c.Interpreter = slices.Clone(s.Interpreter)
	c.Limits.setDefaults()
	return c
}

// baseEnv is the part of the host's environment that every plugin gets: the path of programs (for a script's #!
// line), locale and time zone, and the variables that Windows programs need to start. None of it is secret.
// Everything else, API keys above all, is withheld.
var baseEnv = []string{"PATH", "LANG", "LC_*", "TZ", "SYSTEMROOT"}

// environment returns the environment of a plugin, as a list of NAME=value: the allowed values of the host, then
// values that allow sets, then own.
func environment(host, allow, own []string) []string {
	var env []string
	allow = slices.Concat(baseEnv, allow)
	for _, kv := range host {
		name, _, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(allow, func(pattern string) bool { return passes(pattern, name) }) {
			env = append(env, kv)
		}
	}
	env = append(env, plain.Only(allow, func(a string) bool { return strings.Contains(a, "=") })...)
	return append(env, own...)
}

func passes(pattern, name string) bool {
	if strings.Contains(pattern, "=") || name == "" {
		return false
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
