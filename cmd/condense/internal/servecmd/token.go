package servecmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/live/access"
)

func tokenCommand(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "token", Short: "Make, list and remove the tokens of the clients of condense serve", Args: cobra.NoArgs}
	cmd.PersistentFlags().StringVar(&file, "file", "", "`file` with the tokens (default: serve.tokens)")
	path := func() (string, error) {
		if file != "" {
			return file, nil
		}
		c, err := a.Load("")
		if err != nil {
			return "", err
		}
		if file = c.Serve().Tokens; file == "" {
			return "", errors.New("serve.tokens is not set: name the file of the tokens with --file, or in the configuration")
		}
		return file, nil
	}
	cmd.AddCommand(newTokenCommand(a, path), listTokensCommand(a, path), removeTokenCommand(a, path))
	return cmd
}

func newTokenCommand(a *cli.App, path func() (string, error)) *cobra.Command {
	var (
		t     access.Token
		until time.Duration
	)
	cmd := &cobra.Command{
		Use: "new TENANT", Short: "Make a token for a tenant and print it, once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Tenant, t.Created = args[0], time.Now()
			if until < 0 {
				return cli.Usage(cmd, "--expires: %s is not positive", until)
			}
			if until > 0 {
				t.Expires = t.Created.Add(until)
			}
			if err := t.Check(); err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			file, err := path()
			if err != nil {
				return err
			}
			text := t.New()
			if err := access.Add(file, &t); err != nil {
				return fmt.Errorf("no token was made: %w", err)
			}
			kind := "tenant"
			if t.Admin {
				kind = "administrator"
			}
			term.Printf(a.Stderr, "token %s of %s %s is in %s as a hash; this is the only time that it is shown:\n", t.ID(), kind, t.Tenant, cli.FromHere(file))
			term.Printf(a.Stdout, "%s\n", text)
			return nil
		},
	}
	cmd.Flags().DurationVar(&until, "expires", 0, "`time` until the token expires, as in 2160h (default: never)")
	cmd.Flags().BoolVar(&t.Admin, "admin", false, "for the gateway's own pages, in place of models")
	cmd.Flags().StringVar(&t.Note, "note", "", "a `word` to recognize it by")
	return cmd
}

func listTokensCommand(a *cli.App, path func() (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens: tenant, ID, expiry", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			file, err := path()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all, err := access.ParseTokens(text)
			if err != nil {
				return fmt.Errorf("%s: %w", cli.FromHere(file), err)
			}
			table := term.NewTable("tenant", "ID", "for", "created", "expires", "note")
			now, date := time.Now(), func(t time.Time, none string) string {
				if t.IsZero() {
					return none
				}
				return t.UTC().Format(time.DateOnly)
			}
			for i := range all {
				t := &all[i]
				use, expires := "models", date(t.Expires, "never")
				if t.Admin {
					use = "own pages"
				}
				if t.Expired(now) {
					expires += " (over)"
				}
				table.Row(t.Tenant, t.ID(), use, date(t.Created, ""), expires, t.Note)
			}
			return term.PrintText(a.Stdout, table.Text("")+"\n")
		},
	}
}

func removeTokenCommand(a *cli.App, path func() (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID|TENANT", Short: "Remove a token by its ID, or all of a tenant", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := path()
			if err != nil {
				return err
			}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed, err := access.Remove(file, args[0])
			if err != nil {
				return err
			}
			if len(removed) == 0 {
				return fmt.Errorf("%s has no token %s; 'condense token list' shows its tokens", cli.FromHere(file), args[0])
			}
			for i := range removed {
				term.Printf(a.Stdout, "removed token %s of %s\n", removed[i].ID(), removed[i].Tenant)
			}
			return nil
		},
	}
}
