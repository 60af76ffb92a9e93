package store

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/sony/gobreaker/v2"
)

// IsPostgres reports whether an address of a store is a PostgreSQL database.
func IsPostgres(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// Postgres opens the store in a PostgreSQL database, version 15 or later, which many processes on several machines
// can use. The address has the form of the libpq documentation, completed by the usual variables (PGPASSWORD,
// PGPASSFILE, PGSSLROOTCERT …). The tables are in the schema named by search_path, by default condense, and are
// created or upgraded under a lock.
//
// A statement that takes longer than two seconds fails. After that, and when the database cannot be reached, errors
// wrap [ErrUnavailable] and are returned immediately until an attempt, one at a time, succeeds again.
func Postgres(ctx context.Context, address string) (Store, error) {
	s, err := openPostgres(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", redacted(address), err)
	}
	return s, nil
}

// Bounds of the use of a database.
const (
	statementTimeout = 2 * time.Second
	longTimeout      = time.Minute // for deleting old records and for upgrading the tables
	retryAfter       = 200 * time.Millisecond
	maxConnections   = 8 // of a process
	oldestServer     = 150_000
)

// migrationLock is the advisory lock of the process that changes the tables.
const migrationLock = 0x636f6e64656e7365 // "condense"

// postgresSQL makes the tables.
//
//go:embed postgres.sql
var postgresSQL string

// postgresLayout is the version of these tables.
const postgresLayout = 2

func openPostgres(ctx context.Context, address string) (*database, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("the address cannot be read: " + plainReason(err))
	}
	params := config.RuntimeParams
	for name, value := range map[string]string{
		"application_name": "condense", "search_path": "condense",
		"statement_timeout":                   strconv.FormatInt(longTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt((2 * longTimeout).Milliseconds(), 10), // of a process that is stopped
	} {
		params[name] = cmp.Or(params[name], value)
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > statementTimeout {
		config.ConnectTimeout = statementTimeout
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s := &database{
		name: redacted(address), db: db,
		// One XOR of hashes is one round trip, and needs no column that every writer would have to wait for.
		changes: func(ctx context.Context, k Key, n *int64) error {
			return db.QueryRowContext(ctx, `SELECT coalesce(bit_xor(hashtextextended(id || ' ' || version, 0)), 0) FROM lineage
				WHERE tenant = $1 AND api = $2 AND agent = $3 AND session = $4`, k.Tenant, k.API, k.Agent, k.Session).Scan(n)
		},
		unavailable: isUnavailable,
		again: func(err error) bool { // concurrent writing and deleting: an original is referred to again, or a deadlock
			e, ok := errors.AsType[*pgconn.PgError](err)
			return ok && (e.Code == "23502" || e.Code == "23503" || e.Code == "40P01")
		},
		breaker: gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Timeout:      retryAfter,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 },
			IsSuccessful: func(err error) bool { return !errors.Is(err, ErrUnavailable) },
		}),
	}
	if err := s.migrate(ctx, params["search_path"]); err != nil {
		return nil, errors.Join(errors.New(plainReason(err)), db.Close())
	}
	return s, nil
}

// migrate creates the tables. Of several processes one does it and the others wait. It needs no
// permission to change tables unless there is something to do.
func (s *database) migrate(ctx context.Context, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, longTimeout)
	defer cancel()
	var server int
	if err := s.db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&server); err != nil {
		return err
	}
	if server < oldestServer {
		return fmt.Errorf("PostgreSQL %d is too old: version %d or later is needed", server/10_000, oldestServer/10_000)
	}
	if there, err := hasTables(ctx, s.db); err != nil || there {
		return err
	}
	// Lock the session rather than a transaction, which would not see tables that were created while it waited.
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	defer func() { _, _ = conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(migrationLock)) }()
	if there, err := hasTables(ctx, conn); err != nil || there { // another process may have done it
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	first := pgx.Identifier{strings.Trim(strings.TrimSpace(strings.Split(schema, ",")[0]), `"`)}.Sanitize()
	// IF NOT EXISTS demands the right to create one also where there is one.
	var exists bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NOT NULL", first).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+first); err != nil {
			return fmt.Errorf("schema %s: %w: let an administrator make one that belongs to the user, or grant the right to CREATE in the database",
				first, err)
		}
	}
	if _, err := tx.ExecContext(ctx, postgresSQL); err != nil {
		return err
	}
	return tx.Commit()
}

// hasTables reports whether there are tables. Those of another layout are an error.
func hasTables(ctx context.Context, in execer) (there bool, err error) {
	if err := in.QueryRowContext(ctx, "SELECT to_regclass('layout') IS NOT NULL").Scan(&there); err != nil || !there {
		return false, err
	}
	var version int
	if err := in.QueryRowContext(ctx, "SELECT version FROM layout").Scan(&version); err != nil {
		return false, err
	}
	return true, sameLayout(version, postgresLayout)
}

// isUnavailable reports whether an error says that the database does not answer: nothing is wrong with the statement.
func isUnavailable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case "57014", "25006": // too slow; a copy that only reads, after a failover
			return true
		}
		return strings.HasPrefix(e.Code, "57P") || strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "53") || strings.HasPrefix(e.Code, "28")
	}
	_, net := errors.AsType[net.Error](err)
	_, connect := errors.AsType[*pgconn.ConnectError](err)
	return net || connect || errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err) || isClosed(err)
}

// isClosed reports whether the connection ended in the middle of a statement.
func isClosed(err error) bool {
	text := err.Error()
	return errors.Is(err, sql.ErrConnDone) || strings.Contains(text, "unexpected EOF") || strings.Contains(text, "conn closed") || strings.Contains(text, "bad connection") || strings.Contains(text, "failed to write")
}

// redacted returns an address without potential secrets.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres://…"
	}
	out := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		out.User = url.User(u.User.Username())
	}
	return out.String()
}

// plainReason returns an error of the driver without the address and without a line for each way to connect.
func plainReason(err error) string {
	if e, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && e.Unwrap() != nil {
		err = e.Unwrap()
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
