package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense/internal/trust"
)

// WatchOptions adjust a [Watcher]. A nil pointer means the defaults.
type WatchOptions struct {
	// Interval is the time between looks at the files; 0 means a second. A change is loaded
	// when a second look, a fifth of the interval later, finds nothing further changed.
	Interval time.Duration
	// Changed is called after a new configuration has taken the place of an old one.
	Changed func(before, after *Config)
	// Failed is called when changed files are wrong, once for each state of theirs. The
	// configuration that was running runs on.
	Failed func(error)
}

// A Watcher keeps a configuration current while its files change. All methods may be called
// by any number of goroutines.
//
// A change that needs trust which the user has not given is loaded without those parts, as
// by [Load]; when the user gives it, the files are loaded again.
//
// It looks at the content of files and not at events: those are lost when a file is deleted
// and made again, when an editor replaces it, when a volume swaps a symbolic link. A second
// is fast enough for a person, and reading two small files costs nothing.
type Watcher struct {
	current atomic.Pointer[Config]
	err     atomic.Pointer[error]
	done    chan struct{}
	opts    Options
	on      WatchOptions

	mu    sync.Mutex // guards what follows, and the order of calls to Changed and Failed
	seen  snapshot   // of the files that made the current configuration
	state pending
}

// A snapshot tells one state of the files from another.
type snapshot struct {
	sum   [sha256.Size]byte
	empty map[string]bool // files that hold nothing but white space
}

// pending is a change on its way.
type pending struct {
	sum     [sha256.Size]byte // of the last look
	since   time.Time         // of the first look that found a change, zero if there is none
	refused [sha256.Size]byte // of files that were found wrong already
}

// Watch loads a configuration and keeps it current until ctx is done. The environment is
// that of the call; only files are looked at again. The error is that of [Load].
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
	// The snapshot comes first: if the files change in between, the first look sees it.
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

// Current returns the running configuration. It never blocks, and what it returns never
// changes: hold on to it for as long as one piece of work should see the same values.
func (w *Watcher) Current() *Config { return w.current.Load() }

// Err returns what is wrong with the files as they are now, nil if they are what runs.
func (w *Watcher) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Done returns a channel that is closed when the watcher has ended, after its context.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Reload loads the files now, for a host that is told to by a signal. Unlike a look in
// passing it takes the files as they are: a file that is gone counts as gone, unless it was
// named. If they are wrong, the running configuration stays and the error says why.
// It must not be called from Changed or Failed.
func (w *Watcher) Reload() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.look()
	c, err := Load(w.opts)
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

// poll looks at the files and loads them if they have changed and settled. It reports
// whether a change is still on its way.
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
		// Still being written; but what is written without end must count at some time.
		w.state.sum = now.sum
		return true
	}
	c, err := Load(w.opts)
	if after := w.look(); after.sum != now.sum {
		w.state.sum = after.sum
		return true // it may be a mixture of both
	}
	if err == nil {
		err = w.missing(now)
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
	w.err.Store(&err)
	if w.on.Failed != nil {
		w.on.Failed(err)
	}
}

// missing reports files of the running configuration that are gone or have lost all their
// content. Somebody is writing them, or has made a mistake; to fall back to the defaults in
// the middle of somebody's work would be the worst answer to either.
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
				Origin:  Origin{Kind: FromFile, File: display(file)},
				Problem: problem, Allowed: "the running configuration stays; reload to do without the file",
			})
		}
	}
	return errs.ordered()
}

// look takes a snapshot of all files that there are to load.
func (w *Watcher) look() snapshot {
	s := snapshot{empty: map[string]bool{}}
	h := sha256.New()
	files, errs := find(&w.opts, environment(w.opts.Env))
	fmt.Fprintf(h, "%d %v\n", len(files), errs)
	for _, file := range files {
		text, err := readLimited(file)
		fmt.Fprintf(h, "%q %v %d\n", file, err, len(text))
		h.Write(text)
		s.empty[file] = err == nil && len(bytes.TrimSpace(text)) == 0
	}
	// What the user trusts and approves counts like a file of the configuration.
	fmt.Fprintln(h, trust.Open(trustDir(environment(w.opts.Env))).Changed().UnixNano())
	h.Sum(s.sum[:0])
	return s
}
