package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/comparecmd"
	"github.com/condensehq/condense/cmd/condense/internal/servecmd"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// Bounds of the sessions that the guide measures: enough to say something, and few enough for seconds.
const (
	guideSessions = 20
	guideBytes    = 24 << 20
	guideTools    = 3
)

// guide shows the agents of this machine, where their tokens are, the effect of condensing, and commands to type next. It reads only.
func guide(a *cli.App, cmd *cobra.Command) error {
	w := a.Stdout
	term.Printf(w, "condense keeps coding agents working when their context window is full. This page only reads.\n\n")
	agent, folder, paths, large := find(a)
	learn := "condense learn " + typed(cmp.Or(folder, "demo:"))
	if len(large) > 0 {
		term.Printf(w, "  %s too large for this page: condense learn %s\n", size.Plural(len(large), "session"), typed(large[0]))
	}
	whose := "your newest sessions"
	if len(paths) == 0 {
		term.Printf(w, "  no sessions to measure here: what follows is about the recorded ones that come with condense\n")
		whose, paths = "recorded sessions", []string{"demo:"}
	}
	g, err := comparecmd.Look(a, cmd, paths)
	if err != nil {
		return err
	}
	measured(w, whose, learn, g)
	term.Printf(w, "\nWhat to type next\n")
	next := func(command, effect string) { term.Printf(w, "  %s\n      %s\n", command, effect) }
	next("condense wrap "+agent, "starts it with its conversations condensed; none of your files is changed")
	next("condense wrap --observe "+agent, "only watches: requests stay as they are; the end says what it would have saved")
	if file := servecmd.SettingsFile(agent); file != "" {
		next("condense serve  and  condense agent install "+agent,
			"for good: asks, then writes an address into "+cli.FromHome(file)+"; undo: condense agent remove "+agent)
	}
	next(learn, "more of this page, and a configuration; all commands: condense --help")
	return nil
}

// measured shows a measurement. Learn is the command that measures more.
func measured(w io.Writer, whose, learn string, g *comparecmd.Glance) {
	all := &g.Spending
	if n := len(g.Unread); n > 0 {
		term.Printf(w, "\n  %s could not be read: %s: %s\n", size.Plural(n, "session"), cli.FromHome(g.Unread[0].Name), g.Unread[0].Reason)
	}
	const late = "  not finished in %s: %s\n"
	if g.Late[0] && g.Compared == 0 {
		term.Printf(w, late, comparecmd.Patience, learn)
	}
	if all.Sessions == 0 {
		return
	}
	term.Printf(w, "\nWhat fills the windows of %s: %s, %s tokens\n", whose, size.Plural(all.Sessions, "session"), size.Group(all.Tokens))
	term.Printf(w, "  %s\n", shares(all.Tokens, all.ByKind))
	tools := plain.Each(all.ByTool[:min(guideTools, len(all.ByTool))], func(t lab.ToolSpending) string {
		return t.Tool + " " + share(t.Tokens(), all.Tokens)
	})
	term.Printf(w, "  the tools with most: %s\n", cmp.Or(strings.Join(tools, ", "), "none"))
	term.Printf(w, "\nWhat condensing would have done, without a language model\n")
	if g.Compared > 0 {
		term.Printf(w, "  a quarter of the tokens keeps %.0f %% of the text that was needed later; truncation %.0f %% (%s)\n",
			100*g.Kept, 100*g.Cut, size.Plural(g.Compared, "session"))
	} else if !g.Late[0] {
		term.Printf(w, "  nothing to cut: no session is long enough. Sessions that fit their window need no condense\n")
	}
	if g.Late[1] && g.Played == 0 {
		term.Printf(w, late, comparecmd.Patience, strings.Replace(learn, "learn", "compare --replay", 1))
	} else if g.Epochs > 0 {
		term.Printf(w, "  %s at the prices of %s: %.2f USD as the agents sent them, %.2f condensed %s%s\n",
			size.Plural(g.Played, "session"), g.Prices, g.Was, g.Would, size.Plural(g.Epochs, "time"), dearer(g))
	}
}

// dearer says why condensing costs more; empty if it does not.
func dearer(g *comparecmd.Glance) string {
	switch {
	case g.Would <= g.Was:
		return ""
	case g.Own > 0 && g.Own < g.Left:
		return fmt.Sprintf(":\n  it costs more because it keeps more: %.0f %% of the tokens each time, and the agents' own compactions %.0f %%", 100*g.Left, 100*g.Own)
	default:
		return ":\n  it costs more because each time the vendor's cache is written again"
	}
}

// find prints the agents of this machine. It returns the one used last, the folder of its sessions, and the newest sessions of all
// without those that are too large.
func find(a *cli.App) (agent, folder string, paths, large []string) {
	var newest []*sessions.Session
	t := term.NewTable("", "")
	for _, one := range sessions.Agents() {
		found, dir, err := one.Recent()
		_, missing := exec.LookPath(one.Name)
		if err != nil {
			t.Row(one.Title, fmt.Sprintf("could not be read: %v", err))
		}
		switch {
		case len(found) > 0:
			last := found[0].Modified
			t.Row(one.Title, fmt.Sprintf("%s in %s, the newest of %s", size.Plural(len(found), "session"), cli.FromHome(dir), last.Format("2006-01-02")))
			if len(newest) == 0 || last.After(newest[0].Modified) {
				agent, folder = one.Name, dir
			}
			newest = append(newest, found[:min(guideSessions, len(found))]...)
			slices.SortStableFunc(newest, func(x, y *sessions.Session) int { return y.Modified.Compare(x.Modified) })
		case err != nil || missing == nil:
			if err == nil {
				t.Row(one.Title, "installed, without sessions in files")
			}
			agent = cmp.Or(agent, one.Name)
		}
	}
	if agent != "" {
		_ = term.PrintText(a.Stdout, t.Text("  "))
	}
	room := int64(guideBytes)
	for _, s := range newest[:min(guideSessions, len(newest))] {
		if info, err := os.Stat(s.Path); err == nil && info.Size() <= room {
			room -= info.Size()
			paths = append(paths, s.Path)
		} else if err == nil {
			large = append(large, s.Path)
		}
	}
	return cmp.Or(agent, "claude"), folder, paths, large
}

// typed returns a path for a shell, from ~ if that needs no quotes.
func typed(path string) string {
	if q := cli.Quote(path); q != path {
		return q
	}
	return cli.FromHome(path)
}

func share(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(1, of))) }

// shares lists the kinds with at least a hundredth of the tokens, the largest first.
func shares(total int, byKind map[tokens.Kind]int) string {
	kinds := tokens.Kinds()
	slices.SortStableFunc(kinds, func(x, y tokens.Kind) int { return cmp.Compare(byKind[y], byKind[x]) })
	var out []string
	for _, k := range kinds {
		if byKind[k]*100 >= total && byKind[k] > 0 {
			out = append(out, strings.ReplaceAll(string(k), "_", " ")+" "+share(byKind[k], total))
		}
	}
	return strings.Join(out, ", ")
}
