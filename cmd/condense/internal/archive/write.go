package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A writer writes sessions, many in a transaction.
type writer struct {
	archive *Archive
	change  *Change

	tx           *sql.Tx // nil between transactions
	text         int     // bytes of the texts in tx
	piece, words *sql.Stmt
	next         int64         // ID of the next piece
	shard        int64         // of words
	gone         []piece       // of sessions that were rewritten
	ids          map[any]int64 // of sessions, kinds, and subjects by hash
}

// begin begins a transaction.
func (w *writer) begin(ctx context.Context) (err error) {
	if w.tx, err = w.archive.db.BeginTx(ctx, nil); err != nil {
		return err
	}
	w.text, w.gone, w.words, w.ids = 0, nil, nil, map[any]int64{}
	if err := w.tx.QueryRowContext(ctx, "SELECT coalesce(max(last), 0) + 1 FROM run").Scan(&w.next); err != nil {
		return err
	}
	w.piece, err = w.tx.PrepareContext(ctx, "INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	return err
}

// commit ends a transaction. Pieces are deleted at its end, because the full-text index writes what it holds in memory
// when the IDs do not ascend.
func (w *writer) commit(ctx context.Context) error {
	if w.tx == nil {
		return nil
	}
	if err := w.archive.drop(ctx, w.tx, w.gone); err != nil {
		return err
	}
	err := w.tx.Commit()
	w.tx = nil
	return err
}

func (w *writer) rollback() {
	if w.tx != nil {
		_ = w.tx.Rollback() // another error is reported
	}
}

// add writes the new pieces of a session, and deletes those that are not in its file any more.
func (w *writer) add(ctx context.Context, s *scanned) error {
	if w.tx == nil {
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	session, err := w.session(ctx, s)
	if err != nil {
		return err
	}
	old, err := piecesOf(ctx, w.tx, session)
	if err != nil {
		return err
	}
	first := w.next
	for i := range s.content.rows {
		r := &s.content.rows[i]
		if _, ok := old[r.handle]; ok {
			delete(old, r.handle)
			continue
		}
		if err := w.insert(ctx, r); err != nil {
			return err
		}
	}
	if w.next > first {
		if _, err := w.tx.ExecContext(ctx, "INSERT INTO run VALUES (?, ?, ?)", first, w.next-1, session); err != nil {
			return err
		}
	}
	w.gone = slices.AppendSeq(w.gone, maps.Values(old))
	if s.err == nil {
		w.change.Sessions++
	}
	if w.text > perWrite {
		return w.commit(ctx)
	}
	return nil
}

// session inserts or updates the row of a session and returns its ID. It is not one statement (ON CONFLICT): that makes a
// savepoint, for which the full-text index writes all that it holds in memory.
func (w *writer) session(ctx context.Context, s *scanned) (int64, error) {
	values := []any{s.file.Agent, s.file.Name, s.file.Dir, s.size, s.changed, s.content.head, s.content.tail}
	id, isNew, err := w.id(ctx, s.file.Path, "SELECT id FROM session WHERE path = ?",
		"INSERT INTO session (path, agent, name, dir, size, changed, head, tail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values...)
	if err == nil && !isNew {
		const update = "UPDATE session SET agent = ?, name = ?, dir = ?, size = ?, changed = ?, head = ?, tail = ? WHERE id = ?"
		_, err = w.tx.ExecContext(ctx, update, append(values, id)...)
	}
	return id, err
}

// id returns the ID of the row with a key, which is inserted if there is none.
func (w *writer) id(ctx context.Context, key any, find, insert string, values ...any) (id int64, isNew bool, err error) {
	id, ok := w.ids[key]
	if ok {
		return id, false, nil
	}
	if err = w.tx.QueryRowContext(ctx, find, key).Scan(&id); errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = w.tx.ExecContext(ctx, insert, append([]any{key}, values...)...); err == nil {
			isNew = true
			id, err = res.LastInsertId()
		}
	}
	w.ids[key] = id
	return id, isNew, err
}

// about returns the ID of the subject of a piece; 0 if it has none.
func (w *writer) about(ctx context.Context, r *row) (int64, error) {
	if r.subject == 0 {
		return 0, nil
	}
	id, isNew, err := w.id(ctx, r.subject, "SELECT id FROM subject WHERE hash = ?", "INSERT INTO subject (hash, text, file) VALUES (?, ?, ?)", r.about, r.isFile)
	if err == nil && isNew && r.isFile {
		_, err = w.tx.ExecContext(ctx, "INSERT INTO paths (rowid, text) VALUES (?, ?)", id, r.about)
	}
	return id, err
}

// open makes a shard the one that is written. One that is full is merged into one part, which is searched faster.
func (w *writer) open(ctx context.Context, shard int64) (err error) {
	if w.words != nil && w.shard == shard {
		return nil
	}
	if w.words != nil {
		if _, err := w.tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %[1]s (%[1]s) VALUES ('optimize')", words(w.shard))); err != nil {
			return err
		}
	}
	var known bool
	if err := w.tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM shard WHERE id = ?)", shard).Scan(&known); err != nil {
		return err
	}
	if !known {
		if _, err := w.tx.ExecContext(ctx, fmt.Sprintf(shardSchema, words(shard), shard)); err != nil {
			return err
		}
	}
	w.shard = shard
	w.words, err = w.tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (rowid, stems) VALUES (?, ?)", words(shard)))
	return err
}

// insert inserts a piece.
func (w *writer) insert(ctx context.Context, r *row) error {
	kind, _, err := w.id(ctx, r.what, "SELECT id FROM kind WHERE what = ?", "INSERT INTO kind (what) VALUES (?)")
	if err != nil {
		return err
	}
	subject, err := w.about(ctx, r)
	if err != nil {
		return err
	}
	if _, err := w.piece.ExecContext(ctx, w.next, r.handle, kind, subject, r.time, r.status, r.edits, r.at, r.size); err != nil {
		return err
	}
	if err := w.open(ctx, w.next/w.archive.perShard); err != nil {
		return err
	}
	if _, err := w.words.ExecContext(ctx, spacing*w.next, r.stems); err != nil {
		return err
	}
	w.next++
	w.text += r.bytes
	w.change.Pieces++
	w.change.Text += int64(r.bytes)
	return nil
}
