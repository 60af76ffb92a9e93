package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A snapshot is what the files of a plugin hold, by path.
type snapshot map[string]fileState

type fileState struct {
	size    int64
	modTime time.Time
	sum     [sha256.Size]byte
}

// maxSource is in bytes. What is larger is no source: most often the plugin itself, built
// beside its sources.
const maxSource = 1 << 20

// takeSnapshot reads the files of a folder, and one more if it is not empty. A file that
// looks as in before is not read again. Hidden folders and those of packages that were
// installed are left out.
func takeSnapshot(ctx context.Context, root, extra string, before snapshot) (snapshot, error) {
	s := snapshot{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && path != root:
			return nil // an editor's file, gone already
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return s.add(path, before)
	})
	if err == nil && extra != "" {
		err = s.add(extra, before)
	}
	return s, err
}

func (s snapshot) add(path string, before snapshot) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing to see until it is back
	}
	if err != nil || info.Size() > maxSource {
		return err
	}
	state := fileState{size: info.Size(), modTime: info.ModTime()}
	if b, ok := before[path]; ok && b.size == state.size && b.modTime.Equal(state.modTime) {
		s[path] = b
		return nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	state.sum = sha256.Sum256(data)
	s[path] = state
	return err
}

// changed returns the name of a file whose content differs from that in before; empty if
// there is none.
func (s snapshot) changed(before snapshot) string {
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if b, ok := before[path]; !ok || b.sum != s[path].sum {
			return filepath.Base(path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if _, ok := s[path]; !ok {
			return filepath.Base(path)
		}
	}
	return ""
}

func (s snapshot) differs(before snapshot) bool { return s.changed(before) != "" }
