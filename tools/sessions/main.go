// Command sessions fetches the recorded sessions that recipe.tsv lists, so that anyone can repeat a comparison on sessions
// that are not in this repository, or add sessions that nobody tuned on:
//
//	go -C tools run ./sessions OUT                      from GitHub
//	go -C tools run ./sessions -mirror DIR OUT          from local copies: DIR/OWNER/NAME or DIR/OWNER+NAME, bare or not
//	go -C tools run ./sessions -since 2026-06-01 OUT    those committed from that day on
//
// A row of the recipe is a file: repository, commit, path, format, date of the commit, SHA-256, and the licence that the
// repository states at its root. Each is written as OUT/PROJECT--HASH.jsonl, where condense compare -by-folder takes PROJECT for
// a folder. Those that cannot be had, or have other bytes, are named, and the exit code is 1.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

//go:embed recipe.tsv
var builtin string

// maxBytes is the largest session that is written.
const maxBytes = 64 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sessions:", err)
		os.Exit(1) //nolint:forbidigo,gocritic // it is main
	}
}

func run(ctx context.Context, stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("sessions", flag.ContinueOnError)
	mirror := flags.String("mirror", "", "folder with local copies of the repositories; nothing is fetched")
	from := flags.String("from", "https://github.com/", "address before OWNER/NAME")
	since := flags.String("since", "", "only sessions committed from this day on, as in 2026-06-01")
	name := flags.String("recipe", "", "another recipe than the built-in one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one folder to write to")
	}
	text := builtin
	if *name != "" {
		data, err := os.ReadFile(*name)
		if err != nil {
			return err
		}
		text = string(data)
	}
	entries, err := parse(text)
	if err != nil {
		return err
	}
	out := flags.Arg(0)
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	r := reader{mirror: *mirror, from: *from, copies: map[string]string{}}
	defer r.close()
	written, missing := 0, 0
	for _, e := range entries {
		if e.committed.Format(time.DateOnly) < *since {
			continue
		}
		if err := r.write(ctx, out, &e); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			missing++
			fmt.Fprintf(stdout, "missing: %s %s:%s: %v\n", e.repository, e.commit, e.path, err)
			continue
		}
		written++
	}
	fmt.Fprintf(stdout, "%d sessions in %s\n", written, out)
	if missing > 0 {
		return fmt.Errorf("%d sessions are missing", missing)
	}
	return nil
}

// An entry is a row of a recipe.
type entry struct {
	repository, commit, path, format string
	committed                        time.Time
	sum, licence                     string
}

var (
	repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]*[A-Za-z0-9_-]$`)
	hexCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hexSum     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// parse reads a recipe: lines of seven columns with tabs between, the first of them titles.
func parse(text string) ([]entry, error) {
	var out []entry
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == 0 {
			continue
		}
		c := strings.Split(line, "\t")
		if len(c) != 7 {
			return nil, fmt.Errorf("recipe, line %d: %d columns; want 7 with tabs between", i+1, len(c))
		}
		committed, err := time.Parse(time.RFC3339, c[4])
		switch {
		case err != nil:
			return nil, fmt.Errorf("recipe, line %d: commit date: %w", i+1, err)
		case !repository.MatchString(c[0]):
			return nil, fmt.Errorf("recipe, line %d: repository %q: want OWNER/NAME", i+1, c[0])
		case !hexCommit.MatchString(c[1]):
			return nil, fmt.Errorf("recipe, line %d: commit %q: want 40 hexadecimal digits", i+1, c[1])
		case !fs.ValidPath(c[2]):
			return nil, fmt.Errorf("recipe, line %d: path %q leaves the repository", i+1, c[2])
		case !hexSum.MatchString(c[5]):
			return nil, fmt.Errorf("recipe, line %d: SHA-256 %q: want 64 hexadecimal digits", i+1, c[5])
		}
		out = append(out, entry{c[0], c[1], c[2], c[3], committed, c[5], c[6]})
	}
	return out, nil
}

// name returns the name of the written file.
func (e *entry) name() string {
	return path.Base(e.repository) + "--" + e.sum[:12] + path.Ext(e.path)
}

// A reader finds the bytes of sessions.
type reader struct {
	mirror, from string
	copies       map[string]string // folders of fetched repositories
}

func (r *reader) close() {
	for _, dir := range r.copies {
		_ = os.RemoveAll(dir) // a leftover in the folder for temporary files
	}
}

// write writes the session unless it is there already.
func (r *reader) write(ctx context.Context, out string, e *entry) error {
	name := filepath.Join(out, e.name())
	if had, err := os.ReadFile(name); err == nil && sum(had) == e.sum {
		return nil
	}
	dir, err := r.repository(ctx, e)
	if err != nil {
		return err
	}
	data, err := git(ctx, dir, "cat-file", "blob", e.commit+":"+e.path)
	if err != nil {
		return err
	}
	if got := sum(data); got != e.sum {
		return fmt.Errorf("its SHA-256 is %s, not %s", got, e.sum)
	}
	if err := os.WriteFile(name+".part", data, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".part", name)
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// repository returns a git folder that has the commit of e.
func (r *reader) repository(ctx context.Context, e *entry) (string, error) {
	if r.mirror != "" {
		flat := strings.ReplaceAll(e.repository, "/", "+")
		for _, dir := range []string{e.repository, e.repository + ".git", flat, flat + ".git", flat + "/repo"} {
			dir = filepath.Join(r.mirror, filepath.FromSlash(dir))
			if _, err := git(ctx, dir, "cat-file", "-e", e.commit+"^{commit}"); err == nil {
				return dir, nil
			}
		}
		return "", fmt.Errorf("no copy in %s has this commit", r.mirror)
	}
	dir, had := r.copies[e.repository]
	if !had {
		var err error
		if dir, err = os.MkdirTemp("", "sessions"); err != nil {
			return "", err
		}
		r.copies[e.repository] = dir
		// Blobs come when they are read: these repositories hold many more sessions than the recipe names.
		for _, args := range [][]string{
			{"init", "--quiet", "--bare"},
			{"remote", "add", "origin", r.from + e.repository},
			{"config", "remote.origin.promisor", "true"},
			{"config", "remote.origin.partialclonefilter", "blob:none"},
		} {
			if _, err := git(ctx, dir, args...); err != nil {
				return "", err
			}
		}
	}
	_, err := git(ctx, dir, "fetch", "--quiet", "--no-tags", "--depth", "1", "origin", e.commit)
	return dir, err
}

// git runs git in the folder of a repository. The folder is named, so that git looks for none above it.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if inner := filepath.Join(dir, ".git"); isDir(inner) {
		dir = inner
	}
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir", dir}, args...)...) //nolint:gosec // the arguments are checked
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &limited{Buffer: &stdout, left: maxBytes}, &limited{Buffer: &stderr, left: 4096}
	if err := cmd.Run(); err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); line != "" {
			return nil, fmt.Errorf("git %s: %s", args[0], line)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return stdout.Bytes(), nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// A limited buffer refuses more than left bytes.
type limited struct {
	*bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too long")
	}
	return l.Buffer.Write(p)
}
