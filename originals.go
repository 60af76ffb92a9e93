package condense

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/disk"
)

// KeepOriginals names the directory to which the host writes what condensations hide or
// rewrite, if the configuration says so (originals: parts): a file part-N.jsonl for each,
// see [history.EncodeOriginals]. It is made when it is needed. With an empty directory,
// as at first, nothing is written.
func (c *Conversation) KeepOriginals(dir string) { c.originals = dir }

// OriginalsDir returns the directory for the originals of the conversation in a file.
func OriginalsDir(file string) string { return file + ".history" }

// Recall finds content by its handle, hidden or not: see [history.Journal.Recall].
func (c *Conversation) Recall(handle string) []history.Recalled { return c.journal.Recall(handle) }

// partName returns the name of the file with the originals of the n-th condensation.
func partName(n int) string { return "part-" + strconv.Itoa(n) + ".jsonl" }

// nextPart returns the path of the file that comes after those in dir.
func nextPart(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	last := 0
	for _, e := range entries {
		digits, isPart := strings.CutPrefix(e.Name(), "part-")
		digits, isLines := strings.CutSuffix(digits, ".jsonl")
		if n, err := strconv.Atoi(digits); err == nil && isPart && isLines {
			last = max(last, n)
		}
	}
	path, err := filepath.Abs(filepath.Join(dir, partName(last+1)))
	return path, err
}

// fromDir returns path as one who works in dir would write it: relative if it is below.
func fromDir(dir, path string) string {
	if dir == "" {
		return path
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// writeOriginals writes what e hides or rewrites, as it was recorded, to the file path,
// which appears whole or not at all and must not be there yet. It reports whether there
// was anything to write.
func (c *Conversation) writeOriginals(path string, e *core.Edit) (bool, error) {
	touched := make(map[string]bool, len(e.Hide)+len(e.Rewrite))
	for _, id := range e.Hide {
		touched[id] = true
	}
	for i := range e.Rewrite {
		touched[e.Rewrite[i].ID] = true
	}
	if len(touched) == 0 {
		return false, nil
	}
	var messages []core.Message
	for _, m := range c.View() { // for their order
		if touched[m.ID] {
			if m, ok := c.journal.Message(m.ID); ok {
				messages = append(messages, m)
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, createWhole(path, func(f *os.File) error { return history.EncodeOriginals(f, messages) })
}

// createWhole creates a file for its owner alone, with what write writes and never over
// another one. It is on the disk when createWhole returns.
func createWhole(path string, write func(*os.File) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".part-*") // with 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // it is one name too many, or gone
	err = write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	// A link is never made over a file that is there, as a renamed file would be.
	err = os.Link(tmp.Name(), path)
	if err == nil {
		return disk.SyncDir(filepath.Dir(path))
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no links: take the name first.
	taken, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := taken.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return disk.SyncDir(filepath.Dir(path))
}

// keepOriginals writes the originals of a condensation about to be recorded. What it
// returns takes them back.
func (p *plan) keepOriginals(c *Conversation, e *core.Edit) (path string, undo func() error, err error) {
	none := func() error { return nil }
	if p.part == "" {
		return "", none, nil
	}
	written, err := c.writeOriginals(p.part, e)
	switch {
	case err != nil:
		return "", none, fmt.Errorf("originals: %w", err)
	case !written:
		return "", none, nil
	}
	return p.part, func() error { return os.Remove(p.part) }, nil
}
