package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const titles = "repository\tcommit\tpath\tformat\tcommitted\tsha256\tlicence\n"

// repo makes the repository OWNER/NAME with a session in it, and returns its commit.
func repo(t *testing.T, root, name, session string) string {
	t.Helper()
	dir := filepath.Join(root, filepath.FromSlash(name))
	file := filepath.Join(dir, "logs", "one.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(session), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"config", "uploadpack.allowFilter", "true"},
		{"config", "uploadpack.allowAnySHA1InWant", "true"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "x"},
	} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(head))
}

// Sessions come from local copies and from a server; a wrong checksum, a missing repository and a date are respected.
func TestSessions(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const session = "{\"type\":\"user\"}\n"
	commit := repo(t, root, "ann/tool", session)
	row := func(repository, path, date, sum string) string {
		return fmt.Sprintf("%s\t%s\t%s\tclaudecode\t%sT00:00:00Z\t%s\tMIT\n", repository, commit, path, date, sum)
	}
	good, bad := sum([]byte(session)), strings.Repeat("0", 64)
	recipe := filepath.Join(root, "recipe.tsv")
	text := titles + row("ann/tool", "logs/one.jsonl", "2026-08-01", good) + row("ann/tool", "logs/one.jsonl", "2026-08-02", bad) +
		row("bo/gone", "logs/one.jsonl", "2026-08-02", good) + row("ann/tool", "logs/two.jsonl", "2026-08-02", bad) +
		row("ann/tool", "logs/old.jsonl", "2025-01-02", bad)
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string][]string{"copies": {"-mirror", root}, "server": {"-from", "file://" + filepath.ToSlash(root) + "/"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			var stdout bytes.Buffer
			err := run(t.Context(), &stdout, append(source, "-since", "2026-01-01", "-recipe", recipe, out))
			if err == nil || err.Error() != "3 sessions are missing" {
				t.Errorf("error %v", err)
			}
			for _, want := range []string{"logs/one.jsonl: its SHA-256 is " + good, "bo/gone", "logs/two.jsonl", "1 sessions in"} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, &stdout)
				}
			}
			if strings.Contains(stdout.String(), "old.jsonl") {
				t.Error("a session before the day was asked for")
			}
			files, _ := filepath.Glob(filepath.Join(out, "*"))
			if len(files) != 1 || filepath.Base(files[0]) != "tool--"+good[:12]+".jsonl" {
				t.Fatalf("wrote %v", files)
			}
			if data, err := os.ReadFile(files[0]); err != nil || string(data) != session {
				t.Errorf("wrote %q, %v", data, err)
			}
		})
	}
}

// A recipe cannot name files outside of its repositories, nor pass options to git.
func TestRecipeRefused(t *testing.T) {
	t.Parallel()
	commit, sum := strings.Repeat("a", 40), strings.Repeat("b", 64)
	for _, row := range []string{
		"../x\t" + commit + "\tp\tpi\t2026-01-01T00:00:00Z\t" + sum + "\tMIT",
		"-u/x\t" + commit + "\tp\tpi\t2026-01-01T00:00:00Z\t" + sum + "\tMIT",
		"a/..\t" + commit + "\tp\tpi\t2026-01-01T00:00:00Z\t" + sum + "\tMIT",
		"a/b\tmain\tp\tpi\t2026-01-01T00:00:00Z\t" + sum + "\tMIT",
		"a/b\t" + commit + "\t../p\tpi\t2026-01-01T00:00:00Z\t" + sum + "\tMIT",
		"a/b\t" + commit + "\tp\tpi\tyesterday\t" + sum + "\tMIT",
		"a/b\t" + commit + "\tp\tpi\t2026-01-01T00:00:00Z\tshort\tMIT",
		"a/b\t" + commit,
	} {
		if _, err := parse(titles + row + "\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", row, err)
		}
	}
}

// All recipes are valid, name no file twice and no project of another, and have enough projects, formats and sessions to be
// samples.
func TestRecipes(t *testing.T) {
	t.Parallel()
	texts := []string{builtin}
	for _, name := range []string{"second.tsv", "third.tsv", "fourth.tsv", "fifth.tsv"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	names, drawn := map[string]bool{}, map[string]int{}
	for draw, text := range texts {
		entries, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		projects, formats := map[string]bool{}, map[string]bool{}
		for i := range entries {
			e := &entries[i]
			if first, ok := drawn[e.repository]; names[e.name()] || ok && first != draw {
				t.Errorf("%s is there twice", e.name())
			}
			names[e.name()], projects[e.repository], formats[e.format], drawn[e.repository] = true, true, true, draw
		}
		if len(entries) < 34 || len(projects) < 12 || len(formats) < 3 {
			t.Errorf("%d sessions of %d projects in %d formats", len(entries), len(projects), len(formats))
		}
	}
}
