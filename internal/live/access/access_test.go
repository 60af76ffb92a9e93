package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/testkit"
)

// What is added to a file is read from it, in order, and the file has no token.
func TestTokensSurviveTheirFile(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n))
		var want []access.Token
		var texts []string
		for range rapid.IntRange(1, 5).Draw(rt, "tokens") {
			token := access.Token{
				Tenant: rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`).Filter(func(s string) bool { return s != "stats" && s != "usage" }).Draw(rt, "tenant"),
				Admin:  rapid.Bool().Draw(rt, "admin"), Created: time.Unix(rapid.Int64Range(1, 1<<32).Draw(rt, "created"), 0).UTC(),
			}
			if rapid.Bool().Draw(rt, "ends") {
				token.Expires = time.Unix(rapid.Int64Range(1, 1<<32).Draw(rt, "expires"), 0).UTC()
			}
			if rapid.Bool().Draw(rt, "noted") {
				token.Note = rapid.StringMatching(`[A-Za-z0-9._:@+=-]{1,20}`).Draw(rt, "note")
			}
			text := token.New()
			if err := access.Add(path, &token); err != nil {
				rt.Fatal(err)
			}
			want, texts = append(want, token), append(texts, text)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := access.ParseTokens(file)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			rt.Fatalf("%v\n%s", err, diff)
		}
		all, err := access.OpenTokens(path, func(err error) { rt.Error(err) })
		if err != nil {
			rt.Fatal(err)
		}
		for i, text := range texts {
			if found, ok := all.Find(text); !ok || found.Hash != want[i].Hash {
				rt.Errorf("token %d: %+v", i, found)
			}
			if strings.Contains(string(file), text) {
				rt.Error("the file has a token")
			}
			for _, no := range []string{"", text[1:], text + " ", strings.ToLower(text), hex.EncodeToString(want[i].Hash[:]), "sha256:" + hex.EncodeToString(want[i].Hash[:])} {
				if _, ok := all.Find(no); ok {
					rt.Errorf("%q is a token", no)
				}
			}
		}
	})
}

// Commands that add at the same time lose nothing, and each token is one of a kind.
func TestTokensAddedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	const n = 20
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			token := access.Token{Tenant: "acme"}
			token.New()
			if err := access.Add(path, &token); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	removed, err := access.Remove(path, "acme")
	ids := map[[sha256.Size]byte]bool{}
	for _, r := range removed {
		ids[r.Hash] = true
	}
	if err != nil || len(ids) != n {
		t.Errorf("%d tokens, %v", len(ids), err)
	}
}

// What is removed is one token, or all of a tenant; comments and order remain.
func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	hash := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	text := "# ours\nacme " + hash("a") + "\n\nother " + hash("b") + " admin\nacme " + hash("c") + " note=x\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := access.Remove(path, "aaaaaaaa"); err != nil || len(got) != 1 || got[0].Tenant != "acme" {
		t.Fatalf("%v %v", got, err)
	}
	got, err := os.ReadFile(path)
	if want := "# ours\n\nother " + hash("b") + " admin\nacme " + hash("c") + " note=x\n"; err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := access.Remove(path, "none"); err != nil || got != nil {
		t.Errorf("%v %v", got, err)
	}
}

func TestInvalidTokens(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0", 64)
	for line, want := range map[string]string{
		"acme":                           "line 2: want a tenant and sha256:HASH",
		"acme secret":                    "line 2: the second word is not sha256:",
		"acme sha256:00":                 "line 2: the second word is not sha256:",
		"acme " + hash + " root":         `line 2: unknown word "root"`,
		"acme " + hash + " expires=soon": `line 2: parsing time "soon"`,
		"a:b " + hash:                    `line 2: tenant "a:b"`,
		"stats " + hash:                  `line 2: tenant "stats"`,
		"acme " + hash + " note=a;b":     `line 2: note "a;b"`,
	} {
		if _, err := access.ParseTokens([]byte("# comment\n" + line + "\n")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A file that is changed, replaced, broken and repaired while it is in use.
func TestTokensAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	first := access.Token{Tenant: "first"}
	text := first.New()
	if err := access.Add(path, &first); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var faults []error
	all, err := access.OpenTokens(path, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the fault is reported", func() bool {
		_, ok := all.Find(text)
		if !ok {
			t.Fatal("the token is lost")
		}
		mu.Lock()
		defer mu.Unlock()
		return len(faults) == 1 && strings.Contains(faults[0].Error(), "line 1")
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second := access.Token{Tenant: "second"}
	other := second.New()
	if err := access.Add(path, &second); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the new file holds", func() bool {
		_, ok := all.Find(other)
		return ok
	})
	if _, ok := all.Find(text); ok {
		t.Error("a token that is gone still holds")
	}
	if _, err := access.OpenTokens(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a file that is not there is read")
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add("acme sha256:" + strings.Repeat("0", 64) + " admin created=2026-11-23T00:00:00Z note=x")
	f.Add("# nothing\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := access.ParseTokens([]byte(text))
		if err != nil && all != nil {
			t.Error("tokens with an error")
		}
		for i := range all {
			if err := all[i].Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
