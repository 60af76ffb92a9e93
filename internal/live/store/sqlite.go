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

// schema has the statements that make each version of the layout of the one before it. Sets are in
// handle and kept; what no record names is deleted by Expire.
var schema = []string{`
CREATE TABLE lineage (
	id TEXT PRIMARY KEY, tenant TEXT NOT NULL, api TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
	version INTEGER NOT NULL, updated INTEGER NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX lineage_key ON lineage (tenant, api, agent, session, updated);
CREATE INDEX lineage_updated ON lineage (updated);
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = 1;`, `
ALTER TABLE lineage ADD COLUMN reader TEXT NOT NULL DEFAULT '';
ALTER TABLE lineage ADD COLUMN kept TEXT NOT NULL DEFAULT '';
CREATE INDEX lineage_reader ON lineage (reader, updated) WHERE kept <> '';
CREATE INDEX lineage_kept ON lineage (tenant, kept) WHERE kept <> '';
CREATE TABLE original (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, hash BLOB NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL);
CREATE UNIQUE INDEX original_hash ON original (tenant, hash, bytes);
CREATE TABLE kept (tenant TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, original INTEGER NOT NULL,
	PRIMARY KEY (tenant, name, n)) WITHOUT ROWID;
CREATE INDEX kept_original ON kept (original);
CREATE TABLE handle (handle TEXT NOT NULL, tenant TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (handle, tenant, name)) WITHOUT ROWID;
PRAGMA user_version = 2;`}

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
	case version > len(schema):
		return fmt.Errorf("made by a newer version of condense (layout %d, this one knows %d): update condense, or name another file", version, len(schema))
	case version == len(schema):
		return nil
	}
	for _, statements := range schema[version:] {
		if _, err := tx.ExecContext(ctx, statements); err != nil {
			return err
		}
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
	rows, err := s.db.QueryContext(ctx, `SELECT id, version, updated, data, reader, kept FROM lineage
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
		if err := rows.Scan(&r.ID, &r.Version, &updated, &r.Data, &r.Reader, &r.Set); err != nil {
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
	if err := save(ctx, s.db, r); err != nil {
		return s.failed("write", err)
	}
	r.Version++
	return nil
}

// save writes a record, whose version is incremented by the caller.
func save(ctx context.Context, to interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, r *Record,
) error {
	data := r.Data
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	k, updated := r.Key, r.Updated.UnixMilli()
	var done sql.Result
	var err error
	if r.Version == 0 {
		done, err = to.ExecContext(ctx, `INSERT INTO lineage (id, tenant, api, agent, session, version, updated, data, reader, kept)
			VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, r.ID, k.Tenant, k.API, k.Agent, k.Session, updated, data, r.Reader, r.Set)
	} else {
		done, err = to.ExecContext(ctx, `UPDATE lineage SET version = version + 1, updated = ?, data = ?, reader = ?, kept = ?
			WHERE id = ? AND version = ? AND tenant = ? AND api = ? AND agent = ? AND session = ?`,
			updated, data, r.Reader, r.Set, r.ID, r.Version, k.Tenant, k.API, k.Agent, k.Session)
	}
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err == nil && n == 0 {
		return fmt.Errorf("record %s: %w", r.ID, ErrConflict)
	}
	return err
}

// Keep implements [Store].
func (s *sqlite) Keep(ctx context.Context, r *Record, k *Kept, maxBytes int64) error {
	if err := k.validate(r); err != nil {
		return err
	}
	all, err := pack(k.Originals)
	if err == nil {
		err = s.keep(ctx, r, k.Handles, all, maxBytes)
	}
	if err != nil {
		return s.failed("write", err)
	}
	r.Version++
	return nil
}

func (s *sqlite) keep(ctx context.Context, r *Record, handles []string, all []packed, maxBytes int64) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := save(ctx, tx, r); err != nil {
		return err
	}
	var bytes, n int64
	if err := tx.QueryRowContext(ctx, keptBytes).Scan(&bytes); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(n), -1) FROM kept WHERE tenant = ? AND name = ?", r.Key.Tenant, r.Set).Scan(&n); err != nil {
		return err
	}
	for _, p := range all {
		var id int64
		err := tx.QueryRowContext(ctx, "SELECT id FROM original WHERE tenant = ? AND hash = ?", r.Key.Tenant, p.hash[:]).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			if bytes += int64(len(p.data)); maxBytes > 0 && bytes > maxBytes {
				return fmt.Errorf("record %s: %w", r.ID, ErrFull)
			}
			err = tx.QueryRowContext(ctx, "INSERT INTO original (tenant, hash, bytes, data) VALUES (?, ?, ?, ?) RETURNING id", r.Key.Tenant, p.hash[:], len(p.data), p.data).Scan(&id)
		}
		if err != nil {
			return err
		}
		n++
		if _, err := tx.ExecContext(ctx, "INSERT INTO kept (tenant, name, n, kind, original) VALUES (?, ?, ?, ?, ?)", r.Key.Tenant, r.Set, n, p.kind, id); err != nil {
			return err
		}
	}
	for _, h := range handles {
		if _, err := tx.ExecContext(ctx, "INSERT INTO handle (handle, tenant, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", h, r.Key.Tenant, r.Set); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Kept implements [Store].
func (s *sqlite) Kept(ctx context.Context, tenant, set string) ([]Original, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT kind, data FROM kept JOIN original ON original.id = kept.original
		WHERE kept.tenant = ? AND name = ? ORDER BY n`, tenant, set)
	if err != nil {
		return nil, s.failed("read originals", err)
	}
	defer func() { _ = rows.Close() }() // the error that matters is rows.Err
	var all []Original
	for rows.Next() {
		var o Original
		var data []byte
		if err = rows.Scan(&o.Kind, &data); err == nil {
			o.Data, err = unpack(data)
		}
		if err != nil {
			return nil, s.failed("read originals", err)
		}
		all = append(all, o)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("read originals", err)
	}
	return all, nil
}

// KeptCount implements [Store].
func (s *sqlite) KeptCount(ctx context.Context, tenant, set string) (int, error) {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM kept WHERE tenant = ? AND name = ?", tenant, set).Scan(&n); err != nil {
		return 0, s.failed("read", err)
	}
	return n, nil
}

const keptBytes = "SELECT coalesce(sum(bytes), 0) FROM original" // of an index

// KeptBytes implements [Store].
func (s *sqlite) KeptBytes(ctx context.Context) (int64, error) {
	var n int64
	if err := s.db.QueryRowContext(ctx, keptBytes).Scan(&n); err != nil {
		return 0, s.failed("read", err)
	}
	return n, nil
}

// Readable implements [Store].
func (s *sqlite) Readable(ctx context.Context, reader, session, handle string, limit int) ([]Record, error) {
	if err := readable(reader); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, tenant, api, agent, session, version, updated, reader, kept FROM lineage AS l
		WHERE reader = ?1 AND kept <> '' AND (?2 = '' OR session = ?2)
		AND (?3 = '' OR EXISTS (SELECT 1 FROM handle WHERE handle = ?3 AND tenant = l.tenant AND name = l.kept))
		ORDER BY updated DESC, id LIMIT ?4`, reader, session, handle, limit)
	if err != nil {
		return nil, s.failed("read", err)
	}
	defer func() { _ = rows.Close() }() // the error that matters is rows.Err
	var found []Record
	for rows.Next() {
		var r Record
		var updated int64
		if err := rows.Scan(&r.ID, &r.Key.Tenant, &r.Key.API, &r.Key.Agent, &r.Key.Session, &r.Version, &updated, &r.Reader, &r.Set); err != nil {
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
	n, err := s.expire(ctx, before, maxBytes)
	if err != nil {
		return 0, s.failed("delete old records", err)
	}
	return n, nil
}

func (s *sqlite) expire(ctx context.Context, before time.Time, maxBytes int64) (int, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	done, err := tx.ExecContext(ctx, `DELETE FROM lineage WHERE updated < ?1 OR ?2 > 0 AND id IN (
		SELECT id FROM (SELECT id, sum(length(data)) OVER (ORDER BY updated DESC, id) AS bytes FROM lineage WHERE updated >= ?1)
		WHERE bytes > ?2)`, before.UnixMilli(), maxBytes)
	if err != nil {
		return 0, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return 0, err
	}
	for _, unneeded := range []string{
		"DELETE FROM kept WHERE NOT EXISTS (SELECT 1 FROM lineage AS l WHERE l.kept <> '' AND l.tenant = kept.tenant AND l.kept = kept.name)",
		"DELETE FROM handle WHERE NOT EXISTS (SELECT 1 FROM lineage AS l WHERE l.kept <> '' AND l.tenant = handle.tenant AND l.kept = handle.name)",
		"DELETE FROM original WHERE id NOT IN (SELECT original FROM kept)",
	} {
		if _, err := tx.ExecContext(ctx, unneeded); err != nil {
			return 0, err
		}
	}
	return int(n), tx.Commit()
}

// Close implements [Store].
func (s *sqlite) Close() error {
	if err := s.db.Close(); err != nil {
		return s.failed("close", err)
	}
	return nil
}
