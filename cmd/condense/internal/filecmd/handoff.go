package filecmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/suggest"
)

func handoffCommand(a *cli.App) *cobra.Command {
	r := resumption{App: a}
	var from, to string
	read, made := agentNames(false), agentNames(true)
	cmd := &cobra.Command{
		Use: "handoff --from AGENT --to AGENT [ID]", Short: "Go on with a session of one agent in another, condensed",
		Args: func(cmd *cobra.Command, args []string) error {
			for _, x := range []struct {
				flag, name string
				names      []string
			}{{"from", from, read}, {"to", to, made}} {
				if known := strings.Join(x.names, ", "); x.name == "" {
					return cli.Usage(cmd, "--%s: name an agent: %s", x.flag, known)
				} else if !slices.Contains(x.names, x.name) {
					return cli.Usage(cmd, "--%s: no agent %q%s; there are %s", x.flag, x.name, suggest.DidYouMean(x.name, x.names), known)
				}
			}
			if from == to {
				return cli.Usage(cmd, "condense resume %s goes on with a session in the same agent", from)
			}
			return checkID(cmd, from, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.start(cmd, from, to, args, false) },
	}
	f := r.newFlags(cmd)
	f.StringVar(&from, "from", "", "the `agent` that recorded the session: "+strings.Join(read, ", "))
	f.StringVar(&to, "to", "", "the `agent` that goes on: "+strings.Join(made, ", "))
	cli.Complete(cmd, "from", read)
	cli.Complete(cmd, "to", made)
	return cmd
}
