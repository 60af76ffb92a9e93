package archive_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/archive"
	"github.com/condensehq/condense/internal/search"
)

// Sessions in OpenCode's database are found while it is open, and read again only after a change.
func TestOpenCode(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	if files, err := archive.OpenCode(t.Context()); len(files) != 0 || err != nil {
		t.Errorf("without a database: %v, %v", files, err)
	}
	path := filepath.Join(data, "opencode", "opencode.db")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	// The columns that are read, as in packages/opencode/src/session/session.sql.ts.
	exec(`PRAGMA journal_mode = wal;
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, directory TEXT NOT NULL, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);`)
	at := time.Date(2026, 11, 3, 9, 0, 0, 0, time.UTC).UnixMilli()
	part := func(session, message, id, text string, now int64) {
		exec("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", id, message, session, now, now, text)
	}
	for _, s := range []string{"ses_one4567890", "ses_two4567890"} {
		exec("INSERT INTO session VALUES (?, 'p', '/p', ?, ?)", s, at, at)
		exec("INSERT INTO message VALUES (?, ?, ?, ?, ?)", "msg_1"+s, s, at, at, `{"role":"user","time":{"created":1793696400000}}`)
		part(s, "msg_1"+s, "prt_1"+s, `{"type":"text","text":"Please look for the marmalade"}`, at)
		exec("INSERT INTO message VALUES (?, ?, ?, ?, ?)", "msg_2"+s, s, at+1, at+1, `{"role":"assistant","time":{"created":1793696400001},"providerID":"x","modelID":"y"}`)
	}
	part("ses_one4567890", "msg_2ses_one4567890", "prt_2one",
		`{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"make tangerine"},"output":"xylophone refused","title":"","metadata":{"exit":2},"time":{"start":1,"end":2}}}`, at+2)

	x, _ := open(t)
	files, err := archive.OpenCode(t.Context())
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	c, err := x.Update(t.Context(), files, nil)
	if err != nil || c.Sessions != 2 || len(c.Unreadable) != 0 {
		t.Fatal(c, err)
	}
	hits := find(t, x, "xylophone")
	if len(hits) != 1 || !hits[0].Verified || hits[0].Subject != "make tangerine" || hits[0].Export() != "opencode export ses_one4567890" {
		t.Errorf("got %+v", hits)
	}
	part("ses_two4567890", "msg_2ses_two4567890", "prt_2two", `{"type":"text","text":"There is a zanzibar"}`, at+50)
	if files, err = archive.OpenCode(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err = x.Update(t.Context(), files, nil); err != nil || c.Sessions != 1 || c.Pieces != 1 {
		t.Errorf("a session that went on: %+v, %v", c, err)
	}
	exec("DELETE FROM session WHERE id = 'ses_one4567890'")
	exec("UPDATE part SET data = '[' WHERE message_id = 'msg_2ses_two4567890'")
	if hits := find(t, x, "zanzibar"); len(hits) != 1 || hits[0].Verified {
		t.Errorf("a row that is no JSON any more: %+v", hits)
	}
	if files, err = archive.OpenCode(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err = x.Update(t.Context(), files, nil); err != nil || c.Deleted != 1 {
		t.Errorf("a deleted session: %+v, %v", c, err)
	}
	exec("DROP TABLE part")
	if _, err = archive.OpenCode(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("another schema: %v", err)
	}
	q, err := search.Parse("xylophone")
	if err != nil {
		t.Fatal(err)
	}
	if hits, err = x.Find(t.Context(), q, 10); err != nil || len(hits) != 0 {
		t.Errorf("a deleted session is found: %v, %v", hits, err)
	}
}
