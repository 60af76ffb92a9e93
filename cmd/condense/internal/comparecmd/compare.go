// Package comparecmd has the command condense compare, which runs package lab.
package comparecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// A comparison is the flags of condense compare.
type comparison struct {
	strategies, modes, budgets, windows []string
	modeOf                              []string
	writeModes                          string
	tokenizer, profile                  string
	output, save, against, failOn       string
	cache                               string
	seed                                uint64
	jobs, rounds, repeat                int
	roundsFormat                        string
	perMode, quiet, verify              bool
	byFolder                            bool
	replay                              bool
	builtin                             bool // no configuration: names are those of built-in strategies
	policies, tariffs                   []string
	price                               string
	fixed                               int
	asked                               cli.Reading
	others                              othersFlags
}

// Command returns condense compare.
func Command(a *cli.App) *cobra.Command {
	var c comparison
	cmd := &cobra.Command{
		Use: "compare [PATH]...", Short: "Compare strategies on recorded sessions",
		RunE: func(cmd *cobra.Command, args []string) error { return compare(a, cmd, &c, args) },
	}
	c.sharedFlags(cmd)
	c.others.add(cmd)
	c.asked.AddFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.strategies, "strategies", nil, "`list` of strategies (default: the providers of the configuration, and a few built-in ones)")
	f.StringSliceVar(&c.budgets, "budgets", nil, "`shares` of the tokens before the cut that may be left, such as 25%; real for the size that recorded compactions left (default: 10%,25%,50%)")
	f.StringVarP(&c.output, "output", "o", "table", "`format`: table, md, csv, json or html")
	f.StringVar(&c.save, "save", "", "`file` for the whole result as JSON, for --against")
	f.StringVar(&c.against, "against", "", "`file` of an earlier result, or a strategy of this one, to compare the others with")
	f.StringVar(&c.failOn, "fail-on", "", "`conditions` under which the exit code is 1, such as 'recall<-0.03,size>0.05,failed>0': differences from --against that the data show, and shares of failed cuts")
	f.IntVar(&c.rounds, "rounds", 0, "also condense long sessions this many times as they grow (for canaries: at most this many, default 6)")
	f.StringVar(&c.roundsFormat, "rounds-format", "", "transcript `format` in which the view is written and read again after every round (default: the session's; anthropic if that is only read)")
	f.IntVar(&c.repeat, "repeat", 3, "`runs` of strategies that ask a language model, at every cut and budget, in rounds and with canaries; the others are deterministic and run once")
	f.BoolVar(&c.replay, "replay", false, "play sessions turn by turn: what a policy costs, and what it loses")
	f.StringArrayVar(&c.policies, "policies", nil, "with --replay, `list` of policies (default: the usual ones)")
	f.StringSliceVar(&c.tariffs, "prices", nil, "with --replay, `models` whose prices and prompt caches count; /1h after one for entries of an hour (default: "+strings.Join(tariffs, ",")+")")
	f.IntVar(&c.fixed, "fixed", lab.AssumedFixed, "with --replay, `tokens` of the system prompt and the tools where a session records none")
	f.BoolVar(&c.byFolder, "by-folder", false, "intervals over folders, or projects in names such as PROJECT--NAME: sessions of one are alike")
	f.BoolVar(&c.perMode, "per-mode", false, "also print a table for every mode")
	f.StringVar(&c.profile, "profile", "", "`name` of the profile whose language model providers use that name none")
	f.StringVar(&a.Model, "model", "", "`name` of the language model for providers whose settings name none")
	cli.Complete(cmd, "output", reportFormats)
	return cmd
}

// sharedFlags adds the flags that condense learn has, too.
func (c *comparison) sharedFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&c.modes, "modes", nil, "only sessions of these `modes`")
	f.StringArrayVar(&c.modeOf, "mode-of", nil, "`rule` that gives sessions a mode: PATTERN=MODE by parts of the path, text:PHRASE=MODE by a phrase in the text; repeatable, the first that applies is used")
	f.BoolVar(&c.verify, "verify", true,
		"call a strategy the best only if it is ahead in both halves of the sessions; of a mode, 12 are needed")
	f.StringVar(&c.writeModes, "write-modes", "", "`file` for the best strategy of all sessions and of each mode, as a part of condense.yaml")
	f.StringSliceVar(&c.windows, "windows", nil, "context windows in `tokens`, such as 32k: cut where the policy would condense, with its target as the budget")
	f.StringVar(&c.cache, "cache", "", "`folder` for results, so that a run that was stopped can continue (default: in the user's cache folder; none for no cache)")
	f.Uint64Var(&c.seed, "seed", 1, "seed of random draws: the same seed gives the same result")
	f.IntVar(&c.jobs, "jobs", runtime.NumCPU(), "sessions to process at a time")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "no progress on standard error")
	f.StringVar(&c.tokenizer, "tokenizer", "", "`name` of the encoding for token counts (default: "+tokens.O200kBase+")")
	cli.Complete(cmd, "tokenizer", tokens.Names())
}

func compare(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	if c.replay {
		return replay(a, cmd, c, paths)
	}
	if c.asked.Asked(cmd) {
		return interview(a, cmd, c, paths)
	}
	if len(c.policies) > 0 || len(c.tariffs) > 0 || cmd.Flags().Changed("fixed") {
		return cli.Usage(cmd, "--policies, --prices and --fixed need --replay")
	}
	opts, conditions, err := c.options(cmd)
	if err != nil {
		return err
	}
	old, err := readComparison(c.against)
	missing := errors.Is(err, fs.ErrNotExist) // then it may be a strategy
	if err != nil && !missing {
		return err
	}
	items, err := sessionsAt(cmd, paths)
	if err != nil {
		return err
	}
	peers, err := openPeers(cmd, c.others.peers)
	if err != nil {
		return err
	}
	defer peers.end()
	opts.Peers = peers.list
	h, set, err := openStrategies(a, cmd, c, peers)
	if err != nil {
		return err
	}
	defer h.Close()
	closeOutputs, err := c.others.open(opts)
	if err != nil {
		return err
	}
	defer closeOutputs()
	against := func(s lab.Strategy) bool { return s.Name == c.against }
	if missing && !slices.ContainsFunc(set.Strategies, against) {
		return cli.Usage(cmd, "--against: there is no file %s, and no strategy of that name in this comparison", c.against)
	}
	if err := agree(a, cmd, c, items, set.Strategies, opts); err != nil {
		return err
	}
	r, err := c.run(a, cmd, items, set.Strategies, opts)
	if r == nil {
		return err
	}
	if len(r.Rows) == 0 && len(r.Canaries) == 0 && len(r.Evidence) == 0 {
		return cmp.Or(err, errors.Join(nothingCompared(r), modeMissing(r, c.modes)))
	}
	if missing := modeMissing(r, c.modes); missing != nil {
		term.Printf(a.Stderr, "%v\n", missing)
	}
	if c.rounds > 0 && len(r.Rounds) == 0 && len(r.Rows) > 0 && err == nil {
		term.Printf(a.Stderr, "no rounds: no session has 30,000 tokens, and shorter ones are condensed only once\n")
	}
	return errors.Join(err, conclude(cmd.Context(), a, c, r, old, conditions, &evidence{items, set, opts}))
}

// run compares strategies. An error after some sessions says how many, and what the next run does.
func (c *comparison) run(a *cli.App, cmd *cobra.Command, items []lab.Item, strategies []lab.Strategy, opts *lab.Options) (*lab.Report, error) {
	end := showProgress(a, c.quiet, "", opts)
	r, err := lab.Run(cmd.Context(), items, strategies, opts)
	end()
	if r != nil && err != nil {
		err = stopped(err, len(r.Sessions), opts)
	}
	return r, err
}

// opener returns an opener of strategies by name, and the host that owns their providers.
func opener(a *cli.App, cmd *cobra.Command, c *comparison) (*condense.Host, *strategies.Opener, error) {
	load := a.Load
	if c.builtin {
		load = func(string) (*config.Config, error) { return config.New(config.Values{}, a.Names()) }
	}
	conf, err := load("")
	if err != nil {
		return nil, nil, err
	}
	h, o, err := cli.Opener(cmd.Context(), a, conf)
	if err != nil {
		return nil, nil, err
	}
	o.Profile = c.profile
	return h, o, nil
}

// openStrategies opens the strategies in --strategies. The host owns the providers.
func openStrategies(a *cli.App, cmd *cobra.Command, c *comparison, peers *peerList) (*condense.Host, *strategies.Set, error) {
	h, o, err := opener(a, cmd, c)
	if err != nil {
		return nil, nil, err
	}
	o.Others = plain.Each(peers.strategies, func(s lab.Strategy) string { return s.Name })
	set, err := o.Open(cmd.Context(), c.strategies)
	if err != nil {
		return nil, nil, errors.Join(cli.Usage(cmd, "--strategies: %w", err), h.Close())
	}
	set.Strategies = append(peers.strategies, set.Strategies...)
	for _, l := range set.LeftOut {
		term.Printf(a.Stderr, "left out: %v\n", l)
	}
	return h, set, nil
}

const demoSessions = "demo:"

// sessionsAt finds the sessions at paths; without paths, the sessions that come with the program.
func sessionsAt(cmd *cobra.Command, paths []string) ([]lab.Item, error) {
	if len(paths) == 0 {
		paths = []string{demoSessions}
	}
	items, err := lab.Find(paths...)
	if err != nil {
		return nil, cli.Usage(cmd, "%w", err)
	}
	return items, nil
}

// options returns the checked options of the flags.
func (c *comparison) options(cmd *cobra.Command) (*lab.Options, []lab.Condition, error) {
	fault := func(flag string, err error) error { return cli.Usage(cmd, "--%s: %w", flag, err) }
	opts := &lab.Options{
		Modes: c.modes, Encoding: c.tokenizer, Seed: c.seed, Jobs: c.jobs, Rounds: c.rounds, Repeat: c.repeat,
		ByFolder: c.byFolder, Unverified: !c.verify, RoundsFormat: c.roundsFormat, MaxUSD: c.asked.MaxUSD,
	}
	for _, text := range c.modeOf {
		rule, err := lab.ParseModeRule(text)
		if err != nil {
			return nil, nil, fault("mode-of", err)
		}
		opts.ModeOf = append(opts.ModeOf, rule)
	}
	for _, b := range c.budgets {
		if n, err := strconv.ParseFloat(b, 64); err == nil && 0 < n && n < 1 {
			return nil, nil, fault("budgets", fmt.Errorf("%s is not a share in percent: write %s%% for that part of the prefix", b, strconv.FormatFloat(math.Round(n*1e4)/100, 'f', -1, 64)))
		} else if err == nil && n < 100 {
			b += "%"
		}
		budget, err := lab.ParseBudget(b)
		if err == nil && budget.Window > 0 {
			err = fmt.Errorf("%s is a window: name it with --windows, or write %s%% for a share", b, b)
		}
		if err != nil {
			return nil, nil, fault("budgets", err)
		}
		opts.Budgets = append(opts.Budgets, budget)
	}
	for _, w := range c.windows {
		budget, err := lab.ParseBudget(w)
		if err == nil && budget.Window == 0 {
			err = fmt.Errorf("%q is not a window: want tokens, such as 32k or 200000", w)
		}
		if err != nil {
			return nil, nil, fault("windows", err)
		}
		opts.Budgets = append(opts.Budgets, budget)
	}
	if c.jobs < 1 {
		return nil, nil, cli.Usage(cmd, "--jobs: %d is less than 1", c.jobs)
	}
	if c.rounds < 0 {
		return nil, nil, cli.Usage(cmd, "--rounds: %d is negative", c.rounds)
	}
	if c.repeat < 1 && cmd.Flags().Changed("repeat") {
		return nil, nil, cli.Usage(cmd, "--repeat: %d is less than 1", c.repeat)
	}
	if c.tokenizer != "" {
		if _, err := tokens.Open(c.tokenizer); err != nil {
			return nil, nil, fault("tokenizer", err)
		}
	}
	if !slices.Contains(reportFormats, c.output) {
		return nil, nil, cli.Usage(cmd, "--output: no format %q; there are %s", c.output, strings.Join(reportFormats, ", "))
	}
	conditions, err := lab.ParseConditions(c.failOn)
	if err != nil {
		return nil, nil, fault("fail-on", err)
	}
	for _, cond := range conditions {
		if c.against == "" && !cond.OfFailures() {
			return nil, nil, cli.Usage(cmd, "--fail-on: %s needs --against: it is about a difference", cond.Text)
		}
	}
	opts.Cache, err = cli.CacheDir(c.cache)
	return opts, conditions, err
}
