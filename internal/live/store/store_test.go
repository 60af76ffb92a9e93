package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/pgtest"
)

func TestMemory(t *testing.T) {
	testEvery(t, func(*testing.T) store.Store { return store.Memory() }, nil)
}

func TestSQLite(t *testing.T) {
	var path string
	open := func(t *testing.T) store.Store {
		t.Helper()
		return sqlite(t, path)
	}
	testEvery(t, func(t *testing.T) store.Store {
		t.Helper()
		path = filepath.Join(t.TempDir(), "new folder", "state ?#%.db")
		return open(t)
	}, open)
}

func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	var address string
	open := func(t *testing.T) store.Store {
		t.Helper()
		s, err := store.Postgres(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	testEvery(t, func(t *testing.T) store.Store {
		t.Helper()
		address = server.URL()
		return open(t)
	}, open)
	t.Run("a database that stops and goes on", func(t *testing.T) {
		address = server.URL()
		s := open(t)
		defer func() { _ = s.Close() }()
		r := &store.Record{ID: "r", Updated: time.UnixMilli(1), Data: []byte("before")}
		if err := s.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		server.Pause()
		defer server.Resume()
		for range 3 {
			late := *r
			if err := s.Save(t.Context(), &late); !errors.Is(err, store.ErrUnavailable) || late.Version != 1 {
				t.Errorf("got %v, want that it is unavailable", err)
			}
		}
		if _, err := s.Load(t.Context(), store.Key{}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want that it is unavailable", err)
		}
		if s, err := store.Postgres(t.Context(), address); err == nil {
			_ = s.Close()
			t.Error("a store was opened")
		}
		server.Resume()
		testkit.Eventually(t, "the database answers again", func() bool {
			found, err := s.Load(t.Context(), store.Key{})
			return err == nil && len(found) == 1 && string(found[0].Data) == "before"
		})
	})
	t.Run("many processes make the tables at once", func(t *testing.T) {
		address = server.URL()
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				s, err := store.Postgres(t.Context(), address)
				if err == nil {
					_, err = s.Secret(t.Context(), "x")
					err = errors.Join(err, s.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	})
	t.Run("a user who may make no schema", func(t *testing.T) {
		if err := store.RunPostgres(server.URL(), "CREATE ROLE guest LOGIN; CREATE SCHEMA theirs AUTHORIZATION guest"); err != nil {
			t.Fatal(err)
		}
		guest, _, _ := strings.Cut(strings.Replace(server.URL(), "condense@", "guest@", 1), "&search_path")
		if _, err := store.Postgres(t.Context(), guest+"&search_path=other"); err == nil || !strings.Contains(err.Error(), "let an administrator make one") {
			t.Errorf("got error %v, want what an administrator can do", err)
		}
		address = guest + "&search_path=theirs"
		if err := open(t).Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		newer := server.URL()
		address = newer
		if err := open(t).Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.SetPostgresVersion(newer, 99); err != nil {
			t.Fatal(err)
		}
		for address, want := range map[string]string{
			newer:                                  "made by a newer version of condense",
			"postgres://me:hunter2@127.0.0.1:1/db": "refused",
			"postgres://me:hunter2@127.0.0.1:1/db?sslmode=sometimes":   "sslmode",
			"postgres://me:hunter2@[::1/db":                            "address cannot be read",
			"postgres://me@/none?host=" + url.QueryEscape(t.TempDir()): "no such file",
		} {
			s, err := store.Postgres(t.Context(), address)
			if err == nil {
				_ = s.Close()
				t.Errorf("%s was opened", address)
			} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got error %v, want %q and no password", address, err, want)
			}
		}
	})
}

func sqlite(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := store.SQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFilesArePrivate: the store holds parts of conversations.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "serve.db")
	s := sqlite(t, path)
	defer func() { _ = s.Close() }()
	if err := s.Save(t.Context(), &store.Record{ID: "r", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 3 { // the folder, the file, its log
		t.Errorf("%d files (%v)", files, err)
	}
}

func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	if err := sqlite(t, newer).Close(); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(dir, "older.db")
	if err := errors.Join(sqlite(t, older).Close(), store.SetVersion(older, 1)); err != nil {
		t.Fatal(err)
	}
	if err := store.SetVersion(newer, 99); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("text.db", strings.Repeat("this is no database\n", 100)): "not a database",
		write("file", "") + "/serve.db":                                "not a directory",
		dir:                                                            "directory",
		newer:                                                          "made by a newer version of condense",
		older:                                                          "made before condense was released",
	} {
		s, err := store.SQLite(t.Context(), path)
		if err == nil {
			_ = s.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want the path and %q", path, err, want)
		}
	}
}

// TestMain lets the test start itself as a process that writes until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("CONDENSE_TEST_STORE"); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

func writeForever(path string) {
	ctx := context.Background()
	s, err := store.SQLite(ctx, path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r := &store.Record{ID: "r"}
	for i := 0; ; i++ {
		r.Data = []byte(strings.Repeat(strconv.Itoa(i)+" ", 10_000))
		r.Updated = time.Now()
		if err := s.Save(ctx, r); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// TestKilledWriterLosesNothing: what Save returned for is there after kill -9, whole.
func TestKilledWriterLosesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "serve.db")
	for round := range 5 {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path + "-wal")
		_ = os.Remove(path + "-shm")
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "CONDENSE_TEST_STORE="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if last, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(lines.Text())
			}
			if last == 10+7*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		s := sqlite(t, path)
		found, err := s.Load(t.Context(), store.Key{})
		if err != nil || len(found) != 1 {
			t.Fatalf("found %d records (%v)", len(found), err)
		}
		n, _, _ := strings.Cut(string(found[0].Data), " ")
		got, err := strconv.Atoi(n)
		if err != nil || got < last || string(found[0].Data) != strings.Repeat(n+" ", 10_000) {
			t.Errorf("found %d, and %d was saved (%v)", got, last, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDisk: a store that cannot write says so, with its path, and keeps what it has.
func TestFullDisk(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "serve.db")
	// Blocks of 512 bytes: files can grow to about 1 MB, the log first.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 2000; exec "$0"`, self)
	cmd.Env = append(os.Environ(), "CONDENSE_TEST_STORE="+path)
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("the process wrote forever")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fault := lines[len(lines)-1]
	if !strings.HasPrefix(fault, "store "+path+": write: ") {
		t.Fatalf("got %q, want an error with the path", fault)
	}
	s := sqlite(t, path)
	found, err := s.Load(t.Context(), store.Key{})
	if err != nil || len(found) != 1 || !strings.HasPrefix(string(found[0].Data), lines[len(lines)-2]+" ") {
		t.Errorf("%d records (%v), want what was saved last, %s", len(found), err, lines[len(lines)-2])
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkSave is what an epoch waits for: a state of 200 kB, synced.
func BenchmarkSave(b *testing.B) {
	s, err := store.SQLite(b.Context(), filepath.Join(b.TempDir(), "serve.db"))
	if err != nil {
		b.Fatal(err)
	}
	r := &store.Record{ID: "r", Data: make([]byte, 200_000)}
	for b.Loop() {
		if err := s.Save(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// TestFlippedByteChangesNoText: whatever byte of the file is another one, a record or an original is the one that was
// saved, or none. CONDENSE_FLIPS=1 tries every byte, which takes minutes.
func TestFlippedByteChangesNoText(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "serve.db")
	s := sqlite(t, path)
	saved, kept := map[string]store.Record{}, map[string][]string{}
	for i, id := range []string{"a", "b", "c", "q", "qa"} { // with one bit changed some are others
		r := store.Record{
			ID: id, Key: store.Key{Tenant: "t" + id, API: "messages", Session: "s" + id}, Updated: time.UnixMilli(int64(1000 + i)),
			Data: []byte(`{"text":"` + strings.Repeat("of "+id+" ", 100) + `"}`), Reader: "reader" + id, Set: "set" + id,
		}
		var all []store.Original
		for n := range 4 {
			text := fmt.Sprintf("original %d of %s", n, id)
			kept[id] = append(kept[id], "client "+text)
			all = append(all, store.Original{Kind: "client", Data: []byte(text)})
		}
		if err := s.Keep(ctx, &r, &store.Kept{Originals: all, Handles: []string{"h" + id}}, 0); err != nil {
			t.Fatal(err)
		}
		saved[id] = r
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	same := func(got, want store.Record, data bool) bool {
		return got.ID == want.ID && got.Key == want.Key && got.Updated.Equal(want.Updated) && got.Reader == want.Reader && got.Set == want.Set &&
			(!data || bytes.Equal(got.Data, want.Data))
	}
	stride, found, damaged, refused := 173, 0, 0, 0
	if os.Getenv("CONDENSE_FLIPS") != "" {
		stride = 1
	}
	for at := 0; at < len(whole); at += stride {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := store.SQLite(ctx, path)
		if err != nil {
			refused++
			continue
		}
		for id, want := range saved {
			records, _ := s.Load(ctx, want.Key) // the file may be refused here too
			for _, got := range records {
				switch {
				case got.Damaged && got.Data == nil:
					damaged++
				case same(got, want, true):
					found++
				default:
					t.Errorf("byte %d: of %s got %+v", at, id, got)
				}
			}
			readable, _ := s.Readable(ctx, want.Reader, "", "", 10)
			for _, got := range readable {
				if !same(got, saved[got.ID], false) || got.ID != id {
					t.Errorf("byte %d: the reader of %s gets %+v", at, id, got)
				}
			}
			originals, _ := s.Kept(ctx, want.Key.Tenant, want.Set)
			rest := kept[id]
			for _, o := range originals {
				i := slices.Index(rest, o.Kind+" "+string(o.Data))
				if i < 0 {
					t.Fatalf("byte %d: of %s got the original %s %q after %q", at, id, o.Kind, o.Data, kept[id])
				}
				rest = rest[i+1:]
			}
		}
		_ = s.Close()
		_, _ = os.Remove(path+"-wal"), os.Remove(path+"-shm")
	}
	t.Logf("%d bytes, each %d: %d records as they were, %d damaged, the file refused %d times", len(whole), stride, found, damaged, refused)
	if found == 0 {
		t.Error("no record was read")
	}
}
