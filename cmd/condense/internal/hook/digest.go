package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/ingest"
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
	data := []byte(e.Messages)
	if len(data) == 0 {
		var err error
		var whole bool
		if data, whole, err = tail(e.Transcript, maxInput); err == nil && !whole {
			err = fmt.Errorf("%s has more than %d MiB", e.Transcript, maxInput>>20)
		}
		if err != nil {
			return "", err
		}
	}
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Format: formats[agent]})
	if err != nil {
		return "", fmt.Errorf("the session: %w", err)
	}
	settings := `{"passes": [{"pass": "digest", "always": true, "tokens": ` + maxDigest + `}, "window"]}`
	host, err := ingest.Smart(ctx, "digest", []byte(settings), "")
	if err != nil {
		return "", err
	}
	defer host.Close()
	c := condense.NewConversation()
	for _, m := range d.Journal.Messages() { // including messages compacted before
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

// tail returns the last bytes of the file of a session, at most so many, and whether they are the whole.
func tail(path string, most int64) (data []byte, whole bool, err error) {
	if path == "" {
		return nil, false, errors.New("the event names no transcript")
	}
	info, err := os.Stat(path) // before it is opened: a pipe would block
	if err != nil {
		return nil, false, err
	} else if !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err = io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	return data, info.Size() <= most, err
}
