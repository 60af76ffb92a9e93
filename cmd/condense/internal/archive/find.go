package archive

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
)

// A Hit is a piece of a session.
type Hit struct {
	Path, Agent, Session string
	Handle               string
	What                 string    // such as "result of read_file"
	Subject              string    // the file or the command
	Status               string    // of a command: "exit 1", "failed"; empty if nothing is known
	Time                 time.Time // zero if unknown
	// Changed is when the file was changed later, in this or another session; zero if no change is known, and
	// ChangedIn the session.
	Changed   time.Time
	ChangedIn string
	Later     bool // it was changed later
	// Verified says that the session's file still has the content, byte for byte. Then Best has lines of it.
	Verified bool
	Best     []search.Line

	place
}

// A place is where a hit's message is in its file: its bytes, and the numbers of those before the first and after the
// last message. The size is 0 or head is negative if that is not known.
type place struct{ at, size, head, tail int64 }

// Export returns the command that writes the hit's session to standard output; empty if it is in a file.
func (h *Hit) Export() string {
	if h.Agent == "opencode" && strings.Contains(h.Path, inDatabase) {
		return "opencode export " + h.Session
	}
	return ""
}

// Find returns the best pieces for a query: those with all of its terms, then those with all but one, and, if there are
// none, those with any, by relevance; otherwise the newest first. Equal content of several sessions appears once.
func (a *Archive) Find(ctx context.Context, q *search.Query, limit int) ([]Hit, error) {
	f := finding{q: q, limit: limit, seen: map[string]bool{}}
	terms := q.Terms()
	if err := a.match(ctx, &f, terms, " "); err != nil {
		return nil, err
	}
	for i := range terms {
		if len(terms) == 1 || len(f.hits) >= limit {
			break
		}
		if err := a.match(ctx, &f, slices.Delete(slices.Clone(terms), i, i+1), " "); err != nil {
			return nil, err
		}
	}
	if len(f.hits) == 0 && len(terms) > 2 {
		if err := a.match(ctx, &f, terms, " OR "); err != nil {
			return nil, err
		}
	}
	return f.hits, nil
}

// A finding is the state of Find.
type finding struct {
	q     *search.Query
	limit int
	hits  []Hit
	seen  map[string]bool // handles
}

// match adds the pieces with terms to f.
func (a *Archive) match(ctx context.Context, f *finding, terms []string, operator string) error {
	query := `SELECT s.path, s.agent, s.name, p.handle, k.what, coalesce(t.text, ''), p.status, p.time, p.subject, coalesce(t.file, 0), s.id, p.id,
	p.at, p.size, s.head, s.tail FROM `
	var args []any
	var where []string
	order := "p.id DESC"
	if len(terms) > 0 {
		var quoted []string
		for _, t := range terms {
			quoted = append(quoted, `"`+t+`"`)
		}
		query += "words JOIN piece p ON p.id = words.rowid"
		where, args = append(where, "words MATCH ?"), append(args, strings.Join(quoted, operator))
		if order = "words.rowid DESC"; operator != " " {
			order = "words.rank"
		}
	} else {
		query += "piece p"
	}
	query += ` JOIN run r ON r.first = (SELECT first FROM run WHERE first <= p.id ORDER BY first DESC LIMIT 1) JOIN session s ON s.id = r.session
JOIN kind k ON k.id = p.kind LEFT JOIN subject t ON t.id = p.subject`
	for _, only := range []struct {
		parts         []string
		begin, column string
	}{
		{f.q.Files(), "p.subject AND p.subject IN (SELECT id FROM subject WHERE file AND (", "text"},
		{f.q.Tools(), "p.kind IN (SELECT id FROM kind WHERE (", "what"},
	} {
		var either []string
		for _, part := range only.parts {
			either = append(either, "instr(lower("+only.column+"), ?) > 0")
			args = append(args, part)
		}
		if either != nil {
			where = append(where, only.begin+strings.Join(either, " OR ")+"))")
		}
	}
	if where != nil {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := a.db.QueryContext(ctx, query+" ORDER BY "+order+" LIMIT ?", append(args, f.limit*4)...)
	if err != nil {
		return err
	}
	type about struct {
		isFile             bool
		subject, session   int64
		id, handle, millis int64
	}
	var abouts []about
	first := len(f.hits)
	for rows.Next() {
		var h Hit
		var at about
		if err := rows.Scan(&h.Path, &h.Agent, &h.Session, &at.handle, &h.What, &h.Subject, &h.Status, &at.millis, &at.subject, &at.isFile, &at.session, &at.id,
			&h.at, &h.size, &h.head, &h.tail); err != nil {
			return err
		}
		if h.Handle = fmt.Sprintf("%010x", at.handle); f.seen[h.Handle] || len(f.hits) == f.limit {
			continue
		}
		f.seen[h.Handle] = true
		if at.millis > 0 {
			h.Time = time.UnixMilli(at.millis)
		}
		f.hits, abouts = append(f.hits, h), append(abouts, at)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i, at := range abouts {
		if at.isFile {
			if err := a.later(ctx, &f.hits[first+i], at.subject, at.session, at.id, at.millis); err != nil {
				return err
			}
		}
	}
	return nil
}

// later looks for a change of the hit's file after it.
func (a *Archive) later(ctx context.Context, h *Hit, file, session, id, ms int64) error {
	rows, err := a.db.QueryContext(ctx, `SELECT p.time, s.name, s.path FROM piece p
JOIN run r ON r.first = (SELECT first FROM run WHERE first <= p.id ORDER BY first DESC LIMIT 1) JOIN session s ON s.id = r.session
WHERE p.edits AND p.subject = ? AND p.id <> ?3 AND (s.id = ?2 AND p.id > ?3 OR s.id <> ?2 AND p.time > ?4 AND ?4 > 0) ORDER BY p.time DESC LIMIT 1`,
		file, session, id, ms)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	for rows.Next() {
		var at int64
		var path string
		if err := rows.Scan(&at, &h.ChangedIn, &path); err != nil {
			return err
		}
		h.Later = true
		if h.ChangedIn == "" {
			h.ChangedIn = path
		}
		if at > 0 {
			h.Changed = time.UnixMilli(at)
		}
	}
	return rows.Err()
}

// Verify reads hits again from their sessions, and sets Verified and Best. Hits without a phrase of the query are left
// out.
func Verify(ctx context.Context, q *search.Query, hits []Hit) []Hit {
	sessions := map[string]*recall.Conversation{}
	var out []Hit
	for _, h := range hits {
		p := h.excerpt()
		if p == nil {
			p = h.whole(ctx, sessions)
		}
		if p != nil {
			if !q.Says(p) {
				continue
			}
			h.Verified, h.Best = true, q.Best(p.Text())
		}
		out = append(out, h)
	}
	return out
}

// excerpt reads only the hit's message. It returns nil if that is not possible, or the content is not there.
func (h *Hit) excerpt() *recall.Piece {
	if h.at < 0 || h.size <= 0 || h.head < 0 || h.tail < 0 || h.size > maxFile || h.head+h.tail > maxEnvelope {
		return nil
	}
	f, err := os.Open(h.Path)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil || h.at+h.size > info.Size() || h.tail > info.Size() {
		return nil
	}
	data := make([]byte, h.head+h.size+h.tail)
	for _, part := range []struct {
		to []byte
		at int64
	}{{data[:h.head], 0}, {data[h.head : h.head+h.size], h.at}, {data[h.head+h.size:], info.Size() - h.tail}} {
		if _, err := f.ReadAt(part.to, part.at); err != nil {
			return nil
		}
	}
	c, err := conversation(data, h.Path)
	if err != nil {
		return nil
	}
	return named(c, h.Handle)
}

// whole reads the hit's session.
func (h *Hit) whole(ctx context.Context, sessions map[string]*recall.Conversation) *recall.Piece {
	c, ok := sessions[h.Path]
	if !ok && ctx.Err() == nil {
		if data, err := contentOf(ctx, h.Path); err == nil {
			c, _ = conversation(data, h.Path)
		}
		sessions[h.Path] = c // nil if it cannot be read: then nothing is verified
	}
	if c == nil {
		return nil
	}
	return named(c, h.Handle)
}

func named(c *recall.Conversation, handle string) *recall.Piece {
	if pieces := c.Handle(handle); len(pieces) > 0 {
		return &pieces[0]
	}
	return nil
}
