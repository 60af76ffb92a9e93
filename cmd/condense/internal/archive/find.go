package archive

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
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

// Find returns the best pieces for a query: those with all of its terms, then those without one of them, the most
// frequent first, and, if there are none, those with any, by relevance; otherwise the newest first. Equal content of
// several sessions appears once. If the query has phrases, there are more than limit: [Verify] leaves some out.
func (a *Archive) Find(ctx context.Context, q *search.Query, limit int) ([]Hit, error) {
	terms, err := a.count(ctx, q.Terms())
	if err != nil {
		return nil, err
	}
	f := finding{limit: limit, seen: map[string]bool{}}
	if slices.ContainsFunc(terms, func(t counted) bool { return t.Must }) {
		f.limit *= perPhrase
	}
	if err := a.only(ctx, &f, q); err != nil {
		return nil, err
	}
	for i := len(terms); i >= 0 && len(f.hits) < f.limit && !f.none; i-- {
		if words, ok := without(terms, i); ok {
			if err := a.match(ctx, &f, words, newestFirst); err != nil {
				return nil, err
			}
		}
	}
	if len(f.hits) > 0 || f.limit > limit || f.none {
		return f.hits, nil
	}
	words, err := a.any(ctx, terms)
	if err != nil || words == "" {
		return nil, err
	}
	return f.hits, a.match(ctx, &f, words, "words.rank")
}

const (
	newestFirst = "p.id DESC"
	perPhrase   = 4 // hits that are read for one, if they must have a phrase

	// Pieces are counted up to so many; how many others there are is estimated from how close together these are.
	counting = 64
	// A search for any of the words is for the rare ones: in so many pieces together.
	fewPieces = 20_000
	// Paths that fit file: are looked for one by one if there are more.
	fewPaths = 5000
)

// A counted term has the number of pieces that have it, roughly.
type counted struct {
	search.Term
	pieces int64
}

// count returns terms, the rarest first.
func (a *Archive) count(ctx context.Context, terms []search.Term) ([]counted, error) {
	var all []counted
	for _, t := range terms {
		n, err := a.frequency(ctx, t.Stem)
		if err != nil {
			return nil, err
		}
		all = append(all, counted{t, n})
	}
	slices.SortStableFunc(all, func(x, y counted) int { return cmp.Compare(x.pieces, y.pieces) })
	return all, nil
}

// frequency estimates how many pieces have a stem.
func (a *Archive) frequency(ctx context.Context, stem string) (int64, error) {
	var n, first, last int64
	err := a.db.QueryRowContext(ctx, `SELECT count(*), coalesce(min(id), 0), coalesce((SELECT max(id) FROM piece), 0)
FROM (SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)`, quoted(stem), counting).Scan(&n, &first, &last)
	if n == counting {
		n = n * last / (last - first + 1)
	}
	return n, err
}

func quoted(stem string) string { return `"` + stem + `"` }

// without returns an expression for all terms but one, which has its parts instead; ok is false if it finds nothing.
func without(terms []counted, but int) (words string, ok bool) {
	var b []string
	for i, t := range terms {
		switch {
		case i == but && t.Must, i != but && t.pieces == 0:
			return "", false
		case i == but:
			for _, p := range t.Parts {
				b = append(b, quoted(p))
			}
		default:
			b = append(b, quoted(t.Stem))
		}
	}
	return strings.Join(b, " "), len(b) > 0 || len(terms) == 0
}

// any returns an expression for pieces with any of the rarest terms and parts; empty if there are fewer than three.
func (a *Archive) any(ctx context.Context, terms []counted) (string, error) {
	var each []search.Term
	for _, t := range terms {
		each = append(each, t.Term)
		for _, p := range t.Parts {
			each = append(each, search.Term{Stem: p})
		}
	}
	if len(each) < 3 {
		return "", nil
	}
	all, err := a.count(ctx, each)
	var b []string
	sum := int64(0)
	for _, t := range all {
		if sum += t.pieces; len(b) == 0 || sum < fewPieces {
			b = append(b, quoted(t.Stem))
		}
	}
	return strings.Join(b, " OR "), err
}

// A finding is the state of Find.
type finding struct {
	limit    int
	hits     []Hit
	seen     map[string]bool // handles
	where    []string        // conditions of file: and tool:
	args     []any
	subjects bool // the first condition is for few subjects
	none     bool // nothing fits the conditions
}

// only adds the conditions of file: and tool: to f.
func (a *Archive) only(ctx context.Context, f *finding, q *search.Query) error {
	if len(q.Files()) > 0 {
		var each []string
		var args []any
		for _, part := range q.Files() {
			text := "SELECT id FROM subject WHERE file AND instr(lower(text), ?) > 0"
			if m := trigrams(part); m != "" {
				text += " AND id IN (SELECT rowid FROM paths WHERE paths MATCH ?)"
				args = append(args, part, m)
			} else {
				args = append(args, part)
			}
			each = append(each, text)
		}
		ids, err := column[int64](ctx, a.db, strings.Join(each, " UNION ")+" LIMIT ?", append(args, fewPaths+1)...)
		if err != nil {
			return err
		}
		f.none = len(ids) == 0
		if f.subjects = len(ids) <= fewPaths; f.subjects {
			list, err := json.Marshal(ids)
			if err != nil {
				return err
			}
			f.where, f.args = append(f.where, "p.subject IN (SELECT value FROM json_each(?))"), append(f.args, string(list))
		} else {
			f.contain("t.file AND ", "t.text", q.Files())
		}
	}
	if len(q.Tools()) > 0 {
		f.contain("", "k.what", q.Tools())
	}
	return nil
}

// contain adds the condition that a column has one of parts.
func (f *finding) contain(begin, column string, parts []string) {
	var either []string
	for _, part := range parts {
		either, f.args = append(either, "instr(lower("+column+"), ?) > 0"), append(f.args, part)
	}
	f.where = append(f.where, begin+"("+strings.Join(either, " OR ")+")")
}

// trigrams returns an expression for all runs of three characters of part; empty if it is shorter.
func trigrams(part string) string {
	const most = 40 // what is found has the whole of it, too
	var b []string
	for r := []rune(part); len(r) > 2 && len(b) < most; r = r[1:] {
		b = append(b, quoted(strings.ReplaceAll(string(r[:3]), `"`, `""`)))
	}
	return strings.Join(b, " ")
}

// match adds the pieces with words, an expression of the full-text index, to f; without words, all that fit its conditions.
func (a *Archive) match(ctx context.Context, f *finding, words, order string) error {
	query := `SELECT s.path, s.agent, s.name, p.handle, k.what, coalesce(t.text, ''), p.status, p.time, p.subject, coalesce(t.file, 0), s.id, p.id,
	p.at, p.size, s.head, s.tail FROM `
	where := slices.Clone(f.where)
	var args []any
	switch {
	case words != "":
		query += "words CROSS JOIN piece p ON p.id = words.rowid"
		where, args = slices.Insert(where, 0, "words MATCH ?"), append(args, words)
		if order == newestFirst {
			order = "words.rowid DESC"
		}
	case f.subjects:
		query += "piece p"
		where[0] = "p.id IN (SELECT p.id FROM piece p INDEXED BY piece_subject WHERE p.subject AND " + where[0] + ")"
	default:
		query += "piece p"
	}
	query += ` JOIN run r ON r.first = (SELECT first FROM run WHERE first <= p.id ORDER BY first DESC LIMIT 1) JOIN session s ON s.id = r.session
JOIN kind k ON k.id = p.kind LEFT JOIN subject t ON t.id = p.subject`
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	rows, err := a.db.QueryContext(ctx, query+" ORDER BY "+order, append(args, f.args...)...)
	if err != nil {
		return err
	}
	abouts, err := f.read(rows)
	if err != nil {
		return err
	}
	first := len(f.hits) - len(abouts)
	for i, at := range abouts {
		if at.isFile {
			if err := a.later(ctx, &f.hits[first+i], at.subject, at.session, at.id, at.millis); err != nil {
				return err
			}
		}
	}
	return nil
}

// about is the place of a hit in the index.
type about struct {
	isFile             bool
	subject, session   int64
	id, handle, millis int64
}

// read adds hits until there are enough, and returns where they are.
func (f *finding) read(rows *sql.Rows) (abouts []about, err error) {
	defer rows.Close() //nolint:errcheck // reported by Err
	for len(f.hits) < f.limit && rows.Next() {
		var h Hit
		var at about
		if err := rows.Scan(&h.Path, &h.Agent, &h.Session, &at.handle, &h.What, &h.Subject, &h.Status, &at.millis, &at.subject, &at.isFile, &at.session, &at.id,
			&h.at, &h.size, &h.head, &h.tail); err != nil {
			return nil, err
		}
		if h.Handle = fmt.Sprintf("%010x", at.handle); f.seen[h.Handle] {
			continue
		}
		f.seen[h.Handle] = true
		if at.millis > 0 {
			h.Time = time.UnixMilli(at.millis)
		}
		f.hits, abouts = append(f.hits, h), append(abouts, at)
	}
	return abouts, rows.Err()
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
// out. It returns the first ones, at most limit.
func Verify(ctx context.Context, q *search.Query, hits []Hit, limit int) []Hit {
	sessions := map[string]*recall.Conversation{}
	var stemmer search.Stemmer
	var out []Hit
	for _, h := range hits {
		if len(out) == limit {
			break
		}
		p := h.excerpt()
		if p == nil {
			p = h.whole(ctx, sessions)
		}
		if p != nil {
			if !q.Says(&stemmer, p) {
				continue
			}
			h.Verified, h.Best = true, q.Best(&stemmer, p.Text(), 1)
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
