// Package browser_test opens the pages of package internal/lab/report in Chromium, with mouse and keyboard, in
// light and dark mode, on a phone and in print.
package browser_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense/internal/testkit/peers"
)

const untried = "the pages are not opened in a browser"

// patience is the timeout of a single step, on a busy machine.
const patience = 5 * time.Minute

// A tab is a page in Chromium and a record of its forbidden actions.
type tab struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it

	mu     sync.Mutex
	own    string // address of the server of the pages; empty for files
	faults []string
}

// openTab returns an empty tab.
func openTab(t *testing.T) *tab {
	t.Helper()
	path := os.Getenv("CONDENSE_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); path == "" && err == nil {
			path = found
		}
	}
	if path == "" {
		peers.Missing(t, untried, "there is no chromium in PATH, and CONDENSE_CHROMIUM names none")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root otherwise
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	tb := &tab{ctx: ctx}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	tb.do(t, chromedp.EmulateViewport(1400, 1000))
	t.Cleanup(func() {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, f := range tb.faults {
			t.Error(f)
		}
	})
	return tb
}

// hear records requests and console messages.
func (tb *tab) hear(ev any) {
	fault := ""
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		url := ev.Request.URL
		if file := strings.HasPrefix(url, "file://") && strings.Contains(url, ".html"); !file && (tb.own == "" || !strings.HasPrefix(url, tb.own)) {
			fault = "a request left the page: " + url
		}
	case *runtime.EventExceptionThrown:
		fault = "exception: " + exceptionText(ev.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			text, _ := json.Marshal(ev.Args)
			fault = "console: " + string(text)
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			fault = "console: " + ev.Entry.Text
		}
	}
	if fault != "" {
		tb.mu.Lock()
		tb.faults = append(tb.faults, fault)
		tb.mu.Unlock()
	}
}

// navigate opens the file at a fragment and waits for the figures.
func (tb *tab) navigate(t *testing.T, file, hash string) {
	t.Helper()
	tb.do(t, chromedp.Navigate("file://"+filepath.ToSlash(file)+hash))
	if got := until[string](t, tb, `document.documentElement.dataset.ready`); got != "yes" {
		t.Fatalf("the page is %q, want it ready", got)
	}
}

func (tb *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](t *testing.T, tb *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// until returns the value of a JavaScript expression as soon as it is truthy. It polls from outside, as
// polling in the page needs eval, which the policy of the page forbids.
func until[T comparable](t *testing.T, tb *tab, expression string) T {
	t.Helper()
	var zero T
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if v := evaluate[*T](t, tb, "("+expression+") || null"); v != nil && *v != zero {
			return *v
		}
	}
	t.Fatalf("%.200s never came true", expression)
	return zero
}

func exceptionText(e *runtime.ExceptionDetails) string {
	text, err := json.Marshal(e)
	if err != nil {
		return e.Text
	}
	return string(text)
}

// media sets the media features of the system.
func (tb *tab) media(t *testing.T, features ...*emulation.MediaFeature) {
	t.Helper()
	if _, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
}

// shot writes a picture of the first screen into the folder CONDENSE_SHOTS, for people who want to look at it.
func shot(t *testing.T, tb *tab, name string) {
	t.Helper()
	folder := os.Getenv("CONDENSE_SHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
