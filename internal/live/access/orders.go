package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/condensehq/condense/internal/disk"
)

// ordersFile is the file, in the folder for state, with the secret of [Orders].
const ordersFile = "orders.key"

// Orders returns the secret with which the user of this machine directs the conversations of gateways that need no token. Only
// the user can read its file. With create, the file is made if there is none. Several processes may call Orders at once.
func Orders(create bool) (string, error) {
	dir, err := disk.StateDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, ordersFile)
	if _, err := os.Lstat(path); create && errors.Is(err, fs.ErrNotExist) {
		if err := putFirst(dir, path); err != nil {
			return "", err
		}
	}
	info, err := os.Lstat(path) // a link or a pipe could lead anywhere
	if err != nil {
		return "", err
	}
	const others, most = 0o077, 1 << 10
	damaged := fmt.Errorf("%s: others can read it, or it is damaged; delete it and start the gateway again", disk.FromHere(path))
	if !info.Mode().IsRegular() || info.Size() > most || runtime.GOOS != "windows" && info.Mode()&others != 0 {
		return "", damaged
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < len(rand.Text()) {
		return "", damaged
	}
	return secret, nil
}

// putFirst writes a new secret, unless another process is faster: a link replaces nothing.
func putFirst(dir, path string) error {
	const own = 0o700
	if err := os.MkdirAll(dir, own); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".orders-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.SyncDir(dir)
}
