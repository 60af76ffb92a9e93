package archive_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/archive"
	"github.com/condensehq/condense/internal/search"
)

// session writes a session in Anthropic's format: pairs of a command and its output.
func session(t *testing.T, path string, results ...string) {
	t.Helper()
	var messages []any
	for i, text := range results {
		id := fmt.Sprint("call", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": fmt.Sprint("make step", i)}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}})
	}
	write(t, path, map[string]any{"messages": append([]any{map[string]any{"role": "user", "content": "Please go on with " + filepath.Base(path)}}, messages...)})
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) (x *archive.Archive, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state", "search.db")
	if _, err := archive.Open(t.Context(), path, false); !errors.Is(err, archive.ErrNone) {
		t.Errorf("an index that nobody made: %v", err)
	}
	x, err := archive.Open(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x, path
}

func update(t *testing.T, x *archive.Archive, paths ...string) archive.Change {
	t.Helper()
	var files []archive.File
	for _, p := range paths {
		files = append(files, archive.File{Path: p})
	}
	c, err := x.Update(t.Context(), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func find(t *testing.T, x *archive.Archive, query string) []archive.Hit {
	t.Helper()
	q, err := search.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	hits, err := x.Find(t.Context(), q, 10)
	if err != nil {
		t.Fatal(err)
	}
	return archive.Verify(t.Context(), q, hits, 10)
}

func TestFind(t *testing.T) {
	t.Parallel()
	x, path := open(t)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	session(t, one, "building the parser\nok", "the linker refused xylophone\nexit code: 2")
	session(t, two, "nothing about that")
	if c := update(t, x, one, two, filepath.Join(dir, "missing.json")); c.Sessions != 2 {
		t.Errorf("got %+v", c)
	}
	hits := find(t, x, "refusing xylophones")
	if len(hits) != 1 || hits[0].Path != one || hits[0].Status != "exit 2" || hits[0].Subject != "make step1" || !hits[0].Verified ||
		len(hits[0].Best) != 1 || hits[0].Best[0].Text != "the linker refused xylophone" {
		t.Errorf("got %+v", hits)
	}
	if hits := find(t, x, `"xylophone refused"`); len(hits) != 0 {
		t.Errorf("a phrase that is not there: %+v", hits)
	}
	if c := update(t, x, one, two); c.Sessions != 0 {
		t.Errorf("unchanged files are read again: %+v", c)
	}
	session(t, one, "building the parser\nok", "the linker refused xylophone\nexit code: 2", "then it worked, zanzibar")
	if c := update(t, x, one, two); c.Sessions != 1 || c.Pieces != 2 {
		t.Errorf("a session that went on: %+v; want its two new pieces", c)
	}
	session(t, one, "rewritten")
	if hits := find(t, x, "xylophone"); len(hits) != 1 || hits[0].Verified {
		t.Errorf("content that the file has no more: %+v", hits)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the index is %v, %v", info.Mode(), err)
		}
	}
}

// The lines of a hit are read without the rest of the session, from where the index says that they are.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	x, _ := open(t)
	path := filepath.Join(t.TempDir(), "one.jsonl")
	line := func(id, parent, text string) string {
		return `{"type":"user","uuid":"` + id + `","parentUuid":` + parent + `,"sessionId":"s","message":{"role":"user","content":"` + text + `"}}` + "\n"
	}
	first, second := line("a", "null", "about marmalade"), line("b", `"a"`, "about tangerines")
	for _, tt := range []struct {
		name, text string
		verified   bool
	}{
		{"whole", first + second, true},
		{"the other message is broken", strings.Replace(first, "{", "#", 1) + second, true},
		{"something precedes it", line("c", "null", "new") + first + second, true},
		{"it was changed", first + strings.Replace(second, "tangerines", "tangerinos", 1), false},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.name == "whole" {
			update(t, x, path)
		}
		if hits := find(t, x, "tangerine"); len(hits) != 1 || hits[0].Verified != tt.verified {
			t.Errorf("%s: got %+v", tt.name, hits)
		}
	}
}

// A search with an index of an older version fails. The next update keeps the folders that were named, and reads the sessions again.
func TestOlderVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "search.db")
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), `CREATE TABLE root (path TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO root VALUES ('/archive');
CREATE TABLE session (id INTEGER PRIMARY KEY, path TEXT); CREATE TABLE piece (id INTEGER PRIMARY KEY, subject TEXT); INSERT INTO piece VALUES (1, 'marmalade');
CREATE INDEX piece_edits ON piece (subject); CREATE VIRTUAL TABLE words USING fts5 (stems, content='', contentless_delete=1); PRAGMA user_version = 1;`)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Open(t.Context(), path, false); err == nil || !strings.Contains(err.Error(), "an older version") {
		t.Errorf("a search: %v", err)
	}
	x, err := archive.Open(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	if roots, err := x.Roots(t.Context()); err != nil || len(roots) != 1 {
		t.Errorf("got %q, %v", roots, err)
	}
	one := filepath.Join(t.TempDir(), "one.json")
	session(t, one, "about tangerines")
	update(t, x, one)
	if hits := find(t, x, "tangerine"); len(hits) != 1 || has(t, path, "marmalade") {
		t.Errorf("got %+v, and old words: %v", hits, has(t, path, "marmalade"))
	}
}

// A session that is deleted, forgotten or rewritten leaves no word in the file of the index, and the words of the others are
// found, in any shard.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	x, file := open(t)
	x.SetShard(16)
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	live, texts := map[string][]string{}, map[string]bool{} // results, by path; all of them
	text := func() string {
		w := make([]byte, 12)
		for i := range w {
			w[i] = 'a' + byte(r.IntN(26))
		}
		texts["popocatepetl "+string(w)] = true
		return "popocatepetl " + string(w)
	}
	put := func(path string, results ...string) {
		live[path] = results
		session(t, path, results...)
		update(t, x, slices.Sorted(maps.Keys(live))...)
	}
	seen := 0
	for range 20 {
		put(filepath.Join(dir, fmt.Sprint("s", r.IntN(6), ".json")), text(), text(), text())
		some := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
		switch old := live[some]; r.IntN(3) {
		case 0:
			put(some, old[0], text(), old[2])
		case 1:
			delete(live, some)
			if c := update(t, x, slices.Sorted(maps.Keys(live))...); c.Deleted != 1 {
				t.Errorf("deleted: %+v", c)
			}
		default:
			delete(live, some)
			if n, err := x.Forget(t.Context(), some); n != 1 || err != nil {
				t.Errorf("forgotten: %d, %v", n, err)
			}
		}
	}
	for text := range texts {
		is := slices.Contains(slices.Concat(slices.Collect(maps.Values(live))...), text)
		_, w, _ := strings.Cut(text, " ")
		switch there := has(t, file, w[3:]); { // words share their beginnings in the file
		case is && there:
			seen++
		case there:
			t.Errorf("%s is left", w)
		}
		if hits := find(t, x, text); is != (len(hits) > 0 && len(hits[0].Best) > 0 && hits[0].Best[0].Text == text) {
			t.Errorf("%s: %v, found %v", text, is, hits)
		}
	}
	if hits := find(t, x, "popocatepetl"); len(hits) != min(10, 3*len(live)) || seen < len(live) {
		t.Errorf("got %d hits of %d sessions; %d words are in the file", len(hits), len(live), seen)
	}
}

func has(t *testing.T, path, word string) bool {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(bytes.ToLower(data), []byte(word)) {
			return true
		}
	}
	return false
}

// No key is in the index, in whole or in part, wherever it stands.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	const (
		body = "QZJXVWKYQZJXVWKYQZJXVWKYQZJXVWKYQZJXVWKY" // one word without digits, in capitals
		hex  = "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
	)
	low := strings.ToLower(body)
	kinds := map[string]string{
		"openai": "sk-proj-" + low, "anthropic": "sk-ant-api03-" + low, "aws": "AKIA" + body[:16], "aws session": "ASIA" + body[:16],
		"github": "ghp_" + body, "github app": "ghs_" + body, "github fine": "github_pat_" + body, "slack": "xoxb-" + body, "slack app": "xapp-" + body,
		"google": "AIza" + body, "google token": "ya29." + body, "gitlab": "glpat-" + low, "groq": "gsk_" + body, "xai": "xai-" + body, "hugging face": "hf_" + body,
		"jwt": "eyJ" + body + "." + body + "." + body, "npm": "npm_" + body, "pypi": "pypi-" + body, "sendgrid": "SG." + body[:22] + "." + body,
		"stripe": "sk_live_" + body, "stripe restricted": "rk_test_" + body, "stripe hook": "whsec_" + body, "age": "AGE-SECRET-KEY-1" + body + body,
		"digital ocean": "dop_v1_" + hex + hex, "shopify": "shpat_" + hex, "vault": "hvs." + body, "atlassian": "ATATT3" + body, "linear": "lin_api_" + body,
		"notion": "ntn_" + body, "figma": "figd_" + body, "replicate": "r8_" + body, "perplexity": "pplx-" + body, "databricks": "dapi" + hex[:32],
		"rubygems": "rubygems_" + hex, "sentry": "sntrys_" + body, "grafana": "glsa_" + body, "nvidia": "nvapi-" + body, "docker": "dckr_pat_" + body,
		"postman": "PMAK-" + body, "posthog": "phx_" + body, "mailgun": "key-" + hex[:32],
		"private key": "-----BEGIN RSA PRIVATE KEY-----\n" + body + "\n" + low + "\n-----END RSA PRIVATE KEY-----", "password": "postgres://admin:" + low + "@db/x",
	}
	x, file := open(t)
	dir := t.TempDir()
	var results []string
	for name, key := range kinds {
		results = append(results, name+" KEY="+key+"\n", `{"key":"`+key+`"}`, "Authorization: Bearer "+key, key)
	}
	path := filepath.Join(dir, "keys.json")
	session(t, path, results...)
	update(t, x, path)
	if hits := find(t, x, "databricks"); len(hits) == 0 {
		t.Error("the text around a key is not found")
	}
	for _, part := range []string{"qzjxvwky", "abcdefab"} {
		if has(t, file, part) {
			t.Errorf("%s, a part of a key, is in the index", part)
		}
	}
}

// No key that somebody typed into a command is in the index, which has the commands verbatim.
func TestNoKeysOfCommands(t *testing.T) {
	t.Parallel()
	commands := map[string]string{ // and the part that must not be there
		"curl -H 'X-Api-Key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' https://api.example.com/1": "MDENG", "app --password zanzibar77 --now": "zanzibar77",
		"curl -H 'Authorization: Basic YW5uOnNlc2FtZQ==' https://x.example": "YW5uOn", "mysql -u root -pwaltonfox1 shop": "waltonfox1",
		"export DD_API_KEY=0123456789abcdef0123456789abcdef": "6789abcdef", "curl -X POST https://hooks.slack.com/services/T0AAAAAAA/B0BBBBBBB/abcdefghijklmnopqrstuvwx": "mnopqrst",
		"curl -H 'X-Api-Key: 6fa459ea-ee8a-3ca4-894e-db77e160355e' https://api.heroku.com": "3ca4", "psql postgres://ann:opensesame@db/x": "opensesame",
		"sshpass -p correcthorse ssh host": "correcthorse", "TOTP_SECRET=JBSWY3DPEHPK3PXP oathtool": "JBSWY3DP", "curl -u ann:sesame11 https://x.example": "sesame11",
		"run " + strings.Repeat("all ", 45) + "ghp_Zm9vYmFyYmF6cXV4cXV1eGNvcmdlZ3JhdWx0": "Zm9vYmFy", // only its beginning would be kept
	}
	var messages []any
	for command := range commands {
		id := fmt.Sprint("c", len(messages))
		messages = append(messages,
			map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{"command": command}}}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": "done"}}})
	}
	x, file := open(t)
	path := filepath.Join(t.TempDir(), "commands.json")
	write(t, path, map[string]any{"messages": append([]any{map[string]any{"role": "user", "content": "Please go on"}}, messages...)})
	update(t, x, path)
	if hits := find(t, x, "curl"); len(hits) == 0 {
		t.Error("the commands are not found")
	}
	for command, part := range commands {
		if has(t, file, strings.ToLower(part)) {
			t.Errorf("%s of %s is in the index", part, command)
		}
	}
}

// A hit about a file says that the file was changed later, in any session.
func TestLaterChanged(t *testing.T) {
	t.Parallel()
	x, _ := open(t)
	dir := t.TempDir()
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	line := func(minutes int, role string, content any) string {
		data, err := json.Marshal(map[string]any{
			"type": role, "uuid": fmt.Sprintf("00000000-0000-4000-8000-%012d", minutes), "sessionId": "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b", "cwd": "/p",
			"timestamp": at.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339), "message": map[string]any{"role": role, "content": content},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(data) + "\n"
	}
	use := func(id, name string, input map[string]any) any {
		return []any{map[string]any{"type": "tool_use", "id": id, "name": name, "input": input}}
	}
	result := func(id, text string) any {
		return []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}
	}
	one, two := filepath.Join(dir, "one.jsonl"), filepath.Join(dir, "two.jsonl")
	for path, text := range map[string]string{
		one: line(1, "user", "look") + line(2, "assistant", use("a", "Read", map[string]any{"file_path": "/p/main.go"})) + line(3, "user", result("a", "func marmalade() {}")) +
			line(4, "assistant", use("b", "Read", map[string]any{"file_path": "/p/other.go"})) + line(5, "user", result("b", "func tangerine() {}")),
		two: line(101, "user", "change") + line(102, "assistant", use("c", "Edit", map[string]any{"file_path": "/p/main.go", "old_string": "x", "new_string": "y"})) + line(103, "user", result("c", "done")),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	update(t, x, one, two)
	if hits := find(t, x, "marmalade"); len(hits) != 1 || !hits[0].Later || hits[0].ChangedIn != two || !hits[0].Changed.Equal(at.Add(102*time.Minute)) {
		t.Errorf("changed in another session: %+v", hits)
	}
	if hits := find(t, x, "tangerine"); len(hits) != 1 || hits[0].Later {
		t.Errorf("not changed: %+v", hits)
	}
	for query, want := range map[string]int{
		"file:MAIN.go": 4, "file:p/oth": 2, "file:er": 2, "file:/p/ tool:edit": 2, "file:/other.go tangerine": 1, "file:main.go tangerine": 0, "file:absent.go": 0, `file:"n"o`: 0,
	} {
		if hits := find(t, x, query); len(hits) != want {
			t.Errorf("%s: got %d hits; want %d", query, len(hits), want)
		}
	}
}
