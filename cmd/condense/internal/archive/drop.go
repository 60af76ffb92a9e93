package archive

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A piece is one that is in the index.
type piece struct{ id, run, kind, subject int64 }

// piecesOf returns the pieces of a session by their handles.
func piecesOf(ctx context.Context, tx *sql.Tx, session int64) (map[int64]piece, error) {
	rows, err := tx.QueryContext(ctx, "SELECT p.handle, p.id, r.first, p.kind, p.subject FROM run r JOIN piece p ON p.id BETWEEN r.first AND r.last WHERE r.session = ?", session)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	old := map[int64]piece{}
	for rows.Next() {
		var handle int64
		var p piece
		if err := rows.Scan(&handle, &p.id, &p.run, &p.kind, &p.subject); err != nil {
			return nil, err
		}
		old[handle] = p
	}
	return old, rows.Err()
}

// drop deletes pieces so that no word of theirs is left in the file. The cost is linear in their words: the index of
// words is not written again.
func drop(ctx context.Context, tx *sql.Tx, gone []piece) error {
	if len(gone) == 0 {
		return nil
	}
	byRun := map[int64][]piece{}
	for _, p := range gone {
		byRun[p.run] = append(byRun[p.run], p)
	}
	e := eraser{ctx: ctx, tx: tx, stems: map[string]bool{}}
	for _, run := range slices.Sorted(maps.Keys(byRun)) { // the index of words wants ascending IDs
		e.run(run, byRun[run])
	}
	e.subjects(gone)
	e.flush()
	e.separators()
	return e.err
}

// An eraser deletes pieces. After an error it does nothing.
type eraser struct {
	ctx   context.Context //nolint:containedctx // it lives as long as a call
	tx    *sql.Tx
	stems map[string]bool // that were deleted
	err   error
}

func (e *eraser) do(statement string, args ...any) {
	if e.err == nil {
		_, e.err = e.tx.ExecContext(e.ctx, statement, args...)
	}
}

// run deletes pieces of a run.
func (e *eraser) run(run int64, gone []piece) {
	if e.err != nil {
		return
	}
	var packed []byte
	var last int64
	if e.err = e.tx.QueryRowContext(e.ctx, "SELECT v.stems, r.last FROM run r JOIN vocabulary v ON v.run = r.first WHERE r.first = ?", run).Scan(&packed, &last); e.err != nil {
		return
	}
	words := map[int64]*strings.Builder{}
	for _, p := range gone {
		words[p.id] = &strings.Builder{}
	}
	stems, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		e.err = fmt.Errorf("the words of pieces from %d on are damaged (%w): delete the index with condense search --forget all", run, err)
		return
	}
	stay := e.sort(strings.Fields(string(stems)), run, last, words)
	for _, id := range slices.Sorted(maps.Keys(words)) {
		e.do("INSERT INTO words (words, rowid, stems) VALUES ('delete', ?, ?)", id, words[id].String())
		e.do("DELETE FROM piece WHERE id = ?", id)
	}
	if len(stay) > 0 {
		e.do("UPDATE vocabulary SET stems = ? WHERE run = ?", pack(stay), run)
		return
	}
	e.do("DELETE FROM vocabulary WHERE run = ?", run)
	e.do("DELETE FROM run WHERE first = ?", run)
}

// sort looks the stems of a run up, appends them to the words of the pieces that have them, and returns those that
// other pieces of the run have.
func (e *eraser) sort(stems []string, first, last int64, words map[int64]*strings.Builder) (stay []string) {
	find, err := e.tx.PrepareContext(e.ctx, "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ?")
	if err != nil {
		e.err = err
		return nil
	}
	defer find.Close() //nolint:errcheck // it was only read
	for _, stem := range stems {
		ids, err := columnOf[int64](find.QueryContext(e.ctx, `"`+stem+`"`, first, last))
		if err != nil {
			e.err = err
			return nil
		}
		stays := false
		for _, id := range ids {
			if b := words[id]; b != nil {
				b.WriteString(stem + " ")
				e.stems[stem] = true
			} else {
				stays = true
			}
		}
		if stays {
			stay = append(stay, stem)
		}
	}
	return stay
}

// subjects deletes the subjects and kinds that only deleted pieces had.
func (e *eraser) subjects(gone []piece) {
	subjects, kinds := map[int64]bool{}, map[int64]bool{}
	for _, p := range gone {
		subjects[p.subject], kinds[p.kind] = true, true
	}
	for _, id := range slices.Sorted(maps.Keys(subjects)) {
		e.do(`INSERT INTO paths (paths, rowid, text) SELECT 'delete', id, text FROM subject
WHERE id = ?1 AND file AND NOT EXISTS (SELECT 1 FROM piece WHERE subject AND subject = ?1)`, id)
		e.do("DELETE FROM subject WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE subject AND subject = ?1)", id)
	}
	for id := range kinds {
		e.do("DELETE FROM kind WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE kind = ?1)", id)
	}
}

// flush makes the full-text indexes write what they hold in memory, which they do for a savepoint.
func (e *eraser) flush() { e.do("SAVEPOINT flush; RELEASE flush") }

// separators replaces deleted words in the list of the pages of the full-text index: the first word that a page had, or
// its beginning, stays there if the page has others. The format is of https://www.sqlite.org/fts5.html#fts5_data_structures:
// a page has the position of its first term behind its content, whose length is in its bytes 2 and 3.
func (e *eraser) separators() {
	if e.err != nil {
		return
	}
	segments, err := columnOf[int64](e.tx.QueryContext(e.ctx, "SELECT DISTINCT segid FROM words_idx"))
	if err != nil {
		e.err = err
		return
	}
	find, err := e.tx.PrepareContext(e.ctx, "SELECT term, pgno FROM words_idx WHERE segid = ? AND term <= ? ORDER BY term DESC LIMIT 1")
	if err != nil {
		e.err = err
		return
	}
	defer find.Close() //nolint:errcheck // it was only read
	for stem := range e.stems {
		for _, segment := range segments {
			term := append([]byte{'0'}, stem...)
			var separator []byte
			var page int64
			if err := find.QueryRowContext(e.ctx, segment, term).Scan(&separator, &page); err != nil {
				if err != sql.ErrNoRows {
					e.err = err
					return
				}
				continue
			}
			if len(separator) > 1 && bytes.HasPrefix(term, separator) {
				e.separate(segment, page, separator)
			}
		}
	}
}

// separate replaces a separator by the first term of its page. It deletes those of pages that were merged into others.
func (e *eraser) separate(segment, page int64, separator []byte) {
	pages, err := columnOf[[]byte](e.tx.QueryContext(e.ctx, "SELECT block FROM words_data WHERE id = ?", segment<<37+page>>1))
	switch {
	case err != nil:
		e.err = errors.Join(e.err, err)
	case len(pages) == 0:
		e.do("DELETE FROM words_idx WHERE segid = ? AND term = ?", segment, separator)
	default:
		if first := firstTerm(pages[0]); first != nil && !bytes.Equal(first, separator) {
			e.do("UPDATE words_idx SET term = ? WHERE segid = ? AND term = ?", first, segment, separator)
		}
	}
}

// firstTerm returns the first term on a page, nil if there is none.
func firstTerm(page []byte) []byte {
	if len(page) < 4 {
		return nil
	}
	size := int(binary.BigEndian.Uint16(page[2:]))
	if size >= len(page) {
		return nil
	}
	at, n := varint(page[size:])
	if n == 0 || at >= size {
		return nil
	}
	length, n := varint(page[at:size])
	if at += n; n == 0 || at+length > size {
		return nil
	}
	return page[at : at+length]
}

// varint reads a number of SQLite below 1<<21, and returns its size; 0 if there is none.
func varint(b []byte) (v, n int) {
	for n < min(len(b), 3) {
		v = v<<7 | int(b[n]&0x7F)
		if n++; b[n-1] < 0x80 {
			return v, n
		}
	}
	return 0, 0
}

// pack returns stems, compressed.
func pack(stems []string) []byte {
	slices.Sort(stems)
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // fails for an unknown level only
	_, _ = io.WriteString(w, strings.Join(stems, " "))    // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
