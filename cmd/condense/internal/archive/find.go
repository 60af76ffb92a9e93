package archive

import (
	"context"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
)

// A Hit is a piece of a session.
type Hit struct {
	Path, Agent, Session string
	Handle, Message      string
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
}

// Find returns the best pieces for a query.
func (a *Archive) Find(ctx context.Context, q *search.Query, limit int) ([]Hit, error) {
	hits, err := a.match(ctx, q, " ", limit)
	if err != nil || len(hits) >= limit {
		return hits, err
	}
	some, err := a.match(ctx, q, " OR ", limit)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, h := range hits {
		known[h.Path+h.Handle] = true
	}
	for _, h := range some {
		if !known[h.Path+h.Handle] && len(hits) < limit {
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// match returns the pieces with all terms, or with some, by relevance and, of equal ones, the newest first. Equal content
// of several sessions appears once.
func (a *Archive) match(ctx context.Context, q *search.Query, operator string, limit int) ([]Hit, error) {
	query := `SELECT s.path, s.agent, s.name, p.handle, p.message, p.what, p.subject, p.status, p.time, p.file, p.session, p.id FROM `
	var args []any
	var where []string
	if terms := q.Terms(); len(terms) > 0 {
		for i, t := range terms {
			terms[i] = `"` + t + `"`
		}
		query += "(SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT 200) w JOIN piece p ON p.id = w.rowid"
		args = append(args, strings.Join(terms, operator))
	} else {
		query += "(SELECT id, -id AS rank FROM piece) w JOIN piece p ON p.id = w.id"
	}
	query += " JOIN session s ON s.id = p.session"
	for column, parts := range map[string][]string{"p.file": q.Files(), "p.what": q.Tools()} {
		var any []string
		for _, part := range parts {
			any = append(any, "instr(lower("+column+"), ?) > 0")
			args = append(args, part)
		}
		if any != nil {
			where = append(where, "("+strings.Join(any, " OR ")+")")
		}
	}
	if where != nil {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := a.db.QueryContext(ctx, query+" ORDER BY w.rank, p.time DESC LIMIT ?", append(args, limit*4)...)
	if err != nil {
		return nil, err
	}
	type place struct {
		file        string
		session, id int64
		ms          int64
	}
	var hits []Hit
	var places []place
	seen := map[string]bool{}
	for rows.Next() {
		var h Hit
		var at place
		if err := rows.Scan(&h.Path, &h.Agent, &h.Session, &h.Handle, &h.Message, &h.What, &h.Subject, &h.Status, &at.ms, &at.file, &at.session, &at.id); err != nil {
			return nil, err
		}
		if seen[h.Handle] || len(hits) == limit {
			continue
		}
		seen[h.Handle] = true
		if at.ms > 0 {
			h.Time = time.UnixMilli(at.ms)
		}
		hits, places = append(hits, h), append(places, at)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range hits {
		if at := places[i]; at.file != "" {
			if err := a.later(ctx, &hits[i], at.file, at.session, at.id, at.ms); err != nil {
				return nil, err
			}
		}
	}
	return hits, nil
}

// later looks for a change of the hit's file after it.
func (a *Archive) later(ctx context.Context, h *Hit, file string, session, id, ms int64) error {
	rows, err := a.db.QueryContext(ctx, `SELECT p.time, s.name, s.path FROM piece p JOIN session s ON s.id = p.session
WHERE p.edits AND p.file = ? AND p.id <> ?3 AND (p.session = ?2 AND p.id > ?3 OR p.session <> ?2 AND p.time > ?4 AND ?4 > 0) ORDER BY p.time DESC LIMIT 1`,
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

// Verify reads the sessions of hits again, and sets Verified and Best. Hits without a phrase of the query are left out.
func Verify(ctx context.Context, q *search.Query, hits []Hit) []Hit {
	sessions := map[string]*recall.Conversation{}
	var out []Hit
	for _, h := range hits {
		c, ok := sessions[h.Path]
		if !ok && ctx.Err() == nil {
			c, _ = conversation(h.Path) //nolint:errcheck // then nothing is verified
			sessions[h.Path] = c
		}
		if c != nil {
			if pieces := c.Handle(h.Handle); len(pieces) > 0 {
				if !q.Says(&pieces[0]) {
					continue
				}
				h.Verified, h.Best = true, q.Best(pieces[0].Text())
			}
		}
		out = append(out, h)
	}
	return out
}
