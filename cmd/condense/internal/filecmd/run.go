// Package filecmd has the commands that work on one conversation: run, resume, check, view, inspect,
// rewind, undo, recall, search, protect and repair.
package filecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// Commands returns the commands of this package.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{
		runCommand(a), resumeCommand(a), handoffCommand(a), checkCommand(a), viewCommand(a), inspectCommand(a), rewindCommand(a), undoCommand(a), recallCommand(a), searchCommand(a), mcpCommand(a), hookCommand(a), protectCommand(a), repairCommand(a),
	}
}

// A selection has the flags that select and override the configuration.
type selection struct {
	profile, mode, tokenizer, provider string
	settings, originals                string
	window, maxOutput                  cli.SizeFlag
	logger                             *slog.Logger // nil: nothing is logged
	observe                            func(condense.Event)

	config   *config.Config    // set by open
	resolved *config.Resolved  // without the flags
	chain    []config.Provider // with them
	readers  []string          // of conversations, for the chain
}

func (s *selection) flags(a *cli.App, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.profile, "profile", "", "`name` of the profile (default: the mode's, or the default profile)")
	f.StringVar(&s.mode, "mode", "", "`name` of the mode")
	f.Var(&s.window, "window", "context window of the model in `tokens`, as in 64k (default: the profile's)")
	f.Var(&s.maxOutput, "max-output", "longest answer of the model in `tokens`, as in 8k (default: the profile's)")
	f.StringVar(&s.tokenizer, "tokenizer", "", "`name` of the encoding to count with: "+strings.Join(tokens.Names(), ", ")+" (default: the profile's)")
	cli.Complete(cmd, "tokenizer", tokens.Names())
	a.CompletePlace(cmd)
}

// chainFlags adds the flags that replace the chain.
func (s *selection) chainFlags(a *cli.App, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.provider, "provider", "", "`name` of the only provider before truncation: one of the configuration, or a strategy")
	f.StringVar(&s.settings, "settings", "", "its settings as a `JSON` object")
	f.StringVar(&a.Model, "model", "", "`name` of the language model for providers whose settings name none: a model of the configuration, provider/model, or extractive")
	cli.CompleteNames(cmd, "provider", func() []string { return append(a.Configured((*config.Config).Providers), a.Strategies.Names()...) })
}

// check validates the flags.
func (s *selection) check(cmd *cobra.Command) error {
	if s.tokenizer != "" {
		if _, err := tokens.Open(s.tokenizer); err != nil {
			return cli.Usage(cmd, "--tokenizer: %w", err)
		}
	}
	if s.settings != "" && s.provider == "" {
		return cli.Usage(cmd, "--settings needs --provider")
	}
	return nil
}

// open returns the host for the flags and the configuration.
func (s *selection) open(ctx context.Context, cmd *cobra.Command, a *cli.App) (*condense.Host, error) {
	if err := s.check(cmd); err != nil {
		return nil, err
	}
	c, err := a.Load("")
	if err != nil {
		return nil, err
	}
	r, err := c.Resolve(s.profile, s.mode)
	if err != nil {
		return nil, cli.Usage(cmd, "%w", err)
	}
	if err := a.CheckNames(cmd, c, s.mode); err != nil {
		return nil, err
	}
	s.config, s.resolved = c, r
	flags := config.Override{Window: int(s.window), MaxOutput: int(s.maxOutput), Tokenizer: s.tokenizer, Originals: s.originals}
	if s.provider != "" {
		chosen, err := s.chosen(cmd, c)
		if err != nil {
			return nil, err
		}
		flags.Chain = []config.Provider{*chosen}
	}
	if s.chain = flags.Chain; s.chain == nil {
		s.chain = r.Chain
	}
	for _, reader := range a.Readers(c, &config.Resolved{Model: r.Model, Chain: s.chain}) {
		s.readers = append(s.readers, reader.String())
	}
	h, err := condense.Open(ctx, &condense.Options{
		Strategies: a.Own, Config: c.Override(flags), Plugins: cli.Plugins(), Model: a.Model, Logger: s.logger, Observe: s.observe,
	})
	if wrong := (config.Errors{}); err != nil && errors.As(a.Sound(c), &wrong) {
		return nil, wrong
	}
	if err != nil && len(flags.Chain) > 0 && flags.Chain[0].Plugin == "" && ctx.Err() == nil {
		return nil, cli.Usage(cmd, "--provider: %w", err)
	}
	return h, err
}

// chosen returns the provider of --provider: one of the configuration, or a strategy.
func (s *selection) chosen(cmd *cobra.Command, c *config.Config) (*config.Provider, error) {
	p, err := c.Provider(s.provider)
	if err != nil {
		return nil, cli.Usage(cmd, "--provider: %w", err)
	}
	if s.settings != "" {
		if !json.Valid([]byte(s.settings)) {
			return nil, cli.Usage(cmd, "--settings: %s is not JSON", s.settings)
		}
		p.Settings, p.SettingsDir = json.RawMessage(s.settings), ""
	}
	return p, nil
}

// turn returns the next turn of a document, and a description of the settings in the document itself: the model's
// window and the longest answer. The description is empty if neither is used. If the vendor counts other tokens than we do, the window
// and the longest answer are in tokens of our count.
func (s *selection) turn(d *transcript.Document) (condense.Turn, string, *vendorCount) {
	t := condense.Turn{Profile: s.profile, Mode: s.mode, System: d.System, Tools: d.Tools}
	var said []string
	if d.Model != "" && d.IsRequest() && s.window == 0 && s.resolved.Origin("window").Kind == config.FromDefault {
		if m, err := s.config.Model(d.Model); err == nil && m.Window > 0 {
			t.Window = m.Window
			said = append(said, fmt.Sprintf("model %s, window %s", d.Model, size.Group(m.Window)))
		} else {
			said = append(said, fmt.Sprintf("model %s, unknown window: set it with --window or in the configuration", d.Model))
		}
	}
	if d.MaxOutput > 0 && s.maxOutput == 0 && s.resolved.MaxOutput == 0 {
		t.MaxOutput = d.MaxOutput
		said = append(said, "max_output "+size.Group(d.MaxOutput))
	}
	encoding, err := tokens.Open(s.resolved.Tokenizer)
	if err != nil || s.tokenizer != "" || s.resolved.Origin("tokenizer").Kind != config.FromDefault {
		return t, strings.Join(said, "; "), nil // it is the user's choice what to count with
	}
	v := vendorCountOf(d, &t, tokens.NewCounter(encoding), cmp.Or(t.Window, int(s.window), s.resolved.Window))
	if v != nil {
		t.Window, t.Besides = v.ours(v.Window), v.ours(v.Besides)
		t.MaxOutput = int(float64(cmp.Or(t.MaxOutput, int(s.maxOutput), s.resolved.MaxOutput)) / v.factor)
	}
	return t, strings.Join(said, "; "), v
}

func runCommand(a *cli.App) *cobra.Command {
	r := runFlags{file: cli.Rewriting{Keeps: cli.RecordCondensations, Lost: "what is condensed away"}}
	cmd := &cobra.Command{
		Use: "run FILE|-", Short: "Condense a conversation", Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.file.In = args[0]
			if err := r.check(cmd); err != nil {
				return err
			}
			return r.run(a, cmd)
		},
	}
	r.sel.flags(a, cmd)
	a.InputFlags(cmd, &r.file.Format, &r.file.To)
	r.file.Flags(cmd)
	r.sel.chainFlags(a, cmd)
	f := cmd.Flags()
	f.StringVarP(&r.file.Out, "output", "o", "", "`file` to write to (default: standard output)")
	f.StringVar(&r.report, "report", "", "`file` for the report as JSON; - is standard output")
	f.StringVar(&r.ask, "instructions", "", "`text` with your instructions, for providers that use it")
	f.StringVar(&r.dir, "dir", "", "working `directory` of the agent, where providers may read again the files that it read (default: that of the session, if it is this one or below)")
	f.StringVar(&r.sel.originals, "originals", "",
		"`where` to keep copies of hidden and rewritten messages: parts (FILE.history/part-N.jsonl) or none (default: the profile's)")
	cli.Complete(cmd, "originals", []string{config.OriginalsNone, config.OriginalsParts})
	f.StringVar(&r.environment, "environment", "", "`file` with the agent's current environment details, for providers that use it")
	f.BoolVar(&r.force, "force", false, "condense even if it is not due")
	f.BoolVar(&r.overflow, "overflow", false, "condense because the model's API rejected the conversation as too large")
	cmd.MarkFlagsMutuallyExclusive("force", "overflow")
	f.StringVar(&r.log, "log", "", "print log messages of plugins and of the host from this `level` up: "+strings.Join(cli.LogLevels, ", "))
	cli.Complete(cmd, "log", cli.LogLevels)
	f.BoolVarP(&r.loud, "verbose", "v", false, "report each step of the providers, and the same as --log info")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no report on standard error")
	return cmd
}

// runFlags are the arguments of run.
type runFlags struct {
	sel              selection
	file             cli.Rewriting
	report, ask, dir string
	environment, log string
	force, quiet     bool
	overflow, loud   bool
	whole            *whole
}

// check finds arguments that contradict each other, before anything is opened.
func (r *runFlags) check(cmd *cobra.Command) error {
	in, out, to := r.file.In, r.file.Out, r.file.To
	switch {
	case r.report == "-" && !r.toFile():
		return cli.Usage(cmd, "the report and the conversation cannot both go to standard output: name a file with --report or -o")
	case to != "" && !slices.Contains(cli.FormatNames(), to):
		return cli.Usage(cmd, "--to: no format %q; there are %s", to, strings.Join(cli.FormatNames(), ", "))
	case r.report != "" && (cli.SameFile(r.report, in) || r.report == out || cli.SameFile(r.report, out)):
		return cli.Usage(cmd, "--report: %s is the conversation; name another file", r.report)
	}
	if o := r.sel.originals; o != "" && o != config.OriginalsNone && o != config.OriginalsParts {
		return cli.Usage(cmd, "--originals: %q is neither %s nor %s", o, config.OriginalsNone, config.OriginalsParts)
	}
	return nil
}

func (r *runFlags) toFile() bool { return r.file.Out != "" && r.file.Out != "-" }

// format is the format of the written conversation.
func (r *runFlags) format() string { return cmp.Or(r.file.To, r.file.Document.Format) }

func (r *runFlags) run(a *cli.App, cmd *cobra.Command) error {
	var w *wait
	if !r.quiet {
		w = r.sel.watch(a, r.file.In)
	}
	var err error
	if r.sel.logger, err = a.Logger(cmd, r.log, r.loud); err != nil {
		return err
	}
	reportTo, err := a.Output(r.report, r.file.In)
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer reportTo.Close()
	defer r.file.Close()
	if err := r.file.Open(a, cmd); err != nil {
		return err
	}
	if r.whole, err = wholeOf(r.file.In, r.file.Document.Journal); err != nil {
		return err
	}
	h, err := r.sel.open(cmd.Context(), cmd, a)
	if err != nil {
		return err
	}
	defer h.Close()
	turn, request, vendor, err := r.turn(a, cmd)
	if err != nil {
		return err
	}
	conversation := r.conversation()
	if !slices.Contains(cli.OutputFormats(), r.format()) { // fail before a model costs money
		decision, err := cli.Await(cmd.Context(), func() (policy.Decision, error) { return h.Check(conversation, turn) })
		if err == nil && decision.Act {
			return cli.Usage(cmd, "--to: the format %s is read-only, and the conversation would change; choose one of %s",
				r.format(), strings.Join(cli.OutputFormats(), ", "))
		}
	}
	if r.toFile() { // it must be written even if the reader of the report goes away
		gone := make(chan os.Signal, 1)
		signal.Notify(gone, syscall.SIGPIPE)
		defer signal.Stop(gone)
	}
	result, err := manage(w.listen(cmd.Context()), h, conversation, turn, vendor, !r.quiet || r.report != "")
	if err != nil {
		err = fmt.Errorf("%s: %w", r.file.In, err)
	}
	return r.write(a, reportTo, request, result, err)
}

// turn returns the turn to manage and, for the report, the settings that come from the document if it is a request.
func (r *runFlags) turn(a *cli.App, cmd *cobra.Command) (turn condense.Turn, request string, vendor *vendorCount, err error) {
	turn, request, vendor = r.sel.turn(r.file.Document)
	turn.API = r.format()
	// A handle is a promise: in a file with only the view it would lead nowhere.
	turn.NoRecall = !r.promises()
	turn.Numbers = r.whole.numbers(r.file.Document.Journal.View())
	turn.Instructions, turn.Estimate = r.ask, !r.quiet || r.report != ""
	if r.dir != "" {
		if turn.Dir, err = workingDir(r.dir); err != nil {
			return turn, request, vendor, cli.Usage(cmd, "--dir: %w", err)
		}
	}
	if r.dir == "" {
		turn.Dir = r.named()
	}
	if r.environment != "" {
		if turn.Environment, err = a.Text(cmd.Context(), r.environment); err != nil {
			return turn, request, vendor, fmt.Errorf("--environment: %w", err)
		}
	}
	switch {
	case r.force:
		turn.Trigger = core.TriggerManual
	case r.overflow:
		turn.Trigger = core.TriggerOverflow
	}
	return turn, request, vendor, nil
}

// named returns the folder that the session names as the agent's, if it is the current one or below it: a session of
// somebody else must not decide which files are read.
func (r *runFlags) named() string {
	if r.file.In == "" || r.file.In == "-" {
		return ""
	}
	f, err := os.Open(r.file.In)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it was only read
	dir, err := filepath.EvalSymlinks(sessions.Folder(r.file.Document.Format, f))
	here, gone := os.Getwd()
	here, moved := filepath.EvalSymlinks(here)
	rel, apart := filepath.Rel(here, dir) // of no folder there is none
	if errors.Join(err, gone, moved, apart) != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return dir
}

// promises reports whether what is left out can be recalled from the file.
func (r *runFlags) promises() bool {
	return cli.RecordCondensations[r.format()] || r.whole.ids != nil || cmp.Or(r.sel.originals, r.sel.resolved.Originals) == config.OriginalsParts
}

// conversation resumes the document, with its originals beside the file that the agent continues with.
func (r *runFlags) conversation() *condense.Conversation {
	c := condense.ResumeConversation(r.file.Document.Journal)
	for _, file := range []string{r.file.Out, r.file.In} {
		if file != "" && file != "-" {
			c.KeepOriginals(originalsDir(file))
			break
		}
	}
	return c
}

// write writes the conversation and the report. A file is written before the report, whose reader may be gone.
func (r *runFlags) write(a *cli.App, reportTo *cli.Output, request string, result *managed, err error) error {
	finish := func() {
		if err == nil && (result.Acted || !cli.SameFile(r.file.In, r.file.Out) || r.format() != r.file.Document.Format) {
			err = r.file.Finish(a)
			switch promised := r.whole.ids != nil || !cli.RecordCondensations[r.format()] && hasNumbers(r.file.Document.Journal.View()); {
			case err != nil || !r.toFile():
			case promised:
				err = r.whole.keep(r.file.Document.Journal, r.file.Out)
			default: // the conversation that was in this file before
				_ = os.Remove(sessions.Whole(r.file.Out)) // there is none, most often
			}
		}
	}
	if r.toFile() {
		finish()
	}
	if result != nil && r.report != "" {
		err = errors.Join(err, printReportJSON(reportTo, result))
	}
	if result != nil && !r.quiet {
		result.steps = r.loud || r.log != ""
		printReport(a.Stderr, r.file.In, r.file.Document.Format, r.format(), request, r.sel.readers, result)
	}
	if !r.toFile() {
		finish()
	}
	switch {
	case err != nil:
		return err
	case !result.Acted:
		return cli.ErrNothing
	}
	return nil
}

// workingDir returns the absolute path of an existing directory.
func workingDir(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	return filepath.Abs(dir)
}

func printReportJSON(o *cli.Output, r *managed) error {
	var b bytes.Buffer
	if err := term.PrintJSON(&b, r); err != nil {
		return err
	}
	return o.Write(b.Bytes())
}

// originalsDir returns the directory for the originals of the conversation in a file.
func originalsDir(file string) string { return file + ".history" }
