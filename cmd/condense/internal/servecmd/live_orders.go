package servecmd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/size"
)

func (l *liveFlags) nowCommand() *cobra.Command {
	var ask control.Ask
	var target string
	cmd := &cobra.Command{
		Use: "now [ID]", Short: "Condense before the next request of a conversation", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := setTarget(cmd, target, &ask); err != nil {
				return err
			}
			return l.withOne(cmd, args, func(d controller, c *control.Conversation) error {
				if err := l.knows(cmd, &ask); err != nil {
					return err
				}
				return l.done(cmd, d, c, session.OrderNow, &ask)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&ask.Profile, "profile", "", "`name` of the profile whose chain condenses")
	f.StringVar(&ask.Provider, "provider", "", "`name` of the only provider before truncation: one of the configuration, or a strategy")
	f.StringVar(&target, "target", "", "`size` to condense to: tokens of the request, or percent of the window, as 20%")
	cli.CompleteNames(cmd, "provider", func() []string {
		return append(l.app.Configured((*config.Config).Providers), l.app.Strategies.Names()...)
	})
	cli.CompleteNames(cmd, "profile", func() []string { return l.app.Configured((*config.Config).Profiles) })
	return cmd
}

// knows checks the profile and the provider that the user names. A gateway elsewhere has a configuration of its own.
func (l *liveFlags) knows(cmd *cobra.Command, ask *control.Ask) error {
	if l.admin != "" {
		return nil
	}
	if names := l.config.Profiles(); ask.Profile != "" && !slices.Contains(names, ask.Profile) {
		return cli.Usage(cmd, "--profile: no profile %q; there are %s", ask.Profile, strings.Join(names, ", "))
	}
	if _, err := l.config.Provider(ask.Provider); ask.Provider != "" && err != nil {
		return cli.Usage(cmd, "--provider: %w", err)
	}
	return nil
}

// setTarget reads --target.
func setTarget(cmd *cobra.Command, text string, ask *control.Ask) error {
	if text == "" {
		return nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(p > 0 && p < 100) {
			return cli.Usage(cmd, "--target: %q: want a percentage above 0 and below 100", text)
		}
		ask.Percent = p
		return nil
	}
	n, ok := size.Parse(text)
	if !ok || n <= 0 {
		return cli.Usage(cmd, "--target: %q: want tokens, as 40000 or 40k, or percent of the window, as 20%%", text)
	}
	ask.Tokens = int(n)
	return nil
}

func (l *liveFlags) undoCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "undo [ID]", Short: "Take the last condensation of a conversation back", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.withOne(cmd, args, func(d controller, c *control.Conversation) error {
				p, err := d.PlanUndo(cmd.Context(), c)
				if err != nil {
					return fmt.Errorf("%s: %w", c.Short(), err)
				}
				if l.output != "json" {
					_ = term.PrintText(l.app.Stdout, planned(c, p)) // like Printf, it ignores a broken pipe
				}
				switch {
				case yes:
				case !term.IsTerminal(l.app.Stdin):
					return cli.Usage(cmd, "standard input is no terminal: --yes undoes without asking")
				case !term.Confirm(l.app.Stdin, l.app.Stderr, "Undo it? [y/N] "):
					return errors.New("nothing was undone")
				}
				return l.done(cmd, d, c, session.OrderUndo, &control.Ask{})
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// planned describes the consequences of an undo.
func planned(c *control.Conversation, p *control.UndoPlan) string {
	what := "the client's own history"
	if !p.Own {
		what = "what the condensation before left"
	}
	text := fmt.Sprintf("%s: the next request sends %s, about %s tokens in place of %s (at most %s fit)\n", c.Short(), what, size.Group(p.Size), size.Group(c.Size), size.Group(p.Most))
	if p.Priced {
		text += fmt.Sprintf("  its prompt is written to the vendor's cache again: about %s in place of %s; every request after costs about %s more\n",
			size.Dollars(p.Cost, 2), size.Dollars(p.Instead, 2), size.Dollars(p.Each, 3))
	} else {
		text += "  its prompt is written to the vendor's cache again; no price is known for the model\n"
	}
	if p.Thinking {
		text += "  the model binds its thinking: its thinking since then is left out\n"
	}
	return text
}

func (l *liveFlags) pauseCommand(on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause [ID]", Short: "Condense a conversation only where the vendor would refuse it", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return l.do(cmd, args, "pause", &control.Ask{}) },
	}
	if !on {
		cmd.Use, cmd.Short = "resume [ID]", "Condense a conversation as ever again"
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return l.do(cmd, args, "resume", &control.Ask{}) }
	}
	return cmd
}

func (l *liveFlags) protectCommand(on bool) *cobra.Command {
	asText := false
	name := "protect"
	cmd := &cobra.Command{
		Use: "protect [ID] TEXT|MESSAGE", Short: "Keep a text or a message verbatim in every condensation from now on",
		Args: cobra.RangeArgs(1, 2), //nolint:mnd // the conversation, and the point
		RunE: func(cmd *cobra.Command, args []string) error {
			what := args[len(args)-1]
			ask := control.Ask{Text: what}
			if n, err := strconv.Atoi(what); err == nil && !asText {
				ask = control.Ask{Message: n}
				if n < 1 {
					return cli.Usage(cmd, "messages have numbers from 1; --text takes %s as a text", what)
				}
			}
			return l.do(cmd, args[:len(args)-1], name, &ask)
		},
	}
	if !on {
		name = "unprotect"
		cmd.Use, cmd.Short = "unprotect [ID] TEXT|MESSAGE", "End a protection"
	}
	cmd.Flags().BoolVar(&asText, "text", false, "a number is a text")
	return cmd
}

// do does something with the conversation that the user means, and says so.
func (l *liveFlags) do(cmd *cobra.Command, args []string, action string, ask *control.Ask) error {
	return l.withOne(cmd, args, func(d controller, c *control.Conversation) error { return l.done(cmd, d, c, action, ask) })
}

// withOne opens the controller and calls f with the conversation that the user means.
func (l *liveFlags) withOne(cmd *cobra.Command, args []string, f func(controller, *control.Conversation) error) error {
	return l.with(cmd, func(d controller) error {
		c, err := l.chosenOne(cmd, d, args)
		if err != nil {
			return err
		}
		return f(d, c)
	})
}

func (l *liveFlags) done(cmd *cobra.Command, d controller, c *control.Conversation, action string, ask *control.Ask) error {
	if err := d.Do(cmd.Context(), c, action, ask); err != nil {
		return fmt.Errorf("%s: %w", c.Short(), err)
	}
	if l.output == "json" {
		return term.PrintJSON(l.app.Stdout, c)
	}
	term.Printf(l.app.Stdout, "%s: %s\n", c.Short(), sayings[action](c))
	return nil
}

// sayings describe the effect of each action.
var sayings = map[string]func(*control.Conversation) string{
	session.OrderNow:  func(*control.Conversation) string { return "is condensed before its next request" },
	session.OrderUndo: func(*control.Conversation) string { return "its last condensation is undone with the next request" },
	"pause": func(*control.Conversation) string {
		return "is condensed only where the vendor would refuse it, until 'condense live resume'"
	},
	"resume": func(*control.Conversation) string { return "is condensed as ever" },
	"protect": func(c *control.Conversation) string {
		return "is kept verbatim from now on; " + size.Plural(len(c.Protections), "protection")
	},
	"unprotect": func(*control.Conversation) string { return "is not protected any more" },
}
