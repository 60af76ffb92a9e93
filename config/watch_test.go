package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/trust"
)

const tick = time.Millisecond

// A notebook records the reports of a watcher.
type notebook struct {
	mu      sync.Mutex
	changed []float64 // thresholds
	failed  []string
}

func (n *notebook) options(interval time.Duration) *config.WatchOptions {
	return &config.WatchOptions{
		Interval: interval,
		Changed: func(_, after *config.Config) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.changed = append(n.changed, *after.Values().Threshold)
		},
		Failed: func(err error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.failed = append(n.failed, err.Error())
		},
	}
}

func (n *notebook) failures() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.failed...)
}

// watch starts a watcher that ends with the test.
func watch(t *testing.T, opts config.Options, on *config.WatchOptions) *config.Watcher {
	t.Helper()
	w, err := config.Watch(t.Context(), opts, on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-w.Done() }) // the context ends before
	return w
}

func threshold(w *config.Watcher) float64 { return *w.Current().Values().Threshold }

func runs(t *testing.T, w *config.Watcher, want float64) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("threshold %v runs", want), func() bool { return threshold(w) == want })
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace writes a new file and renames it over the old one, as editors do.
func replace(t *testing.T, file, text string) {
	t.Helper()
	overwrite(t, file+".tmp", text)
	if err := os.Rename(file+".tmp", file); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	opts := known
	opts.Path = write(t, "condense.yaml", "threshold: 50\n")
	var n notebook
	w := watch(t, opts, n.options(tick))
	runs(t, w, 50)

	t.Log("overwritten")
	overwrite(t, opts.Path, "threshold: 51\n")
	runs(t, w, 51)

	t.Log("replaced by rename")
	replace(t, opts.Path, "threshold: 52\n")
	runs(t, w, 52)

	t.Log("deleted: what runs, runs on, and it is said")
	if err := os.Remove(opts.Path); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the deletion is reported", func() bool {
		return w.Err() != nil && strings.Contains(w.Err().Error(), "no such file")
	})
	if got := threshold(w); got != 52 {
		t.Errorf("after deletion: got %v, want 52", got)
	}

	t.Log("made again")
	overwrite(t, opts.Path, "threshold: 53\n")
	runs(t, w, 53)
	if err := w.Err(); err != nil {
		t.Errorf("the error of the past is still there: %v", err)
	}

	t.Log("wrong: reported once, with its place")
	before := len(n.failures())
	overwrite(t, opts.Path, "threshold: 3\nauto: maybe\n")
	testkit.Eventually(t, "the fault is reported", func() bool { return w.Err() != nil })
	errs, ok := errors.AsType[config.Errors](w.Err())
	if !ok || len(errs) != 2 || errs[0].Origin.Line != 1 || errs[1].Origin.Line != 2 {
		t.Errorf("got %v, want both faults", w.Err())
	}
	time.Sleep(50 * tick)
	if got := len(n.failures()) - before; got != 1 {
		t.Errorf("the fault was reported %d times", got)
	}
	if got := threshold(w); got != 53 {
		t.Errorf("with a wrong file: got %v, want 53", got)
	}

	t.Log("changed back to what runs")
	overwrite(t, opts.Path, "threshold: 53\n")
	testkit.Eventually(t, "the fault is over", func() bool { return w.Err() == nil })

	t.Log("emptied: somebody is writing")
	overwrite(t, opts.Path, "")
	testkit.Eventually(t, "the empty file is reported", func() bool { return w.Err() != nil })
	if got := threshold(w); got != 53 {
		t.Errorf("with an empty file: got %v, want 53", got)
	}
	overwrite(t, opts.Path, "threshold: 54\n")
	runs(t, w, 54)
}

// A volume of Kubernetes has links to files in a folder that is itself a link, which is swapped.
func TestWatchSymlinkSwap(t *testing.T) {
	dir := tree(t, map[string]string{
		"..v1/condense.yaml": "threshold: 50\n",
		"..v2/condense.yaml": "threshold: 51\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for link, target := range map[string]string{"..data": "..v1", "condense.yaml": "..data/condense.yaml"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	opts := known
	opts.Path = at("condense.yaml")
	w := watch(t, opts, &config.WatchOptions{Interval: tick})
	runs(t, w, 50)
	for i, version := range []string{"..v2", "..v1", "..v2"} {
		if err := os.Symlink(version, at("..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at("..tmp"), at("..data")); err != nil {
			t.Fatal(err)
		}
		runs(t, w, []float64{51, 50, 51}[i])
	}
}

// Files may be made and deleted in every folder that is searched.
func TestWatchSearch(t *testing.T) {
	root := tree(t, map[string]string{"repo/.git/HEAD": "", "repo/sub/x": "", "xdg/condense/x": ""})
	opts := known
	opts.Dir, opts.Env = filepath.Join(root, "repo/sub"), []string{"XDG_CONFIG_HOME=" + filepath.Join(root, "xdg")}
	w := watch(t, opts, &config.WatchOptions{Interval: tick})
	runs(t, w, 80)
	overwrite(t, filepath.Join(root, "xdg/condense/config.yml"), "threshold: 60\n")
	runs(t, w, 60)
	overwrite(t, filepath.Join(root, "repo/condense.yaml"), "threshold: 61\n")
	runs(t, w, 61)
	overwrite(t, filepath.Join(root, "repo/sub/condense.json"), `{"threshold": 62}`)
	runs(t, w, 62)
	overwrite(t, filepath.Join(root, "repo/sub/condense.yaml"), "threshold: 63\n")
	testkit.Eventually(t, "two files in one place are reported", func() bool { return w.Err() != nil })
	if err := os.Remove(filepath.Join(root, "repo/sub/condense.yaml")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the fault is over", func() bool { return w.Err() == nil })

	// A file that was used and is gone is an error, until Reload accepts it.
	if err := os.Remove(filepath.Join(root, "repo/sub/condense.json")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the file is missed", func() bool { return w.Err() != nil })
	if got := threshold(w); got != 62 {
		t.Errorf("got %v, want 62 to run on", got)
	}
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := threshold(w); got != 61 {
		t.Errorf("reloaded: got %v, want 61", got)
	}
}

func TestReload(t *testing.T) {
	opts := known
	opts.Path = write(t, "condense.yaml", "threshold: 50\n")
	var n notebook
	w := watch(t, opts, n.options(time.Hour))
	overwrite(t, opts.Path, "threshold: 51\n")
	if err := w.Reload(); err != nil || threshold(w) != 51 {
		t.Errorf("got %v and threshold %v, want 51", err, threshold(w))
	}
	overwrite(t, opts.Path, "threshold: 1\n")
	if err := w.Reload(); err == nil || threshold(w) != 51 || w.Err() == nil {
		t.Errorf("got %v and threshold %v, want an error and 51", err, threshold(w))
	}
	if len(n.changed) != 1 || n.changed[0] != 51 || len(n.failed) != 1 {
		t.Errorf("got changes %v and failures %v, want one of each", n.changed, n.failed)
	}
}

func TestWatchRefusesToStart(t *testing.T) {
	opts := known
	opts.Path = write(t, "condense.yaml", "threshold: 1\n")
	if _, err := config.Watch(t.Context(), opts, nil); err == nil {
		t.Error("started on a wrong file")
	}
}

// While the file is rewritten a thousand times, with valid and invalid content and in several
// ways, eight readers see whole configurations only: each file has its number three times. At
// the end, the last valid content is in use.
func TestWatchUnderFire(t *testing.T) {
	const rewrites, readers = 1000, 8
	text := func(n int) string {
		p := 5 + float64(n%950)/10
		return fmt.Sprintf("threshold: %v\nmin_new_tokens: %d\nprofiles:\n  default: {window: %d}\n%s", p, n, 100_000+n,
			strings.Repeat("# a file of some length\n", n%7))
	}
	opts := known
	opts.Path = write(t, "condense.yaml", text(0))
	var n notebook
	w := watch(t, opts, n.options(tick))
	var stop atomic.Bool
	var reads atomic.Int64
	var group sync.WaitGroup
	for range readers {
		group.Go(func() {
			for !stop.Load() {
				c := w.Current()
				r, err := c.Resolve("", "code")
				if err != nil {
					t.Error(err)
					return
				}
				if r.Window == 200_000 && r.MinNewTokens == 10_000 && r.Threshold == 80 {
					time.Sleep(tick) // the defaults: for a moment, while it is overwritten, the file is empty
					continue
				}
				if i := r.Window - 100_000; r.MinNewTokens != i || r.Threshold != 5+float64(i%950)/10 {
					t.Errorf("a mixture: window %d, new tokens %d, threshold %v", r.Window, r.MinNewTokens, r.Threshold)
					return
				}
				reads.Add(1)
				time.Sleep(tick)
			}
		})
	}
	for i := 1; i <= rewrites; i++ {
		switch i % 5 {
		case 0:
			overwrite(t, opts.Path, "threshold: [\n")
		case 1:
			overwrite(t, opts.Path, "threshold: 3\n")
		case 2:
			if err := os.Remove(opts.Path); err != nil {
				t.Fatal(err)
			}
			overwrite(t, opts.Path, text(i))
		case 3:
			overwrite(t, opts.Path, text(i))
		default:
			replace(t, opts.Path, text(i))
		}
		if i%50 == 4 { // some of them are loaded
			testkit.Eventually(t, "it runs", func() bool { return w.Current().Values().MinNewTokens.Tokens == i })
		}
	}
	replace(t, opts.Path, text(rewrites+1))
	testkit.Eventually(t, "the last one runs", func() bool { return w.Current().Values().MinNewTokens.Tokens == rewrites+1 })
	overwrite(t, opts.Path, "threshold: 3\n")
	testkit.Eventually(t, "the last fault is reported", func() bool { return w.Err() != nil })
	if got := w.Current().Values().MinNewTokens.Tokens; got != rewrites+1 {
		t.Errorf("in the end %d runs, want %d", got, rewrites+1)
	}
	stop.Store(true)
	group.Wait()
	if len(n.changed) < 20 || reads.Load() < 100 {
		t.Errorf("%d changes and %d reads prove little", len(n.changed), reads.Load())
	}
}

// TestWatchTrust: a part that needs trust, written into a watched file, is withheld until the user
// trusts it, and is then used without a further change of the file.
func TestWatchTrust(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "condense.yaml")
	put := func(text string) {
		t.Helper()
		// Replaced at once: a file that is empty for as long as the machine is busy is rightly reported.
		if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
	}
	put("threshold: 50\n")
	var n notebook
	w := watch(t, config.Options{Path: file, Env: []string{"XDG_CONFIG_HOME=" + home}}, n.options(tick))
	changes := func(want int) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprint("change ", want), func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.changed) >= want
		})
	}
	withheld := func() bool {
		t.Helper()
		m, err := w.Current().Model("m")
		if err != nil {
			t.Fatal(err)
		}
		return m.Withheld != ""
	}
	put("threshold: 50\nmodels: {m: {api: openai, base_url: \"http://localhost:1\"}}\n")
	changes(1)
	if !withheld() {
		t.Error("an address that came while the file was watched is used without trust")
	}
	claims := w.Current().Claims()[0]
	if err := trust.Open(w.Current().TrustDir()).Add(trust.Entry{Kind: trust.Config, Path: claims.File, Digest: claims.Digest}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the user's trust counts", func() bool { return !withheld() })
	if f := n.failures(); len(f) > 0 {
		t.Errorf("got %q", f)
	}
}
