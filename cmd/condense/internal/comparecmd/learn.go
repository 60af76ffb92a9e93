package comparecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
)

// byDefault is the strategy that a session gets without a configuration.
const byDefault = "smart/balanced"

// learned are the strategies that learn compares: the default, a deeper preset, and other programs' methods.
var learned = []string{
	byDefault, "smart/aggressive", "headtail",
	`masking=smart{"passes":[{"pass":"mask","keep":0,"until_target":true}]}`, "slidingwindow/half",
}

// learnedBudget is the share that is left if no flag says another, as a percentage.
const learnedBudget = "25%"

// LearnCommand returns condense learn.
func LearnCommand(a *cli.App) *cobra.Command {
	var c comparison
	cmd := &cobra.Command{
		Use: "learn PATH...", Short: "Say where the tokens of your sessions are, and what to configure",
		RunE: func(cmd *cobra.Command, args []string) error { return learn(a, cmd, &c, args) },
	}
	c.sharedFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.strategies, "strategies", nil, "`list` of strategies that call no model, as condense compare has them (default: "+byDefault+" and a few others)")
	f.StringSliceVar(&c.budgets, "budgets", nil, "`shares` of the tokens before the cut that may be left (default: "+learnedBudget+" unless --windows is given)")
	f.StringVarP(&c.output, "output", "o", "table", "`format`: table or json")
	f.StringVar(&c.price, "price", tariffs[0], "`model` whose prices and prompt cache decide when to condense")
	cli.Complete(cmd, "output", learnFormats)
	return cmd
}

var learnFormats = []string{"table", "json"}

// A lesson is the output of learn.
type lesson struct {
	Conclusion      string           `json:"conclusion"`
	Spending        []lab.Spending   `json:"spending"`
	Sessions        int              `json:"sessions"` // that were compared
	Skipped         []lab.Skipped    `json:"skipped"`
	Encoding        string           `json:"encoding"`
	Tables          []lab.Table      `json:"tables"`
	Verdicts        []lab.Verdict    `json:"verdicts"`
	Recommendations []recommendation `json:"recommendations"`
	Fragment        string           `json:"fragment"` // of condense.yaml
	// Window and Prices belong to the model whose cache was simulated for Sizes, the policies for when to condense.
	Costs   string           `json:"costs,omitempty"` // the conclusion
	Window  int              `json:"window,omitempty"`
	Prices  string           `json:"prices,omitempty"`
	Money   []lab.ReplayLine `json:"money,omitempty"`
	Sizes   []lab.Choice     `json:"sizes,omitempty"`
	Partial bool             `json:"partial,omitempty"`
}

// A recommendation is the strategy for a mode.
type recommendation struct {
	Mode     string `json:"mode"`     // empty: all modes together
	Sessions int    `json:"sessions"` // of the mode that were compared
	// Strategy is empty if others are shown to be better than the default and none of them is shown to be the best.
	Strategy string `json:"strategy,omitempty"`
	Default  bool   `json:"default,omitempty"` // Strategy is the default because no other is shown to be better
	// Few reports that there are too few sessions for a verdict under any budget.
	Few bool   `json:"few,omitempty"`
	Why string `json:"why"`
	// Kept is the share of later needs that Strategy keeps, by budget, if it was compared.
	Kept map[string]lab.Estimate `json:"kept,omitempty"`
}

func learn(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	if len(paths) == 0 {
		return cli.Usage(cmd, "no sessions: name a folder of them, such as ~/.claude/projects, or demo:")
	}
	if !slices.Contains(learnFormats, c.output) {
		return cli.Usage(cmd, "--output: no format %q; there are %s", c.output, strings.Join(learnFormats, ", "))
	}
	if len(c.budgets)+len(c.windows) == 0 {
		c.budgets = []string{learnedBudget}
	}
	if len(c.strategies) == 0 {
		c.strategies = learned
	}
	opts, _, err := c.options(cmd)
	if err != nil {
		return err
	}
	opts.Spending = true
	items, err := lab.Find(paths...)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if slices.ContainsFunc(items, func(it lab.Item) bool { return it.Canaries != "" || it.Evidence }) {
		return cli.Usage(cmd, "canaries: and evidence: are for condense compare: learn reads sessions as they are")
	}
	h, set, err := openStrategies(a, cmd, c, &peerList{})
	if err != nil {
		return err
	}
	defer h.Close()
	if i := slices.IndexFunc(set.Strategies, estimates); i >= 0 {
		return cli.Usage(cmd, "--strategies: %s calls a language model, and learn calls none: condense compare does", set.Strategies[i].Name)
	}
	r, err := c.run(a, cmd, items, set.Strategies, opts)
	if r == nil {
		return err
	}
	if len(r.Spending) == 0 {
		return cmp.Or(err, errors.Join(nothingCompared(r), modeMissing(r, c.modes)))
	}
	if missing := modeMissing(r, c.modes); missing != nil {
		term.Printf(a.Stderr, "%v\n", missing)
	}
	l := learnFrom(r, set)
	if err == nil {
		if err = l.replay(a, cmd, c, items, opts); err != nil {
			return err
		}
	}
	if c.writeModes != "" {
		if err := cli.WriteFile(c.writeModes, []byte(l.Fragment), cli.NewMode); err != nil {
			return err
		}
	}
	return errors.Join(err, l.print(a, c, r))
}

func learnFrom(r *lab.Report, set *strategies.Set) *lesson {
	return &lesson{
		Conclusion: r.Conclusion,
		Spending:   r.Spending, Sessions: len(r.Sessions), Skipped: r.Skipped, Encoding: r.Encoding, Tables: r.Tables, Verdicts: r.Verdicts,
		Fragment: strategies.Modes(r, set.Chains), Partial: r.Partial,
		Recommendations: plain.Each(slices.Concat([]string{""}, r.Modes), func(mode string) recommendation { return recommend(r, mode) }),
	}
}

// recommend returns the strategy for a mode: the winner, or the default unless it is shown to be worse.
func recommend(r *lab.Report, mode string) recommendation {
	out := recommendation{Mode: mode, Kept: map[string]lab.Estimate{}}
	for i := range r.Sessions {
		if mode == "" || r.Sessions[i].Mode == mode {
			out.Sessions++
		}
	}
	out.Strategy, out.Why = r.Winner(mode)
	if out.Sessions == 0 {
		out.Why = "no session could be compared"
	}
	out.Few = !slices.ContainsFunc(r.Verdicts, func(v lab.Verdict) bool { return v.Mode == mode && !v.Few })
	if out.Strategy == "" {
		out.Strategy, out.Default = byDefault, true
		if !slices.ContainsFunc(r.Strategies, func(s lab.StrategyInfo) bool { return s.Name == byDefault }) {
			return out // nothing is shown of it
		}
		for _, v := range r.Verdicts {
			if v.Mode == mode && !v.Few && v.Best != "" && v.Best != byDefault && !slices.Contains(v.Ties, byDefault) {
				out.Strategy, out.Default = "", false
			}
		}
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		for k := range t.Lines {
			if e, ok := t.Lines[k].Values[lab.MeasurePanel]; ok && t.Mode == mode && t.Lines[k].Strategy == out.Strategy {
				out.Kept[t.Budget] = e
			}
		}
	}
	return out
}

// print writes the page or the JSON.
func (l *lesson) print(a *cli.App, c *comparison, r *lab.Report) error {
	if c.output == "json" {
		return term.PrintJSON(a.Stdout, l)
	}
	var b strings.Builder
	width := term.Width(a.Stdout)
	all := &l.Spending[0]
	term.Printf(&b, "%s, %s tokens (each message once), counted with %s; %s long enough to be compared\n",
		size.Plural(all.Sessions, "session"), size.Group(all.Tokens), l.Encoding, size.Group(l.Sessions))
	if unread := skippedBy(r, 3); len(unread) > 0 {
		term.Printf(&b, "not compared:\n")
		for _, line := range unread {
			term.Printf(&b, "%s\n", "  "+line)
		}
	}
	writeSpending(&b, l.Spending, width)
	for i := range l.Tables {
		if t := l.Tables[i]; t.Mode == "" {
			t.Lines = slices.DeleteFunc(slices.Clone(t.Lines), func(x lab.Line) bool { return x.Bound })
			printTable(&b, linesTable(&t, learnedColumns), "what each strategy leaves and keeps, budget "+t.Budget, false, width)
		}
	}
	if l.Conclusion != "" {
		term.Printf(&b, "\nconclusion: %s\n", l.Conclusion)
	}
	term.Printf(&b, "\nrecommended\n")
	var few []string
	for i := range l.Recommendations {
		if x := &l.Recommendations[i]; x.Few && x.Mode != "" {
			few = append(few, fmt.Sprintf("%s (%d)", clipped(x.Mode), x.Sessions))
		} else {
			x.write(&b)
		}
	}
	if more := len(few) - shownFew; more > 0 {
		few = append(few[:shownFew], fmt.Sprintf("%d others", more))
	}
	if len(few) > 0 {
		term.Printf(&b, "  modes with too few sessions for a verdict, which keep the default: %s\n", strings.Join(few, ", "))
	}
	if len(l.Money) > 0 {
		l.writeSizes(&b, width)
	}
	none := !slices.ContainsFunc(l.Recommendations, func(x recommendation) bool { return !x.Default && x.Strategy != "" }) &&
		!slices.ContainsFunc(l.Sizes, func(x lab.Choice) bool { return x.Mode != "" && x.Policy != "" })
	switch {
	case c.writeModes != "":
		term.Printf(&b, "\nwritten to %s\n", c.writeModes)
	case none && len(r.Modes) == 0:
		term.Printf(&b, "\nno session that was compared names a mode: --mode-of 'PATTERN=MODE' gives them one\n")
	case none:
		term.Printf(&b, "\nnothing for condense.yaml: there is no clear winner\n")
	default:
		term.Printf(&b, "\nfor condense.yaml:\n\n")
		if err := term.PrintText(&b, l.Fragment); err != nil {
			return err
		}
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

var learnedColumns = []column{
	{lab.MeasureKept, "tokens left"},
	{lab.MeasurePanel, "needed later"},
	{lab.MeasureReachable, "reachable"},
	{lab.MeasureUser, "user's words"},
}

func (x *recommendation) write(w io.Writer) {
	scope, what := "mode "+clipped(x.Mode), x.Strategy
	if x.Mode == "" {
		scope = "all modes together"
	}
	switch {
	case x.Strategy == "":
		what = "no single one, but not the default, " + byDefault
	case x.Default:
		what = "the default, " + byDefault
	}
	term.Printf(w, "  %s (%s): %s\n", scope, size.Plural(x.Sessions, "session"), what)
	term.Printf(w, "    %s\n", x.Why)
	if x.Few {
		return // an interval over so few says little
	}
	for _, budget := range slices.Sorted(maps.Keys(x.Kept)) {
		e := x.Kept[budget]
		term.Printf(w, "    budget %s: it keeps %.2f of what was needed later (95 %% interval %.2f to %.2f)\n", budget, e.Mean, e.Low, e.High)
	}
}

// Limits of the page.
const (
	shownModes = 6
	shownTools = 3  // of a mode
	shownFew   = 10 // modes with too few sessions
	shownName  = 47 // characters of the name of a tool or mode
)

// clipped returns a name of a tool or mode for the page.
func clipped(name string) string { return plain.First(name, shownName) }

// writeSpending writes where tokens are: by mode and kind, and by mode and tool.
func writeSpending(w io.Writer, all []lab.Spending, width int) {
	left := max(0, len(all)-1-shownModes)
	shown := all[:len(all)-left]
	if len(all) == 2 && all[1].Sessions == all[0].Sessions {
		shown = all[1:] // they are the same
	}
	var kinds []tokens.Kind
	titles := []string{"mode", ">sessions", ">tokens"}
	for _, k := range tokens.Kinds() {
		if all[0].ByKind[k] > 0 {
			kinds = append(kinds, k)
			titles = append(titles, ">"+strings.ReplaceAll(string(k), "_", " "))
		}
	}
	byKind := term.NewTable(titles...)
	byTool := term.NewTable("mode", "tool", ">calls", ">tokens", ">of all", ">for calls", ">for results", ">a result")
	byTool.Repeat(2)
	for i := range shown {
		s := &shown[i]
		name := cmp.Or(clipped(s.Mode), "(all)")
		row := []any{name, s.Sessions, size.Group(s.Tokens)}
		row = append(row, plain.Each(kinds, func(k tokens.Kind) any { return percent(s.ByKind[k], s.Tokens) })...)
		byKind.Row(row...)
		if i > 0 {
			byTool.Divide()
		}
		for k := range s.ByTool[:min(shownTools, len(s.ByTool))] {
			t := &s.ByTool[k]
			byTool.Row(name, clipped(t.Tool), t.Calls, size.Group(t.Tokens()), percent(t.Tokens(), s.Tokens),
				percent(t.CallTokens, s.Tokens), percent(t.ResultTokens, s.Tokens), size.Group(t.ResultTokens/max(1, t.Results)))
		}
		if rest := s.ByTool[min(shownTools, len(s.ByTool)):]; len(rest) > 0 {
			var sum lab.ToolSpending
			for k := range rest {
				sum.Add(&rest[k])
			}
			byTool.Row(name, fmt.Sprintf("(%d others)", len(rest)), sum.Calls, size.Group(sum.Tokens()), percent(sum.Tokens(), s.Tokens),
				percent(sum.CallTokens, s.Tokens), percent(sum.ResultTokens, s.Tokens), size.Group(sum.ResultTokens/max(1, sum.Results)))
		}
	}
	printTable(w, byKind, "where the tokens are, by kind", false, width)
	if len(all[0].ByTool) > 0 {
		printTable(w, byTool, "where the tokens are, by tool", false, width)
	}
	if left > 0 {
		term.Printf(w, "and %s with fewer tokens: --output json has them\n", size.Plural(left, "mode"))
	}
}
