package servecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/size"
)

func storeCommand(a *cli.App) *cobra.Command {
	s := &storeFlags{app: a}
	cmd := &cobra.Command{Use: "store", Short: "Look after what condense serve keeps: a file or a PostgreSQL database", Args: cobra.NoArgs}
	cmd.PersistentFlags().StringVar(&s.address, "store", "", "`file` or postgres:// address (default: serve.store)")
	cmd.AddCommand(
		&cobra.Command{
			Use: "migrate", Short: "Make the tables, or bring them up to date", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return s.with(cmd, true, func(store.Store, *config.Serve) error {
					term.Printf(a.Stdout, "the tables are up to date\n")
					return nil
				})
			},
		},
		s.gc(), s.export(), s.forget(),
	)
	return cmd
}

// storeFlags are the flags that all commands of store share.
type storeFlags struct {
	app       *cli.App
	address   string
	age, size string
}

// with opens the store and calls f.
func (s *storeFlags) with(cmd *cobra.Command, create bool, f func(store.Store, *config.Serve) error) error {
	c, err := serving(cmd, s.app, map[string]string{"serve.store": s.address, "serve.retention.age": s.age, "serve.retention.size": s.size})
	if err != nil {
		return err
	}
	missing := neverUsed
	if create {
		missing = nil
	}
	path, err := kept(c, "", "nothing is kept", missing)
	if err != nil {
		return err
	}
	opened, err := store.Open(cmd.Context(), path)
	if err != nil {
		return err
	}
	settings := c.Serve()
	return errors.Join(f(opened, &settings), opened.Close())
}

func (s *storeFlags) gc() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gc", Short: "Delete old conversations, and the oldest if there are too many", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.with(cmd, false, func(opened store.Store, c *config.Serve) error {
				n, err := opened.Expire(cmd.Context(), time.Now().Add(-time.Duration(c.Retention.Age)), c.Retention.Size)
				if err == nil {
					term.Printf(s.app.Stdout, "%s deleted\n", size.Plural(n, "record"))
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&s.age, "age", "", "`duration` since the last use (default: serve.retention.age)")
	cmd.Flags().StringVar(&s.size, "size", "", "`bytes` that may remain (default: serve.retention.size)")
	return cmd
}

// exported is a line of an export.
type exported struct {
	ID        string             `json:"id"`
	Tenant    string             `json:"tenant"`
	API       string             `json:"api"`
	Agent     string             `json:"agent,omitempty"`
	Session   string             `json:"session"`
	Updated   time.Time          `json:"updated"`
	Damaged   bool               `json:"damaged,omitempty"` // nothing else can be read
	State     json.RawMessage    `json:"state"`
	Originals []exportedOriginal `json:"originals,omitempty"`
}

type exportedOriginal struct {
	Kind    string          `json:"kind"`
	Message json.RawMessage `json:"message"`
}

// raw returns JSON unchanged, and anything else as a string.
func raw(data []byte) json.RawMessage {
	switch {
	case json.Valid(data):
		return data
	case data == nil: // of a damaged record
		return json.RawMessage("null")
	}
	text, _ := json.Marshal(string(data)) //nolint:errchkjson // a string
	return text
}

func (s *storeFlags) export() *cobra.Command {
	return &cobra.Command{
		Use: "export [TENANT]", Short: "Print the store, of one tenant or all, as lines of JSON", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant := strings.Join(args, "") // one or none
			return s.with(cmd, false, func(opened store.Store, _ *config.Serve) error {
				all, err := opened.List(cmd.Context(), tenant)
				if err != nil {
					return err
				}
				if len(all) == 0 && tenant != "" {
					return noTenant(tenant)
				}
				out := json.NewEncoder(s.app.Stdout)
				out.SetEscapeHTML(false)
				done, sets := map[store.Key]bool{}, map[string]bool{}
				for _, r := range all {
					if done[r.Key] {
						continue
					}
					done[r.Key] = true
					records, err := opened.Load(cmd.Context(), r.Key)
					if err != nil {
						return err
					}
					for i := range records {
						if err := exportRecord(cmd, opened, &records[i], sets, out); err != nil {
							return err
						}
					}
				}
				return nil
			})
		},
	}
}

func noTenant(name string) error {
	return fmt.Errorf("nothing is kept of a tenant %s; 'condense store export' has the tenants there are", name)
}

// exportRecord prints a record, with the originals of its set if they were not printed before.
func exportRecord(cmd *cobra.Command, opened store.Store, r *store.Record, sets map[string]bool, out *json.Encoder) error {
	line := exported{ID: r.ID, Tenant: r.Key.Tenant, API: r.Key.API, Agent: r.Key.Agent, Session: r.Key.Session, Updated: r.Updated.UTC(), Damaged: r.Damaged, State: raw(r.Data)}
	if set := r.Key.Tenant + " " + r.Set; r.Set != "" && !sets[set] {
		sets[set] = true
		kept, err := opened.Kept(cmd.Context(), r.Key.Tenant, r.Set)
		if err != nil {
			return err
		}
		for _, o := range kept {
			line.Originals = append(line.Originals, exportedOriginal{o.Kind, raw(o.Data)})
		}
	}
	return out.Encode(line)
}

func (s *storeFlags) forget() *cobra.Command {
	return &cobra.Command{
		Use: "forget TENANT", Short: "Delete everything that is kept of a tenant", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if access.Reserved(args[0]) {
				return fmt.Errorf("%s is no tenant: what gateways count is kept under that name", args[0])
			}
			return s.with(cmd, false, func(opened store.Store, c *config.Serve) error {
				var log *slog.Logger
				if c.Audit != "" { // nothing is deleted without a line
					audit, file, err := openAudit(c.Audit)
					if err != nil {
						return err
					}
					defer func() { _ = file.Close() }()
					log = audit
				}
				n, err := opened.Forget(cmd.Context(), args[0])
				if n > 0 && log != nil {
					log.Info("forget", "tenant", args[0], "records", n)
				}
				if err != nil {
					return err
				}
				if n == 0 {
					return noTenant(args[0])
				}
				term.Printf(s.app.Stdout, "%s of %s deleted\n", size.Plural(n, "record"), args[0])
				return nil
			})
		},
	}
}
