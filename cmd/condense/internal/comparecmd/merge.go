package comparecmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/lab"
)

func compareMergeCommand(a *cli.App) *cobra.Command {
	var c comparison
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the results of shards",
		Long: `merge reads the files that condense compare --shard i/n --save FILE wrote, one for every i, and prints the
report that a single run over all sessions would have printed.`,
		Example: `  condense compare sessions/ --shard 1/2 --save 1.json --quiet
  condense compare sessions/ --shard 2/2 --save 2.json --quiet
  condense compare merge 1.json 2.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "no file: name the results of all shards")
			}
			if !slices.Contains(reportFormats, c.output) {
				return cli.Usage(cmd, "--output: no format %q; there are %s", c.output, strings.Join(reportFormats, ", "))
			}
			var reports []*lab.Report
			for _, path := range args {
				r, err := readComparison(path)
				if err != nil {
					return err
				}
				reports = append(reports, r)
			}
			r, err := lab.Merge(reports...)
			if err != nil {
				return err
			}
			return conclude(cmd.Context(), a, &c, r, nil, nil, nil)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&c.output, "output", "o", "table", "`format`: table, md, csv, json or html")
	f.StringVar(&c.save, "save", "", "`file` for the whole result as JSON")
	f.BoolVar(&c.perMode, "per-mode", false, "also print a table for every mode")
	cli.Complete(cmd, "output", reportFormats)
	return cmd
}
