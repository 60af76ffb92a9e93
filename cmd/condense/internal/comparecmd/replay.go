package comparecmd

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// tariffs are the usual tariffs: a cache with markers, one whose reads cost a twentieth, and two without markers, the
// last one with no price for writing.
var tariffs = []string{"claude-opus-4-6", "claude-opus-5-5", "gpt-5.6-sol", "gemini-3.1-pro-preview"}

// replayWindow is the window of the model, if --windows names none.
const replayWindow = 200_000

// replay plays sessions turn by turn.
func replay(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	o, err := c.replayOptions(cmd)
	if err != nil {
		return err
	}
	items, err := sessionsAt(cmd, paths)
	if err != nil {
		return err
	}
	h, open, err := opener(a, cmd, c)
	if err != nil {
		return err
	}
	defer h.Close()
	peers, err := openPeers(cmd, c.others.peers)
	if err != nil {
		return err
	}
	defer peers.end()
	o.Peers = peers.list
	policies, err := open.Policies(cmd.Context(), c.policies)
	if err != nil {
		return cli.Usage(cmd, "--policies: %w", err)
	}
	for _, s := range peers.strategies {
		policies = append(policies, lab.Policy{Name: s.Name, Strategy: &s, About: s.About})
	}
	for i := range policies {
		if s := policies[i].Strategy; s != nil && estimates(*s) && !c.asked.Yes {
			return cli.Usage(cmd, "policy %s asks a language model at every condensation, and the cost is not known in advance: agree with --yes", policies[i].Name)
		}
	}
	end := showProgress(a, c.quiet, "", &o.Options)
	r, err := lab.Replay(cmd.Context(), items, policies, o)
	end()
	if err != nil {
		return err
	}
	if len(r.Sessions) == 0 {
		return nothingCompared(&lab.Report{Skipped: r.Skipped})
	}
	return c.printReplay(a, r)
}

// replayOptions checks the flags of a replay.
func (c *comparison) replayOptions(cmd *cobra.Command) (*lab.ReplayOptions, error) {
	for flag, set := range map[string]bool{
		"budgets": len(c.budgets) > 0, "rounds": c.rounds > 0, "strategies": len(c.strategies) > 0, "write-modes": c.writeModes != "", "against": c.against != "", "repeat": cmd.Flags().Changed("repeat"), "max-cost": c.asked.MaxUSD > 0,
	} {
		if set {
			return nil, cli.Usage(cmd, "--%s has no meaning with --replay, which has --policies, --prices and --windows", flag)
		}
	}
	if len(c.windows) > 1 {
		return nil, cli.Usage(cmd, "--windows: --replay plays sessions with one window")
	}
	if c.fixed < 0 {
		return nil, cli.Usage(cmd, "--fixed: %d is negative; want the tokens of a system prompt and its tools, 0 for none", c.fixed)
	}
	opts, _, err := c.options(cmd)
	if err != nil {
		return nil, err
	}
	o := &lab.ReplayOptions{Options: *opts, Window: replayWindow, Fixed: c.fixed}
	for _, b := range opts.Budgets {
		o.Window = b.Window
	}
	if len(c.tariffs) == 0 {
		c.tariffs = tariffs
	}
	for _, name := range c.tariffs {
		t, err := lab.ParseTariff(name)
		if err != nil {
			return nil, cli.Usage(cmd, "--prices: %w", err)
		}
		if slices.ContainsFunc(o.Tariffs, func(u lab.Tariff) bool { return u.Name == t.Name }) {
			return nil, cli.Usage(cmd, "--prices: %s appears twice", name)
		}
		o.Tariffs = append(o.Tariffs, t)
	}
	return o, nil
}

// printReplay prints the report in the format of --output, and saves it if --save asks for it.
func (c *comparison) printReplay(a *cli.App, r *lab.ReplayReport) error {
	var err error
	var b strings.Builder
	switch c.output {
	case "json":
		err = r.WriteJSON(&b)
	case "csv":
		err = writeReplayCSV(&b, r)
	case "html":
		err = report.WriteReplay(&b, r, &report.Options{Command: commandLine(os.Args)})
	default:
		writeReplay(&b, r, c.output == "md", term.Width(a.Stdout))
	}
	if err == nil {
		err = c.saved(r)
	}
	if err != nil {
		return err
	}
	return c.printed(a, b.String())
}

var scopeTitles = map[string]string{
	lab.ScopeAll: "all sessions", lab.ScopeLong: "sessions that reach 100,000 tokens",
	lab.ScopeLong + " " + lab.ScopeA: "long sessions of half a", lab.ScopeLong + " " + lab.ScopeB: "long sessions of half b",
}

// writeReplay writes a table for every tariff and scope.
func writeReplay(w io.Writer, r *lab.ReplayReport, markdown bool, width int) {
	timed := len(plain.Only(r.Sessions, func(s lab.PlayedSession) bool { return s.Timed }))
	term.Printf(w, "%s, %s with recorded times, window %s, counted with %s, seed %d\n", size.Plural(len(r.Sessions), "session"), size.Group(timed), size.Group(r.Window), r.Encoding, r.Seed)
	for _, s := range r.Skipped {
		term.Printf(w, "skipped %s: %s\n", s.Name, s.Reason)
	}
	if c := r.Check; c != nil {
		term.Printf(w, "the simulated cache against what vendors recorded: %s, %s within 0.05 of the share that was read, %s where both say hit or both miss (%s of %s misses foretold); read in all: %.3f simulated, %.3f recorded\n",
			size.Plural(c.Requests, "request"), percent(c.Within, c.Requests), percent(c.Agree, c.Requests), size.Group(c.Foretold), size.Group(c.Cold), c.Simulated, c.Recorded)
	}
	if r.Conclusion != "" {
		term.Printf(w, "%sconclusion: %s\n", bullet(markdown), r.Conclusion)
	}
	for _, p := range r.Policies {
		term.Printf(w, "%s%s is %s\n", bullet(markdown), p.Name, p.About)
	}
	var table *term.Table
	title, last := "", ""
	flush := func() {
		if table != nil {
			printTable(w, table, title, markdown, width)
		}
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Scope == lab.ScopeA || l.Scope == lab.ScopeB {
			continue
		}
		if key := l.Scope + l.Tariff; key != last {
			flush()
			last = key
			title = l.Tariff + ", " + scopeTitles[l.Scope] + ": " + size.Plural(l.Sessions, "session")
			table = term.NewTable("policy", ">USD", ">saved", ">cheaper, mean", ">dearest", ">M tokens sent", ">cache hits", ">epochs", ">leave", ">paid back", ">foreseen", ">lost in use", ">panel at epoch", ">user's words", ">peak")
		}
		table.Row(l.Policy, fmt.Sprintf("%.2f", l.USD), fmt.Sprintf("%.1f %%", 100*l.Saved), estimate(l, "cheaper", 3), fmt.Sprintf("%.2f", l.Worst),
			fmt.Sprintf("%.1f", float64(l.Sent)/1e6), fmt.Sprintf("%.3f", l.HitRate), l.Epochs, meanOf(l, "depth", 2), l.Paid, l.Foreseen,
			estimate(l, "lost", 4), estimate(l, lab.MeasurePanel, 3), meanOf(l, lab.MeasureUser, 3), meanOf(l, "peak", 0))
	}
	flush()
	term.Printf(w, "\nMoney at the prices of the table, prompts and recorded answers. Saved, cheaper: against the session untouched, even above the window. Dearest: the session that costs most against itself untouched. Lost in use: the share of what was taken from the conversation that was not in the view at that moment. 'condense compare --replay --output json' has every session, epoch and request.\n")
}

func percent(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, of))) }

func estimate(l *lab.ReplayLine, name string, digits int) string {
	e, ok := l.Values[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.*f ±%.*f", digits, e.Mean, digits, (e.High-e.Low)/2)
}

func meanOf(l *lab.ReplayLine, name string, digits int) string {
	e, ok := l.Values[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.*f", digits, e.Mean)
}

// writeReplayCSV writes a line for every play.
func writeReplayCSV(w io.Writer, r *lab.ReplayReport) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"session", "source", "mode", "half", "policy", "tariff", "usd", "untouched", "requests", "sent", "read", "write", "peak", "epochs", "cut", "had", "user", "repeats", "gone", "error"}}
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', 4, 64)
	}
	for i := range r.Plays {
		p := &r.Plays[i]
		row := []string{p.Session, p.Source, p.Mode, p.Half, p.Policy, p.Tariff, number(&p.USD), number(&p.Untouched)}
		row = append(row, plain.Each([]int{p.Requests, p.Sent, p.Read, p.Write, p.Peak, len(p.Epochs), p.Cut}, strconv.Itoa)...)
		rows = append(rows, append(row, number(p.Had), number(p.User), strconv.Itoa(p.Repeats), strconv.Itoa(p.Gone), p.Error))
	}
	return c.WriteAll(rows)
}
