package plugincmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
)

// These end a judgement that is not "works", and one that misses a floor.
var (
	errJudge = errors.New("the plugin did not pass: see the verdict")
	errFloor = errors.New("the plugin did not pass: it missed a floor")
)

// A judging has the flags and arguments of the command.
type judging struct {
	pluginTest

	floors, out, as, model, chain string
	sessions                      []string
	asked                         cli.Reading
	readers                       *lab.ReaderOptions // nil if none are asked
}

// judgeFormats are the formats of a card.
var judgeFormats = map[string]func(*judge.Card) ([]byte, error){
	"text": func(c *judge.Card) ([]byte, error) {
		return judge.Text(c, func(titles []string, rows [][]any) string { return term.NewTable(titles...).Rows(rows).Text("") }), nil
	},
	"json": func(c *judge.Card) ([]byte, error) {
		var b bytes.Buffer
		err := term.PrintJSON(&b, c)
		return b.Bytes(), err
	},
	"html":     judge.HTML,
	"markdown": func(c *judge.Card) ([]byte, error) { return judge.Markdown(c), nil },
}

func pluginJudgeCommand(a *cli.App) *cobra.Command {
	var j judging
	names := []string{"text", "json", "html", "markdown"}
	cmd := &cobra.Command{
		Use: "judge PATH|NAME", Short: "Say whether a plugin is any good: one card, and an exit code for CI",
		Args: cli.Arguments(1, 1, "want one plugin, by its path or its name in the configuration; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.path = args[0]
			return judgePlugin(cmd, a, &j)
		},
	}
	f := cmd.Flags()
	j.flags(f)
	f.StringVar(&j.floors, "floors", "", "`file` with floors (default: judge.yaml, if there is one)")
	f.StringArrayVar(&j.sessions, "sessions", []string{"demo:"}, "recorded `sessions`, as 'compare' takes them; may be given again")
	f.StringVar(&j.model, "model", "",
		"`model` that answers what the plugin asks on recorded sessions (default: a stand-in that selects sentences)")
	f.StringVar(&j.chain, "chain", "",
		"judge it as the first `link` of a chain, next to the rest alone: 'mine,smart', as 'compare' names strategies")
	f.StringVar(&j.as, "as", "text", "`form` of the card: text, json, html, markdown")
	f.StringVarP(&j.out, "output", "o", "", "`file` to write to (default: standard output)")
	j.asked.AddFlags(cmd)
	f.BoolVarP(&j.verbose, "verbose", "v", false, "print what the plugin logs")
	cli.Complete(cmd, "as", names)
	return cmd
}

func judgePlugin(cmd *cobra.Command, a *cli.App, j *judging) error {
	render, ok := judgeFormats[j.as]
	if !ok {
		return cli.Usage(cmd, "--as: no form %q%s; there are text, json, html, markdown", j.as, suggest.DidYouMean(j.as, []string{"text", "json", "html", "markdown"}))
	}
	floors, err := judge.ReadFloors(j.floors)
	if err != nil {
		return err
	}
	trial, err := j.target(a, cmd)
	if err != nil {
		return err
	}
	items, err := lab.Find(j.sessions...)
	if err != nil {
		return err
	}
	if j.asked.Asked(cmd) {
		_, conf, err := a.LoadPlugins()
		if err != nil {
			return err
		}
		j.readers = &lab.ReaderOptions{Options: judge.Options}
		if j.readers.Cache, err = cli.CacheDir(""); err != nil {
			return err
		}
		if err := j.asked.Options(cmd, resolver.NewModels(conf, a.Models()), j.readers); err != nil {
			return err
		}
	}
	w, opts := &judge.Watch{Ingest: j.ingest}, judge.Options
	if j.chain != "" {
		host, err := j.rest(cmd, a, w)
		if err != nil {
			return err
		}
		defer host.Close()
	}
	if j.model != "" {
		opts.MaxUSD, opts.Repeat = j.asked.MaxUSD, 1
		if w.Answers, err = j.answers(cmd, a); err != nil {
			return err
		}
	}
	card, err := j.judge(cmd, a, trial, items, w, &opts)
	if err != nil {
		return err
	}
	works := card.Passed
	if err := floors.Apply(card); err != nil {
		return err
	}
	page, err := render(card)
	if err != nil {
		return err
	}
	err = a.Put(j.out, page)
	if j.out != "" && j.out != "-" {
		term.Printf(a.Stderr, "%s: %s\n", card.Verdict, card.Why)
	}
	switch {
	case err != nil, card.Passed:
		return err
	case works:
		return errFloor
	}
	return errJudge
}

// rest opens the chain that follows the plugin. The host owns its providers.
func (j *judging) rest(cmd *cobra.Command, a *cli.App, w *judge.Watch) (*condense.Host, error) {
	_, rest, _ := strings.Cut(j.chain, ",")
	if rest == "" {
		return nil, cli.Usage(cmd, "--chain: want the plugin and what follows it, such as 'mine,smart'; got %q", j.chain)
	}
	conf, err := a.Load("")
	if err != nil {
		return nil, err
	}
	host, opener, err := cli.Opener(cmd.Context(), a, conf)
	if err != nil {
		return nil, err
	}
	set, err := opener.Open(cmd.Context(), []string{rest})
	if err != nil {
		return nil, errors.Join(cli.Usage(cmd, "--chain: %w", err), host.Close())
	}
	w.Rest = &lab.Strategy{Name: rest, Truncation: condense.Truncation}
	for i, s := range set.Strategies {
		if n := len(s.Chain) - 1; i < len(set.Strategies)-1 {
			s.Chain = s.Chain[:n:n] // without truncation
		}
		w.Rest.Chain = append(w.Rest.Chain, s.Chain...)
	}
	return host, nil
}

// answers returns the model that --model names, if the user agrees to spend money on it.
func (j *judging) answers(cmd *cobra.Command, a *cli.App) (model.Generator, error) {
	_, conf, err := a.LoadPlugins()
	if err != nil {
		return nil, err
	}
	m, err := cli.NamedModel(cmd, resolver.NewModels(conf, a.Models()), "model", j.model)
	if err != nil || m.Info().Free {
		return m, err
	}
	cost := core.Usage{USD: 1} // how much it asks is not known
	if m.Info().Price == (model.Price{}) {
		cost = core.Usage{Unpriced: 1}
	}
	return m, j.asked.Confirm(a, cmd, cost, "the plugin's requests to "+m.Info().Name, "")
}

// target returns how the plugin that the argument means is run: an approved one of the configuration, or a program.
func (j *judging) target(a *cli.App, cmd *cobra.Command) (*plugins.Trial, error) {
	if _, err := os.Stat(j.path); err == nil {
		return j.trial(a, cmd)
	}
	p, err := pluginNamed(a, j.path)
	if err != nil {
		return nil, err
	}
	if is, err := plugins.Digest(p.Provider); err != nil || is != p.Pin {
		return nil, errors.Join(err, fmt.Errorf("plugin %s is not approved as it is now: 'condense plugin pin %s' approves it", p.Name, p.Name))
	}
	return j.trialOf(a, p.Provider), nil
}

// judge runs everything and returns the card, without floors.
func (j *judging) judge(
	cmd *cobra.Command, a *cli.App, trial *plugins.Trial, items []lab.Item, w *judge.Watch, opts *lab.Options,
) (_ *judge.Card, err error) {
	ctx := cmd.Context()
	trial.Model = w.Model
	plugin, err := trial.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	begun := time.Now()
	d, err := plugin.Describe(ctx)
	if err != nil {
		return nil, err
	}
	trial.Remember(d)
	card := &judge.Card{Name: d.Name, Version: d.Version, SDK: d.SDK, Doc: d.Doc, Abilities: d.Abilities, May: d.Abilities.Told(), ReadyMS: judge.Millis(time.Since(begun))}
	w.Plugin = plugin
	list, read, err := w.Strategies(ctx, a.Strategies)
	if err != nil {
		return nil, err
	}
	if j.readers != nil {
		if err := j.asked.Agree(a, cmd, items, read, j.readers); err != nil {
			return nil, err
		}
	}
	if err := card.Run(ctx, w, items, list, opts); err != nil || j.readers == nil {
		return card, err
	}
	if !card.Passed {
		term.Printf(a.Stderr, "no reader is asked about a plugin whose verdict is %q\n", card.Verdict)
		return card, nil
	}
	card.Readers, err = lab.Interview(ctx, items, read, j.readers)
	if card.Readers != nil {
		card.Spent = cli.UsageText(card.Readers.Usage)
		j.asked.SkippedBy(a, card.Readers)
	}
	if errors.Is(err, lab.ErrMaxCost) {
		term.Printf(a.Stderr, "%v after %s\n", err, size.Plural(card.Readers.Sessions, "session"))
		err = nil
	}
	return card, err
}
