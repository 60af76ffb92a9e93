package filecmd

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/archive"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/search"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/size"
)

// maxFound is the number of hits that are shown without --limit.
const maxFound = 10

func searchCommand(a *cli.App) *cobra.Command {
	var (
		index, asJSON, quiet bool
		forget               string
		limit                int
	)
	cmd := &cobra.Command{
		Use:   "search WORDS... | search --index [PATH]... | search --forget SESSION|all",
		Short: "Search all sessions that agents recorded on this machine",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case index && forget != "":
				return cli.Usage(cmd, "--index and --forget exclude each other")
			case forget != "" && len(args) > 0:
				return cli.Usage(cmd, "--forget takes one session; got more arguments")
			case !index && forget == "" && len(args) == 0:
				return cli.Usage(cmd, "no words; name some that the sessions have, or make the index with --index")
			case limit < 1:
				return cli.Usage(cmd, "--limit: want 1 or more")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := archive.Path()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			switch {
			case index:
				return indexSessions(ctx, a, path, args, quiet)
			case forget == "all":
				return archive.Remove(path)
			case forget != "":
				return forgetSession(ctx, a, path, forget)
			}
			q, err := search.Parse(strings.Join(args, " "))
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			hits, err := searchSessions(ctx, path, q, limit)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, append([]archive.Hit{}, hits...))
			}
			return term.PrintText(a.Stdout, foundText(hits))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&index, "index", false, "make the index, or bring it up to date")
	f.StringVar(&forget, "forget", "", "remove a `session` from the index, by its ID or path; all deletes the index")
	f.IntVar(&limit, "limit", maxFound, "`number` of hits")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVarP(&quiet, "quiet", "q", false, "no progress on standard error")
	return cmd
}

func searchSessions(ctx context.Context, path string, q *search.Query, limit int) ([]archive.Hit, error) {
	x, err := archive.Open(ctx, path, false)
	if err != nil {
		return nil, err
	}
	defer x.Close() //nolint:errcheck // it was only read
	hits, err := x.Find(ctx, q, limit)
	if err != nil {
		return nil, err
	}
	return archive.Verify(ctx, q, hits, limit), nil
}

// searchedSessions is the tool search_sessions.
func searchedSessions(ctx context.Context, query string) (string, error) {
	path, err := archive.Path()
	if err != nil {
		return "", err
	}
	q, err := search.Parse(query)
	if err != nil {
		return "", err
	}
	hits, err := searchSessions(ctx, path, q, maxFound)
	return secret.Scrub(foundText(hits)), err // a model's vendor reads it
}

func forgetSession(ctx context.Context, a *cli.App, path, session string) error {
	x, err := archive.Open(ctx, path, false)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // reported by Forget
	if abs, err := filepath.Abs(session); err == nil && strings.ContainsRune(session, filepath.Separator) {
		session = abs
	}
	n, err := x.Forget(ctx, session)
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("the index has no session with the ID or path %s", plain.Line(session))
	}
	term.Printf(a.Stderr, "removed from the index: %s; the files of the sessions are as they were, and the next --index adds those that exist\n", size.Plural(n, "session"))
	return nil
}

// indexSessions brings the index up to date.
func indexSessions(ctx context.Context, a *cli.App, path string, roots []string, quiet bool) error {
	for i, root := range roots {
		abs, err := filepath.Abs(root)
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			return err
		}
		roots[i] = abs
	}
	x, err := archive.Open(ctx, path, true)
	if err != nil {
		return err
	}
	defer x.Close() //nolint:errcheck // its statements reported errors
	for _, root := range roots {
		if err := x.AddRoot(ctx, root); err != nil {
			return err
		}
	}
	files, err := recordedFiles(ctx, a, x)
	if err != nil {
		return err
	}
	begin := time.Now()
	var progress func(done, of int)
	if !quiet && term.IsTerminal(a.Stderr) {
		progress = func(done, of int) { term.Printf(a.Stderr, "\r%d of %s", done, size.Plural(of, "session")) }
	}
	c, err := x.Update(ctx, files, progress)
	if progress != nil {
		term.Printf(a.Stderr, "\n")
	}
	if err != nil {
		return err
	}
	if quiet {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	term.Printf(a.Stderr, "%s: %s with %s (%s bytes of text) read in %.1f s, %d dropped, %s not readable; the index has %s bytes\n", path,
		size.Plural(c.Sessions, "new or changed session"), size.Plural(c.Pieces, "new piece"), size.Group(int(c.Text)), time.Since(begin).Seconds(),
		c.Deleted, size.Plural(len(c.Unreadable), "file"), size.Group(int(info.Size())))
	slices.Sort(c.Unreadable)
	const most = 20
	for _, file := range c.Unreadable[:min(most, len(c.Unreadable))] {
		term.Printf(a.Stderr, "  not readable: %s\n", plain.Line(file))
	}
	if more := len(c.Unreadable) - most; more > 0 {
		term.Printf(a.Stderr, "  and %s more\n", size.Group(more))
	}
	return nil
}

// recordedFiles returns the sessions of the agents, and the files in the folders that were named.
func recordedFiles(ctx context.Context, a *cli.App, x *archive.Archive) ([]archive.File, error) {
	var files []archive.File
	seen := map[string]bool{}
	add := func(f archive.File) {
		if !seen[f.Path] {
			seen[f.Path] = true
			files = append(files, f)
		}
	}
	for _, agent := range sessions.Agents() {
		all, err := agent.All()
		if err != nil {
			term.Printf(a.Stderr, "sessions of %s could not be read: %v\n", agent.Title, err)
		}
		for _, s := range all {
			add(archive.File{Path: s.Path, Agent: agent.Name, Name: s.ID, Dir: s.Dir})
		}
	}
	database, err := archive.OpenCode(ctx)
	if err != nil {
		term.Printf(a.Stderr, "the sessions of OpenCode are left out: %s\n", plain.Line(err.Error()))
	}
	for _, f := range database {
		add(f)
	}
	roots, err := x.Roots(ctx)
	if err != nil {
		return nil, err
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it is gone, or not for this user: then it is no session
			}
			if name := strings.TrimSuffix(path, ".gz"); d.Type().IsRegular() && (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".md") || path == root) {
				add(archive.File{Path: path})
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// foundText describes hits, for people and models.
func foundText(hits []archive.Hit) string {
	if len(hits) == 0 {
		return "nothing found\n"
	}
	var b strings.Builder
	for i := range hits {
		h := &hits[i]
		fmt.Fprintf(&b, "%s, h:%s", plain.Line(strings.TrimSpace(h.What+" "+h.Subject)), h.Handle)
		for _, s := range []string{h.Status, h.Agent, when(h.Time)} {
			if s != "" {
				b.WriteString(", " + plain.Line(s))
			}
		}
		b.WriteByte('\n')
		for _, l := range h.Best {
			fmt.Fprintf(&b, "    %d: %s\n", l.Number, plain.Line(cutLine(l.Text)))
		}
		if !h.Verified {
			b.WriteString("    the session's file does not have it any more\n")
		}
		if h.Later {
			fmt.Fprintf(&b, "    this was later changed%s, in %s\n", withTime(h.Changed), plain.Line(h.ChangedIn))
		}
		if export := h.Export(); export != "" {
			fmt.Fprintf(&b, "    %s >session.json; condense recall session.json %s\n", plain.Line(export), h.Handle)
			continue
		}
		fmt.Fprintf(&b, "    condense recall %s %s\n", plain.Line(cli.Quote(h.Path)), h.Handle)
	}
	return b.String()
}

// cutLine returns the beginning of a long line.
func cutLine(line string) string {
	const longest = 160
	if line = strings.TrimSpace(line); len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func withTime(t time.Time) string {
	if s := when(t); s != "" {
		return " (" + s + ")"
	}
	return ""
}
