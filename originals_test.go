package condense_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/model"
)

const keepsOriginals = "profiles: {p: {window: 20000, chain: [asker], originals: parts}}\n"

func ours(text string) *condense.Options {
	return &condense.Options{Models: map[string]model.Generator{"ours": parrot(text)}}
}

// readPart returns the messages of a file of originals, which nobody else may read.
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

// TestOriginals: what a condensation hides is written beside the conversation, and the
// summary says where; the next one goes on counting.
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

	// The second hides the summary of the first, too.
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
	// Undoing it leaves the files: handles in them stay good.
	if err := c.Undo(r.CondensationID); err != nil {
		t.Fatal(err)
	}
	readPart(t, filepath.Join(dir, "part-2.jsonl"))
}

// TestOriginalsOnlyOfASmallerConversation: what comes to nothing writes nothing, and what
// is there is never written over.
func TestOriginalsOnlyOfASmallerConversation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	large := ours(strings.Repeat("word ", 60_000))
	ctx, cancel := context.WithCancel(t.Context())
	large.Observe = func(e condense.Event) {
		if e.Kind == condense.EventAttempt {
			cancel() // else truncation would do it
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

	// Somebody else takes the name while the provider works.
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

// TestOriginalsUnlessAsked: without the setting, or without a place, nothing is written.
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
			if warned := len(r.Warnings) > 0; warned != (name == "no place") {
				t.Errorf("got warnings %q", r.Warnings)
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("written: %v", files)
			}
		})
	}
}
