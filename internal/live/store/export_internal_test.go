package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
)

// SetVersion sets the layout version of a store that is not open.
func SetVersion(path string, version int) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), "PRAGMA user_version = "+strconv.Itoa(version))
	return errors.Join(err, db.Close())
}

// MakeOld makes a store of layout 1 with a record of the session "s".
func MakeOld(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), schema[0]+`
		INSERT INTO lineage (id, tenant, api, agent, session, version, updated, data) VALUES ('r', 't', '', '', 's', 3, 5, 'old')`)
	return errors.Join(err, db.Close())
}

// withoutChecksums makes the tables of those of the layout before.
const withoutChecksums = "ALTER TABLE lineage DROP COLUMN checksum; ALTER TABLE kept DROP COLUMN checksum; "

// DropChecksums makes a store that is not open one of the layout before checksums.
func DropChecksums(address string) error {
	if IsPostgres(address) {
		return RunPostgres(address, withoutChecksums+"UPDATE layout SET version = 1")
	}
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(context.Background(), withoutChecksums+"PRAGMA user_version = 2")
	return errors.Join(err, db.Close())
}

// SetPostgresVersion sets the layout version of a store that is not open.
func SetPostgresVersion(address string, version int) error {
	return RunPostgres(address, fmt.Sprint("UPDATE layout SET version = ", version))
}

// RunPostgres runs statements.
func RunPostgres(address, statements string) error {
	s, err := openPostgres(context.Background(), address)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(context.Background(), statements)
	return errors.Join(err, s.db.Close())
}
