package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/config"
)

// A link in a repository does not show the file that it leads to, neither its syntax nor its names. One inside of the repository, and
// one in the user's own folder, is as good as a file.
func TestLinksShowNothingOfOtherFiles(t *testing.T) {
	home, repo := t.TempDir(), t.TempDir()
	write := func(file, text string) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	load := func(link, target string) error {
		t.Helper()
		_ = os.Remove(link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Skip("no links here: ", err)
		}
		_, err := config.Load(config.Options{Dir: repo, Env: []string{"HOME=" + home}})
		return err
	}
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(repo, "condense.yaml")
	for _, text := range []string{"hunter2 is my word\n", "hunter2: 1\n", "threshold: hunter2\n", "chain: [hunter2]\n", "a: [hunter2\n", "prompt: !!binary hunter22\n"} {
		err := load(link, write(filepath.Join(home, "secret"), text))
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "outside of the project") {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if err := load(link, write(filepath.Join(home, "good"), "threshold: 70\n")); err != nil {
		t.Errorf("a link to a good file: %v", err)
	}
	if err := load(link, write(filepath.Join(repo, "x", "shared.yaml"), "hunter2: 1\n")); err == nil || !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("inside of the repository: %v", err)
	}
	_ = os.Remove(link)
	if err := load(filepath.Join(home, ".config/condense/config.yaml"), write(filepath.Join(home, "dotfiles.yaml"), "hunter2: 1\n")); err == nil || !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the user's own: %v", err)
	}
}
