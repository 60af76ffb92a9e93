package servecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live"
)

func statsCommand(a *cli.App) *cobra.Command {
	var file string
	var asJSON bool
	var top int
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what condense serve saved, and what agents recalled",
		Long: `stats shows what the gateways of condense serve did that use the store: the tokens that were sent and saved, what agents recalled,
and of what kind that was, the most frequent first, with the pass that had left it out. What is recalled often is worth more
room: see the settings of that pass. What condense wrap did is in its last lines.

A gateway saves its numbers every minute and when it ends; they are kept for 30 days after that. Of a running one,
/condense/status at its admin address has the newest.`,
		Example: `  condense stats
  condense stats --store gateway.db --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if top < 0 {
				return cli.Usage(cmd, "--top: %d is negative", top)
			}
			load := a.Names()
			load.Path = a.ConfigPath
			if file != "" {
				load.Flags = map[string]string{"serve.store": file}
			}
			c, err := a.LoadWith(load)
			if err != nil {
				return named(cmd, err)
			}
			path := c.Serve().Store
			switch path {
			case "":
				return errors.New("there is no home folder with a store: name a file with --store")
			case config.StoreMemory:
				return errors.New("serve.store is memory: nothing is kept; ask the running gateway: /condense/status at its admin address")
			}
			if _, err := os.Stat(path); !store.IsPostgres(path) && errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no store %s: condense serve has not run with it yet", path)
			}
			s, err := live.StoredStats(cmd.Context(), path)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, s)
			}
			printStats(a.Stdout, &s, top)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&top, "top", 10, "how many kinds of recalled content to list; 0 lists all")
	return cmd
}

func printStats(w io.Writer, s *live.Stats, top int) {
	if s.Requests == 0 && s.Recalls == 0 {
		term.Printf(w, "no requests in the last 30 days\n")
		return
	}
	t := &s.Tokens
	term.Printf(w, "since %s: %s, %s, %s\n", s.Since.Format("2006-01-02 15:04"), count(s.Requests, "request"), count(s.EpochCount, "condensation"), count(s.Recalls, "recall"))
	table := term.NewTable("", ">tokens")
	for _, row := range []struct {
		name string
		n    int
	}{
		{"received from agents", t.Received},
		{"sent to vendors", t.Sent},
		{"saved", t.Saved},
		{"recalled", t.Recalled},
		{"saved, less recalled", t.Net},
		{"read from caches", t.CacheRead},
		{"written to caches", t.CacheWrite},
		{"answered", t.Output},
	} {
		table.Row(row.name, row.n)
	}
	_ = term.PrintText(w, "\n"+table.Text("  ")+"\n") // like Printf, it ignores a broken pipe
	if len(s.Recalled) == 0 {
		return
	}
	table = term.NewTable("recalled most", "left out by", ">times", ">tokens")
	for i, r := range s.Recalled {
		if top > 0 && i == top {
			break
		}
		table.Row(r.What, cmp.Or(r.Pass, "not known"), r.Count, r.Tokens)
	}
	_ = term.PrintText(w, "\n"+table.Text("  ")+"\n") // like Printf, it ignores a broken pipe
	if more := len(s.Recalled) - top; top > 0 && more > 0 {
		term.Printf(w, "  and %s more; --top 0 lists all\n", count(more, "kind"))
	}
}
