package servecmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/live/access"
)

// announce lets other commands of this user find a page until end is called. Without a folder for state nobody does.
func announce(address string) (end func()) {
	dir, err := disk.StateDir()
	if dir = filepath.Join(dir, "pages"); err != nil || os.MkdirAll(dir, 0o700) != nil { //nolint:mnd // the user's
		return func() {}
	}
	lock := flock.New(filepath.Join(dir, time.Now().UTC().Format("20060102T150405.000000000")))
	if ours, err := lock.TryLock(); !ours || err != nil {
		return func() {}
	}
	_ = os.WriteFile(lock.Path(), []byte(address), 0o600) //nolint:mnd // see above
	return func() { _ = errors.Join(os.Remove(lock.Path()), lock.Unlock()) }
}

// announced returns the pages that can be opened now, the latest first: their gateways hold a lock. The address of one that was killed
// can be another user's by now, who would get the key of [openPage].
func announced() (addresses []string) {
	dir, _ := disk.StateDir()
	files, _ := filepath.Glob(filepath.Join(dir, "pages", "*")) // the pattern is one
	for _, file := range slices.Backward(files) {
		lock := flock.New(file)
		if killed, err := lock.TryLock(); killed || err != nil {
			_ = errors.Join(os.Remove(file), lock.Unlock())
			continue
		}
		if text, err := os.ReadFile(file); err == nil {
			addresses = append(addresses, string(text))
		}
	}
	return addresses
}

// openPage opens the page of a running gateway; on this machine with the key of its user, which is sent to nobody.
func openPage(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if host := net.ParseIP(u.Hostname()); u.Path == "/condense/" && host != nil && host.IsLoopback() {
		if key, err := access.Orders(false); err == nil {
			address += "#key=" + url.QueryEscape(key)
		}
	}
	return openBrowser(ctx, address, startBrowser)
}

// openBrowser opens an address. Other users of the machine can read the arguments of programs, so the browser is given one that leads
// there once.
func openBrowser(ctx context.Context, address string, start func(context.Context, string) error) error {
	l, err := bind(ctx, "127.0.0.1:0", "")
	if err != nil {
		return err
	}
	once, opened := "/"+rand.Text(), make(chan struct{})
	var used atomic.Bool
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != once || used.Swap(true) {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, address, http.StatusSeeOther)
		close(opened)
	})}
	go func() { _ = server.Serve(l) }() // it ends with Shutdown
	err = start(ctx, "http://"+l.Addr().String()+once)
	const patience = 30 * time.Second
	if err == nil {
		select {
		case <-opened:
		case <-ctx.Done():
		case <-time.After(patience):
			err = errors.New("no browser has opened the page: open the address that 'condense live' prints")
		}
	}
	return errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
}

// startBrowser has the system open an address.
func startBrowser(ctx context.Context, address string) error {
	command := cmp.Or(map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS], "xdg-open")
	return exec.CommandContext(context.WithoutCancel(ctx), command, address).Start() //nolint:gosec // ours
}
