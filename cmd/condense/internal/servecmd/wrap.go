package servecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/live"
)

// afterAgent is how long wrap waits for requests that the agent has left when it ended.
const afterAgent = time.Second

func wrapCommand(a *cli.App) *cobra.Command {
	var flags gatewayFlags
	quiet, status := false, false
	cmd := &cobra.Command{
		Use: "wrap [flags] AGENT [ARGUMENT…] | [flags] -- COMMAND [ARGUMENT…]", Short: "Run an agent whose conversations are condensed",
		Long: `wrap runs an agent with a gateway of its own: it takes a free port, starts the agent so that it sends its requests there, and
ends with the agent. Nothing is written into your files, and no key or account is needed: the agent's own key passes
through. The agent keeps its terminal, signals and exit code. At the end wrap prints a summary on standard error.

The agents are ` + strings.Join(wrappable(), ", ") + `. Everything after the agent's name is for the agent. A command after --
that is none of them gets ANTHROPIC_BASE_URL and OPENAI_BASE_URL. Addresses that the agent has already, in these
variables or in its settings, become the gateway's upstreams.

--account client has the agent's own model write an account of the work before the window is full, with the agent's API key, never
with the login of a plan. wrap shows what that costs and asks once for each agent; condense trust --list shows what you agreed to.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "no agent; name one of %s, or a command after --", strings.Join(wrappable(), ", "))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return wrappable(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, command, err := chosen(cmd, args)
			if err != nil {
				return err
			}
			if need := pointOf(agent).Need; need != nil && talks(agent, command[1:]) && !slices.ContainsFunc(need.Any, given) {
				return fmt.Errorf("%s cannot be wrapped like this: %s", agent.Title, need.Text)
			}
			flags.recall, flags.alone, flags.page = pointOf(agent).Recall != nil, true, flags.page || flags.browse
			if status && pointOf(agent).Status == nil && pointOf(agent).Meter == nil {
				status = false
				term.Printf(a.Stderr, "condense: %s starts without a status line, which it cannot show: "+
					"condense statusline prints one for tmux or a shell\n", agent.Title)
			}
			return wrap(cmd, a, &flags, agent, command, quiet, status)
		},
	}
	flags.add(a, cmd)
	level := cmd.Flags().Lookup("log")
	level.DefValue, flags.log = "warn", "warn"
	level.Usage = strings.Replace(level.Usage, "logged on standard error", "logged on standard error when the agent has ended", 1)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing at the end")
	cmd.Flags().BoolVar(&status, "status", false, "show 'condense statusline' inside the agent in this run: "+showing)
	cmd.Flags().BoolVar(&flags.keepLimit, "keep-limit", false,
		"let the agent condense by itself at its usual size; otherwise it does later in this run, unless you have set the size")
	cmd.Flags().BoolVar(&flags.page, "page", false, "print the address of a page with this run's conversations, their texts and buttons, for the browser of this machine")
	cmd.Flags().BoolVar(&flags.browse, "open", false, "open that page in the browser")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// wrappable are the names of the agents that can be wrapped, without the name for all others.
func wrappable() []string {
	return slices.DeleteFunc(agents.Names(), func(name string) bool {
		a := agents.Find(name)
		return a == agents.Any() || pointOf(a).Need != nil && pointOf(a).Need.Any == nil
	})
}

// given reports whether a variable has a value.
func given(name string) bool { return os.Getenv(name) != "" }

// chosen returns the agent and the command to run. A command after -- can be an agent's program
// at another place.
func chosen(cmd *cobra.Command, args []string) (*agents.Agent, []string, error) {
	if cmd.ArgsLenAtDash() == 0 {
		name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
		if agent := agents.Find(name); agent != nil && agent.Command == name {
			return agent, args, nil
		}
		return agents.Any(), args, nil
	}
	agent := agents.Find(args[0])
	if agent == nil || agent == agents.Any() {
		return nil, nil, cli.Usage(cmd, "no agent %q; there are %s; for any other command: condense wrap -- COMMAND%s",
			args[0], strings.Join(wrappable(), ", "), suggest.DidYouMean(args[0], wrappable()))
	}
	return agent, append([]string{agent.Command}, args[1:]...), nil
}

// The exit codes of programs that run others and cannot.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

func wrap(cmd *cobra.Command, a *cli.App, flags *gatewayFlags, agent *agents.Agent, command []string, quiet, status bool) (err error) {
	program, err := exec.LookPath(command[0])
	if err != nil {
		return notFound(a, agent, command[0], err)
	}
	flags.account = consent(a, agent, program, flags.account)
	own, err := ownAddresses(agent, command[1:])
	if err != nil {
		return err
	}
	flags.knows = readOwn(cmd.Context(), agent, program, command[1:])
	later := &laterWriter{to: a.Stderr} // the screen is the agent's while it runs
	quietApp := *a
	quietApp.Stderr = later
	flags.unversioned = own.unless(flags.upstreams).unversioned()
	g, err := openFor(cmd, &quietApp, flags, own.upstreams())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	listener, err := bind(cmd.Context(), "127.0.0.1:0", "")
	if err != nil {
		return err
	}
	server := g.server(g.Gateway)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("the gateway has ended; the agent goes on without it", "err", err)
		}
	}()
	if flags.page {
		end, err := g.showPage(cmd.Context(), a, flags.browse)
		if err != nil {
			return errors.Join(err, server.Close())
		}
		defer func() { _ = end() }()
	}
	secret := ""
	if flags.recall && g.settings.Recall.MCP && !g.settings.Observe {
		secret = g.RecallSecret()
	}
	to := pointing{base: "http://" + listener.Addr().String(), secret: secret, later: flags.later(g, talks(agent, command[1:]))}
	if status {
		if to.status, err = statusProgram(a.ConfigPath, g.settings.Store); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	start, err := launch(agent, command[1:], own.unless(flags.upstreams), to, os.Environ())
	if err != nil {
		return errors.Join(err, server.Close())
	}
	defer func() { err = errors.Join(err, start.remove()) }()
	if !quiet && !g.settings.Observe && talks(agent, command[1:]) {
		start.notes = append(start.notes, flags.knows.first(g.Gateway)...)
	}
	for _, note := range append(start.notes, unsigned(agent, g.settings.Bedrock.Sign)...) {
		term.Printf(a.Stderr, "condense: %s\n", note)
	}
	later.hold()
	code, err := runChild(program, slices.Concat(command[:1], start.args), start.env, a)
	// The agent has ended, so no client reads answers in progress; their reports so far are counted.
	ended, cancel := context.WithTimeout(context.Background(), afterAgent)
	_ = server.Shutdown(ended)
	cancel()
	err = errors.Join(err, server.Close(), later.release())
	if err != nil {
		term.Printf(a.Stderr, "condense: %v\n", err)
		return &cli.ExitError{Code: exitCannotRun}
	}
	if s := g.Stats(); !quiet && (s.Requests > 0 || talks(agent, command[1:])) {
		report(a.Stderr, s, g.settings.Record, agent)
	}
	if code != 0 {
		return &cli.ExitError{Code: code}
	}
	return nil
}

func notFound(a *cli.App, agent *agents.Agent, program string, err error) error {
	code, advice := exitNotFound, ""
	if agent.Get != "" {
		advice = "; to install " + agent.Title + ": " + agent.Get
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		code, err, advice = exitCannotRun, errors.New("it is no program"), ""
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("there is no such file")
	case errors.Is(err, exec.ErrNotFound):
		err = errors.New("not found in PATH")
	}
	term.Printf(a.Stderr, "condense: %s: %v%s\n", program, err, advice)
	return &cli.ExitError{Code: code}
}

// openFor opens the gateway. A store that cannot be used must not keep the agent from running:
// then the gateway remembers nothing after its end.
func openFor(cmd *cobra.Command, a *cli.App, flags *gatewayFlags, upstreams map[string]string) (*gateway, error) {
	g, err := flags.open(cmd, a, map[string]string{}, upstreams)
	if err == nil || errors.As(err, new(*cli.UsageError)) || errors.As(err, new(config.Errors)) || errors.As(err, new(*config.UntrustedError)) || flags.store != "" {
		return g, err
	}
	g, again := flags.open(cmd, a, map[string]string{"serve.store": config.StoreMemory}, upstreams)
	if again != nil {
		return nil, err
	}
	term.Printf(a.Stderr, "condense: nothing is kept after this run: %v\n", err)
	return g, nil
}

// A laterWriter passes on its input, and collects it between hold and release.
type laterWriter struct {
	mu      sync.Mutex
	to      io.Writer
	holding bool
	held    bytes.Buffer
}

// maxHeld is how much of a log is kept for the end, in bytes.
const maxHeld = 64 << 10

func (w *laterWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.holding {
		return w.to.Write(p)
	}
	if w.held.Len() < maxHeld {
		w.held.Write(p)
	}
	return len(p), nil
}

func (w *laterWriter) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding = true
}

func (w *laterWriter) release() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding = false
	_, err := w.to.Write(w.held.Bytes())
	return err
}

// report prints the lines at the end. Record is the folder with recorded conversations; empty for none. Agent may be nil.
func report(w io.Writer, s live.Stats, record string, agent *agents.Agent) {
	if s.Requests == 0 {
		term.Printf(w, "condense: no conversation came through, so there was nothing to condense\n")
		for _, line := range unreachable(s.Unreachable) {
			term.Printf(w, "condense: %s\n", line)
		}
		return
	}
	first, saved := "", size.Group(s.Tokens.Net)+" saved"+share(s.Tokens)
	cost := fmt.Sprintf("%s instead of %s", size.Dollars(s.Cost, 2), size.Dollars(s.Cost+s.Saved, 2))
	if s.Saved != 0 {
		largest := slices.Max(append(plain.Each(s.Windows, func(w live.Window) int { return w.Tokens }), 0))
		cost += " with " + agent.Basis("", largest)
	}
	if s.Saved < 0 && s.EpochCount > 0 {
		cost += ": the cache was rewritten " + size.Plural(s.EpochCount, "time")
	}
	if s.Observe {
		o := cmp.Or(s.Observed, &live.Observed{})
		first, saved = "only observed, nothing was changed: ", size.Group(o.Saved)+" would have been saved"+share(live.Tokens{Received: s.Tokens.Received, Net: o.Saved})
		cost = fmt.Sprintf("%s, would have been %s", size.Dollars(s.Cost, 2), size.Dollars(s.Cost-o.CostSaved, 2))
	}
	switch {
	case s.Unpriced >= s.Requests, s.Unpriced > 0 && size.Dollars(max(s.Cost, s.Cost+s.Saved), 2) == size.Dollars(0, 2):
		cost = "no price known for the model"
	case s.Unpriced > 0:
		cost += fmt.Sprintf(", without %s to models of unknown price", size.Plural(s.Unpriced, "request"))
	}
	if s.Estimated > 0 {
		cost += fmt.Sprintf("; %s estimated, because the vendor did not report tokens", size.Plural(s.Estimated, "request"))
	}
	term.Printf(w, "condense: %s%s, %s tokens sent, %s\n", first, size.Plural(s.Requests, "request"), size.Group(s.Tokens.Sent), saved)
	term.Printf(w, "condense: cache: %s tokens read, %s written; %s\n", size.Group(s.Tokens.CacheRead), size.Group(s.Tokens.CacheWrite), cost)
	for _, line := range lastLines(&s, record) {
		term.Printf(w, "condense: %s\n", line)
	}
}

func total(m map[string]int) int {
	return plain.Sum(slices.Collect(maps.Values(m)), func(n int) int { return n })
}

func share(t live.Tokens) string {
	said := ""
	if t.Received > 0 && t.Net != 0 {
		said = fmt.Sprintf(" (%d %%)", 100*t.Net/t.Received)
	}
	if t.Recalled > 0 {
		said += fmt.Sprintf(", without %s that the agent recalled", size.Group(t.Recalled))
	}
	return said
}
