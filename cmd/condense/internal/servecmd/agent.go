package servecmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/settings"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
)

func agentCommand(a *cli.App) *cobra.Command {
	return cli.Group("agent", "Point an agent's settings at condense serve, for good", installCommand(a), removeCommand(a), statusCommand(a))
}

// installable are the names of agents with a settings file.
func installable() []string {
	return plain.Only(agents.Names(), func(name string) bool { return len(pointOf(agents.Find(name)).Settings) > 0 })
}

// SettingsFile returns the settings file into which agent install writes the gateway's address; empty if there is none.
func SettingsFile(name string) string {
	agent := agents.Find(name)
	if agent == nil {
		return ""
	}
	_, file, _ := userSettings(agent)
	return file
}

func agentNamed(cmd *cobra.Command, args []string) (*agents.Agent, error) {
	if len(args) != 1 {
		return nil, cli.Usage(cmd, "want one agent: %s", strings.Join(installable(), ", "))
	}
	agent := agents.Find(args[0])
	switch {
	case agent == nil || agent == agents.Any():
		return nil, cli.Usage(cmd, "no agent %q; there are %s%s", args[0], strings.Join(installable(), ", "), suggest.DidYouMean(args[0], installable()))
	case len(pointOf(agent).Settings) == 0:
		by := strings.Join(slices.Sorted(maps.Keys(pointOf(agent).Env)), " or ")
		return nil, fmt.Errorf("%s takes its address from the environment only: use 'condense wrap %s', or set %s in your shell",
			agent.Title, args[0], by)
	}
	return agent, nil
}

func installCommand(a *cli.App) *cobra.Command {
	var address string
	yes, recall, skilled, status := false, false, false, false
	cmd := &cobra.Command{
		Use: "install AGENT", Short: "Write the gateway's address into the settings of an agent",
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := agentNamed(cmd, args)
			if err != nil {
				return err
			}
			if address, err = gatewayAddress(cmd, a, address); err != nil {
				return err
			}
			if skilled && !recall {
				return cli.Usage(cmd, "--skill tells the model how to recall, and needs --recall")
			}
			if recall {
				if address, err = withSecret(agent, address); err != nil {
					return err
				}
			}
			return install(cmd, a, agent, address, yes, skilled, status)
		},
	}
	cli.CompleteArgument(cmd, installable)
	cmd.Flags().StringVar(&address, "url", "", "`address` of the gateway (default: from serve.listen)")
	cmd.Flags().BoolVar(&recall, "recall", false, "let the agent's model recall what was condensed: the settings get a secret for that, and the gateway's server of MCP")
	cmd.Flags().BoolVar(&skilled, "skill", false, "with --recall: write a skill that tells the agent's model how to use handles")
	cmd.Flags().BoolVar(&status, "status", false, "show 'condense statusline' inside the agent: "+showing)
	cmd.Flags().BoolVar(&yes, "yes", false, "write without a question, for scripts")
	return cmd
}

// recallPath is before a recall secret in an address.
const recallPath = "/recall/"

// withSecret adds a recall secret to an address, the installed secret if there is one.
func withSecret(agent *agents.Agent, address string) (string, error) {
	if pointOf(agent).Recall == nil {
		return "", fmt.Errorf("%s cannot be given a server of MCP: install it without --recall", agent.Title)
	}
	if strings.Contains(address, recallPath) {
		return address, nil
	}
	old, err := installed(agent)
	if err != nil {
		return "", err
	}
	_, secret, _ := strings.Cut(cmp.Or(old, &installation{}).URL, recallPath)
	return address + recallPath + cmp.Or(secret, rand.Text()), nil
}

// withoutSecret returns an address for display.
func withoutSecret(address string) string {
	before, _, _ := strings.Cut(address, recallPath)
	return before
}

// gatewayAddress returns the address that agents are given.
func gatewayAddress(cmd *cobra.Command, a *cli.App, given string) (string, error) {
	if given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return "", cli.Usage(cmd, "--url: %q is not an address such as http://127.0.0.1:8765", given)
		}
		return strings.TrimSuffix(strings.TrimRight(given, "/"), "/v1"), nil
	}
	load := a.Names()
	load.Require = required(false)
	c, err := a.LoadWith(load)
	if err != nil {
		return "", err
	}
	s := c.Serve()
	host, port, err := net.SplitHostPort(s.Listen)
	switch ip := net.ParseIP(host); {
	case err != nil || port == "0":
		return "", cli.Usage(cmd, "serve.listen is %q: give the address with --url", s.Listen)
	case s.TokenEnv != "" || s.TokenFile != "" || s.Tokens != "":
		return "", cli.Usage(cmd, "the gateway asks for a token: give the address with it, --url http://%s/token/TOKEN", s.Listen)
	case s.TLS.Cert != "":
		return "", cli.Usage(cmd, "the gateway speaks HTTPS: give the address as in its certificate, --url https://HOST:%s", port)
	case host == "" || ip != nil && ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func install(cmd *cobra.Command, a *cli.App, agent *agents.Agent, address string, yes, skilled, status bool) error {
	old, err := installed(agent)
	if err != nil {
		return err
	}
	var program []string
	if status {
		if program, err = statusLine(a.ConfigPath); err != nil {
			return err
		}
	}
	e, in, err := planInstall(agent, address, program, old)
	if err != nil {
		return err
	}
	if skilled {
		if in.Skill, err = placeSkill(agent, old); err != nil {
			return err
		}
	}
	if status {
		if in.Status, err = placeStatus(agent, program, old); err != nil {
			return err
		}
	}
	added := slices.DeleteFunc(filesOf(in), func(p *placed) bool { return p.text == nil })
	if e.existed && string(e.before) == string(e.after) && len(added) == 0 {
		return cli.NothingError(fmt.Sprintf("%s is pointed at %s already", cli.FromHome(e.file), withoutSecret(address)))
	}
	for _, p := range added {
		term.Printf(a.Stdout, "%s\n", cli.FromHome(p.File))
		if err := term.PrintText(a.Stdout, difference(nil, p.text)); err != nil {
			return err
		}
	}
	if err := agree(cmd, a, e, yes); err != nil {
		return err
	}
	if err := in.save(); err != nil {
		return fmt.Errorf("keep the settings as they are: %w; nothing was changed", err)
	}
	if err := e.write(); err != nil {
		return errors.Join(err, restore(old, in))
	}
	for _, p := range added {
		if err := p.write(); err != nil {
			return err
		}
	}
	if skilled {
		term.Printf(a.Stdout, "%s tells the model how to use handles\n", cli.FromHome(in.Skill.File))
	}
	if status && agent.Name == "codex" {
		term.Printf(a.Stdout, "Codex asks once whether it may run the hook\n")
	}
	term.Printf(a.Stdout, "%s sends its requests to %s from its next start on\n", agent.Title, withoutSecret(address))
	for _, was := range e.replaced {
		term.Printf(a.Stdout, "it had the address %s: to use that further, make it the gateway's upstream (serve.upstreams)\n", was)
	}
	if !answers(cmd.Context(), address) {
		term.Printf(a.Stdout, "no gateway answers there now: %s does not work until you start 'condense serve'\n", agent.Title)
	}
	if strings.Contains(address, recallPath) && pointOf(agent).Recall.Add != "" {
		term.Printf(a.Stdout, "to add the tools for recall: %s\n", strings.ReplaceAll(pointOf(agent).Recall.Add, "{mcp}", address+"/mcp"))
	}
	term.Printf(a.Stdout, "to undo it: condense agent remove %s\n", cmd.Flags().Arg(0))
	return nil
}

// restore restores the record of the installation before a failed one.
func restore(old, failed *installation) error {
	if old != nil {
		return old.save()
	}
	return os.RemoveAll(failed.dir)
}

// agree shows an edit and asks.
func agree(cmd *cobra.Command, a *cli.App, e *edit, yes bool) error {
	term.Printf(a.Stdout, "%s\n", cli.FromHome(e.file))
	if err := term.PrintText(a.Stdout, difference(e.before, e.after)); err != nil {
		return err
	}
	return a.Agree(cmd, yes, "write it?")
}

func removeCommand(a *cli.App) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use: "remove AGENT", Short: "Undo agent install",
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := agentNamed(cmd, args)
			if err != nil {
				return err
			}
			in, err := installed(agent)
			if err != nil {
				return err
			}
			if in == nil {
				return cli.NothingError("nothing is installed for " + agent.Title)
			}
			e, err := planRemove(in)
			if err != nil {
				return err
			}
			switch {
			case !e.existed:
				term.Printf(a.Stdout, "%s is gone already\n", cli.FromHome(in.File))
			case string(e.before) != string(e.after) || e.after == nil:
				if err := agree(cmd, a, e, yes); err != nil {
					return err
				}
				if err := e.write(); err != nil {
					return err
				}
				term.Printf(a.Stdout, "%s is as it was before\n", cli.FromHome(in.File))
			}
			for _, p := range filesOf(in) {
				kept, err := p.remove()
				if err != nil {
					return err
				}
				if kept {
					term.Printf(a.Stdout, "%s was changed since: it remains\n", cli.FromHome(p.File))
				}
			}
			for _, key := range e.kept {
				term.Printf(a.Stdout, "%s has a value of your own: it remains\n", key)
			}
			return os.RemoveAll(in.dir)
		},
	}
	cli.CompleteArgument(cmd, installable)
	cmd.Flags().BoolVar(&yes, "yes", false, "write without a question, for scripts")
	return cmd
}

func statusCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status [AGENT]", Short: "Show what is installed, and whether the gateway answers",
		RunE: func(cmd *cobra.Command, args []string) error {
			names := installable()
			if len(args) > 0 {
				if _, err := agentNamed(cmd, args); err != nil {
					return err
				}
				names = args
			}
			for _, name := range names {
				if err := printStatus(cmd.Context(), a, agents.Find(name)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cli.CompleteArgument(cmd, installable)
	return cmd
}

func printStatus(ctx context.Context, a *cli.App, agent *agents.Agent) error {
	in, err := installed(agent)
	if err != nil {
		return err
	}
	version := programVersion(ctx, agent.Command)
	term.Printf(a.Stdout, "%s: tested with %s, %s\n", agent.Title, agent.Tested, version)
	if in == nil {
		term.Printf(a.Stdout, "  not installed\n")
		return nil
	}
	state := "does not answer: start 'condense serve'"
	if answers(ctx, in.URL) {
		state = "answers"
	}
	term.Printf(a.Stdout, "  installed in %s: %s, which %s\n", cli.FromHome(in.File), withoutSecret(in.URL), state)
	text, err := readSettings(in.File)
	for _, c := range in.Changes {
		now, ok, fault := settings.Get(in.Format, text, c.Path...)
		switch {
		case err != nil || fault != nil:
			term.Printf(a.Stdout, "  but the file cannot be read: %v\n", errors.Join(err, fault))
			return nil
		case !ok:
			term.Printf(a.Stdout, "  but %s is gone\n", strings.Join(c.Path, "."))
		case now != c.New:
			term.Printf(a.Stdout, "  but %s is %s\n", strings.Join(c.Path, "."), now)
		}
	}
	own, err := ownAddresses(agent, nil)
	if err != nil {
		return err
	}
	for _, api := range []string{agents.Anthropic, agents.OpenAI} {
		switch at := own[api]; {
		case at.provider != "":
			term.Printf(a.Stdout, "  but %s chooses the provider %s\n", cli.FromHome(at.from), at.provider)
		case at.setting != nil && at.from != in.File:
			term.Printf(a.Stdout, "  but here %s wins, with %s\n", cli.FromHome(at.from), at.url)
		}
	}
	return nil
}

// patience is how long the gateway and an agent's --version may take to answer.
const patience = 5 * time.Second

// answers reports whether a gateway answers at an address.
func answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, address+"/", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := (&http.Transport{}).RoundTrip(r) // not through a proxy
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

var versionRule = plain.Pattern(`\d+\.\d+\.\d+[^\s)]*`)

// programVersion returns which version of a program is in PATH.
func programVersion(ctx context.Context, program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return "not in PATH"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput() //nolint:gosec // a program of the table, as the user has it; pi says it on standard error
	if v := versionRule().FindString(string(out)); v != "" {
		return v + " in PATH"
	}
	return "in PATH, but it does not say its version"
}
