package archive

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/disk"
)

// inDatabase separates the path of OpenCode's database from the ID of a session in the path of its [File].
const inDatabase = ".db#ses_"

// OpenCode returns the sessions in the database of OpenCode (packages/opencode/src/session/session.sql.ts): none if there
// is none.
func OpenCode(ctx context.Context) ([]File, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		data = filepath.Join(home, ".local", "share")
	}
	path := filepath.Join(data, "opencode", "opencode.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { //nolint:gosec // the user's own folder
		return nil, nil
	}
	db, err := readOnly(path)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read
	rows, err := db.QueryContext(ctx, `SELECT s.id, s.directory, s.time_updated,
	(SELECT count(*) FROM part p WHERE p.session_id = s.id), (SELECT coalesce(max(p.time_updated), 0) FROM part p WHERE p.session_id = s.id)
	FROM session s`)
	var files []File
	f := File{Agent: "opencode"}
	var session, part int64
	if err := scan(rows, err, func() {
		f.changed = time.UnixMilli(max(session, part)).UnixNano()
		if f.Path = path + "#" + f.Name; strings.Contains(f.Path, inDatabase) {
			files = append(files, f)
		}
	}, &f.Name, &f.Dir, &session, &f.size, &part); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return files, nil
}

// readOnly opens a database that another program may be writing.
func readOnly(path string) (*sql.DB, error) {
	values := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(on)"}}
	return sql.Open("sqlite", disk.SQLite(path, values))
}

// export returns a session of OpenCode's database in the form of opencode export.
func export(ctx context.Context, path string) ([]byte, error) {
	path, id, _ := strings.Cut(path, "#")
	db, err := readOnly(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()                                           //nolint:errcheck // it was only read
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // both queries see one state
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	type message struct {
		Info  json.RawMessage   `json:"info"`
		Parts []json.RawMessage `json:"parts"`
	}
	messages := []*message{}
	of := map[string]*message{}
	err = each(ctx, tx, "SELECT id, '', data FROM message WHERE session_id = ? ORDER BY time_created, id", id, func(m, _ string, data []byte) {
		of[m] = &message{Info: data, Parts: []json.RawMessage{}}
		messages = append(messages, of[m])
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, tx, "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id", id, func(_, m string, data []byte) {
		if m := of[m]; m != nil {
			m.Parts = append(m.Parts, data)
		}
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"info": map[string]string{"id": id}, "messages": messages})
}

// each calls row with the ID, the ID of the message, and the data with the ID of each row.
func each(ctx context.Context, tx *sql.Tx, query, session string, row func(id, message string, data []byte)) error {
	rows, err := tx.QueryContext(ctx, query, session)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // reported by Err
	size := 0
	for rows.Next() {
		var id, message string
		var data []byte
		if err := rows.Scan(&id, &message, &data); err != nil {
			return err
		}
		if size += len(data); size > maxFile {
			return fmt.Errorf("session %s has more than %d bytes", session, maxFile)
		}
		if data = bytes.TrimSpace(data); !json.Valid(data) || len(data) < 2 || data[0] != '{' {
			return fmt.Errorf("session %s: row %s has no JSON", session, id)
		}
		name, err := json.Marshal(id)
		if err != nil {
			return err
		}
		// In an export the JSON begins with the ID, which is a column here.
		begin := append([]byte(`{"id":`), name...)
		if rest := bytes.TrimSpace(data[1:]); rest[0] != '}' {
			begin = append(begin, ',')
		}
		row(id, message, append(begin, data[1:]...))
	}
	return rows.Err()
}
