package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/transcript"
)

const keepsOriginals = "profiles: {p: {window: 20000, chain: [asker], originals: parts}}\n"

func ours(text string) *condense.Options {
	return &condense.Options{Models: map[string]model.Generator{"ours": parrot(text)}}
}

// readPart returns the messages of a file of originals, which only its owner may read.
func readPart(t *testing.T, path string) []core.Message {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
	}
	messages, err := history.DecodeOriginals(f)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// TestOriginals: what a condensation hides is written next to the conversation, and the
// summary says where; the next one gets the next number.
func TestOriginals(t *testing.T) {
	h, _, err := openAsker(t, keepsOriginals, ours("in short"))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	dir := filepath.Join(work, "session.jsonl") + ".history"
	c := talk(300)
	c.KeepOriginals(dir)
	recorded := c.Journal().Messages()
	r, err := h.Manage(t.Context(), c, condense.Turn{Dir: work})
	if err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "part-1.jsonl")
	if r.Originals != first || c.Journal().Condensations()[0].Originals != first {
		t.Errorf("reported in %s; want %s", r.Originals, first)
	}
	if got := c.View()[0].Parts[0]; got != core.Text(core.Frame("asker")+"\nin short session.jsonl.history/part-1.jsonl") {
		t.Errorf("the summary says %q", got)
	}
	got := readPart(t, first)
	if len(got) != len(recorded) {
		t.Fatalf("%d messages are written; want %d", len(got), len(recorded))
	}
	for i := range got {
		if !got[i].Equal(recorded[i]) {
			t.Fatalf("message %d is %v; want %v", i, got[i], recorded[i])
		}
	}

	// The second one also hides the summary of the first.
	for i, m := range talk(300).Journal().Messages() {
		m.ID = "again" + m.ID
		if err := c.Append(m); err != nil {
			t.Fatal(i, err)
		}
	}
	if r, err = h.Manage(t.Context(), c, condense.Turn{}); err != nil {
		t.Fatal(err)
	}
	second := readPart(t, filepath.Join(dir, "part-2.jsonl"))
	if len(second) != 301 || second[0].Kind != core.KindSummary {
		t.Errorf("the second file has %d messages, the first of kind %q; want 301 with the summary at first", len(second), second[0].Kind)
	}
	if got := c.View()[0].Parts[0]; got != core.Text(core.Frame("asker")+"\nin short "+r.Originals) {
		t.Errorf("without a directory of the agent's the summary says %q; want the whole path %s", got, r.Originals)
	}
	// Undo leaves the files: the handles in them stay valid.
	if err := c.Undo(r.CondensationID); err != nil {
		t.Fatal(err)
	}
	readPart(t, filepath.Join(dir, "part-2.jsonl"))
}

// TestOriginalsOnlyOfASmallerConversation: a condensation that is not used writes nothing,
// and no file is overwritten.
func TestOriginalsOnlyOfASmallerConversation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	large := ours(strings.Repeat("word ", 60_000))
	ctx, cancel := context.WithCancel(t.Context())
	large.Observe = func(e condense.Event) {
		if e.Kind == condense.EventAttempt {
			cancel() // otherwise truncation would condense it
		}
	}
	h, _, err := openAsker(t, keepsOriginals, large)
	if err != nil {
		t.Fatal(err)
	}
	c := talk(300)
	c.KeepOriginals(dir)
	if _, err := h.Manage(ctx, c, condense.Turn{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got error %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is there: %v", dir, err)
	}

	// Another process creates the file while the provider works.
	taken := filepath.Join(dir, "part-1.jsonl")
	opts := ours("in short")
	opts.Observe = func(e condense.Event) {
		if e.Kind != condense.EventAsking || e.Provider != "asker" {
			return
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
			t.Error(err)
		}
	}
	h, _, err = openAsker(t, keepsOriginals, opts)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Journal().Len()
	if _, err := h.Manage(t.Context(), c, condense.Turn{}); err == nil || !strings.Contains(err.Error(), "originals: ") {
		t.Errorf("got error %v", err)
	}
	if text, err := os.ReadFile(taken); string(text) != "precious" || c.Journal().Len() != before {
		t.Errorf("the file now holds %q (%v), the view %d messages of %d", text, err, c.Journal().Len(), before)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left over: %q", left)
	}
	// The next turn takes the next name.
	if r, err := h.Manage(t.Context(), c, condense.Turn{}); err != nil || filepath.Base(r.Originals) != "part-2.jsonl" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestOriginalsThatCannotBeWritten: where no folder for them can be made, conversations are condensed nevertheless: the journal has them.
func TestOriginalsThatCannotBeWritten(t *testing.T) {
	h, _, err := openAsker(t, keepsOriginals, ours("in short"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "s.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := talk(300)
	c.KeepOriginals(filepath.Join(file, "history"))
	r, err := h.Manage(t.Context(), c, condense.Turn{})
	if err != nil || !r.Acted || r.Originals != "" || !strings.Contains(strings.Join(r.Warnings, "\n"), "only the journal has them") {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := c.View()[0].Parts[0]; got != core.Text(core.Frame("asker")+"\nin short ") {
		t.Errorf("the summary says %q, and there is no file", got)
	}
}

// TestOriginalsUnlessAsked: without the setting, or without a directory, nothing is written.
func TestOriginalsUnlessAsked(t *testing.T) {
	for name, text := range map[string]string{"no setting": "profiles: {p: {window: 20000, chain: [asker]}}\n", "no place": keepsOriginals} {
		t.Run(name, func(t *testing.T) {
			h, _, err := openAsker(t, text, ours("in short"))
			if err != nil {
				t.Fatal(err)
			}
			c, dir := talk(300), t.TempDir()
			if name == "no setting" {
				c.KeepOriginals(dir)
			}
			r, err := h.Manage(context.Background(), c, condense.Turn{})
			if err != nil || !r.Acted || r.Originals != "" || c.View()[0].Parts[0] != core.Text(core.Frame("asker")+"\nin short ") {
				t.Errorf("got %+v, %v", r, err)
			}
			if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "originals"); warned != (name == "no place") {
				t.Errorf("got warnings %q", r.Warnings)
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("written: %v", files)
			}
		})
	}
}

// TestHandlesOutlive: content of a recorded session is found by its handle after the session
// was condensed twice, after the first of these was undone, and in the task folder of
// Roo-Code that it was exported to.
func TestHandlesOutlive(t *testing.T) {
	h, _, err := openAsker(t, "profiles: {p: {window: 20000, chain: [asker]}}\n", ours("in short"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aider--sec0013.json.gz", "roo-tasks--bc93a6f7-cd2e-4686-a832-46e3cd14d338.json.gz", "swe-agent--i_got_id_demo.json.gz", "tau-airline--task2-trial1.json.gz"} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join("../../testdata/traces", name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close() //nolint:errcheck // it was only read
			d, err := transcript.Read(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			handles := map[string]core.Part{}
			for _, m := range d.Journal.Messages() {
				maps.Insert(handles, history.Handles(m.Parts))
			}
			c := condense.ResumeConversation(d.Journal)
			all := func(when string, j *history.Journal) {
				t.Helper()
				for h, p := range handles {
					found := j.Recall(h)
					if len(found) == 0 {
						t.Fatalf("%s: %s is not found: %.100v", when, h, p)
					}
				}
			}
			for range 2 {
				if _, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual}); err != nil {
					t.Fatal(err)
				}
				more := core.Message{ID: "more" + c.View()[0].ID, Role: core.RoleAssistant, Parts: []core.Part{core.Text(strings.Repeat("And so on. ", 100))}}
				if err := c.Append(more); err != nil {
					t.Fatal(err)
				}
			}
			condensations := c.Journal().Condensations()
			if len(condensations) != 2 {
				t.Fatalf("%d condensations", len(condensations))
			}
			all("condensed twice", d.Journal)
			var roo bytes.Buffer
			if _, err := d.Write(&roo, "roo"); err != nil {
				t.Fatal(err)
			}
			exported, err := transcript.Read(&roo, &transcript.ReadOptions{Format: "roo"})
			if err != nil {
				t.Fatal(err)
			}
			all("exported", exported.Journal)
			if err := c.Undo(condensations[0].ID); err != nil {
				t.Fatal(err)
			}
			all("undone", d.Journal)
		})
	}
}
