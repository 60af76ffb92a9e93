package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/ingest"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript"
)

// formats are the formats of the agents' sessions.
var formats = map[string]string{Claude: "claudecode", OpenCode: "opencode", Pi: "pi"}

// maxDigest is the size of a digest in tokens. The pass after it only makes room: a digest that makes a conversation
// longer is dropped.
const maxDigest = "1500"

// digest summarizes a conversation: the user's requests, the open work, the last errors, the files. It is empty if
// there is not much.
func digest(ctx context.Context, agent string, e *event) (string, error) {
	all, _, err := read(agent, e, maxInput)
	if err != nil {
		return "", err
	}
	settings := `{"passes": [{"pass": "digest", "always": true, "tokens": ` + maxDigest + `}, "window"]}`
	host, err := ingest.Smart(ctx, "digest", []byte(settings), "")
	if err != nil {
		return "", err
	}
	defer host.Close()
	c := condense.NewConversation()
	for _, m := range all { // including messages compacted before
		if m.Kind == core.KindSummary {
			continue
		}
		m.ID, m.Source = "", nil
		if err := c.Append(m); err != nil {
			return "", err
		}
	}
	if _, err := host.Manage(ctx, c, condense.Turn{Trigger: core.TriggerManual, Window: 10_000_000, Target: 1, NoRecall: true}); err != nil {
		return "", err
	}
	for _, m := range c.View() {
		if m.Kind == core.KindSummary && len(m.Parts) == 1 {
			if t, ok := m.Parts[0].(core.Text); ok {
				return "[condense: what was in this conversation before it was compacted]\n" + string(t), nil
			}
		}
	}
	return "", nil
}

// read returns the messages in the last bytes of a session, at most so many, and whether they are all.
func read(agent string, e *event, most int64) (all []core.Message, whole bool, err error) {
	data, size := []byte(e.Messages), int64(0)
	if len(data) == 0 {
		if data, size, err = tail(e.Transcript, most); err != nil {
			return nil, false, err
		}
	}
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: formats[agent]})
	if err != nil {
		return nil, false, fmt.Errorf("the session: %w", err)
	}
	return d.Journal.Messages(), size <= most, nil
}

// tail returns the last whole lines of a file, of at most so many bytes, and the size of the file. Lines in which a model speaks as the user
// to a subagent are left out.
func tail(path string, most int64) (data []byte, size int64, err error) {
	if path == "" {
		return nil, 0, errors.New("the event names no transcript")
	}
	info, err := os.Stat(path) // before it is opened: a pipe would block
	if err != nil {
		return nil, 0, err
	} else if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	size = info.Size()
	if data, err = io.ReadAll(io.NewSectionReader(f, max(0, size-most), most)); size > most {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	lines := bytes.Split(data, []byte("\n"))
	lines = slices.DeleteFunc(lines, func(line []byte) bool { return rawjson.IsTrue(rawjson.Field(line, "isSidechain")) })
	return bytes.Join(lines, []byte("\n")), size, err
}
