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

func TestFileHasTheLogAfterEveryStep(t *testing.T) {
	f, path := create(t)
	for _, step := range []string{
		"append a b c", "condense X hide a; rewrite b; insert S after a", "append d", "undo X",
		"condense Y hide c d; insert T after d", "rewind d", "append e", "rewind a", "undo-rewind", "protect a", "unprotect a",
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
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
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

// Two writers would make the journal unreadable: both would give a message the same ID.
func TestASecondWriterIsRefused(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{path, link} {
		if _, _, err := history.Open(name); !errors.Is(err, history.ErrInUse) || !strings.HasPrefix(err.Error(), "open "+name+": ") {
			t.Errorf("open %s: got error %v, want that it is in use", name, err)
		}
		if _, err := history.Acquire(name); !errors.Is(err, history.ErrInUse) || !strings.Contains(err.Error(), name) {
			t.Errorf("acquire %s: got error %v, want that it is in use", name, err)
		}
	}
	run(t, f.Journal, "append b")
	if got := says(decode(t, content(t, path)).View()); got != "a b" {
		t.Errorf("a reader got %s, want a b", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err := history.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := history.Open(path); !errors.Is(err, history.ErrInUse) {
		t.Errorf("got error %v, want that it is in use", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, path)
	run(t, again.Journal, "append c")
	if got := says(again.View()); got != "a b c" {
		t.Errorf("got view %s, want a b c", got)
	}
}

// What is acknowledged must be found again: in the file of that name, not in one that has
// no name any more or another one.
func TestFileThatIsMovedOrRemovedTakesNothingMore(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(path string) error
		want string
	}{
		{"removed", os.Remove, "was removed or moved since it was opened"},
		{"moved", func(path string) error { return os.Rename(path, path+".old") }, "was removed or moved since it was opened"},
		{"replaced", func(path string) error {
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path+".new", data, 0o600)
			}
			if err == nil {
				err = os.Rename(path+".new", path)
			}
			return err
		}, "was replaced by another one since it was opened"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, path := create(t)
			run(t, f.Journal, "append a b", "condense X hide a")
			if err := tt.do(path); err != nil {
				t.Skip(err) // Windows: a file that is open
			}
			for _, step := range []string{"append c", "condense Y hide b", "undo X", "rewind a"} {
				if err := do(t, f.Journal, step); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: got error %v, want that the file %s", step, err, tt.want)
				}
			}
			if got := says(f.View()); got != "b" {
				t.Errorf("got view %s, want b", got)
			}
		})
	}
}

// A folder is changed to, not the file: its path is still good.
func TestFileIsFoundFromAnotherFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	f, err := history.Create("journal.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	t.Chdir(t.TempDir())
	run(t, f.Journal, "append a")
}

func TestFileNoticesThatAnotherProcessWrote(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	extend(t, path, `{"message":{"id":"b","role":"user","parts":[]}}`+"\n")
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
}

// Not even an incomplete line is removed if somebody may be about to complete it.
func TestFileLeavesAnIncompleteLineToItsWriter(t *testing.T) {
	f, path := create(t)
	run(t, f.Journal, "append a")
	line := `{"message":{"id":"b","role":"user","parts":[]}}` + "\n"
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
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
