package supervise

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/wire"
)

// A Spec says which program to run and what it may have.
type Spec struct {
	// Name of the configured provider, for errors and logs.
	Name string
	// Path is the program: absolute, never looked up. A script with a #! line is a program
	// too, and it is the script that SHA256 pins, not its interpreter.
	Path string
	// Tree, if set, is the absolute folder of a plugin of many files, and holds Path. All its
	// files are pinned and run from a copy; see [Digest].
	Tree string
	// SHA256 is the digest, in hex, of what may run: of the file, or of the tree.
	SHA256 string
	// Unpinned says that SHA256 may be empty. It is for development: whatever is found at
	// Path runs, and is run anew when it changes.
	Unpinned bool
	// Args are passed to the program.
	Args []string
	// Env is what the program sees of the environment beside [baseEnv]: NAME passes the
	// host's value, NAME* those of all names with that beginning, NAME=value sets one.
	Env []string
	// Settings are the plugin's own, a JSON object; empty means its defaults.
	Settings json.RawMessage
	// Plaintext turns mutual TLS off, for plugins whose language makes it hard. Only a
	// process that can enter a folder that none but this user may enter could listen.
	Plaintext bool
	// Attach, if set, says where the plugin runs already, under a debugger for instance. Then
	// nothing is started, checked or limited, and nothing ends it; the connection is not
	// encrypted; Path, Tree, SHA256, Args, Env and Plaintext mean nothing.
	Attach *wire.Reattach
	Limits Limits
}

// Limits bound what a plugin may take. The zero value of a field means its default.
type Limits struct {
	Calls  int           // at once, default 4; more wait
	Memory int64         // bytes of private memory, default 1 GiB, negative for no limit; Linux only
	Files  int           // open files, default 256, negative for no limit; Linux only
	Start  time.Duration // from launch to readiness, default 10 s
	Health time.Duration // a health check may take, default 10 s; above it, the process is hung
	Idle   time.Duration // without calls until the process is stopped, default 10 min, negative for never
	Drain  time.Duration // calls on a process that is being replaced may take, default 2 min
}

// Defaults of [Limits]. Memory counts what the kernel counts as data: writable private
// mappings. Go reports 50 MB there for a history of 10 MB, Node 150 MB when idle.
const (
	defaultCalls  = 4
	defaultMemory = 1 << 30
	defaultFiles  = 256
	defaultStart  = 10 * time.Second
	defaultHealth = 10 * time.Second
	defaultIdle   = 10 * time.Minute
	defaultDrain  = 2 * time.Minute
)

func (l *Limits) setDefaults() {
	setDefault(&l.Calls, defaultCalls)
	setDefault(&l.Memory, defaultMemory)
	setDefault(&l.Files, defaultFiles)
	setDefault(&l.Start, defaultStart)
	setDefault(&l.Health, defaultHealth)
	setDefault(&l.Idle, defaultIdle)
	setDefault(&l.Drain, defaultDrain)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every fault of s that can be seen without touching a file.
func (s *Spec) validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		fault("no name")
	}
	if s.Attach == nil {
		s.validateProgram(fault)
	} else if a := s.Attach; a.ProtocolVersion != wire.ProtocolVersion || a.Protocol != "grpc" || a.Addr.Network != "unix" && a.Addr.Network != "tcp" {
		fault("attach: %s version %d at %s %q; want grpc version %d at a unix or tcp address", a.Protocol, a.ProtocolVersion, a.Addr.Network, a.Addr.String, wire.ProtocolVersion)
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
	switch {
	case s.Path == "":
		fault("path: none")
	case !filepath.IsAbs(s.Path):
		fault("path: %q is not absolute; a plugin is never looked up in PATH or relative to the working directory", s.Path)
	}
	if s.Tree != "" {
		rel, err := filepath.Rel(s.Tree, s.Path)
		if !filepath.IsAbs(s.Tree) || err != nil || !filepath.IsLocal(rel) {
			fault("tree: %q is not an absolute folder with %q in it", s.Tree, s.Path)
		}
	}
	switch sum, err := hex.DecodeString(s.SHA256); {
	case s.SHA256 == "" && !s.Unpinned:
		fault("sha256: none; pin the plugin, so that only what was approved can run")
	case s.SHA256 != "" && (err != nil || len(sum) != 32):
		fault("sha256: %q is not a digest of 64 hexadecimal digits", s.SHA256)
	}
	for _, e := range s.Env {
		name, _, sets := strings.Cut(e, "=")
		if name == "" || name == "*" || strings.ContainsRune(e, 0) || strings.Contains(strings.TrimSuffix(name, "*"), "*") || sets && strings.Contains(name, "*") {
			fault("env: %q is none of NAME, NAME* and NAME=value", name)
		}
	}
}

// clone returns a copy of s that shares nothing with it, with its defaults set.
func (s *Spec) clone() Spec {
	c := *s
	c.SHA256 = strings.ToLower(c.SHA256)
	c.Args, c.Env, c.Settings = slices.Clone(s.Args), slices.Clone(s.Env), slices.Clone(s.Settings)
	c.Limits.setDefaults()
	return c
}
