package archive

import (
	"context"
	"slices"
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
	query := `SELECT s.path, s.agent, s.name, p.handle, p.message, p.what, p.subject, p.status, p.time, p.file, p.session, p.id FROM `
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
	query += " JOIN session s ON s.id = p.session"
	for column, parts := range map[string][]string{"p.file": f.q.Files(), "p.what": f.q.Tools()} {
		var either []string
		for _, part := range parts {
			either = append(either, "instr(lower("+column+"), ?) > 0")
			args = append(args, part)
		}
		if either != nil {
			where = append(where, "("+strings.Join(either, " OR ")+")")
		}
	}
	if where != nil {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := a.db.QueryContext(ctx, query+" ORDER BY "+order+" LIMIT ?", append(args, f.limit*4)...)
	if err != nil {
		return err
	}
	type place struct {
		file        string
		session, id int64
		ms          int64
	}
	var places []place
	first := len(f.hits)
	for rows.Next() {
		var h Hit
		var at place
		if err := rows.Scan(&h.Path, &h.Agent, &h.Session, &h.Handle, &h.Message, &h.What, &h.Subject, &h.Status, &at.ms, &at.file, &at.session, &at.id); err != nil {
			return err
		}
		if f.seen[h.Handle] || len(f.hits) == f.limit {
			continue
		}
		f.seen[h.Handle] = true
		if at.ms > 0 {
			h.Time = time.UnixMilli(at.ms)
		}
		f.hits, places = append(f.hits, h), append(places, at)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i, at := range places {
		if at.file != "" {
			if err := a.later(ctx, &f.hits[first+i], at.file, at.session, at.id, at.ms); err != nil {
				return err
			}
		}
	}
	return nil
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
			c, _ = conversation(ctx, h.Path)
			sessions[h.Path] = c // nil if it cannot be read: then nothing is verified
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
