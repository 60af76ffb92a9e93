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

// schema is of version 2. Pieces that were added together have consecutive IDs: a run. The words of a piece have its ID;
// only which pieces have a word is recorded (detail=none). Handles and hashes are numbers, which need half the space.
const schema = `
CREATE TABLE IF NOT EXISTS root (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE session (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, name TEXT NOT NULL, dir TEXT NOT NULL,
	size INTEGER NOT NULL, changed INTEGER NOT NULL, head INTEGER NOT NULL, tail INTEGER NOT NULL);
CREATE TABLE run (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, session INTEGER NOT NULL);
CREATE INDEX run_session ON run (session);
CREATE TABLE kind (id INTEGER PRIMARY KEY, what TEXT NOT NULL UNIQUE);
CREATE TABLE subject (id INTEGER PRIMARY KEY, text TEXT NOT NULL, file INTEGER NOT NULL);
CREATE TABLE piece (id INTEGER PRIMARY KEY, handle INTEGER NOT NULL, kind INTEGER NOT NULL, subject INTEGER NOT NULL, time INTEGER NOT NULL,
	status TEXT NOT NULL, edits INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE INDEX piece_subject ON piece (subject) WHERE subject;
CREATE INDEX piece_edits ON piece (subject, time) WHERE edits;
CREATE VIRTUAL TABLE words USING fts5 (stems, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");
INSERT INTO words (words, rank) VALUES ('hashsize', 33554432);
PRAGMA user_version = 2;`

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
	if err := a.upgrade(ctx, create); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", path, err), db.Close())
	}
	return a, nil
}

// upgrade makes the tables. With create, the tables of version 1 are dropped: the next update reads the sessions again.
func (a *Archive) upgrade(ctx context.Context, create bool) error {
	var version int
	if err := a.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == 1 && !create {
		return fmt.Errorf("%w that this version reads", ErrNone)
	}
	switch version {
	case 0:
		_, err := a.db.ExecContext(ctx, "BEGIN;"+schema+"COMMIT;")
		return err
	case 1:
		_, err := a.db.ExecContext(ctx, "BEGIN; DROP TABLE words; DROP TABLE piece; DROP TABLE session;"+schema+"COMMIT; VACUUM;")
		return err
	case 2:
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
	return column[string](ctx, a.db, "SELECT path FROM root ORDER BY path")
}

// AddRoot adds a file or a folder to them.
func (a *Archive) AddRoot(ctx context.Context, path string) error {
	_, err := a.db.ExecContext(ctx, "INSERT OR IGNORE INTO root VALUES (?)", path)
	return err
}

func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	for rows.Next() {
		var s T
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
	n, err := a.remove(ctx, session)
	if err != nil || n == 0 {
		return 0, err
	}
	return n, a.scrub(ctx)
}

// remove is Forget without scrub.
func (a *Archive) remove(ctx context.Context, session string) (int, error) {
	ids, err := column[int64](ctx, a.db, "SELECT id FROM session WHERE path = ?1 OR name = ?1", session)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, id := range ids {
		old, err := piecesOf(ctx, tx, id)
		if err != nil {
			return 0, err
		}
		if err := drop(ctx, tx, old); err != nil {
			return 0, err
		}
		for _, statement := range []string{"DELETE FROM run WHERE session = ?", "DELETE FROM session WHERE id = ?"} {
			if _, err := tx.ExecContext(ctx, statement, id); err != nil {
				return 0, err
			}
		}
	}
	return len(ids), tx.Commit()
}

// An old piece is one that is in the index.
type oldPiece struct{ id, subject int64 }

// piecesOf returns the pieces of a session by their handles.
func piecesOf(ctx context.Context, tx *sql.Tx, session int64) (map[int64]oldPiece, error) {
	rows, err := tx.QueryContext(ctx, "SELECT p.handle, p.id, p.subject FROM run r JOIN piece p ON p.id BETWEEN r.first AND r.last WHERE r.session = ?", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	old := map[int64]oldPiece{}
	for rows.Next() {
		var handle int64
		var p oldPiece
		if err := rows.Scan(&handle, &p.id, &p.subject); err != nil {
			return nil, err
		}
		old[handle] = p
	}
	return old, rows.Err()
}

// drop deletes pieces, and the subjects that no other piece has.
func drop(ctx context.Context, tx *sql.Tx, old map[int64]oldPiece) error {
	subjects := map[int64]bool{}
	for _, p := range old {
		subjects[p.subject] = true
		for _, statement := range []string{"DELETE FROM words WHERE rowid = ?", "DELETE FROM piece WHERE id = ?"} {
			if _, err := tx.ExecContext(ctx, statement, p.id); err != nil {
				return err
			}
		}
	}
	for id := range subjects {
		if _, err := tx.ExecContext(ctx, "DELETE FROM subject WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE subject AND subject = ?1)", id); err != nil {
			return err
		}
	}
	return nil
}

// scrub removes the words of deleted pieces, which the full-text index only marks. Pages that are free are overwritten
// already: the file shrinks if a quarter of it is free.
func (a *Archive) scrub(ctx context.Context) error {
	_, err := a.db.ExecContext(ctx, "DELETE FROM kind WHERE id NOT IN (SELECT DISTINCT kind FROM piece); INSERT INTO words (words) VALUES ('optimize');")
	if err != nil {
		return err
	}
	var free, all int64
	if err := a.db.QueryRowContext(ctx, "SELECT f.freelist_count, p.page_count FROM pragma_freelist_count f, pragma_page_count p").Scan(&free, &all); err != nil {
		return err
	}
	if free > all/4 {
		_, err = a.db.ExecContext(ctx, "VACUUM")
	}
	return err
}
