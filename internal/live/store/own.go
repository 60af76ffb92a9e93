package store

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
)

// NewOwn returns a new record that only this gateway writes.
func NewOwn(k Key) *Record { return &Record{ID: k.Tenant + "-" + strings.ToLower(rand.Text()), Key: k} }

// SaveOwn saves a record that only this gateway writes, whatever happened to the stored one: it may have been deleted
// as old, or been stored although the database went away before it confirmed that.
func SaveOwn(ctx context.Context, in Store, r *Record) error {
	err := in.Save(ctx, r)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	all, err := in.Load(ctx, r.Key)
	if err != nil {
		return err
	}
	r.Version = 0
	for i := range all {
		if all[i].ID == r.ID {
			r.Version = all[i].Version
		}
	}
	return in.Save(ctx, r)
}
