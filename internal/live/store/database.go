package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"
)

// A database is a store in a SQL database. Its statements are valid in both SQLite and PostgreSQL.
type database struct {
	name    string // of the file or the address, for errors
	db      *sql.DB
	held    *sql.Conn // keeps a database in memory; nil for others
	changes func(ctx context.Context, k Key, n *int64) error
	ready   func(context.Context) error // nil for a database that says so with every statement

	purge func(context.Context) error // overwrites deleted data; nil if the database does that itself

	// Of a database that can be unavailable; nil for a file.
	breaker     *gobreaker.CircuitBreaker[struct{}]
	unavailable func(error) bool
	again       func(error) bool // a transaction met another one: it works the next time
}

// do runs f, which reads or writes, and adds to its error the operation that failed.
func (s *database) do(ctx context.Context, doing string, limit time.Duration, f func(context.Context) error) error {
	err := error(nil)
	if s.breaker == nil {
		if err = f(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrFull) {
			err = fmt.Errorf("%w: %w", ErrFile, err)
		}
	} else {
		_, err = s.breaker.Execute(func() (struct{}, error) {
			inner, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			err := f(inner)
			if err != nil && ctx.Err() == nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrFull) && s.unavailable(err) {
				err = fmt.Errorf("%w: %s", ErrUnavailable, plainReason(err))
			}
			return struct{}{}, err
		})
		if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
			err = ErrUnavailable
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: %s: %w", s.name, doing, err)
}

// An execer is a connection or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// each calls scan with each row.
func each(ctx context.Context, of *sql.DB, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := of.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // the error that matters is rows.Err
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// records reads records with their data.
func (s *database) records(ctx context.Context, limit time.Duration, where string, args ...any) ([]Record, error) {
	return s.read(ctx, limit, "data", (*Record).check, where, args...)
}

// list returns records without their data.
func (s *database) list(ctx context.Context, where string, args ...any) ([]Record, error) {
	return s.read(ctx, statementTimeout, "NULL", (*Record).checkHead, where, args...)
}

func (s *database) read(
	ctx context.Context, limit time.Duration, data string, check func(*Record, []byte), where string, args ...any,
) ([]Record, error) {
	var found []Record
	err := s.do(ctx, "read", limit, func(ctx context.Context) error {
		found = nil
		return each(ctx, s.db, func(rows *sql.Rows) error {
			var r Record
			var updated int64
			var sum []byte
			k := &r.Key
			err := rows.Scan(&r.ID, &k.Tenant, &k.API, &k.Agent, &k.Session, &r.Version, &updated, &r.Reader, &r.Set, &sum, &r.Data)
			r.Updated = time.UnixMilli(updated)
			check(&r, sum)
			found = append(found, r)
			return err
		}, "SELECT id, tenant, api, agent, session, version, updated, reader, kept, checksum, "+data+" FROM lineage AS l "+where, args...)
	})
	return found, err
}

// one scans the only row and column of a result.
func (s *database) one(ctx context.Context, doing string, to any, query string, args ...any) error {
	return s.do(ctx, doing, statementTimeout, func(ctx context.Context) error {
		return s.db.QueryRowContext(ctx, query, args...).Scan(to)
	})
}

// inside runs f in a transaction.
func (s *database) inside(ctx context.Context, doing string, limit time.Duration, f func(context.Context, execer) error) error {
	const tries = 5
	return s.do(ctx, doing, limit, func(ctx context.Context) error {
		for try := 1; ; try++ {
			err := s.transaction(ctx, f)
			if err == nil || s.again == nil || try == tries || !s.again(err) {
				return err
			}
		}
	})
}

func (s *database) transaction(ctx context.Context, f func(context.Context, execer) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	if err := f(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Load implements [Store].
func (s *database) Load(ctx context.Context, k Key) ([]Record, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	found, err := s.records(ctx, statementTimeout, "WHERE tenant = $1 AND api = $2 AND agent = $3 AND session = $4 ORDER BY updated DESC, id",
		k.Tenant, k.API, k.Agent, k.Session)
	return slices.DeleteFunc(found, func(r Record) bool { return !r.Damaged && r.Key != k }), err // a damaged index leads anywhere
}

// Save implements [Store].
func (s *database) Save(ctx context.Context, r *Record) error {
	if err := r.validate(); err != nil {
		return err
	}
	var err error
	if r.From == nil {
		err = s.do(ctx, "write", statementTimeout, func(ctx context.Context) error { return save(ctx, s.db, r) })
	} else {
		err = s.inside(ctx, "write", statementTimeout, func(ctx context.Context, tx execer) error { return save(ctx, tx, r) })
	}
	r.saved(err)
	return err
}

// save writes a record. The caller increments its version.
func save(ctx context.Context, to execer, r *Record) error {
	data := r.Data
	if data == nil {
		data = []byte{} // nil would be NULL
	}
	k, updated, sum := r.Key, r.Updated.UnixMilli(), checksum(r)
	var err error
	if r.From != nil {
		err = changed(r.From.ID)(to.ExecContext(ctx, `UPDATE lineage SET version = version + 1
			WHERE id = $1 AND version = $2 AND tenant = $3 AND api = $4 AND agent = $5 AND session = $6`,
			r.From.ID, r.From.Version, k.Tenant, k.API, k.Agent, k.Session))
	}
	switch {
	case err != nil:
		return err
	case r.Version == 0:
		return changed(r.ID)(to.ExecContext(ctx, `INSERT INTO lineage (id, tenant, api, agent, session, version, updated, data, reader, kept, checksum)
			VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
			r.ID, k.Tenant, k.API, k.Agent, k.Session, updated, data, r.Reader, r.Set, sum))
	}
	return changed(r.ID)(to.ExecContext(ctx, `UPDATE lineage SET version = version + 1, updated = $1, data = $2, reader = $3, kept = $4, checksum = $5
		WHERE id = $6 AND version = $7 AND tenant = $8 AND api = $9 AND agent = $10 AND session = $11`,
		updated, data, r.Reader, r.Set, sum, r.ID, r.Version, k.Tenant, k.API, k.Agent, k.Session))
}

// changed returns a conflict if a statement about the record of an ID has changed nothing.
func changed(id string) func(sql.Result, error) error {
	return func(done sql.Result, err error) error {
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err == nil && n == 0 {
			return fmt.Errorf("record %s: %w", id, ErrConflict)
		}
		return err
	}
}

// Keep implements [Store].
func (s *database) Keep(ctx context.Context, r *Record, k *Kept, maxBytes int64) error {
	if err := k.validate(r); err != nil {
		return err
	}
	all, err := pack(k.Originals)
	if err != nil {
		return err
	}
	err = s.inside(ctx, "write", statementTimeout, func(ctx context.Context, tx execer) error {
		return keep(ctx, tx, r, k.Handles, all, maxBytes)
	})
	r.saved(err)
	return err
}

func keep(ctx context.Context, tx execer, r *Record, handles []string, all []packed, maxBytes int64) error {
	if err := save(ctx, tx, r); err != nil {
		return err
	}
	added, err := insert(ctx, tx, "original (tenant, hash, bytes, data)", "($, $, $, $)", len(all), func(i int) []any {
		return []any{r.Key.Tenant, all[i].hash[:], len(all[i].data), all[i].data}
	})
	if err != nil {
		return err
	}
	if added > 0 && maxBytes > 0 {
		var bytes int64
		if err := tx.QueryRowContext(ctx, keptBytes).Scan(&bytes); err != nil {
			return err
		}
		if bytes > maxBytes {
			return fmt.Errorf("record %s: %w", r.ID, ErrFull)
		}
	}
	var n int64
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(n), -1) FROM kept WHERE tenant = $1 AND name = $2", r.Key.Tenant, r.Set).Scan(&n); err != nil {
		return err
	}
	if _, err := insert(ctx, tx, "kept (tenant, name, n, kind, checksum, original)", "($, $, $, $, $, (SELECT min(id) FROM original WHERE tenant = $ AND hash = $))", len(all), func(i int) []any {
		at, p := n+1+int64(i), &all[i]
		return []any{r.Key.Tenant, r.Set, at, p.kind, keptSum(r.Key.Tenant, r.Set, at, p.kind, p.hash[:]), r.Key.Tenant, p.hash[:]}
	}); err != nil {
		return err
	}
	_, err = insert(ctx, tx, "handle (handle, tenant, name)", "($, $, $)", len(handles), func(i int) []any {
		return []any{handles[i], r.Key.Tenant, r.Set}
	})
	return err
}

// insert adds n rows with as few round trips as need be, and returns how many were new. Row has a $ for each argument.
func insert(ctx context.Context, to execer, into, row string, n int, args func(i int) []any) (int64, error) {
	const most = 500 // rows of one statement; SQLite takes 32,766 arguments
	added := int64(0)
	for from := 0; from < n; from += most {
		var query strings.Builder
		query.WriteString("INSERT INTO " + into + " VALUES ")
		var values []any
		for i := from; i < min(n, from+most); i++ {
			if i > from {
				query.WriteString(", ")
			}
			values = append(values, args(i)...)
			next := len(values) - strings.Count(row, "$")
			for part := range strings.SplitAfterSeq(row, "$") {
				query.WriteString(part)
				if strings.HasSuffix(part, "$") {
					next++
					fmt.Fprint(&query, next)
				}
			}
		}
		query.WriteString(" ON CONFLICT DO NOTHING")
		done, err := to.ExecContext(ctx, query.String(), values...)
		if err != nil {
			return 0, err
		}
		rows, err := done.RowsAffected()
		if err != nil {
			return 0, err
		}
		added += rows
	}
	return added, nil
}

// Kept implements [Store].
func (s *database) Kept(ctx context.Context, tenant, set string) ([]Original, error) {
	var all []Original
	err := s.do(ctx, "read originals", statementTimeout, func(ctx context.Context) error {
		all = nil
		return each(ctx, s.db, func(rows *sql.Rows) error {
			var o Original
			var n int64
			var hash, sum, data []byte
			if err := rows.Scan(&n, &o.Kind, &sum, &hash, &data); err != nil {
				return err
			}
			var err error
			o.Data, err = unpack(data)
			got := sha256.Sum256(o.Data)
			if err == nil && bytes.Equal(got[:], hash) && bytes.Equal(sum, keptSum(tenant, set, n, o.Kind, hash)) {
				all = append(all, o)
			}
			return nil
		}, `SELECT n, kind, checksum, hash, data FROM kept JOIN original ON original.id = kept.original AND original.tenant = kept.tenant
			WHERE kept.tenant = $1 AND name = $2 ORDER BY n`, tenant, set)
	})
	return all, err
}

// KeptCount implements [Store].
func (s *database) KeptCount(ctx context.Context, tenant, set string) (int, error) {
	var n int
	err := s.one(ctx, "read", &n, "SELECT count(*) FROM kept WHERE tenant = $1 AND name = $2", tenant, set)
	return n, err
}

const keptBytes = "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) FROM original" // of an index

// KeptBytes implements [Store].
func (s *database) KeptBytes(ctx context.Context) (int64, error) {
	var n int64
	err := s.one(ctx, "read", &n, keptBytes)
	return n, err
}

// Readable implements [Store].
func (s *database) Readable(ctx context.Context, reader, session, handle string, limit int) ([]Record, error) {
	if err := readable(reader); err != nil {
		return nil, err
	}
	found, err := s.list(ctx, `WHERE reader = $1 AND kept <> '' AND ($2 = '' OR session = $2)
		AND ($3 = '' OR EXISTS (SELECT 1 FROM handle WHERE handle = $3 AND tenant = l.tenant AND name = l.kept))
		ORDER BY updated DESC, id LIMIT $4`, reader, session, handle, limit)
	return slices.DeleteFunc(found, func(r Record) bool { return r.Damaged || r.Reader != reader }), err
}

// List implements [Store].
func (s *database) List(ctx context.Context, tenant string) ([]Record, error) {
	return s.list(ctx, "WHERE $1 = '' OR "+ofTenant+" ORDER BY updated DESC, id", tenant)
}

// Since implements [Store]. There is no index of APIs: the caller reads all records when a process starts, and then
// only the newest.
func (s *database) Since(ctx context.Context, api string, since time.Time, limit int) ([]Record, error) {
	return s.records(ctx, longTimeout, "WHERE api = $1 AND updated >= $2 ORDER BY updated DESC, id LIMIT $3", api, since.UnixMilli(), limit)
}

// Changes implements [Store].
func (s *database) Changes(ctx context.Context, k Key) (int64, error) {
	var n int64
	err := s.do(ctx, "read", statementTimeout, func(ctx context.Context) error { return s.changes(ctx, k, &n) })
	return n, err
}

// Ready implements [Store].
func (s *database) Ready(ctx context.Context) error {
	if s.ready == nil {
		_, err := s.Changes(ctx, Key{})
		return err
	}
	return s.do(ctx, "look", statementTimeout, s.ready)
}

// Secret implements [Store].
func (s *database) Secret(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	err := s.do(ctx, "read secret "+name, statementTimeout, func(ctx context.Context) error {
		if _, err := s.db.ExecContext(ctx, "INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", name, newSecret()); err != nil {
			return err
		}
		return s.db.QueryRowContext(ctx, "SELECT value FROM secret WHERE name = $1", name).Scan(&value)
	})
	return value, err
}

func newSecret() []byte {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// Expire implements [Store].
func (s *database) Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error) {
	return s.remove(ctx, "delete old records", `DELETE FROM lineage WHERE updated < CAST($1 AS bigint) OR CAST($2 AS bigint) > 0 AND id IN (
		SELECT id FROM (SELECT id, sum(length(data)) OVER (ORDER BY updated DESC, id) AS bytes FROM lineage WHERE updated >= CAST($1 AS bigint)) AS all_new
		WHERE bytes > CAST($2 AS bigint))`, before.UnixMilli(), maxBytes)
}

// Forget implements [Store].
func (s *database) Forget(ctx context.Context, tenant string) (int, error) {
	n, err := s.remove(ctx, "delete the records of a tenant", "DELETE FROM lineage WHERE "+ofTenant, tenant)
	if err == nil && n > 0 && s.purge != nil {
		err = s.do(ctx, "overwrite what was deleted", longTimeout, s.purge)
	}
	return n, err
}

// ofTenant is the condition that the tenant of a record is one, or of one with that name: see [Store].
const ofTenant = "(tenant = $1 OR substr(tenant, 1, length($1) + 1) = $1 || ':')"

// remove deletes records, and originals that no record refers to any more.
func (s *database) remove(ctx context.Context, doing, statement string, args ...any) (int, error) {
	var deleted int64
	err := s.inside(ctx, doing, longTimeout, func(ctx context.Context, tx execer) error {
		done, err := tx.ExecContext(ctx, statement, args...)
		if err == nil {
			deleted, err = done.RowsAffected()
		}
		for _, unneeded := range []string{
			"DELETE FROM kept WHERE NOT EXISTS (SELECT 1 FROM lineage AS l WHERE l.kept <> '' AND l.tenant = kept.tenant AND l.kept = kept.name)",
			"DELETE FROM handle WHERE NOT EXISTS (SELECT 1 FROM lineage AS l WHERE l.kept <> '' AND l.tenant = handle.tenant AND l.kept = handle.name)",
			"DELETE FROM original WHERE NOT EXISTS (SELECT 1 FROM kept WHERE kept.original = original.id)",
		} {
			if err == nil {
				_, err = tx.ExecContext(ctx, unneeded)
			}
		}
		return err
	})
	return int(deleted), err
}

// Close implements [Store].
func (s *database) Close() error {
	var err error
	if s.held != nil {
		if err = s.held.Close(); errors.Is(err, sql.ErrConnDone) { // it was closed before
			err = nil
		}
	}
	if err = errors.Join(err, s.db.Close()); err != nil {
		return fmt.Errorf("store %s: close: %w", s.name, err)
	}
	return nil
}
