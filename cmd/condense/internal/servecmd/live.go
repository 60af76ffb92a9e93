package servecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// recent is how long ago a conversation may have been used to count as running.
const recent = time.Hour

func liveCommand(a *cli.App) *cobra.Command {
	l := &liveFlags{app: a}
	cmd := &cobra.Command{
		Use:   "live",
		Short: "See and direct the conversations of running agents: condense now, undo, pause, protect",
		Long: `live lists the conversations that went through the gateways of condense serve and condense wrap in the last hour. Its commands ask for something
that is done with the next request of a conversation, whichever gateway gets it, and survive a restart.

It reads and writes the store that the gateways share (serve.store). For a gateway on another machine, or with --store memory, name its admin
address with --admin; the token is from the configuration (serve.token_env or serve.token_file).

An ID can be shortened. Without one, the only running conversation is meant, or that of the Claude Code that runs the command, or the only one in
this folder.`,
		Example: `  condense live
  condense live now
  condense live undo 3kq7
  condense live --output json`,
		Args: cli.NoArguments("condense live now, undo, pause, resume, protect, unprotect, show, mcp"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(d desk) error { return l.list(cmd, d) })
		},
	}
	cmd.AddCommand(
		l.listCommand(), l.nowCommand(), l.undoCommand(), l.pauseCommand(true), l.pauseCommand(false), l.protectCommand(true), l.protectCommand(false), l.showCommand(), l.mcpCommand(),
	)
	f := cmd.PersistentFlags()
	f.StringVar(&l.store, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.StringVar(&l.admin, "admin", "", "`URL` of a gateway's own pages, in place of a store")
	f.StringVarP(&l.output, "output", "o", "table", "`format`: table or json")
	cli.Complete(cmd, "output", liveFormats)
	l.listFlags(cmd)
	return cmd
}

var liveFormats = []string{"table", "json"}

// liveFlags are the flags that all commands of live share.
type liveFlags struct {
	app                  *cli.App
	store, admin, output string
	since                time.Duration
	all                  bool
	config               *config.Config
}

// A desk is a [control.Desk], or the gateway's at an admin address.
type desk interface { //nolint:interfacebloat // all that the commands do
	Conversations(ctx context.Context, since time.Time) ([]*control.Conversation, error)
	Do(ctx context.Context, c *control.Conversation, action string, a *control.Ask) error
	Plan(ctx context.Context, c *control.Conversation) (*control.UndoPlan, error)
	Show(ctx context.Context, c *control.Conversation) (*control.View, error)
}

// near is the desk of a store.
type near struct{ *control.Desk }

// Plan returns the consequences of an undo.
func (n near) Plan(_ context.Context, c *control.Conversation) (*control.UndoPlan, error) {
	return n.PlanUndo(c)
}

// startOne says how there is something to direct.
const startOne = "start an agent with 'condense wrap AGENT', or a gateway with 'condense serve'"

// with opens the desk and calls f.
func (l *liveFlags) with(cmd *cobra.Command, f func(desk) error) error {
	if !slices.Contains(liveFormats, l.output) {
		return cli.Usage(cmd, "--output: no format %q; there are %s", l.output, strings.Join(liveFormats, ", "))
	}
	load := l.app.Names()
	load.Path = l.app.ConfigPath
	if l.store != "" {
		if l.admin != "" {
			return cli.Usage(cmd, "--store and --admin cannot be combined")
		}
		load.Flags = map[string]string{"serve.store": l.store}
	}
	c, err := l.app.LoadWith(load)
	if err != nil {
		return named(cmd, err)
	}
	l.config = c
	if l.admin != "" {
		return l.far(cmd, f)
	}
	path := c.Serve().Store
	switch path {
	case "":
		return errors.New("there is no home folder with a store: name a file with --store, or the admin address of a gateway with --admin")
	case config.StoreMemory:
		return errors.New("serve.store is memory: name the admin address of the running gateway with --admin")
	}
	if _, err := os.Stat(path); !store.IsPostgres(path) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no gateway has run with the store %s yet: %s", cli.FromHere(path), startOne)
	}
	d, err := control.Open(cmd.Context(), path)
	if err != nil {
		return err
	}
	return errors.Join(f(near{d}), d.Close())
}

// where returns the flags with which a command that is pasted into a shell finds the same conversations, with a space
// in front; empty if it needs none. The address of a database can have a password: the configuration has it.
func (l *liveFlags) where() string {
	path := l.config.Serve().Store
	if own, err := config.Load(l.app.Names()); l.admin == "" && err == nil && own.Serve().Store == path {
		return ""
	}
	var flags []string
	if l.app.ConfigPath != "" && (l.admin != "" || store.IsPostgres(path)) {
		file, err := filepath.Abs(l.app.ConfigPath)
		if err != nil {
			file = l.app.ConfigPath
		}
		flags = append(flags, "--config", file)
	}
	switch {
	case l.admin != "":
		flags = append(flags, "--admin", l.admin)
	case !store.IsPostgres(path):
		flags = append(flags, "--store", path)
	}
	if len(flags) == 0 {
		return ""
	}
	return " " + shellLine(flags)
}

// far calls f with the desk of the gateway at an admin address.
func (l *liveFlags) far(cmd *cobra.Command, f func(desk) error) error {
	u, err := url.Parse(l.admin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return cli.Usage(cmd, "--admin: %q is no address such as http://127.0.0.1:8766", l.admin)
	}
	token, err := readToken(l.config.Serve())
	if err != nil {
		return err
	}
	return f(&farDesk{base: strings.TrimRight(u.Scheme+"://"+u.Host, "/"), token: token})
}

// A farDesk is the desk of the gateway at an admin address.
type farDesk struct{ base, token string }

func (d *farDesk) ask(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, d.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("X-Condense-Token", d.token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			return fmt.Errorf("no gateway answers at %s: %s, and use the second address that it prints", d.base, startOne)
		}
		return err
	}
	const most = 64 << 20
	text, err = io.ReadAll(io.LimitReader(res.Body, most))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		var fault struct{ Error string }
		if json.Unmarshal(text, &fault) == nil && fault.Error != "" {
			return errors.New(fault.Error)
		}
		return fmt.Errorf("%s: %s: %s", d.base, res.Status, strings.TrimSpace(string(text[:min(len(text), 300)])))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s is no admin address of condense serve", d.base)
	}
	return nil
}

// Conversations is [control.Desk.Conversations].
func (d *farDesk) Conversations(ctx context.Context, since time.Time) ([]*control.Conversation, error) {
	var got struct{ Conversations []*control.Conversation }
	const always = 10 * 365 * 24 * time.Hour
	age := always
	if !since.IsZero() {
		age = time.Since(since)
	}
	err := d.ask(ctx, http.MethodGet, "/condense/live?since="+url.QueryEscape(age.String()), nil, &got)
	return got.Conversations, err
}

// Do is [control.Desk.Do].
func (d *farDesk) Do(ctx context.Context, c *control.Conversation, action string, a *control.Ask) error {
	return d.ask(ctx, http.MethodPost, "/condense/live/"+c.ID+"/"+action, a, c)
}

// Plan is [control.Desk.PlanUndo].
func (d *farDesk) Plan(ctx context.Context, c *control.Conversation) (*control.UndoPlan, error) {
	p := &control.UndoPlan{}
	return p, d.ask(ctx, http.MethodGet, "/condense/live/"+c.ID+"/undo", nil, p)
}

// Show is [control.Desk.Show].
func (d *farDesk) Show(ctx context.Context, c *control.Conversation) (*control.View, error) {
	v := &control.View{}
	return v, d.ask(ctx, http.MethodGet, "/condense/live/"+c.ID, nil, v)
}

func (l *liveFlags) listFlags(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&l.since, "since", recent, "list what was used in the last `time`")
	cmd.Flags().BoolVar(&l.all, "all", false, "list all that the store has")
}

func (l *liveFlags) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the running conversations, as live alone does", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(d desk) error { return l.list(cmd, d) })
		},
	}
	l.listFlags(cmd)
	return cmd
}

func (l *liveFlags) list(cmd *cobra.Command, d desk) error {
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
	if len(all) == 0 {
		term.Printf(w, "no conversation was used lately: %s; --all lists what is kept\n", startOne)
		return nil
	}
	_ = term.PrintText(w, listed(all)) // like Printf, it ignores a broken pipe
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
	if c.Undone {
		all = append(all, c.Short()+": its last condensation is undone; only a full window, or 'condense live now', brings the next one")
	}
	if c.Paused {
		all = append(all, c.Short()+": paused; only conversations that the vendor would refuse are condensed, until 'condense live resume'")
	}
	if n := len(c.Protections); n > 0 {
		all = append(all, fmt.Sprintf("%s: %s kept verbatim", c.Short(), count(n, "protection")))
	}
	return all
}

// chosenOne returns the conversation that the user means.
func (l *liveFlags) chosenOne(cmd *cobra.Command, d desk, args []string) (*control.Conversation, error) {
	if len(args) > 0 {
		all, err := d.Conversations(cmd.Context(), time.Time{})
		if err != nil {
			return nil, err
		}
		return control.Find(all, args[0])
	}
	all, err := d.Conversations(cmd.Context(), time.Now().Add(-recent))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c *control.Conversation) bool { return c.SubAgent != "" })
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("no conversation was used in the last hour: name one of 'condense live --all', or %s", startOne)
	case 1:
		return all[0], nil
	}
	if own := os.Getenv("CLAUDE_CODE_SESSION_ID"); own != "" { // Claude Code has started this command
		if i := slices.IndexFunc(all, func(c *control.Conversation) bool { return c.Session == own }); i >= 0 {
			return all[i], nil
		}
	}
	if here, err := os.Getwd(); err == nil {
		in := slices.DeleteFunc(slices.Clone(all), func(c *control.Conversation) bool { return c.Folder != here })
		if len(in) == 1 {
			return in[0], nil
		}
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, strings.Join(strings.Fields(c.Short()+" "+c.Agent+" "+cmp.Or(c.Folder, c.Title)), " "))
	}
	return nil, cli.Usage(cmd, "%d conversations are running, name one: %s", len(all), strings.Join(ids, "; "))
}

// do does something with the conversation that the user means, and says so.
func (l *liveFlags) do(cmd *cobra.Command, args []string, action string, ask *control.Ask) error {
	return l.with(cmd, func(d desk) error {
		c, err := l.chosenOne(cmd, d, args)
		if err != nil {
			return err
		}
		return l.done(cmd, d, c, action, ask)
	})
}

func (l *liveFlags) done(cmd *cobra.Command, d desk, c *control.Conversation, action string, ask *control.Ask) error {
	if err := d.Do(cmd.Context(), c, action, ask); err != nil {
		return fmt.Errorf("%s: %w", c.Short(), err)
	}
	if l.output == "json" {
		return term.PrintJSON(l.app.Stdout, c)
	}
	term.Printf(l.app.Stdout, "%s: %s\n", c.Short(), sayings[action](c))
	return nil
}

func (l *liveFlags) nowCommand() *cobra.Command {
	var ask control.Ask
	var target string
	cmd := &cobra.Command{
		Use:   "now [ID]",
		Short: "Condense before the next request of a conversation",
		Long: `now condenses a conversation before its next request, with the chain that its gateway would use, or the one that you name. If that asks a language
model, the next request does not wait: the one after uses the result.`,
		Example: `  condense live now
  condense live now 3kq7 --target 20%
  condense live now 3kq7 --provider slidingwindow`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := setTarget(cmd, target, &ask); err != nil {
				return err
			}
			return l.with(cmd, func(d desk) error {
				if err := l.knows(cmd, &ask); err != nil {
					return err
				}
				c, err := l.chosenOne(cmd, d, args)
				if err != nil {
					return err
				}
				return l.done(cmd, d, c, live.OrderNow, &ask)
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
		Use:   "undo [ID]",
		Short: "Take the last condensation of a conversation back",
		Long: `undo makes the next request send what would have been sent without the last condensation: the client's own history, or what an earlier condensation
left. It first prints the cost in the vendor's cache, and asks. The conversation is not condensed again at once: only a full window, or
'condense live now', does that.

A model that binds its thinking to what was sent before it gets the messages back without its thinking since the condensation.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.with(cmd, func(d desk) error {
				c, err := l.chosenOne(cmd, d, args)
				if err != nil {
					return err
				}
				p, err := d.Plan(cmd.Context(), c)
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
				return l.done(cmd, d, c, live.OrderUndo, &control.Ask{})
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
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.do(cmd, args, "pause", &control.Ask{})
		},
	}
	if !on {
		cmd.Use, cmd.Short = "resume [ID]", "Condense a conversation as ever again"
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return l.do(cmd, args, "resume", &control.Ask{})
		}
	}
	return cmd
}

func (l *liveFlags) protectCommand(on bool) *cobra.Command {
	asText := false
	name := "protect"
	cmd := &cobra.Command{
		Use:   "protect ID TEXT|MESSAGE",
		Short: "Keep a text or a message verbatim in every condensation from now on",
		Long: `protect keeps all messages with a text, or the message with a number, verbatim from now on, in every strategy. The numbers are shown by
'condense live show': the place in the agent's own history. What is condensed already stays so until that is undone.`,
		Example: `  condense live protect 3kq7 "never touch the migrations"
  condense live protect 3kq7 12`,
		Args: cobra.ExactArgs(2), //nolint:mnd // the conversation, and the point
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := control.Ask{Text: args[1]}
			if n, err := strconv.Atoi(args[1]); err == nil && !asText {
				ask = control.Ask{Message: n}
				if n < 1 {
					return cli.Usage(cmd, "messages have numbers from 1; --text takes %s as a text", args[1])
				}
			}
			return l.do(cmd, args[:1], name, &ask)
		},
	}
	if !on {
		name = "unprotect"
		cmd.Use, cmd.Short, cmd.Long, cmd.Example = "unprotect ID TEXT|MESSAGE", "End a protection", "", ""
	}
	cmd.Flags().BoolVar(&asText, "text", false, "a number is a text")
	return cmd
}

func (l *liveFlags) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [ID]",
		Short: "Print the view of a conversation, with the hidden messages",
		Long: `show prints what is sent in place of the first messages of a conversation, and the messages that are hidden by it, one per line: number, role and
beginning. The messages that follow are sent as the client has them. They are not stored, so they are not printed. Hidden messages are stored
only where the agent can recall them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.with(cmd, func(d desk) error {
				c, err := l.chosenOne(cmd, d, args)
				if err != nil {
					return err
				}
				v, err := d.Show(cmd.Context(), c)
				if err != nil {
					return err
				}
				if l.output == "json" {
					return term.PrintJSON(l.app.Stdout, v)
				}
				printShown(l.app.Stdout, v)
				return nil
			})
		},
	}
}

func printShown(w io.Writer, v *control.View) {
	if v.Whole {
		term.Printf(w, "nothing is hidden: the model has all %s as the client has them%s\n", count(v.Rest, "message"), shortened(v))
		return
	}
	for _, m := range v.Messages {
		number, note := "", ""
		if m.Number > 0 {
			number = strconv.Itoa(m.Number)
		}
		switch {
		case m.Hidden:
			note = "hidden: "
		case m.Condensed:
			note = "condensed: "
		}
		if m.Protected {
			note = "protected: " + note
		}
		const most = 100
		text := strings.Join(strings.Fields(m.Text), " ")
		if len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		term.Printf(w, "%5s %-9s %s%s\n", number, m.Role, note, text)
	}
	if v.Unknown > 0 {
		term.Printf(w, "the above is sent in place of messages 1 to %d; %s of them are not stored, because the agent cannot recall them\n", v.Hidden, size.Group(v.Unknown))
	}
	term.Printf(w, "messages %d to %d follow as the client has them%s\n", v.Hidden+1, v.Hidden+v.Rest, shortened(v))
}

func shortened(v *control.View) string {
	if v.Shortened == 0 {
		return ""
	}
	return fmt.Sprintf(", %s shortened before they were first sent", count(v.Shortened, "result"))
}
