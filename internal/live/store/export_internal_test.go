package store

import (
	"context"
	"database/sql"
	"errors"
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
