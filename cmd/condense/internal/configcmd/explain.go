package configcmd

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

func configExplainCommand(a *cli.App) *cobra.Command {
	var (
		at     cli.Place
		window cli.SizeFlag
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "explain [KEY | --profile P --mode M]", Short: "Explain what will happen, and where every value comes from",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return cli.Usage(cmd, "want at most one key; got %d", len(args))
			case len(args) == 1 && (at.Given() || window != 0):
				return cli.Usage(cmd, "a key cannot be combined with --profile, --mode or --window; to explain a value of a mode, name it: modes.architect.threshold")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Load("")
			if err == nil {
				err = a.Sound(c)
			}
			if err != nil {
				return err
			}
			switch {
			case len(args) == 1:
				return explainKey(a, cmd, c, args[0], asJSON)
			case at.Given():
				if err := at.Check(cmd, a, c); err != nil {
					return err
				}
				return explainPlace(a, cmd, c, at, int(window), asJSON)
			}
			return explainAll(a, cmd, c, int(window), asJSON)
		},
	}
	at.Flags(a, cmd)
	cli.CompleteArgument(cmd, func() []string { return a.Configured((*config.Config).Keys) })
	cmd.Flags().Var(&window, "window", "context window in `tokens`, as in 64k, to show the numbers for (default: the profile's)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func explainKey(a *cli.App, cmd *cobra.Command, c *config.Config, key string, asJSON bool) error {
	list, err := c.ExplainKey(key)
	switch {
	case err == nil:
	case slices.Contains(c.Modes(), key):
		return cli.Usage(cmd, "%w; for the mode of this name: --mode %s", err, key)
	case slices.Contains(c.Profiles(), key):
		return cli.Usage(cmd, "%w; for the profile of this name: --profile %s", err, key)
	default:
		return cli.Usage(cmd, "%w", err)
	}
	if asJSON {
		return term.PrintJSON(a.Stdout, list)
	}
	for i, e := range list {
		if i > 0 {
			term.Printf(a.Stdout, "\n")
		}
		if err := term.PrintText(a.Stdout, e.String()); err != nil {
			return err
		}
	}
	return nil
}

func explainPlace(a *cli.App, cmd *cobra.Command, c *config.Config, at cli.Place, window int, asJSON bool) error {
	e, err := c.Explain(at.Profile, at.Mode, window)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	// The numbers come from the rule that decides, so that they cannot differ from it.
	e.Formula = newForecast(e.Resolved).terms()
	readers := a.Readers(c, e.Resolved)
	if asJSON {
		return term.PrintJSON(a.Stdout, struct {
			*config.Explanation
			Reads []cli.Reader `json:"reads,omitempty"`
		}{e, readers})
	}
	printPolicy(a, c)
	if err := term.PrintText(a.Stdout, e.String()); err != nil || len(readers) == 0 {
		return err
	}
	term.Printf(a.Stdout, "\n")
	for _, reader := range readers {
		term.Printf(a.Stdout, "%v\n", reader)
	}
	return nil
}

// A forecast predicts the decisions of the rule of a profile and mode. It is computed by applying the rule to
// conversations of different sizes, without protected messages, not by a second formula.
type forecast struct {
	resolved *config.Resolved
	rule     policy.Rule
	due      int             // the smallest size that reaches the threshold
	trigger  policy.Decision // of the smallest size that is condensed
	again    int             // new tokens before the next condensation, after one that reached its target
}

func newForecast(r *config.Resolved) *forecast {
	f := &forecast{resolved: r, rule: r.Rule()}
	// The limit is below the window, unless Roo's rule lets a negative max_output lift it.
	largest := r.Window + max(0, -r.MaxOutput) + 1
	smallest := func(holds func(policy.Decision) bool) int {
		return sort.Search(largest, func(n int) bool { return holds(f.decide(n, policy.State{})) })
	}
	f.due = smallest(func(d policy.Decision) bool { return d.Percent >= d.Threshold })
	f.trigger = f.decide(smallest(func(d policy.Decision) bool { return d.Act }), policy.State{})
	target := f.trigger.Budget.Target
	f.again = f.decide(target, policy.State{}.After(f.trigger, target)).MinNewTokens
	return f
}

func (f *forecast) decide(size int, s policy.State) policy.Decision {
	return f.rule.Decide(policy.Size{Messages: size}, s, core.TriggerAutomatic)
}

// terms returns the formula and its numbers.
func (f *forecast) terms() []config.Term {
	r, b := f.resolved, f.trigger.Budget
	idle := "not used, because auto is false"
	row := func(name, formula string, tokens int, note string) config.Term {
		return config.Term{Name: name, Formula: formula, Tokens: float64(tokens), Note: note}
	}
	reserve := size.Group(b.Reserve) + " for the answer"
	if r.MaxOutput == 0 {
		reserve += " (max_output is unknown)"
	}
	due := row("threshold", fmt.Sprintf("%s %% of %s", size.Number(r.Threshold), size.Group(r.Window)), f.due, "due when used reaches it")
	limit := row("limit", fmt.Sprintf("%s × (1 − %s %%) − %s", size.Group(r.Window), size.Number(r.Buffer), reserve), b.Limit, "due when used exceeds it")
	most := row("cap", "max_context_tokens", r.MaxContextTokens, "due when used exceeds it")
	if !r.Auto {
		due.Note, most.Note = idle, idle
	}
	out := []config.Term{{Name: "used", Formula: "system prompt + tools + messages"}, due, limit}
	if r.MaxContextTokens > 0 {
		out = append(out, most)
	}
	target := row("target", "midpoint between the fixed part and the trigger", b.Target, "assuming no fixed part")
	if r.Target > 0 {
		target.Formula, target.Note = fmt.Sprintf("%s %% of %s", size.Number(r.Target), size.Group(r.Window)), "a condensation should not exceed it"
	}
	if r.StopAtLimit && r.Target == 0 && f.trigger.Used > b.Limit {
		target.Formula, target.Note = "the limit", "as Roo Code's truncation"
	}
	if f.trigger.TargetWanted > 0 {
		target.Note = fmt.Sprintf("moved from %s, which would be of no use", size.Group(f.trigger.TargetWanted))
	}
	return append(out,
		row("trigger", "smallest size that triggers", f.trigger.Used, "from the "+triggers[f.trigger.Reason]),
		target,
		row("gain", fmt.Sprintf("%s %% of %s", size.Number(r.MinGain), size.Group(f.trigger.Used)), f.trigger.MinGain, "a condensation must save as much"),
		row("again", "min_new_tokens", f.again, "new tokens before the next condensation"),
	)
}

// triggers are the reasons for automatic condensation, as terms of the formula.
var triggers = map[policy.Reason]string{policy.ReasonThreshold: "threshold", policy.ReasonLimit: "limit", policy.ReasonMaxContext: "cap"}

// An overviewLine has the numbers of a mode, or of a profile that no mode uses.
type overviewLine struct {
	Mode    string   `json:"mode,omitempty"`
	Profile string   `json:"profile"`
	Window  int      `json:"window"`  // tokens, like the two below
	Trigger int      `json:"trigger"` // the smallest conversation that is condensed
	Target  int      `json:"target"`  // where a condensation ends
	Chain   []string `json:"chain"`   // truncation is listed only if the chain names it
	// Reads are the language models that read conversations, and the providers that are skipped.
	Reads []cli.Reader `json:"reads,omitempty"`
}

// explainAll prints a line for every mode and for every profile that no mode uses.
func explainAll(a *cli.App, cmd *cobra.Command, c *config.Config, window int, asJSON bool) error {
	lines, err := overview(a, c, window)
	if err != nil {
		return cli.Usage(cmd, "%w", err)
	}
	if asJSON {
		return term.PrintJSON(a.Stdout, lines)
	}
	printPolicy(a, c)
	t := term.NewTable("mode", "profile", "window", "condenses at", "down to", "chain")
	for _, l := range lines {
		if n := len(l.Chain); n == 0 || l.Chain[n-1] != config.Truncation {
			l.Chain = append(l.Chain, "("+config.Truncation+")")
		}
		t.Row(cmp.Or(l.Mode, "-"), l.Profile, l.Window, l.Trigger, l.Target, strings.Join(l.Chain, " → "))
	}
	if err := term.PrintText(a.Stdout, t.Text("")); err != nil {
		return err
	}
	printReaders(a, lines)
	return nil
}

// printReaders prints the readers of all lines, each once, with its profiles if a provider has several.
func printReaders(a *cli.App, lines []overviewLine) {
	profiles := map[string][]string{} // by reader
	readers := map[string]int{}       // by provider
	var order []cli.Reader
	for _, l := range lines {
		for _, r := range l.Reads {
			if len(profiles[r.String()]) == 0 {
				order = append(order, r)
				readers[r.Provider]++
			}
			if !slices.Contains(profiles[r.String()], l.Profile) {
				profiles[r.String()] = append(profiles[r.String()], l.Profile)
			}
		}
	}
	if len(order) > 0 {
		term.Printf(a.Stdout, "\n")
	}
	for _, r := range order {
		text := r.String()
		if readers[r.Provider] > 1 {
			text = fmt.Sprintf("profile %s: %s", strings.Join(profiles[text], ", "), text)
		}
		term.Printf(a.Stdout, "%s\n", text)
	}
}

func overview(a *cli.App, c *config.Config, window int) ([]overviewLine, error) {
	// The default profile is first: unknown modes use it.
	places := append([]cli.Place{{}}, plain.Each(c.Modes(), func(m string) cli.Place { return cli.Place{Mode: m} })...)
	checker := a.Checker()
	used := map[string]bool{}
	var lines []overviewLine
	add := func(p cli.Place) error {
		e, err := c.Explain(p.Profile, p.Mode, window)
		if err != nil {
			return err
		}
		f := newForecast(e.Resolved)
		l := overviewLine{
			Mode: p.Mode, Profile: e.Resolved.Profile, Window: e.Resolved.Window,
			Trigger: f.trigger.Used, Target: f.trigger.Budget.Target, Chain: []string{},
			Reads: checker.Readers(c, e.Resolved),
		}
		l.Chain = append(l.Chain, plain.Each(e.Resolved.Chain, func(provider config.Provider) string { return provider.Name })...)
		used[l.Profile] = true
		lines = append(lines, l)
		return nil
	}
	for _, p := range places {
		if err := add(p); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Profiles() {
		if o, _ := c.Origin("profiles", name); used[name] || o.Kind == config.FromDefault {
			continue
		}
		if err := add(cli.Place{Profile: name}); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
