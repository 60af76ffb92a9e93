package history_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

func create(t *testing.T) (f *history.File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.jsonl")
	f, err := history.Create(path, json.RawMessage(`{"format":"test"}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // some tests close it themselves
	return f, path
}

func open(t *testing.T, path string) (*history.File, *history.Recovery) {
	t.Helper()
	f, recovery, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, recovery
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// extend appends text to the file as another process would.
func extend(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFileHoldsTheLogAfterEveryStep(t *testing.T) {
	f, path := create(t)
	for _, step := range []string{
		"append a b c", "condense X hide a; rewrite b; insert S after a", "append d", "undo X",
		"condense Y hide c d; insert T after d", "rewind d", "append e",
	} {
		run(t, f.Journal, step)
		if diff := cmp.Diff(encode(t, f.Journal), content(t, path)); diff != "" {
			t.Fatalf("%s: log (-) and file (+) differ:\n%s", step, diff)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, recovery := open(t, path)
	if recovery != nil {
		t.Errorf("got recovery %s", recovery)
	}
	if got, want := says(again.View()), "a b c d e"; got != want || again.ID() != f.ID() || string(again.Meta()) != `{"format":"test"}` {
		t.Errorf("got %s, %s, %s, want %s", got, again.ID(), again.Meta(), want)
	}
	run(t, again.Journal, "append f", "condense Z hide f")
	if diff := cmp.Diff(encode(t, again.Journal), content(t, path)); diff != "" {
		t.Errorf("after opening: log (-) and file (+) differ:\n%s", diff)
	}
}

func TestFileIsPrivateAndNeverOverwritten(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		t.Errorf("got mode %v, want none for others", mode)
	}
	before := content(t, path)
	if _, err := history.Create(path, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got error %v, want that the file exists", err)
	}
	if got := content(t, path); got != before {
		t.Errorf("the file changed from %q to %q", before, got)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, _, err := history.Open(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want that there is no file", err)
	}
	if _, err := history.Create(missing, json.RawMessage("{")); err == nil {
		t.Error("got no error for a broken meta")
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was left behind: %v", err)
	}
}

func TestFileTakesNoMetaLater(t *testing.T) {
	f, path := create(t)
	before := content(t, path)
	if err := f.SetMeta(json.RawMessage("{}")); err == nil || string(f.Meta()) != `{"format":"test"}` || content(t, path) != before {
		t.Errorf("got error %v, meta %s, file %q", err, f.Meta(), content(t, path))
	}
}

// A process may die after any byte of a write. Whatever it leaves behind can be opened,
// is not touched by that, and is whole again after the next write.
func TestFileIsWholeAgainAfterACrash(t *testing.T) {
	t.Parallel()
	f, path := create(t)
	run(t, f.Journal, "append a", "condense X hide a; insert S after a", "append b")
	whole := content(t, path)
	for cut := strings.Index(whole, "\n"); cut < len(whole); cut++ {
		file := whole[:cut]
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		f, recovery, err := history.Open(path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got := content(t, path); got != file {
			t.Fatalf("cut at %d: opening changed the file to %q", cut, got)
		}
		before := f.Len()
		run(t, f.Journal, "append x")
		if f.Len() != before+1 {
			t.Fatalf("cut at %d: got %d messages, want %d", cut, f.Len(), before+1)
		}
		if got, want := content(t, path), encode(t, f.Journal); got != want {
			t.Fatalf("cut at %d, recovery %v: got file\n%s\nwant\n%s", cut, recovery, got, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFileNoticesThatAnotherProcessWrote(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	other, _ := open(t, path)
	run(t, other.Journal, "append b")
	before := content(t, path)
	for _, step := range []string{"append c", "condense X hide a", "rewind a"} {
		err := do(t, f.Journal, step)
		if err == nil || !strings.Contains(err.Error(), "something else wrote to it; open it again") {
			t.Errorf("%s: got error %v, want that another process wrote", step, err)
		}
	}
	if got := content(t, path); got != before {
		t.Errorf("the file changed from %q to %q", before, got)
	}
	if got := says(f.View()); got != "a" {
		t.Errorf("got view %s, want a", got)
	}
	again, _ := open(t, path)
	run(t, again.Journal, "append c")
	if got := says(again.View()); got != "a b c" {
		t.Errorf("got view %s, want a b c", got)
	}
}

// Not even an incomplete line is removed if somebody may be about to complete it.
func TestFileLeavesAnIncompleteLineToItsWriter(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	line := `{"message":{"id":"b","role":"user","parts":[]}}` + "\n"
	extend(t, path, line[:20])
	reader, recovery := open(t, path)
	if recovery == nil || recovery.Bytes != 20 {
		t.Fatalf("got recovery %v, want 20 bytes", recovery)
	}
	extend(t, path, line[20:])
	before := content(t, path)
	if err := do(t, reader.Journal, "append c"); err == nil {
		t.Error("got no error, want that something else wrote")
	}
	if got := content(t, path); got != before {
		t.Errorf("the file changed from %q to %q", before, got)
	}
}

func TestOpenRefusesWhatIsNoJournalAndLeavesItAlone(t *testing.T) {
	for _, text := range []string{"", "{", `[{"role":"user","content":"hi"}]`, "# notes", `{"condense":{"version":1,"id":"9b2f`, "\x00\x00"} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := history.Open(path); err == nil || !strings.HasPrefix(err.Error(), "open "+path+": line 1: ") {
			t.Errorf("%q: got error %v", text, err)
		}
		if got := content(t, path); got != text {
			t.Errorf("%q: the file changed to %q", text, got)
		}
	}
}

func TestWhatCannotBeWrittenDoesNotTakeEffect(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a b", "condense X hide a")
	before := content(t, path)
	bad := message("bad")
	bad.Parts = []core.Part{nil}
	if err := f.Append(message("good"), bad); err == nil || err.Error() != `message "bad": part 0: <nil> is not a part` {
		t.Errorf("append: got error %v", err)
	}
	c := condensation(t, "Y hide b")
	c.Edit.Insert = []core.Insert{{Message: bad}}
	if err := f.Condense(c); err == nil || !strings.HasPrefix(err.Error(), `condensation "Y": `) {
		t.Errorf("condense: got error %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"append c", "condense Y hide b", "undo X", "rewind a"} {
		if err := do(t, f.Journal, step); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: got error %v, want that the file is closed", step, err)
		}
	}
	if got := says(f.View()); got != "b" || f.Len() != 1 || len(f.Condensations()) != 1 {
		t.Errorf("got view %s and %d condensations, want b and 1", got, len(f.Condensations()))
	}
	if got := content(t, path); got != before {
		t.Errorf("the file changed from %q to %q", before, got)
	}
	again, _ := open(t, path)
	run(t, again.Journal, "append good", "condense Y hide b", "undo X") // no ID was used up
}
