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
