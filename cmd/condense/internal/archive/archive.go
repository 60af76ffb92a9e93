// Package archive is the full-text index of the sessions that agents recorded on this machine. It has stems of words, not
// texts: shown lines are read again from the session's file, and found there by their handle.
package archive

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/condensehq/condense/internal/disk"
)

// ErrNone reports that there is no index.
var ErrNone = errors.New("there is no index of sessions; condense search --index makes one")

// version is of the schema.
const version = 4

// Pieces that were added together have consecutive IDs: a run. The words of a piece have its ID, in the full-text index for
// its IDs, a shard; only which pieces have a word is recorded (detail=none). Handles and hashes are numbers, which need
// half the space. Paths are found by three characters in a row.
//
//go:embed schema.sql
var schema string

// shardSchema are the statements for a new shard.
const shardSchema = `
INSERT INTO shard VALUES (%[2]d);
CREATE VIRTUAL TABLE %[1]s USING fts5 (stems, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");
INSERT INTO %[1]s (%[1]s, rank) VALUES ('hashsize', 33554432)`

// perShard is the number of IDs in a shard. Words are deleted without a trace by writing their shard again, which takes
// two seconds; a search looks into all shards.
const perShard = 1 << 17

// spacing is between the IDs of pieces in a shard. Deleted ones are in a hash table with linear probing, in which consecutive
// IDs make long chains: with gaps, deleting the 1,200 pieces of a session takes a quarter of the time.
const spacing = 2

// words returns the name of the full-text index of a shard.
func words(shard int64) string { return fmt.Sprint("words_", shard) }

// An Archive is an open index. It is safe for concurrent use by one process that updates it and others that search.
type Archive struct {
	db       *sql.DB
	perShard int64
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
	db, err := sql.Open("sqlite", disk.SQLite(path, pragmas))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	a := &Archive{db, perShard}
	if err := a.upgrade(ctx, create); err != nil {
		return nil, errors.Join(fmt.Errorf("index %s: %w", path, err), db.Close())
	}
	return a, nil
}

// upgrade makes the tables. With create, the tables of an older version are dropped: the next update reads the sessions again.
func (a *Archive) upgrade(ctx context.Context, create bool) error {
	var found int
	if err := a.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	switch {
	case found == version:
		return nil
	case found > version:
		return fmt.Errorf("its version is %d, from a newer condense; delete it with condense search --forget all", found)
	case found > 0 && !create:
		return fmt.Errorf("it is of an older version, %d; condense search --index makes it again", found)
	}
	const older = `DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS piece; DROP TABLE IF EXISTS session; DROP TABLE IF EXISTS run;
DROP TABLE IF EXISTS kind; DROP TABLE IF EXISTS subject;`
	_, err := a.db.ExecContext(ctx, "BEGIN;"+older+schema+"COMMIT; VACUUM;")
	return err
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

// column returns the values of a query for one column.
func column[T any](ctx context.Context, db *sql.DB, query string, args ...any) (all []T, err error) {
	var value T
	rows, err := db.QueryContext(ctx, query, args...)
	err = scan(rows, err, func() { all = append(all, value) }, &value)
	return all, err
}

// scan calls row for each of rows, with its values in to.
func scan(rows *sql.Rows, err error, row func(), to ...any) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		row()
	}
	return rows.Err()
}

// Forget deletes the sessions whose path or name is the given one, and returns their number. No word of them is left in
// the file.
func (a *Archive) Forget(ctx context.Context, session string) (int, error) {
	ids, err := column[int64](ctx, a.db, "SELECT id FROM session WHERE path = ?1 OR name = ?1", session)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return len(ids), a.remove(ctx, ids)
}

// remove deletes sessions.
func (a *Archive) remove(ctx context.Context, sessions []int64) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	var gone []piece
	for _, id := range sessions {
		old, err := piecesOf(ctx, tx, id)
		if err != nil {
			return err
		}
		gone = slices.AppendSeq(gone, maps.Values(old))
		if _, err := tx.ExecContext(ctx, "DELETE FROM run WHERE session = ?1; DELETE FROM session WHERE id = ?1", id); err != nil {
			return err
		}
	}
	if err := a.drop(ctx, tx, gone); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return a.shrink(ctx)
}

// shrink makes the file smaller if half of it is free. Free pages are overwritten already.
func (a *Archive) shrink(ctx context.Context) error {
	var free, all int64
	if err := a.db.QueryRowContext(ctx, "SELECT f.freelist_count, p.page_count FROM pragma_freelist_count f, pragma_page_count p").Scan(&free, &all); err != nil {
		return err
	}
	if free <= all/2 {
		return nil
	}
	_, err := a.db.ExecContext(ctx, "VACUUM")
	return err
}
