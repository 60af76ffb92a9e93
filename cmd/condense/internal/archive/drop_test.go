package archive_test

import (
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/archive"
)

// After sessions were added, rewritten and forgotten in any order, the index has the words and paths that an index of the
// sessions that are left has, and the list of its pages has no others. Pages are tiny here, so that there are many.
func TestWordsOfDeleted(t *testing.T) {
	t.Parallel()
	x, file := open(t)
	do(t, file, "INSERT INTO words (words, rank) VALUES ('pgsz', 64), ('hashsize', 4096), ('automerge', 2), ('crisismerge', 4)")
	if err := x.Close(); err != nil { // it has read the settings
		t.Fatal(err)
	}
	x, err := archive.Open(t.Context(), file, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	dir := t.TempDir()
	live, words := map[string][]string{}, map[string]bool{}
	text := func() string {
		var b strings.Builder
		for range 1 + r.IntN(30) {
			w := fmt.Sprintf("quetzalcoatl%c%c%c", 'a'+r.IntN(6), 'a'+r.IntN(26), 'a'+r.IntN(26))
			words[w] = true
			b.WriteString(w + " ")
		}
		return b.String()
	}
	put := func(path string, results ...string) {
		live[path] = results
		session(t, path, results...)
		update(t, x, slices.Sorted(maps.Keys(live))...)
	}
	for range 12 {
		put(filepath.Join(dir, fmt.Sprint("s", r.IntN(6), ".json")), text(), text(), text())
		some := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
		switch {
		case r.IntN(2) == 0:
			put(some, live[some][0], text(), live[some][2])
		case len(live) > 1:
			delete(live, some)
			if n, err := x.Forget(t.Context(), some); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if err := os.Remove(some); err != nil {
				t.Fatal(err)
			}
		}
	}
	fresh, other := open(t)
	update(t, fresh, slices.Sorted(maps.Keys(live))...)
	for _, query := range []string{
		"SELECT term || ' ' || doc FROM temp.vocabulary",
		"SELECT handle FROM piece ORDER BY handle",
		"SELECT text FROM subject ORDER BY text",
		"SELECT what FROM kind ORDER BY what",
	} {
		if got, want := rows(t, file, query), rows(t, other, query); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", query, got, want)
		}
	}
	left := rows(t, file, "SELECT term FROM temp.vocabulary")
	for w := range words {
		if !slices.Contains(left, w) && has(t, file, w) {
			t.Errorf("%s is left", w)
		}
	}
	separators := rows(t, file, "SELECT CAST(substr(term, 2) AS TEXT) FROM words_idx WHERE length(term) > 1")
	for _, s := range separators {
		if i, _ := slices.BinarySearch(left, s); i == len(left) || !strings.HasPrefix(left[i], s) {
			t.Errorf("%s is left in the list of pages", s)
		}
	}
	if len(separators) < 10 {
		t.Errorf("only %d pages", len(separators))
	}
	do(t, file, "INSERT INTO words (words, rank) VALUES ('integrity-check', 0); INSERT INTO paths (paths) VALUES ('integrity-check')")
}

// rows returns the values of a query.
func rows(t *testing.T, path, query string) (all []string) {
	t.Helper()
	db := do(t, path, "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab (main, words, row)")
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close() //nolint:errcheck // reported by Err
	for found.Next() {
		var s string
		if err := found.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// do executes statements.
func do(t *testing.T, path, statements string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(statements, err)
	}
	return db
}
