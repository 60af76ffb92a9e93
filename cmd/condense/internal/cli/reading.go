package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
)

// Reading has the flags of a test with readers.
type Reading struct {
	Reader, Author, Recall string
	Yes                    bool
	MaxUSD                 float64
}

// AddFlags adds the flags to a command.
func (r *Reading) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.Reader, "reader", "", "`model` that answers questions about each session from every strategy's result")
	f.StringVar(&r.Author, "author", "", "with --reader, `model` that writes the questions and grades the answers blindly (default: the reader)")
	f.StringVar(&r.Recall, "recall", "0", "with --reader, the most `tokens` of a session that a second reader may recall by number or words")
	f.Func("max-cost", "stop when language models have cost this many US `dollars`; finished sessions are reported", func(s string) (err error) {
		if r.MaxUSD, err = strconv.ParseFloat(s, 64); err != nil || !(r.MaxUSD >= 0) {
			return errors.New("this is not an amount of money")
		}
		return nil
	})
	f.BoolVarP(&r.Yes, "yes", "y", false, "do not ask before spending money")
}

// Asked reports whether any flag of readers is set.
func (r *Reading) Asked(cmd *cobra.Command) bool {
	return r.Reader != "" || r.Author != "" || cmd.Flags().Changed("recall")
}

// Options sets the models and limits of o. A model that cannot be called is an error.
func (r *Reading) Options(cmd *cobra.Command, models strategies.Models, o *lab.ReaderOptions) error {
	if r.Reader == "" {
		return Usage(cmd, "--author and --recall need --reader")
	}
	recall, ok := size.Parse(r.Recall)
	if !ok || recall > 0 && recall < lab.LeastRecall {
		const want = "--recall: got %q; want the most tokens of a session, at least %d, as %s; 0 is no recall"
		return Usage(cmd, want, r.Recall, lab.LeastRecall, size.Units)
	}
	o.Recall, o.MaxUSD = int(recall), r.MaxUSD
	for _, m := range []struct {
		flag, name string
		to         *model.Generator
	}{{"reader", r.Reader, &o.Reader}, {"author", cmp.Or(r.Author, r.Reader), &o.Author}} {
		var err error
		if *m.to, err = NamedModel(cmd, models, m.flag, m.name); err != nil {
			return err
		}
	}
	return nil
}

// NamedModel returns the model that a flag names. One that cannot be called is an error.
func NamedModel(cmd *cobra.Command, models strategies.Models, flag, name string) (model.Generator, error) {
	m, err := models.Model("", name)
	if err == nil {
		err = models.Check("", name)
	}
	if err != nil {
		return nil, Usage(cmd, "--%s: %w", flag, err)
	}
	is := models.Reader("", name)
	return identified{m, is.Model + " at " + is.At}, nil
}

// Opener returns an opener of strategies by name with a configuration, and the host that owns their providers.
func Opener(ctx context.Context, a *App, conf *config.Config) (*condense.Host, *strategies.Opener, error) {
	// Chains of profiles that are not compared need not be opened.
	h, err := condense.Open(ctx, &condense.Options{
		Strategies: a.Own,
		Config:     conf.Override(config.Override{Chain: []config.Provider{}}),
		Model:      a.Model, Plugins: Plugins(),
	})
	if err != nil {
		return nil, nil, err
	}
	return h, &strategies.Opener{
		Host: h, Config: conf, Registry: a.Strategies, Model: a.Model, Path: FromHere, Models: resolver.NewModels(conf, a.Models()),
		Pin: func(p config.Provider) (string, error) { return Plugins().Approved(conf, p) },
	}, nil
}

// An identified model is named by its vendor, so that its answers are not taken for those of another one that had the same name in the
// configuration.
type identified struct {
	model.Generator

	name string
}

// Info implements [model.Generator].
func (m identified) Info() model.Info {
	i := m.Generator.Info()
	i.Name = m.name
	return i
}

// Agree prints the highest cost of the questions and answers, and asks for agreement if it is not zero and no limit is set.
func (r *Reading) Agree(a *App, cmd *cobra.Command, items []lab.Item, list []lab.Strategy, o *lab.ReaderOptions) error {
	n, u, err := lab.PlanInterview(cmd.Context(), items, list, o)
	if err != nil || u.Calls == 0 {
		return err
	}
	term.Printf(a.Stderr, "%s to read: at most %s\n", size.Plural(n, "session"), UsageText(u))
	return r.Confirm(a, cmd, u, "a reader", "")
}

// Confirm asks for agreement to spending by somebody, unless it is zero, agreed to or, at known prices, limited.
func (r *Reading) Confirm(a *App, cmd *cobra.Command, u core.Usage, by, without string) error {
	if u.USD == 0 && u.Unpriced == 0 || r.Yes || r.MaxUSD > 0 && u.Unpriced == 0 {
		return nil
	}
	if u.Unpriced == 0 {
		without = ", limit it with --max-cost" + without
	}
	if !term.IsTerminal(a.Stdin) {
		return Usage(cmd, "%s would spend money: agree with --yes%s", by, without)
	}
	term.Printf(a.Stderr, "spent by: %s\n", by)
	if !term.Confirm(a.Stdin, a.Stderr, "continue?") {
		return errors.New("not agreed; nothing was spent")
	}
	return nil
}

// CacheDir returns the folder that --cache means, or "" for none. Without a home folder there is no default.
func CacheDir(name string) (string, error) {
	switch name {
	case "none":
		return "", nil
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", nil //nolint:nilerr // see above
		}
		return filepath.Join(dir, "condense", "compare"), nil
	default:
		return name, os.MkdirAll(name, 0o700)
	}
}

// SkippedBy prints the sessions that were not read, and the strategies without an answer.
func (r *Reading) SkippedBy(a *App, report *lab.ReaderReport) {
	for _, s := range report.Skipped {
		if s.Strategy != "" {
			term.Printf(a.Stderr, "no %s in %s: %s\n", s.Strategy, s.Name, s.Reason)
		} else {
			term.Printf(a.Stderr, "skipped %s: %s\n", s.Name, s.Reason)
		}
	}
}
