package archive

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// A piece is one that is in the index.
type piece struct{ id, kind, subject int64 }

// piecesOf returns the pieces of a session by their handles.
func piecesOf(ctx context.Context, tx *sql.Tx, session int64) (map[int64]piece, error) {
	old := map[int64]piece{}
	var handle int64
	var p piece
	rows, err := tx.QueryContext(ctx, "SELECT p.handle, p.id, p.kind, p.subject FROM run r JOIN piece p ON p.id BETWEEN r.first AND r.last WHERE r.session = ?", session)
	return old, scan(rows, err, func() { old[handle] = p }, &handle, &p.id, &p.kind, &p.subject)
}

// drop deletes pieces, and the subjects and kinds that no other piece has. A full-text index only marks deleted words, so
// their shards are written again.
func (a *Archive) drop(ctx context.Context, tx *sql.Tx, gone []piece) (err error) {
	do := func(statement string, args ...any) {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement, args...)
		}
	}
	slices.SortFunc(gone, func(x, y piece) int { return cmp.Compare(x.id, y.id) }) // a full-text index writes what it holds if IDs descend
	shards, subjects, kinds := map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	for _, p := range gone {
		shards[p.id/a.perShard], subjects[p.subject], kinds[p.kind] = true, true, true
		do("DELETE FROM "+words(p.id/a.perShard)+" WHERE rowid = ?", spacing*p.id)
		do("DELETE FROM piece WHERE id = ?", p.id)
	}
	for id := range subjects {
		do(`INSERT INTO paths (paths, rowid, text) SELECT 'delete', id, text FROM subject
WHERE id = ?1 AND file AND NOT EXISTS (SELECT 1 FROM piece WHERE subject AND subject = ?1)`, id)
		do("DELETE FROM subject WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE subject AND subject = ?1)", id)
	}
	for id := range kinds {
		do("DELETE FROM kind WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE kind = ?1)", id)
	}
	for shard := range shards {
		var some bool
		if err == nil {
			err = tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM piece WHERE id BETWEEN ? AND ?)", shard*a.perShard, (shard+1)*a.perShard-1).Scan(&some)
		}
		if some {
			do(fmt.Sprintf("INSERT INTO %[1]s (%[1]s) VALUES ('optimize')", words(shard)))
			continue
		}
		do("DROP TABLE " + words(shard))
		do("DELETE FROM shard WHERE id = ?", shard)
	}
	return err
}
