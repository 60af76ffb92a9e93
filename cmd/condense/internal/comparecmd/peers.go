package comparecmd

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
)

// The othersFlags are the flags about programs of others.
type othersFlags struct{ peers, outputs string }

func (o *othersFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.peers, "peers", "", "`file` with a list of other programs to compare, or a folder with peers.json; "+
		"NAME~peers is NAME at the size that each of them leaves")
	f.StringVar(&o.outputs, "outputs", "", "`file` for all sessions and results as lines of JSON, so that another program can measure them")
}

// open opens the file in --outputs. Results from the cache would not be in it.
func (o *othersFlags) open(opts *lab.Options) (func(), error) {
	if o.outputs == "" {
		return func() {}, nil
	}
	f, err := os.Create(o.outputs)
	if err != nil {
		return nil, err
	}
	opts.Outputs, opts.Cache = f, ""
	return func() { _ = f.Close() }, nil // the writer keeps the first error
}

// A peerList is the programs in --peers.
type peerList struct {
	list       []lab.Peer
	strategies []lab.Strategy
	end        func()
}

// openPeers opens the programs of a list; none if path is empty.
func openPeers(cmd *cobra.Command, path string) (*peerList, error) {
	out := &peerList{end: func() {}}
	if path == "" {
		return out, nil
	}
	list, opened, closeAll, err := lab.Peers(cmd.Context(), path)
	if err != nil {
		return nil, cli.Usage(cmd, "--peers: %w", err)
	}
	out.list, out.strategies = list, opened
	out.end = func() { _ = closeAll() } // nothing depends on how they end
	return out, nil
}

// writePeers writes the table of the other programs, also of those that are missing here.
func writePeers(w io.Writer, r *lab.Report, markdown bool, width int) {
	if len(r.Peers) == 0 {
		return
	}
	t := term.NewTable("name", "program", "version", "from", "missing here")
	for i := range r.Peers {
		p := &r.Peers[i]
		t.Row(p.Name, p.Program, p.Version, p.Had, p.Missing)
	}
	printTable(w, t, "other programs", markdown, width)
}
