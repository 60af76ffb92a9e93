package servecmd

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// openAudit returns a log of all actions and their users, in a file, and its closer.
func openAudit(path string) (*slog.Logger, io.Closer, error) {
	w := &auditFile{path: path}
	if err := w.open(); err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewJSONHandler(w, nil)), w, nil
}

// An auditFile is written line by line. If a program has renamed the file, so that another one is at its path, the
// line goes into the new file.
type auditFile struct {
	path string
	mu   sync.Mutex
	f    *os.File
}

func (w *auditFile) open() error {
	if err := os.MkdirAll(filepath.Dir(w.path), 0o700); err != nil { //nolint:mnd // its owner's only
		return err
	}
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		w.f = f
	}
	return err
}

// Write appends a line.
func (w *auditFile) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	there, err := os.Stat(w.path)
	is, errIs := w.f.Stat()
	if err != nil || errIs != nil || !os.SameFile(there, is) {
		old := w.f
		if w.open() == nil {
			_ = old.Close()
		}
	}
	return w.f.Write(line)
}

// Close closes the file.
func (w *auditFile) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.f.Close()
}
