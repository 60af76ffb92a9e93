package config

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/internal/trust"
)

// formats of files, by extension.
var formats = map[string]string{".yaml": "yaml", ".yml": "yaml", ".json": "json"}

// formerFormat is an extension that earlier versions read. Such a file is refused, not overlooked.
const formerFormat = ".toml"

// projectNames are the names of a project's file, in a folder from the working directory up to
// the root of its repository. userNames are the names in the user's configuration folder.
var (
	projectNames = []string{"condense.yaml", "condense.yml", "condense.toml", "condense.json"}
	userNames    = slices.Concat(projectNames, []string{"config.yaml", "config.yml", "config.toml", "config.json"})
)

// ProjectFiles returns the names that a project's file may have.
func ProjectFiles() []string { return slices.Clone(projectNames) }

// pathVariable names a file to read instead of looking for one.
const pathVariable = "CONDENSE_CONFIG"

// find returns the files to read: the one that the caller or CONDENSE_CONFIG names, or else
// the user's file and the project's.
func find(opts *Options, env environment) (files []string, errs Errors) {
	if named := opts.Path; named != "" {
		return []string{named}, nil
	}
	if named := env.get(pathVariable); named != "" {
		return []string{named}, nil
	}
	if dir := userDir(env); dir != "" {
		file, wrong := only(dir, userNames)
		if wrong != nil {
			errs = append(errs, wrong)
		} else if file != "" {
			files = append(files, file)
		}
	}
	for _, dir := range upward(opts.Dir) {
		file, wrong := only(dir, projectNames)
		if wrong != nil {
			return files, append(errs, wrong)
		}
		if file != "" {
			if !slices.ContainsFunc(files, func(f string) bool { return sameFile(f, file) }) {
				files = append(files, file)
			}
			break
		}
	}
	return files, errs
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// userDir is $XDG_CONFIG_HOME/condense or ~/.config/condense, on every system, since users of
// command lines look there on macOS too.
func userDir(env environment) string {
	if dir := env.get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "condense")
	}
	home := cmp.Or(env.get("HOME"), env.get("USERPROFILE"))
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "condense")
}

// upward returns dir and the folders above it up to the root of the repository. Outside of a
// repository it returns dir alone: a file in /tmp or in a home directory is not a project's.
func upward(dir string) []string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	var dirs []string
	for d := dir; ; {
		dirs = append(dirs, d)
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return dirs
		}
		parent := filepath.Dir(d)
		if parent == d {
			return dirs[:1]
		}
		d = parent
	}
}

// only returns the file of dir that has one of the names, "" if there is none. Two such files
// are an error.
func only(dir string, names []string) (string, *Error) {
	var found []string
	for _, name := range names {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil { // also a folder or a device: disk.ReadFile refuses those
			if !slices.ContainsFunc(found, func(f string) bool { return sameFile(f, file) }) {
				found = append(found, file)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	shown := plain.Each(found, disk.FromHere)
	return "", &Error{
		Origin:  Origin{Kind: FromFile, File: shown[0]},
		Problem: "several configurations in one folder: " + strings.Join(shown, ", "), Allowed: "keep one of them",
	}
}

// readFile reads and checks one file, whose keys are the fields of a place.
func readFile(file string, opts *Options, of place) (*checker, Errors) {
	shown := disk.FromHere(file)
	at := func(p tree.Position) Origin {
		return Origin{Kind: FromFile, File: shown, Line: p.Line, Column: p.Column}
	}
	fail := func(p tree.Position, problem, allowed string) (*checker, Errors) {
		return nil, Errors{{Origin: at(p), Problem: problem, Allowed: allowed}}
	}
	ext := strings.ToLower(filepath.Ext(file))
	format, ok := formats[ext]
	switch {
	case ext == formerFormat:
		to := strings.TrimSuffix(shown, filepath.Ext(shown)) + ".yaml"
		return fail(tree.Position{}, "TOML is not read any more", fmt.Sprintf("convert it, as with 'yq -p toml -o yaml %s > %s', and remove it", shown, to))
	case !ok:
		return fail(tree.Position{}, "unknown format", "name the file .yaml or .json")
	}
	text, err := disk.ReadFile(file, tree.MaxFile)
	if err != nil {
		return fail(tree.Position{}, reason(err), "")
	}
	root, syntax := tree.Parse(format, text)
	if syntax != nil {
		return fail(syntax.At, syntax.Problem, "")
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		dir = filepath.Dir(file)
	}
	c := newChecker(opts, dir, at)
	c.check(root, of)
	return c, c.errs
}

// outside returns where a link leads that is a project's file and leads out of its repository or folder; empty for all other files. A
// repository's link must not show the text of the user's files.
func outside(file string, env environment) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	dirs := upward(filepath.Dir(file))
	root, errRoot := filepath.EvalSymlinks(dirs[len(dirs)-1])
	target, err := filepath.EvalSymlinks(file)
	if err != nil || errRoot != nil || filepath.Dir(file) == userDir(env) || within(root, target) {
		return ""
	}
	return target
}

// unseen replaces the faults and warnings of files that are links out of their projects, by the names of the links: their texts quote the
// files.
func (e Errors) unseen(links map[string]string) Errors {
	var out Errors
	for _, err := range e {
		target, hidden := links[err.Origin.File]
		if !hidden {
			out = append(out, err)
		} else if !slices.ContainsFunc(out, func(o *Error) bool { return o.Origin.File == err.Origin.File }) {
			out = append(out, &Error{
				Origin: Origin{Kind: FromFile, File: err.Origin.File}, Problem: "is a link to " + target + ", outside of the project, whose faults are not shown here",
				Allowed: "check that file itself: condense config check " + target,
			})
		}
	}
	return out
}

// reason is err without the file's name, which the message has already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file"
	}
	return err.Error()
}

// WatchOptions configure a [Watcher]. A nil pointer means the defaults.
type WatchOptions struct {
	// Interval is the time between checks of the files; 0 means a second. A change is loaded
	// when another check, a fifth of the interval later, finds no further change.
	Interval time.Duration
	// Changed is called after a new configuration has replaced an old one.
	Changed func(before, after *Config)
	// Failed is called if changed files are invalid, once for each state of the files, or need
	// trust, once for each set of parts. The running configuration stays.
	Failed func(error)
}

// A Watcher keeps a configuration current while its files change. All methods may be called
// by any number of goroutines.
//
// Parts of a change that need trust which the user has not given are withheld, as by [Load]. If
// [Options.Require] demands one of them, the whole running configuration stays, as with an invalid
// file, and Failed is called with an [*UntrustedError]; so it does if a file that sets a lock of the
// gateway is no longer read. When the user gives trust, the files are loaded again.
//
// It checks the content of files instead of waiting for events, which are lost if a file is
// deleted and made again, if an editor replaces it, or if a volume swaps a symbolic link. A
// second is fast enough for users, and reading two small files costs nothing.
type Watcher struct {
	current atomic.Pointer[Config]
	err     atomic.Pointer[error]
	done    chan struct{}
	opts    Options
	on      WatchOptions

	mu    sync.Mutex // guards the fields below, and the order of calls to Changed and Failed
	seen  snapshot   // of the files of the current configuration
	state pending
}

// A snapshot identifies one state of the files.
type snapshot struct {
	sum   [sha256.Size]byte
	empty map[string]bool // files with nothing but white space
}

// pending is a change that is not loaded yet.
type pending struct {
	sum     [sha256.Size]byte // at the last check
	since   time.Time         // of the first check that found the change; zero means no change
	refused [sha256.Size]byte // of files that are known to be invalid
}

// Watch loads a configuration and keeps it current until ctx is done. The environment is
// read at the call, files again when they change. The error is the error of [Load].
func Watch(ctx context.Context, opts Options, on *WatchOptions) (*Watcher, error) {
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	w := &Watcher{done: make(chan struct{}), opts: opts}
	if on != nil {
		w.on = *on
	}
	if w.on.Interval <= 0 {
		w.on.Interval = time.Second
	}
	// The snapshot comes first, so that the first check finds a change made in between.
	w.seen = w.look()
	w.state.sum = w.seen.sum
	c, err := Load(opts)
	if err != nil {
		return nil, err
	}
	w.current.Store(c)
	go w.run(ctx)
	return w, nil
}

// Current returns the running configuration. It never blocks. A caller that needs the same
// values throughout a piece of work keeps the result.
func (w *Watcher) Current() *Config { return w.current.Load() }

// Err returns the error of the files in their current state, nil if they are in use.
func (w *Watcher) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Done returns a channel that is closed when the watcher has ended, after its context.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Reload loads the files now, for example on a signal. Unlike a periodic check it accepts that
// a file is gone, unless it was named. If the files are invalid, Reload returns the error and
// the running configuration stays. It must not be called from Changed or Failed.
func (w *Watcher) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.look()
	c, err := Load(w.opts)
	if err == nil {
		err = w.Current().dropped(c)
	}
	if err != nil {
		w.refuse(seen, err)
		return err
	}
	w.accept(seen, c)
	return nil
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	timer := time.NewTimer(w.on.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		wait := w.on.Interval
		if w.poll() {
			wait /= 5
		}
		timer.Reset(wait)
	}
}

// poll checks the files and loads them if they have changed and are no longer changing. It
// reports whether a change is pending.
func (w *Watcher) poll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.look()
	switch {
	case now.sum == w.seen.sum: // unchanged, or changed back
		w.state = pending{sum: now.sum}
		w.err.Store(nil)
		return false
	case now.sum == w.state.refused:
		w.state.since = time.Time{}
		return false
	case w.state.since.IsZero():
		w.state.since, w.state.sum = time.Now(), now.sum
		return true
	case now.sum != w.state.sum && time.Since(w.state.since) < 2*w.on.Interval:
		// Still being written. A file that is written without end is loaded after two intervals.
		w.state.sum = now.sum
		return true
	}
	c, err := Load(w.opts)
	if after := w.look(); after.sum != now.sum {
		w.state.sum = after.sum
		return true // c may be a mixture of two states
	}
	if err == nil {
		err = w.missing(now)
	}
	if err == nil {
		err = w.Current().dropped(c)
	}
	if err != nil {
		w.refuse(now, err)
		return false
	}
	w.accept(now, c)
	return false
}

func (w *Watcher) accept(seen snapshot, c *Config) {
	before := w.current.Swap(c)
	w.seen, w.state = seen, pending{sum: seen.sum}
	w.err.Store(nil)
	if w.on.Changed != nil {
		w.on.Changed(before, c)
	}
}

func (w *Watcher) refuse(seen snapshot, err error) {
	w.state = pending{sum: seen.sum, refused: seen.sum}
	before := w.Err()
	w.err.Store(&err)
	if errors.As(err, new(*UntrustedError)) && before != nil && before.Error() == err.Error() {
		return // the same change waits
	}
	if w.on.Failed != nil {
		w.on.Failed(err)
	}
}

// missing reports files of the running configuration that are gone or have become empty. They
// are being written, or this is a mistake; in both cases the defaults would be wrong.
func (w *Watcher) missing(now snapshot) error {
	var errs Errors
	for _, file := range w.Current().files {
		problem := ""
		if _, err := os.Stat(file); err != nil {
			problem = reason(err)
		} else if now.empty[file] && !w.seen.empty[file] {
			problem = "the file is empty"
		}
		if problem != "" {
			errs = append(errs, &Error{
				Origin:  Origin{Kind: FromFile, File: disk.FromHere(file)},
				Problem: problem, Allowed: "the running configuration stays; reload to use none",
			})
		}
	}
	return errs.ordered()
}

// look takes a snapshot of all files to load.
func (w *Watcher) look() snapshot {
	s := snapshot{empty: map[string]bool{}}
	h := sha256.New()
	files, errs := find(&w.opts, environment(w.opts.Env))
	fmt.Fprintf(h, "%d %v\n", len(files), errs)
	for _, file := range append(files, policyFiles(machinePolicy(), w.opts.Env)...) {
		text, err := disk.ReadFile(file, tree.MaxFile)
		fmt.Fprintf(h, "%q %v %d\n", file, err, len(text))
		h.Write(text)
		s.empty[file] = err == nil && len(bytes.TrimSpace(text)) == 0
	}
	// The user's agreements are watched like a file.
	fmt.Fprintln(h, trust.Open(trustDir(environment(w.opts.Env))).State())
	h.Sum(s.sum[:0])
	return s
}
