package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/trust"
)

func (a *app) trustCommand() *cobra.Command {
	var yes, list, remove bool
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Show what a configuration file would start, send and read, and trust it",
		Long: `A configuration file that came with a project chooses strategies and numbers as it likes. Before it starts a
program, names an address, or reads an environment variable or a file, you must have seen that. trust shows
every such part of FILE, or of the file that holds here, and asks. It approves the programs as they are now.

What you agreed to is kept in your own configuration folder, for this file and these parts alone: if one of them
changes, it is not used until you have agreed again. A file in your own configuration folder needs no trust.`,
		Example: `  condense trust
  condense trust --list
  condense trust --remove condense.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage(cmd, "want at most one file; got %d", len(args))
			case len(args) > 0 && a.configPath != "":
				return usage(cmd, "--config and a file given as argument do not go together")
			case list && (remove || yes || len(args) > 0):
				return usage(cmd, "--list goes with nothing else")
			case remove && yes:
				return usage(cmd, "--remove and --yes do not go together")
			case remove && len(args) == 0 && a.configPath == "":
				return usage(cmd, "name the file or program to trust no longer; --list shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.configPath
			if len(args) > 0 {
				file = args[0]
			}
			store := trust.Open(config.Default().TrustDir())
			switch {
			case list:
				return a.listTrust(store)
			case remove:
				return a.removeTrust(store, file)
			}
			return a.trust(cmd, store, file, yes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "agree without being asked, for scripts")
	f.BoolVar(&list, "list", false, "list what you trust")
	f.BoolVar(&remove, "remove", false, "trust FILE, a configuration or a program, no longer")
	return cmd
}

func (a *app) listTrust(store trust.Store) error {
	all, err := store.All()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		printf(a.stdout, "nothing is trusted\n")
		return nil
	}
	t := term.NewTable("", "", "")
	for _, e := range all {
		t.Row(e.Kind, e.Digest, visible(e.Path))
	}
	return printText(a.stdout, t.Text(""))
}

func (a *app) removeTrust(store trust.Store, file string) error {
	gone, err := store.Remove(file)
	if err != nil {
		return err
	}
	if len(gone) == 0 {
		return fmt.Errorf("%s was not trusted; 'condense trust --list' lists what is", file)
	}
	printf(a.stdout, "%s is trusted no longer\n", file)
	return nil
}

// A program is what a file starts, and what would approve it.
type approval struct {
	target string
	folder bool
	is     string // its checksum now; empty if it cannot be read
	was    string // the checksum approved; empty if none is
	why    error  // if it cannot be read
}

// A request is what a file asks trust for.
type trustRequest struct {
	config.Claims
	digests   []string // of the claims, by every way that the file may be loaded
	approvals map[string]approval
}

// trust shows what the file asks for and keeps the user's agreement.
func (a *app) trust(cmd *cobra.Command, store trust.Store, file string, yes bool) error {
	requests, err := a.trustRequests(store, file)
	if err != nil {
		return err
	}
	if len(requests) == 0 {
		printf(a.stdout, "nothing needs trust: no program, no address, no variable and no file is named\n")
		return nil
	}
	for i := range requests {
		r := &requests[i]
		a.printRequest(r)
		known, err := r.known(store)
		if err != nil {
			return err
		}
		if known {
			printf(a.stdout, "it is trusted already\n")
			continue
		}
		if !yes {
			if err := a.ask(cmd); err != nil {
				return err
			}
		}
		if err := r.agree(store); err != nil {
			return err
		}
		printf(a.stdout, "%s is trusted\n", visible(fromHere(r.File)))
	}
	return nil
}

// trustWritten trusts a configuration that the user has just had written.
func (a *app) trustWritten(file string) error {
	store := trust.Open(config.Default().TrustDir())
	requests, err := a.trustRequests(store, file)
	if err != nil {
		return nil //nolint:nilerr // it is written; 'config check' says what is wrong with it
	}
	for i := range requests {
		if err := requests[i].agree(store); err != nil {
			return fmt.Errorf("%s is written, but not trusted: %w", file, err)
		}
	}
	return nil
}

func (a *app) ask(cmd *cobra.Command) error {
	if f, ok := a.stdin.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		return usage(cmd, "there is no terminal to ask at: read the above, and agree with --yes")
	}
	printf(a.stderr, "trust it? [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return errors.New("not agreed; nothing was changed")
	}
	return nil
}

func (a *app) printRequest(r *trustRequest) {
	printf(a.stdout, "%s\n", visible(fromHere(r.File)))
	for _, part := range r.Parts {
		printf(a.stdout, "  %s  %s\n      %s\n", part.Key, visible(fromHere(part.Value)), visible(part.Does))
		ap, ok := r.approvals[part.Key]
		switch {
		case !ok:
		case ap.why != nil:
			printf(a.stdout, "      which cannot be approved yet: %s\n", visible(ap.why.Error()))
		case ap.was != "" && ap.was != ap.is:
			printf(a.stdout, "      as it is now, with the checksum %s; approved before was %s\n", ap.is, ap.was)
		default:
			printf(a.stdout, "      as it is now, with the checksum %s\n", ap.is)
		}
	}
}

// trustRequests returns what the file, or those in force here, ask trust for.
func (a *app) trustRequests(store trust.Store, file string) ([]trustRequest, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	load := func(path, dir string) (*config.Config, error) {
		opts := a.knownNames(reg)
		opts.Path, opts.Dir, opts.CheckProvider = path, dir, nil
		opts.Trust = func(config.Claims) bool { return true } // nothing is started here
		return config.Load(opts)
	}
	c, err := load(file, "")
	if err != nil {
		return nil, err
	}
	requests, err := requestsOf(c, store)
	if err != nil || file == "" {
		return requests, err
	}
	// Found by search, it may come after the user's own file, and ask for more.
	found, err := load("", filepath.Dir(file))
	if err != nil {
		return requests, nil //nolint:nilerr // another file here is wrong, not the one that was named
	}
	more, err := requestsOf(found, store)
	if err != nil {
		return nil, err
	}
	for _, r := range more {
		if r.File != trust.RealPath(file) {
			continue
		}
		if len(requests) > 0 {
			r.digests = append(r.digests, requests[0].digests...)
		}
		requests = []trustRequest{r}
	}
	return requests, nil
}

func requestsOf(c *config.Config, store trust.Store) ([]trustRequest, error) {
	var requests []trustRequest
	for _, claims := range c.Claims() {
		r := trustRequest{Claims: claims, digests: []string{claims.Digest}, approvals: map[string]approval{}}
		for _, name := range c.Providers() {
			p, err := c.Provider(name)
			if err != nil {
				return nil, err
			}
			if p.Plugin == "" || p.SHA256 != "" {
				continue
			}
			ap := approval{target: cmp.Or(p.Folder, p.Plugin), folder: p.Folder != ""}
			if ap.was, err = store.Pin(ap.target, ap.folder); err != nil {
				return nil, err
			}
			ap.is, ap.why = plugins.Digest(*p)
			for _, part := range claims.Parts {
				if part.Is("providers", name, "plugin") {
					r.approvals[part.Key] = ap
				}
			}
		}
		requests = append(requests, r)
	}
	return requests, nil
}

// known reports whether all of it was agreed to already.
func (r *trustRequest) known(store trust.Store) (bool, error) {
	for _, digest := range r.digests {
		if ok, err := store.Config(r.File, digest); !ok || err != nil {
			return false, err
		}
	}
	for _, ap := range r.approvals {
		if ap.is != ap.was {
			return false, nil
		}
	}
	return true, nil
}

func (r *trustRequest) agree(store trust.Store) error {
	for _, digest := range r.digests {
		if err := store.Add(trust.Entry{Kind: trust.Config, Digest: digest, Path: r.File}); err != nil {
			return err
		}
	}
	for _, ap := range r.approvals {
		if ap.is == "" {
			continue
		}
		if err := store.SetPin(ap.target, ap.folder, ap.is); err != nil {
			return err
		}
	}
	return nil
}

// visible returns a text that somebody else wrote so that all of it is seen as it is.
func visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// sayUntrusted says once which parts of the configuration are not used.
func (a *app) sayUntrusted(c *config.Config) {
	for _, claims := range c.Claims() {
		if claims.Trusted || a.untrusted[claims.Digest] {
			continue
		}
		if a.untrusted == nil {
			a.untrusted = map[string]bool{}
		}
		a.untrusted[claims.Digest] = true
		printf(a.stderr, "condense: skipped: %s; %s\n", strings.Join(claims.Names(), ", "), claims.Remedy())
	}
}
