package servecmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

func (l *liveFlags) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the running conversations, as live alone does", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(d controller) error { return l.list(cmd, d) })
		},
	}
	l.listFlags(cmd)
	return cmd
}

func (l *liveFlags) listFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&l.since, "since", recent, "list what was used in the last `time`")
	cmd.Flags().BoolVar(&l.all, "all", false, "list all that the store has")
}

func (l *liveFlags) list(cmd *cobra.Command, d controller) error {
	if l.since <= 0 {
		return cli.Usage(cmd, "--since: %s is not positive", l.since)
	}
	since := time.Now().Add(-l.since)
	if l.all {
		since = time.Time{}
	}
	all, err := d.Conversations(cmd.Context(), since)
	if err != nil {
		return err
	}
	w := l.app.Stdout
	if l.output == "json" {
		return term.PrintJSON(w, map[string]any{"conversations": all})
	}
	text := fmt.Sprintf("no conversation was used lately: %s; --all lists what is kept\n", startOne)
	if len(all) > 0 {
		text = listed(all)
	}
	for _, address := range announced() {
		text += "page: " + address + "\n"
	}
	_ = term.PrintText(w, text) // like Printf, it ignores a broken pipe
	return nil
}

// listed describes conversations, in a table with remarks below.
func listed(all []*control.Conversation) string {
	table := term.NewTable("ID", "agent", "folder or title", "model", ">size", ">window", "next epoch", ">epochs", ">saved", "provider", "used")
	var notes []string
	for _, c := range all {
		table.Row(c.Short(), orDash(c.Agent), orDash(cmp.Or(c.Folder, c.Title)), orDash(c.Model), c.Size, c.Window, c.Next, c.Epochs, money(c), orDash(c.Provider), ago(c.Last))
		notes = append(notes, remarksOn(c)...)
	}
	return strings.Join(append([]string{table.Text("")}, notes...), "\n") + "\n"
}

func orDash(s string) string { return cmp.Or(s, "-") }

func money(c *control.Conversation) string {
	if !c.Priced {
		return "-"
	}
	return size.Dollars(c.Saved, 2)
}

func ago(t time.Time) string {
	d := max(0, time.Since(t))
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return t.Local().Format("2006-01-02 15:04")
}

// remarksOn are remarks below the table.
func remarksOn(c *control.Conversation) []string {
	var all []string
	if o := c.Order; o != nil {
		waits := "waits for the next request"
		if o.Waits != "" {
			waits = "waits: " + o.Waits
		}
		all = append(all, fmt.Sprintf("%s: %s %s", c.Short(), o.Do, waits))
	}
	if o := c.LastOrder; o != nil {
		what := fmt.Sprintf("%s: %s was done, %s to %s tokens", c.Short(), o.Do, size.Group(o.Before), size.Group(o.After))
		if !o.Changed {
			what = fmt.Sprintf("%s: %s changed nothing: %s", c.Short(), o.Do, o.Result)
		}
		all = append(all, what)
	}
	if e := c.LastEpoch; e != nil && c.Condensed {
		all = append(all, plain.Each(e.Truth.Faults(), func(fault string) string { return c.Short() + ": " + fault })...)
	}
	if c.Money != "" {
		all = append(all, c.Short()+": "+c.Money)
	}
	all = append(all, plain.Each(c.Troubles(), func(trouble string) string { return c.Short() + ": " + trouble })...)
	if c.Undone {
		all = append(all, c.Short()+": its last condensation is undone; only a full window, or 'condense live now', brings the next one")
	}
	if c.Paused {
		all = append(all, c.Short()+": paused; only conversations that the vendor would refuse are condensed, until 'condense live resume'")
	}
	if n := len(c.Protections); n > 0 {
		all = append(all, fmt.Sprintf("%s: %s kept verbatim", c.Short(), size.Plural(n, "protection")))
	}
	return all
}
