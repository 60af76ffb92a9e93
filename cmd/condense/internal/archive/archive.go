// Package archive is the full-text index of the sessions that agents recorded on this machine. It has stems of words, not
// texts: shown lines are read again from the session's file, and found there by their handle.
package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/condensehq/condense/internal/disk"
)

// ErrNone reports that there is no index.
var ErrNone = errors.New("there is no index of sessions")

// schema is of version 1. The words of a piece have its ID. Only which pieces have a word is recorded (detail=none).
const schema = `
CREATE TABLE root (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE session (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, name TEXT NOT NULL, dir TEXT NOT NULL,
	size INTEGER NOT NULL, changed INTEGER NOT NULL);
CREATE TABLE piece (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, handle TEXT NOT NULL, message TEXT NOT NULL, what TEXT NOT NULL,
	subject TEXT NOT NULL, file TEXT NOT NULL, time INTEGER NOT NULL, status TEXT NOT NULL, edits INTEGER NOT NULL);
CREATE INDEX piece_session ON piece (session, handle);
CREATE INDEX piece_edits ON piece (file, time) WHERE edits;
CREATE VIRTUAL TABLE words USING fts5 (stems, content='', contentless_delete=1, detail=none, tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
PRAGMA user_version = 1;`

// An Archive is an open index. It is safe for concurrent use by one process that updates it and others that search.
type Archive struct {
	db   *sql.DB
	path string
}

// Path returns the file of the user's index: search.db in the folder of the program for state.
func Path() (string, error) {
	dir, err := disk.StateDir()
	return filepath.Join(dir, "search.db"), err
}

// Open opens the index in a file. If there is none, it is made with create, readable by its owner only, else the error
// is ErrNone.
func Open(ctx context.Context, path string, create bool) (*Archive, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, ErrNone
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // SQLite gives its other files the same permissions
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	// Deleted content is overwritten (secure_delete), also in the rollback journal, which is emptied after each transaction.
	pragmas := url.Values{"_pragma": {"busy_timeout(5000)", "secure_delete(on)", "journal_mode(truncate)", "synchronous(normal)", "cache_size(-65536)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	a := &Archive{db, path}
	if err := a.upgrade(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", path, err), db.Close())
	}
	return a, nil
}

func (a *Archive) upgrade(ctx context.Context) error {
	var version int
	if err := a.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case 0:
		_, err := a.db.ExecContext(ctx, "BEGIN;"+schema+"COMMIT;")
		return err
	case 1:
		return nil
	}
	return fmt.Errorf("its version is %d, from a newer condense; delete it with condense search --forget all", version)
}

// Close closes the index.
func (a *Archive) Close() error { return a.db.Close() }

// Remove deletes the file of the index; nothing if there is none.
func Remove(path string) error {
	for _, name := range []string{path, path + "-journal"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Roots returns the files and folders that were named for the index.
func (a *Archive) Roots(ctx context.Context) ([]string, error) {
	return column(ctx, a.db, "SELECT path FROM root ORDER BY path")
}

// AddRoot adds a file or a folder to them.
func (a *Archive) AddRoot(ctx context.Context, path string) error {
	_, err := a.db.ExecContext(ctx, "INSERT OR IGNORE INTO root VALUES (?)", path)
	return err
}

func column(ctx context.Context, db *sql.DB, query string, args ...any) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// Forget deletes the sessions whose path or name is the given one, and returns their number. No word of them is left in
// the file.
func (a *Archive) Forget(ctx context.Context, session string) (int, error) {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	const these = "(SELECT id FROM session WHERE path = ?1 OR name = ?1)"
	var n int64
	for _, statement := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT id FROM piece WHERE session IN " + these + ")",
		"DELETE FROM piece WHERE session IN " + these,
		"DELETE FROM session WHERE id IN " + these,
	} {
		result, err := tx.ExecContext(ctx, statement, session)
		if err == nil {
			n, err = result.RowsAffected() // of the last: sessions
		}
		if err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil || n == 0 {
		return 0, err
	}
	return int(n), a.scrub(ctx)
}

// scrub removes the words of deleted pieces, which the full-text index only marks.
func (a *Archive) scrub(ctx context.Context) error {
	_, err := a.db.ExecContext(ctx, "INSERT INTO words (words) VALUES ('optimize'); VACUUM;")
	return err
}
