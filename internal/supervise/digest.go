package supervise

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A plugin that is larger than this is a mistake in the configuration.
const (
	maxProgramBytes = 1 << 30
	maxTreeFiles    = 50_000
)

// A ChecksumError says that a plugin is not the one that was approved.
type ChecksumError struct {
	Path string // the file or the tree
	Want string // as pinned
	Got  string
}

// Error shows both digests and says what to do.
func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s is not the plugin that was pinned: its SHA-256 is %s, pinned is %s; if you changed or updated it yourself, pin it again (condense plugin pin), otherwise find out who did",
		e.Path, e.Got, e.Want)
}

// Digest returns what pins the plugin of s: the SHA-256, in hex, of the file Path, or of
// the folder Tree if that is set. The digest of a folder is that of the list of its files,
//
//	find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum
//
// Only regular files count, wherever they are in it. Symbolic links are no part of a
// plugin, and neither is what changes without the plugin: a condense.lock at the top, the
// folders .git and __pycache__. What is not part of it is not there when it runs.
func Digest(s Spec) (string, error) {
	if s.Tree != "" {
		return copyTree(s.Tree, "")
	}
	f, err := openProgram(s.Path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	return copyDigest(io.Discard, f)
}

// copyDigest copies src to dst and returns its SHA-256 in hex.
func copyDigest(dst io.Writer, src io.Reader) (string, error) {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(dst, h), io.LimitReader(src, maxProgramBytes+1))
	if err != nil {
		return "", err
	}
	if n > maxProgramBytes {
		return "", fmt.Errorf("larger than %d MiB", maxProgramBytes>>20)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openProgram opens the file of a plugin and finds out early why it could not run.
func openProgram(path string) (*os.File, error) {
	// A pipe or a device would block here or later: look first.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a program", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case !executable(info):
		return nil, fmt.Errorf("%s is not executable (mode %s): try chmod +x: %w", path, info.Mode().Perm(), fs.ErrPermission)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// copyTree copies the regular files of the folder src into the new folder dst, or only
// reads them if dst is empty, and returns the digest of the tree; see [Digest].
func copyTree(src, dst string) (string, error) {
	list, files, left := sha256.New(), 0, int64(maxProgramBytes)
	// WalkDir goes folder by folder, in an order that differs from that of whole paths
	// ("a/b" before "a.b"), so paths are collected first.
	var paths []string
	err := filepath.WalkDir(src, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "__pycache__") && p != src {
			return fs.SkipDir
		}
		if e.Type().IsRegular() && p != filepath.Join(src, "condense.lock") {
			if files++; files > maxTreeFiles {
				return fmt.Errorf("%s has more than %d files", src, maxTreeFiles)
			}
			rel, err := filepath.Rel(src, p)
			if err != nil {
				return err
			}
			paths = append(paths, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(src)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // only read
	slices.Sort(paths)
	for _, rel := range paths {
		sum, size, err := copyFile(root, rel, dst)
		if err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Join(src, rel), err)
		}
		if left -= size; left < 0 {
			return "", fmt.Errorf("%s is larger than %d MiB", src, maxProgramBytes>>20)
		}
		_, _ = fmt.Fprintf(list, "%s  %s\n", sum, rel)
	}
	return hex.EncodeToString(list.Sum(nil)), nil
}

// copyFile copies one file of a tree. What it was when the tree was listed does not
// matter: root sees to it that nothing outside is read.
func copyFile(root *os.Root, rel, dst string) (sum string, size int64, err error) {
	in, err := root.Open(filepath.FromSlash(rel))
	if err != nil {
		return "", 0, err
	}
	defer in.Close() //nolint:errcheck // only read
	info, err := in.Stat()
	if err != nil {
		return "", 0, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, errors.New("not a file any more")
	}
	if dst == "" {
		sum, err = copyDigest(io.Discard, in)
		return sum, info.Size(), err
	}
	to := filepath.Join(dst, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", 0, err
	}
	sum, err = copyTo(to, in, 0o600|info.Mode().Perm()&0o100)
	return sum, info.Size(), err
}

// copyTo writes src to the new file path and returns its digest.
func copyTo(path string, src io.Reader, mode fs.FileMode) (string, error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return "", err
	}
	sum, err := copyDigest(out, src)
	return sum, errors.Join(err, out.Close())
}
