package archive

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
	"github.com/condensehq/condense/transcript"
)

// A File is a session's file, or a session in the database of [OpenCode].
type File struct {
	Path, Agent, Name, Dir string // Name is the session's ID; all but Path may be empty
	size, changed          int64  // of a session in a database: the number of its parts, and the time in nanoseconds
}

// stat returns the size and the time of change of a session, by which it is known to be unchanged.
func (f *File) stat() (size, changed int64, ok bool) {
	if f.changed != 0 {
		return f.size, f.changed, true
	}
	info, err := os.Stat(f.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return 0, 0, false
	}
	return info.Size(), info.ModTime().UnixNano(), true
}

// A Change is the outcome of an update.
type Change struct {
	Sessions, Pieces int   // that were added or changed
	Text             int64 // bytes of the texts of these pieces
	Deleted          int   // sessions whose files are gone
	Unreadable       int   // files that are no session in a known format
}

const (
	maxFile  = 1 << 30
	perWrite = 2000 // pieces of a transaction
)

// A row is a piece of a session.
type row struct {
	handle, message, what, subject, file, status string
	time                                         int64 // in milliseconds; 0 if unknown
	edits                                        bool
	stems                                        string
	bytes                                        int
}

type scanned struct {
	file    File
	size    int64
	changed int64
	rows    []row
	err     error
}

// Update reads the files that are new or changed, and forgets the sessions whose files are not in the list. Keys are
// left out. If ctx ends, sessions read so far stay.
func (a *Archive) Update(ctx context.Context, files []File, progress func(done, of int)) (Change, error) {
	var c Change
	known, err := a.known(ctx)
	if err != nil {
		return c, err
	}
	var todo []scanned
	for _, f := range files {
		size, changed, ok := f.stat()
		if !ok {
			continue
		}
		s := scanned{file: f, size: size, changed: changed}
		if old := known[f.Path]; old != [2]int64{s.size, s.changed} {
			todo = append(todo, s)
		}
		delete(known, f.Path)
	}
	slices.SortFunc(todo, func(x, y scanned) int { return cmp.Compare(x.changed, y.changed) }) // the newest have the greatest IDs
	for path := range known {
		n, err := a.Forget(ctx, path)
		if err != nil {
			return c, err
		}
		c.Deleted += n
	}
	return c, a.addAll(ctx, todo, &c, progress)
}

// known returns the size and the time of change of the files in the index.
func (a *Archive) known(ctx context.Context) (map[string][2]int64, error) {
	rows, err := a.db.QueryContext(ctx, "SELECT path, size, changed FROM session")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	known := map[string][2]int64{}
	for rows.Next() {
		var path string
		var at [2]int64
		if err := rows.Scan(&path, &at[0], &at[1]); err != nil {
			return nil, err
		}
		known[path] = at
	}
	return known, rows.Err()
}

// addAll reads files with all processors and writes them one after the other.
func (a *Archive) addAll(ctx context.Context, todo []scanned, c *Change, progress func(done, of int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work, results := make(chan scanned), make(chan scanned)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(func() {
			var r reader
			for s := range work {
				s.rows, s.err = r.read(ctx, &s.file)
				select {
				case results <- s:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() {
		defer close(results)
		defer readers.Wait()
		defer close(work)
		for _, s := range todo {
			select {
			case work <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	done, gone := 0, false
	for s := range results {
		if done++; progress != nil {
			progress(done, len(todo))
		}
		if s.err != nil {
			c.Unreadable++
			s.rows = nil
		}
		removed, err := a.add(ctx, &s, c)
		if err != nil {
			return err
		}
		gone = gone || removed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if gone {
		return a.scrub(ctx)
	}
	return nil
}

// add writes the new pieces of a session, and deletes those that are not in its file any more.
func (a *Archive) add(ctx context.Context, s *scanned, c *Change) (removed bool, err error) {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	var session int64
	err = tx.QueryRowContext(ctx, `INSERT INTO session (path, agent, name, dir, size, changed) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE SET agent = excluded.agent, name = excluded.name, dir = excluded.dir, size = excluded.size, changed = excluded.changed
RETURNING id`, s.file.Path, s.file.Agent, s.file.Name, s.file.Dir, s.size, s.changed).Scan(&session)
	if err != nil {
		return false, err
	}
	old := map[string]int64{}
	rows, err := tx.QueryContext(ctx, "SELECT handle, id FROM piece WHERE session = ?", session)
	if err != nil {
		return false, err
	}
	for rows.Next() {
		var handle string
		var id int64
		if err := rows.Scan(&handle, &id); err != nil {
			return false, err
		}
		old[handle] = id
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	if err := insert(ctx, tx, session, s.rows, old, c); err != nil {
		return false, err
	}
	for _, id := range old {
		if _, err := tx.ExecContext(ctx, "DELETE FROM words WHERE rowid = ?1", id); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM piece WHERE id = ?1", id); err != nil {
			return false, err
		}
	}
	if s.err == nil {
		c.Sessions++
	}
	return len(old) > 0, tx.Commit()
}

// insert inserts the rows that are not in old, and removes the others from old.
func insert(ctx context.Context, tx *sql.Tx, session int64, rows []row, old map[string]int64, c *Change) error {
	piece, err := tx.PrepareContext(ctx, "INSERT INTO piece (session, handle, message, what, subject, file, time, status, edits) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	words, err := tx.PrepareContext(ctx, "INSERT INTO words (rowid, stems) VALUES (?, ?)")
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if _, ok := old[r.handle]; ok {
			delete(old, r.handle)
			continue
		}
		res, err := piece.ExecContext(ctx, session, r.handle, r.message, r.what, r.subject, r.file, r.time, r.status, r.edits)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		if _, err := words.ExecContext(ctx, id, r.stems); err != nil {
			return err
		}
		c.Pieces++
		c.Text += int64(r.bytes)
	}
	return nil
}

// A reader reads the pieces of sessions.
type reader struct{ stemmer search.Stemmer }

// conversation reads a session.
func conversation(ctx context.Context, path string) (*recall.Conversation, error) {
	var source io.Reader
	if strings.Contains(path, inDatabase) {
		data, err := export(ctx, path)
		if err != nil {
			return nil, err
		}
		source = bytes.NewReader(data)
	} else {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		source = f
	}
	d, err := transcript.Read(source, &transcript.ReadOptions{Name: path, MaxBytes: maxFile})
	if err != nil {
		return nil, err
	}
	return recall.New(d.Journal), nil
}

// maxSubject is the length of a command or a path that is kept, in bytes.
const maxSubject = 200

func (r *reader) read(ctx context.Context, f *File) ([]row, error) {
	c, err := conversation(ctx, f.Path)
	if err != nil {
		return nil, err
	}
	calls := map[string]dialog.CallInfo{}
	seen := map[string]bool{}
	var rows []row
	pieces := c.Own.All()
	for i := range pieces {
		p := &pieces[i]
		at := &p.Places[0]
		call, isCall := p.Part.(core.ToolCall)
		if isCall {
			calls[call.ID] = dialog.ParseCall(call.Name, call.Args)
		}
		text := p.Text()
		if _, isImage := p.Part.(core.Image); isImage {
			continue
		}
		if _, isOpaque := p.Part.(core.Opaque); isOpaque {
			continue
		}
		if seen[p.Handle] || at.InsertedBy != "" || strings.TrimSpace(text) == "" {
			continue
		}
		seen[p.Handle] = true
		about := calls[call.ID]
		result, isResult := p.Part.(core.ToolResult)
		if isResult {
			about = calls[result.CallID]
		}
		x := row{
			handle: p.Handle, message: at.Message.ID, what: p.What, file: absolute(f, p.Path), bytes: len(text),
			edits: isCall && (about.Family == dialog.FamilyEdit || about.Family == dialog.FamilyWrite),
		}
		if x.subject = p.Path; x.subject == "" {
			x.subject = about.Target
		}
		x.subject = keyless(strings.ToValidUTF8(x.subject[:min(len(x.subject), maxSubject)], ""))
		if isResult {
			x.status = status(text, about.Family, result.IsError)
		}
		if !at.Message.Time.IsZero() {
			x.time = at.Message.Time.UnixMilli()
		}
		x.stems = r.stems(text + "\n" + p.Path + "\n" + x.subject)
		rows = append(rows, x)
	}
	return rows, nil
}

// absolute returns the path of a file as it is compared between sessions.
func absolute(f *File, path string) string {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path
	case f.Dir != "":
		return filepath.Join(f.Dir, path)
	}
	return f.Path + ":" + path // of this session only
}

// exitForm matches the exit code in messages of agents and shells about the end of a command.
var exitForm = regexp.MustCompile(`(?i)(?:exit(?:ed)?(?: with)?(?:[ _](?:code|status))"?[:=]?|exit:) ?(\d{1,3})\b`)

// status returns how a command ended.
func status(text string, family dialog.Family, failed bool) string {
	const end = 400
	if family == dialog.FamilyCommand {
		for _, part := range []string{text[:min(len(text), end)], text[max(0, len(text)-end):]} {
			if m := exitForm.FindStringSubmatch(part); m != nil {
				return "exit " + m[1]
			}
		}
	}
	if failed {
		return "failed"
	}
	return ""
}

// stems returns the different stems of text without keys and without random names.
func (r *reader) stems(text string) string {
	var b strings.Builder
	seen := map[string]bool{}
	search.Words(keyless(text), func(w []byte, _ bool) {
		if len(w) > maxWord || random(w) {
			return
		}
		if search.Stop(w) {
			return
		}
		stem := r.stemmer.Stem(w)
		if seen[stem] {
			return
		}
		seen[stem] = true
		b.WriteString(stem)
		b.WriteByte(' ')
	})
	return b.String()
}

const maxWord = 64 // bytes; longer ones are no names

// random reports whether a word is part of a key, a checksum or base64: long, with digits all over.
func random(w []byte) bool {
	if len(w) < 12 {
		return false
	}
	digits, changes := 0, 0
	for i, b := range w {
		is := '0' <= b && b <= '9'
		if is {
			digits++
		}
		if i > 0 && is != ('0' <= w[i-1] && w[i-1] <= '9') {
			changes++
		}
	}
	return digits > 0 && changes >= len(w)/6
}
