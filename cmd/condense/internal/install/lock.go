package install

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/internal/plain"
)

// LockFile names the file with the checksums of installed plugins, for all platforms. A project shares it. It approves nothing.
const LockFile = "condense.lock"

// A Lock is the content of condense.lock.
type Lock struct {
	Version int            `json:"version"`
	Plugins map[string]Pin `json:"plugins"`
}

// A Pin is the release of a plugin.
type Pin struct {
	Source string            `json:"source"`
	Assets map[string]string `json:"assets"` // SHA-256, in lower-case hex, by file: for all platforms, and the manifest
}

// canonical returns the source of a lock as [Installer.Parse] spells it; text itself if it is not there or no source.
func (in *Installer) canonical(text string) string {
	src, err := in.Parse(text, in.Dir)
	if err != nil {
		return text
	}
	return src.text
}

// Lock reads condense.lock. Without the file it is empty.
func (in *Installer) Lock() (*Lock, error) {
	root, err := os.OpenRoot(in.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	info, err := root.Stat(LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{Version: 1, Plugins: map[string]Pin{}}, nil
	}
	file := filepath.Join(in.Dir, LockFile)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSums {
		return nil, fmt.Errorf("%s is not a file of at most %d MiB", file, maxSums>>20)
	}
	text, err := root.ReadFile(LockFile)
	if err != nil {
		return nil, err
	}
	l, err := parseLock(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; repair it, or remove it and install the plugins again", file, err)
	}
	return l, nil
}

var hash = plain.Pattern(`^[0-9a-f]{64}$`)

func parseLock(text []byte) (*Lock, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	l := &Lock{}
	if err := d.Decode(l); err != nil {
		return nil, err
	}
	if l.Version != 1 || l.Plugins == nil {
		return nil, fmt.Errorf("has version %d; this condense knows version 1", l.Version)
	}
	for name, p := range l.Plugins {
		if !pluginName().MatchString(name) || p.Source == "" || len(p.Assets) == 0 {
			return nil, fmt.Errorf("plugins.%q: wants a name of lower-case letters and digits, a source and assets", name)
		}
		for file, sum := range p.Assets {
			if a, ok := parseAsset(file); !hash().MatchString(sum) || file != ManifestFile && (!ok || a.plugin != name) {
				return nil, fmt.Errorf("plugins.%s.assets: %q: wants an asset of the plugin and its SHA-256", name, file)
			}
		}
	}
	return l, nil
}

// change rewrites condense.lock.
func (in *Installer) change(root *os.Root, f func(*Lock)) error {
	l, err := in.Lock()
	if err != nil {
		return err
	}
	f(l)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(l); err != nil {
		return err
	}
	temp := ".condense.lock-" + rand.Text()[:12]
	err = root.WriteFile(temp, b.Bytes(), 0o644)
	if err == nil {
		err = root.Rename(temp, LockFile)
	}
	if err != nil {
		_ = root.Remove(temp) // it may not be there
	}
	return err
}
