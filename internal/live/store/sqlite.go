package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/condensehq/condense/internal/disk"
)

// SQLite opens the store in a file, creating it and its folder if necessary. Only the owner can read the file and
// those that SQLite creates (-wal, -shm). Several processes can use one file.
func SQLite(ctx context.Context, path string) (Store, error) {
	s, err := openSQLite(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return s, nil
}

// Memory opens an empty store that ends with the process.
func Memory(ctx context.Context) (Store, error) {
	// The database lives as long as it has a connection, and the pool may close one whose statement was cancelled. In SQLite's memdb it
	// would be full at 1 GiB.
	options := url.Values{"mode": {"memory"}, "cache": {"shared"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:/"+rand.Text()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2) // this one, and one that is used
	held, err := db.Conn(ctx)
	if err == nil {
		err = migrateSQLite(ctx, db)
	}
	if err != nil {
		return nil, fmt.Errorf("store in memory: %w", errors.Join(err, db.Close()))
	}
	noChanges := func(context.Context, Key, *int64) error { return nil } // it has no other users
	return &database{name: "in memory", db: db, held: held, changes: noChanges}, nil
}

// busyTimeout is how long a statement waits for another process that is writing. A write
// takes milliseconds.
const busyTimeout = 5 * time.Second

// sqliteSQL makes the tables. Tables handle and kept refer to sets; Expire deletes sets without a record.
//
//go:embed sqlite.sql
var sqliteSQL string

// sqliteLayout is the version of these tables.
const sqliteLayout = 3

func openSQLite(ctx context.Context, path string) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite gives its other files the same permissions.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err := errors.Join(err, f.Chmod(0o600), f.Close()); err != nil {
		return nil, err
	}
	// FULL: in a log (WAL) that is not synced, the last records could be lost with the machine.
	pragmas := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
	}}
	db, err := sql.Open("sqlite", disk.SQLite(path, pragmas))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite has one writer; a second connection would only wait for it
	if err := migrateSQLite(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &database{
		name: path, db: db,
		// A property of the connection: it counts the commits of others.
		changes: func(ctx context.Context, _ Key, n *int64) error {
			return db.QueryRowContext(ctx, "PRAGMA data_version").Scan(n)
		},
		ready: func(ctx context.Context) error {
			now, err := os.Stat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, now):
				return errors.New("the file was deleted or replaced: a restart will lose all current condensations; restart to make a new one")
			case err != nil:
				return err
			}
			var n int
			return db.QueryRowContext(ctx, "SELECT count(*) FROM secret").Scan(&n)
		},
		purge: func(ctx context.Context) error { // free pages and the log still have deleted data
			if _, err := db.ExecContext(ctx, "VACUUM"); err != nil {
				return err
			}
			var busy, pages, moved int
			err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
			if err == nil && busy != 0 {
				err = errors.New("another process uses the file: deleted data is in its log until it is closed")
			}
			return err
		},
	}, nil
}

func migrateSQLite(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != 0 {
		return sameLayout(version, sqliteLayout)
	}
	if _, err := tx.ExecContext(ctx, sqliteSQL); err != nil {
		return err
	}
	return tx.Commit()
}

// sameLayout returns an error if tables are of another version than the known one.
func sameLayout(version, known int) error {
	switch {
	case version == known:
		return nil
	case version < known:
		return fmt.Errorf("made before condense was released (layout %d, this one knows %d): use another store", version, known)
	}
	return fmt.Errorf("made by a newer version of condense (layout %d, this one knows %d): update condense, or use another store", version, known)
}
