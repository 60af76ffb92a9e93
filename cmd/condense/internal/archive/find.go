package archive

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
)

// A Hit is a piece of a session.
type Hit struct {
	Path    string    `json:"path"`
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
	Handle  string    `json:"handle"`
	What    string    `json:"what"`              // such as "result of read_file"
	Subject string    `json:"subject,omitempty"` // the file or the command
	Status  string    `json:"status,omitempty"`  // of a command: "exit 1", "failed"; empty if nothing is known
	Time    time.Time `json:"time,omitzero"`     // zero if unknown
	// Later says that the file was changed later, Changed when, zero if unknown, and ChangedIn in which session.
	Later     bool      `json:"later_changed,omitempty"`
	Changed   time.Time `json:"later_changed_at,omitzero"`
	ChangedIn string    `json:"later_changed_in,omitempty"`
	// Verified says that the session's file still has the content, byte for byte. Then Best has lines of it.
	Verified bool          `json:"verified"`
	Best     []search.Line `json:"lines"`

	place
}

// A place is where a hit is in the index, and where its message is in its file: its bytes, and the numbers of those before
// the first and after the last message. The size is 0 or head is negative if that is not known.
type place struct {
	isFile                       bool
	subject, session, id, millis int64
	at, size, head, tail         int64
	rank                         float64
}

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
	shards, err := column[int64](ctx, a.db, "SELECT id FROM shard ORDER BY id DESC")
	if err != nil {
		return nil, err
	}
	f := finding{archive: a, shards: shards, limit: limit, seen: map[string]bool{}}
	terms, err := f.count(ctx, q.Terms())
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(terms, func(t counted) bool { return t.Must }) {
		f.limit *= perPhrase
	}
	if err := f.only(ctx, q); err != nil || f.none {
		return nil, err
	}
	if len(terms) == 0 {
		err = f.match(ctx, 0, "")
	}
	for i := len(terms); i >= 0 && err == nil && len(terms) > 0; i-- {
		err = f.all(ctx, terms, i)
	}
	if err == nil && len(f.hits) == 0 && f.limit == limit {
		err = f.any(ctx, terms)
	}
	for i := range f.hits {
		if err == nil && f.hits[i].isFile {
			err = a.later(ctx, &f.hits[i])
		}
	}
	return f.hits, err
}

const (
	perPhrase = 4 // hits that are read for one, if they must have a phrase

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

// A finding is the state of Find.
type finding struct {
	archive  *Archive
	shards   []int64 // the newest first
	limit    int
	hits     []Hit
	seen     map[string]bool // handles
	where    []string        // conditions of file: and tool:
	args     []any
	subjects bool // the first condition is for few subjects
	none     bool // nothing fits the conditions
}

// count returns terms, the rarest first. A name that is nowhere is replaced by its parts.
func (f *finding) count(ctx context.Context, terms []search.Term) ([]counted, error) {
	var all []counted
	for _, t := range terms {
		c := counted{Term: t}
		for _, shard := range f.shards {
			var n, first int64
			if err := f.archive.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*), coalesce(min(id), 0) / %[2]d
FROM (SELECT rowid AS id FROM %[1]s WHERE %[1]s MATCH ? ORDER BY rowid DESC LIMIT ?)`, words(shard), spacing), quoted(t.Stem), counting-c.pieces).Scan(&n, &first); err != nil {
				return nil, err
			}
			if c.pieces += n; c.pieces == counting {
				all := (f.shards[0] + 1) * f.archive.perShard
				c.pieces = max(counting, counting*all/(all-first))
				break
			}
		}
		if c.pieces > 0 || len(t.Parts) == 0 {
			all = append(all, c)
			continue
		}
		parts := plain.Each(t.Parts, func(p string) search.Term { return search.Term{Stem: p, Must: t.Must} })
		counts, err := f.count(ctx, parts)
		if err != nil {
			return nil, err
		}
		all = append(all, counts...)
	}
	slices.SortStableFunc(all, func(x, y counted) int { return cmp.Compare(x.pieces, y.pieces) })
	return all, nil
}

func quoted(stem string) string { return `"` + stem + `"` }

// all adds the pieces with all terms but one, of which they have the parts.
func (f *finding) all(ctx context.Context, terms []counted, but int) error {
	var b []string
	for i, t := range terms {
		switch {
		case i == but && t.Must, i != but && t.pieces == 0:
			return nil
		case i == but:
			b = append(b, plain.Each(t.Parts, quoted)...)
		default:
			b = append(b, quoted(t.Stem))
		}
	}
	for i := 0; i < len(f.shards) && len(b) > 0; i++ {
		if err := f.match(ctx, f.shards[i], strings.Join(b, " ")); err != nil {
			return err
		}
	}
	return nil
}

// any adds the pieces with any of the rarest terms, by relevance, if there are three to choose from.
func (f *finding) any(ctx context.Context, terms []counted) error {
	if len(terms) < 3 {
		return nil
	}
	var b []string
	sum, limit := int64(0), f.limit
	for _, t := range terms {
		if sum += t.pieces; len(b) == 0 || sum < fewPieces {
			b = append(b, quoted(t.Stem))
		}
	}
	for _, shard := range f.shards {
		f.limit = len(f.hits) + limit
		if err := f.match(ctx, shard, strings.Join(b, " OR ")); err != nil {
			return err
		}
	}
	slices.SortStableFunc(f.hits, func(x, y Hit) int { return cmp.Compare(x.rank, y.rank) })
	f.hits = f.hits[:min(limit, len(f.hits))]
	return nil
}

// only adds the conditions of file: and tool: to those of f.
func (f *finding) only(ctx context.Context, q *search.Query) error {
	ids := []int64{}
	for _, part := range q.Files() {
		query, args := "SELECT id FROM subject WHERE file AND instr(lower(text), ?) > 0", []any{part}
		if m := trigrams(part); m != "" {
			query, args = query+" AND id IN (SELECT rowid FROM paths WHERE paths MATCH ?)", append(args, m)
		}
		some, err := column[int64](ctx, f.archive.db, query+" LIMIT ?", append(args, fewPaths+1)...)
		if err != nil {
			return err
		}
		ids = append(ids, some...)
	}
	f.none = len(q.Files()) > 0 && len(ids) == 0
	if f.subjects = len(q.Files()) > 0 && len(ids) <= fewPaths; f.subjects {
		f.where, f.args = []string{"p.subject IN (SELECT value FROM json_each(?))"}, []any{strings.ReplaceAll(fmt.Sprint(ids), " ", ",")}
	} else if len(q.Files()) > 0 {
		f.contain("t.file AND ", "t.text", q.Files())
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

// match adds the pieces with words, an expression of the full-text index, of a shard: the newest first, or those with any
// of several words by relevance. Without words it adds all pieces.
func (f *finding) match(ctx context.Context, shard int64, expression string) error {
	const columns = `s.path, s.agent, s.name, p.handle, k.what, coalesce(t.text, ''), p.status, p.time, p.subject, coalesce(t.file, 0), s.id, p.id,
	p.at, p.size, s.head, s.tail`
	where, rank, from, order := slices.Clone(f.where), "0", "piece p", "p.id DESC"
	var args []any
	switch {
	case expression != "":
		from, order = fmt.Sprintf("%s w CROSS JOIN piece p ON p.id = w.rowid / %d", words(shard), spacing), "w.rowid DESC"
		where, args = slices.Insert(where, 0, words(shard)+" MATCH ?"), append(args, expression)
		if strings.Contains(expression, " OR ") {
			rank, order = "w.rank", "w.rank"
		}
	case f.subjects:
		where[0] = "p.id IN (SELECT p.id FROM piece p INDEXED BY piece_subject WHERE p.subject AND " + where[0] + ")"
	}
	query := "SELECT " + columns + ", " + rank + " FROM " + from + ` JOIN run r ON r.first = (SELECT first FROM run WHERE first <= p.id ORDER BY first DESC LIMIT 1)
JOIN session s ON s.id = r.session JOIN kind k ON k.id = p.kind LEFT JOIN subject t ON t.id = p.subject`
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	if len(f.hits) >= f.limit {
		return nil
	}
	rows, err := f.archive.db.QueryContext(ctx, query+" ORDER BY "+order, append(args, f.args...)...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	for len(f.hits) < f.limit && rows.Next() {
		h := Hit{Best: []search.Line{}}
		var handle int64
		if err := rows.Scan(&h.Path, &h.Agent, &h.Session, &handle, &h.What, &h.Subject, &h.Status, &h.millis, &h.subject, &h.isFile, &h.session, &h.id,
			&h.at, &h.size, &h.head, &h.tail, &h.rank); err != nil {
			return err
		}
		if h.Handle = fmt.Sprintf("%010x", handle); f.seen[h.Handle] {
			continue
		}
		f.seen[h.Handle] = true
		if h.millis > 0 {
			h.Time = time.UnixMilli(h.millis)
		}
		f.hits = append(f.hits, h)
	}
	return rows.Err()
}

// later looks for a change of the hit's file after it.
func (a *Archive) later(ctx context.Context, h *Hit) error {
	var at int64
	var path string
	err := a.db.QueryRowContext(ctx, `SELECT p.time, s.name, s.path FROM piece p
JOIN run r ON r.first = (SELECT first FROM run WHERE first <= p.id ORDER BY first DESC LIMIT 1) JOIN session s ON s.id = r.session
WHERE p.edits AND p.subject = ? AND p.id <> ?3 AND (s.id = ?2 AND p.id > ?3 OR s.id <> ?2 AND p.time > ?4 AND ?4 > 0) ORDER BY p.time DESC LIMIT 1`,
		h.subject, h.session, h.id, h.millis).Scan(&at, &h.ChangedIn, &path)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	h.Later, h.ChangedIn = err == nil, cmp.Or(h.ChangedIn, path)
	if at > 0 {
		h.Changed = time.UnixMilli(at)
	}
	return err
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
