package sessions

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// OpenCode keeps sessions in a database. Its commands export and import them.
var opencode = &Agent{
	Name: "opencode", Title: "OpenCode", resume: "opencode --session ", Format: "opencode",
	id: plain.Pattern(`^ses_[0-9A-Za-z]{8,64}$`), store: &opencodeStore{}, inside: true,
	describe: func(head []byte, s *Session) {
		s.Dir = rawjson.Text(rawjson.Field(rawjson.Field(head, "info"), "directory"))
	},
}

// An opencodeStore reads and writes sessions by the program OpenCode.
type opencodeStore struct{}

// command runs OpenCode in a folder, with its standard output in out: a long one in a file, because it ends before that has gone through
// a pipe.
func (*opencodeStore) command(ctx context.Context, dir string, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "opencode", args...) //nolint:gosec // fixed commands, an ID that was checked, and paths of ours
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, &said
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("there is no command opencode in PATH; sessions of OpenCode are read and written by it")
		}
		return fmt.Errorf("opencode %s: %w: %.200q", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// export writes a session into a new file.
func (o *opencodeStore) export(ctx context.Context, id, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = o.command(ctx, "", f, "export", id)
	return errors.Join(err, f.Close())
}

// newest returns the ID of the session of a folder that was written to last; empty if there is none.
func (o *opencodeStore) newest(ctx context.Context, dir string) (string, error) {
	var out bytes.Buffer
	if err := o.command(ctx, dir, &out, "session", "list", "--format", "json"); err != nil {
		return "", err
	}
	var all []struct {
		ID, Directory string
		Updated       int64
	}
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &all); err != nil {
			return "", fmt.Errorf("opencode session list: %w", err)
		}
	}
	newest, at := "", int64(-1)
	for _, s := range all {
		there, err := filepath.EvalSymlinks(s.Directory)
		if err == nil && there == dir && s.Updated > at {
			newest, at = s.ID, s.Updated
		}
	}
	return newest, nil
}

// adopt copies the session that is data to another ID.
func (o *opencodeStore) adopt(ctx context.Context, dir, to string, data []byte) error {
	temp, err := os.MkdirTemp("", "condense-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it is in the folder for temporary files
	path := filepath.Join(temp, to+".json")
	if err := os.WriteFile(path, readdressed(data, to, time.Now()), 0o600); err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = "" // OpenCode uses the current folder as the session's
	}
	var out bytes.Buffer
	if err := o.command(ctx, dir, &out, "import", path); err != nil {
		return err
	}
	if !strings.Contains(out.String(), to) {
		return fmt.Errorf("opencode import: it did not import the session: %.200q", strings.TrimSpace(out.String()))
	}
	return nil
}

// readdressed returns the session data with new IDs: its own, and the IDs of messages and parts, which are unique
// among all sessions and in whose order OpenCode reads them. Reasoning is left out: models may refuse it after a
// history that was changed.
func readdressed(data []byte, to string, now time.Time) []byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	n := 0
	random := rand.Text()[:14]
	next := func(kind string) []byte {
		n++
		// A minute ago, so that OpenCode's next messages come after it.
		return fmt.Appendf(nil, `"%s_%012x%s"`, kind, uint64(now.Add(-time.Minute).UnixMilli()<<12+int64(n))&(1<<48-1), random)
	}
	session := []byte(strconv.Quote(to))
	info := rawjson.Field(data, "info")
	own := rawjson.SetField(info, "id", session)
	for _, name := range []string{"share", "revert", "parentID"} {
		own = rawjson.CutField(own, name)
	}
	renamed := map[string][]byte{} // IDs of messages
	var messages [][]byte
	for raw := range rawjson.Elements(rawjson.Field(data, "messages")) {
		was := rawjson.Field(raw, "info")
		id := next("msg")
		renamed[rawjson.Text(rawjson.Field(was, "id"))] = id
		message := rawjson.SetField(rawjson.SetField(was, "id", id), "sessionID", session)
		if parent := rawjson.Field(message, "parentID"); parent != nil {
			if other, ok := renamed[rawjson.Text(parent)]; ok {
				message = rawjson.SetField(message, "parentID", other)
			}
		}
		parts := [][]byte{}
		for part := range rawjson.Elements(rawjson.Field(raw, "parts")) {
			if rawjson.Text(rawjson.Field(part, "type")) == "reasoning" {
				continue
			}
			part = rawjson.SetField(rawjson.SetField(part, "id", next("prt")), "messageID", id)
			parts = append(parts, rawjson.SetField(part, "sessionID", session))
		}
		messages = append(messages, rawjson.Append(nil, `{"info":?,"parts":?}`, message, rawjson.Array(parts)))
	}
	return rawjson.Append(nil, `{"info":?,"messages":?}`, own, rawjson.Array(messages))
}

// newSessionID returns an ID in OpenCode's form, which sorts before all older ones.
func newSessionID(now time.Time) string {
	return fmt.Sprintf("ses_%012x%s", ^uint64(now.UnixMilli()<<12)&(1<<48-1), rand.Text()[:14])
}
