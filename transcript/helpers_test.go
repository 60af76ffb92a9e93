package transcript_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

func read(t *testing.T, data, format string) *transcript.Document {
	t.Helper()
	d, err := transcript.Read(strings.NewReader(data), &transcript.ReadOptions{Format: format})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return d
}

func write(t *testing.T, d *transcript.Document, format string) (string, []transcript.Warning) {
	t.Helper()
	var out bytes.Buffer
	warnings, err := d.Write(&out, format)
	if err != nil {
		t.Fatalf("write %s: %v", format, err)
	}
	return out.String(), warnings
}

// document makes a document from nothing, as a host does.
func document(t *testing.T, messages ...core.Message) *transcript.Document {
	t.Helper()
	d := &transcript.Document{Journal: history.New()}
	if err := d.Journal.Append(messages...); err != nil {
		t.Fatal(err)
	}
	return d
}

func condense(t *testing.T, d *transcript.Document, edit core.Edit) {
	t.Helper()
	if err := d.Journal.Condense(history.Condensation{ID: "c1", Edit: edit}); err != nil {
		t.Fatal(err)
	}
}

func undo(t *testing.T, d *transcript.Document) {
	t.Helper()
	if err := d.Journal.Undo("c1"); err != nil {
		t.Fatal(err)
	}
}

func warningTexts(ws []transcript.Warning) []string {
	var all []string
	for _, w := range ws {
		all = append(all, w.String())
	}
	return all
}
