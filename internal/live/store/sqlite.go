package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// SQLite opens the store in a file, which is made with its folder if there is none. The file
// and those that SQLite puts next to it (-wal, -shm) can be read by their owner only. Several
// processes can use one file.
func SQLite(ctx context.Context, path string) (Store, error) {
	s, err := openSQLite(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return s, nil
}

// busyTimeout is how long a statement waits for another process that is writing. A write
// takes milliseconds.
const busyTimeout = 5 * time.Second

// schema is the layout of version 1. A later version adds statements for those who have this
// one; see migrate.
const schema = `
CREATE TABLE lineage (
	id TEXT PRIMARY KEY, tenant TEXT NOT NULL, api TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
	version INTEGER NOT NULL, updated INTEGER NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX lineage_key ON lineage (tenant, api, agent, session, updated);
CREATE INDEX lineage_updated ON lineage (updated);
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;`

const schemaVersion = 1

type sqlite struct {
	path string
	db   *sql.DB
}

func openSQLite(ctx context.Context, path string) (*sqlite, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite gives the files next to this one the same permissions.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, err
	}
	// FULL: in a log (WAL) that is not synced, the last records could be lost with the machine.
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
	}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer; a second connection would only wait for it
	s := &sqlite{path, db}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *sqlite) migrate(ctx context.Context) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version > schemaVersion:
		return fmt.Errorf("made by a newer version of condense (layout %d, this one knows %d): update condense, or name another file", version, schemaVersion)
	case version == schemaVersion:
		return nil
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	return tx.Commit()
}

// failed describes an error by what was tried.
func (s *sqlite) failed(doing string, err error) error {
	return fmt.Errorf("store %s: %s: %w", s.path, doing, err)
}

// Load implements [Store].
func (s *sqlite) Load(ctx context.Context, k Key) ([]Record, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, version, updated, data FROM lineage
		WHERE tenant = ? AND api = ? AND agent = ? AND session = ? ORDER BY updated DESC, id`,
		k.Tenant, k.API, k.Agent, k.Session)
	if err != nil {
		return nil, s.failed("read", err)
	}
	defer func() { _ = rows.Close() }() // the error that matters is rows.Err
	var found []Record
	for rows.Next() {
		r := Record{Key: k}
		var updated int64
		if err := rows.Scan(&r.ID, &r.Version, &updated, &r.Data); err != nil {
			return nil, s.failed("read", err)
		}
		r.Updated = time.UnixMilli(updated)
		found = append(found, r)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("read", err)
	}
	return found, nil
}

// Save implements [Store].
func (s *sqlite) Save(ctx context.Context, r *Record) error {
	if err := r.validate(); err != nil {
		return err
	}
	data := r.Data
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	k, updated := r.Key, r.Updated.UnixMilli()
	var done sql.Result
	var err error
	if r.Version == 0 {
		done, err = s.db.ExecContext(ctx, `INSERT INTO lineage (id, tenant, api, agent, session, version, updated, data)
			VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING`, r.ID, k.Tenant, k.API, k.Agent, k.Session, updated, data)
	} else {
		done, err = s.db.ExecContext(ctx, `UPDATE lineage SET version = version + 1, updated = ?, data = ?
			WHERE id = ? AND version = ? AND tenant = ? AND api = ? AND agent = ? AND session = ?`,
			updated, data, r.ID, r.Version, k.Tenant, k.API, k.Agent, k.Session)
	}
	if err != nil {
		return s.failed("write", err)
	}
	n, err := done.RowsAffected()
	switch {
	case err != nil:
		return s.failed("write", err)
	case n == 0:
		return s.failed("write", fmt.Errorf("record %s: %w", r.ID, ErrConflict))
	}
	r.Version++
	return nil
}

// Changes implements [Store].
func (s *sqlite) Changes(ctx context.Context) (int64, error) {
	var n int64 // of the connection: counts what others commit
	if err := s.db.QueryRowContext(ctx, "PRAGMA data_version").Scan(&n); err != nil {
		return 0, s.failed("read", err)
	}
	return n, nil
}

// Secret implements [Store].
func (s *sqlite) Secret(ctx context.Context, name string) ([]byte, error) {
	_, err := s.db.ExecContext(ctx, "INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, newSecret())
	var value []byte
	if err == nil {
		err = s.db.QueryRowContext(ctx, "SELECT value FROM secret WHERE name = ?", name).Scan(&value)
	}
	if err != nil {
		return nil, s.failed("read secret "+name, err)
	}
	return value, nil
}

// Expire implements [Store].
func (s *sqlite) Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error) {
	done, err := s.db.ExecContext(ctx, `DELETE FROM lineage WHERE updated < ?1 OR ?2 > 0 AND id IN (
		SELECT id FROM (SELECT id, sum(length(data)) OVER (ORDER BY updated DESC, id) AS kept FROM lineage WHERE updated >= ?1)
		WHERE kept > ?2)`, before.UnixMilli(), maxBytes)
	if err != nil {
		return 0, s.failed("delete old records", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, s.failed("delete old records", err)
	}
	return int(n), nil
}

// Close implements [Store].
func (s *sqlite) Close() error {
	if err := s.db.Close(); err != nil {
		return s.failed("close", err)
	}
	return nil
}
