package configcmd

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/trust"
)

func trustCommand(a *cli.App) *cobra.Command {
	var yes, list, remove, diff bool
	cmd := &cobra.Command{
		Use: "trust [FILE]", Short: "Show what a configuration file would start, send and read, and trust it",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return cli.Usage(cmd, "want at most one file; got %d", len(args))
			case len(args) > 0 && a.ConfigPath != "":
				return cli.Usage(cmd, "--config cannot be combined with a file as argument")
			case list && (remove || yes || len(args) > 0):
				return cli.Usage(cmd, "--list cannot be combined with anything else")
			case remove && yes:
				return cli.Usage(cmd, "--remove and --yes cannot be combined")
			case diff && (list || remove || yes):
				return cli.Usage(cmd, "--diff changes nothing and cannot be combined with --list, --remove or --yes")
			case remove && len(args) == 0 && a.ConfigPath == "":
				return cli.Usage(cmd, "name the file or program to remove; --list shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.ConfigPath
			if len(args) > 0 {
				file = args[0]
			}
			store := trust.Open(config.Default().TrustDir())
			switch {
			case list:
				return listTrust(a, store)
			case remove:
				return removeTrust(a, store, file)
			}
			return trustFile(a, cmd, store, file, yes, diff)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&yes, "yes", false, "agree without a question, for scripts")
	f.BoolVar(&diff, "diff", false, "show what has changed since you agreed, and do nothing")
	f.BoolVar(&list, "list", false, "list what you trust")
	f.BoolVar(&remove, "remove", false, "stop trusting FILE, a configuration or a program")
	return cmd
}

func listTrust(a *cli.App, store trust.Store) error {
	all, err := store.All()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		term.Printf(a.Stdout, "nothing is trusted\n")
		return nil
	}
	t := term.NewTable("", "", "")
	for _, e := range all {
		t.Row(e.Kind, e.Digest, visible(e.Path))
	}
	return term.PrintText(a.Stdout, t.Text(""))
}

func removeTrust(a *cli.App, store trust.Store, file string) error {
	gone, err := store.Remove(file)
	if err != nil {
		return err
	}
	if len(gone) == 0 {
		return fmt.Errorf("%s is not trusted; 'condense trust --list' lists trusted files and programs", file)
	}
	term.Printf(a.Stdout, "%s is no longer trusted\n", file)
	return nil
}

// An approval is the state of a program that a file starts.
type approval struct {
	target string
	folder bool
	is     string // its current checksum; empty if it cannot be read
	was    string // the approved checksum; empty if there is none
	why    error  // why it cannot be read
	of     *config.Provider
}

// changed reports whether the program is not the approved one, or cannot be read.
func (a *approval) changed() bool { return a.why != nil || a.is != a.was }

// A trustRequest lists the parts of a file that need trust.
type trustRequest struct {
	file       string
	parts      []part
	since      time.Time     // of the former agreement; zero if there is none
	agreements []trust.Entry // to the parts, for every way to load the file
	approvals  map[string]approval
}

// A part is a claim and its change since the former agreement.
type part struct {
	trust.Claim
	change change
	was    string // the former value
}

type change string

const (
	unchanged change = " "
	added     change = "+"
	changed   change = "~"
	removed   change = "-"
)

// trustFile shows the parts of the file that need trust and records the user's agreement.
func trustFile(a *cli.App, cmd *cobra.Command, store trust.Store, file string, yes, diff bool) error {
	requests, err := trustRequests(a, store, file)
	if err != nil {
		return err
	}
	if len(requests) == 0 {
		term.Printf(a.Stdout, "nothing needs trust: the configuration names no program, address, variable, file or model, and tunes no gateway\n")
		return nil
	}
	for i := range requests {
		r := &requests[i]
		known, err := r.known(store)
		if err != nil {
			return err
		}
		printRequest(a, r, known)
		if known {
			term.Printf(a.Stdout, "already trusted\n")
			continue
		}
		if diff {
			continue
		}
		if err := r.unapprovable(); err != nil {
			return fmt.Errorf("nothing was trusted: %w", err)
		}
		if err := a.Agree(cmd, yes, "trust it?"); err != nil {
			return err
		}
		if err := r.agree(store); err != nil {
			return err
		}
		term.Printf(a.Stdout, "%s is trusted\n", visible(cli.FromHere(r.file)))
		for _, key := range slices.Sorted(maps.Keys(r.approvals)) {
			ap := r.approvals[key]
			if _, err := plugins.Examine(cmd.Context(), *ap.of, ap.is); err != nil {
				term.Printf(a.Stderr, "condense: warning: %s: the approved program does not start: %v\n", key, err)
			}
		}
	}
	return nil
}

// trustWritten trusts a configuration that a command of the user has just written.
func trustWritten(a *cli.App, file string) error {
	store := trust.Open(config.Default().TrustDir())
	requests, err := trustRequests(a, store, file)
	if err != nil {
		return nil //nolint:nilerr // 'config check' reports its faults
	}
	for i := range requests {
		if err := requests[i].agree(store); err != nil {
			return fmt.Errorf("wrote %s, but cannot trust it: %w", file, err)
		}
	}
	return nil
}

// printRequest prints the parts: only changed ones, if the user has agreed before.
func printRequest(a *cli.App, r *trustRequest, known bool) {
	file := visible(cli.FromHere(r.file))
	if known || r.since.IsZero() {
		term.Printf(a.Stdout, "%s\n", file)
		for _, p := range together(r.parts) {
			if p.change != removed {
				printPart(a, r, p, unchanged)
			}
		}
		return
	}
	term.Printf(a.Stdout, "%s, changed since you agreed (%s)\n", file, r.since.Format(time.DateTime))
	var same []string
	for _, p := range together(r.parts) {
		if ap := r.approvals[p.Key]; p.change == unchanged && ap.changed() {
			p.change = changed
		}
		if p.change == unchanged {
			same = append(same, visible(p.Key))
			continue
		}
		printPart(a, r, p, p.change)
	}
	if len(same) > 0 {
		term.Printf(a.Stdout, "  unchanged: %s\n", strings.Join(same, ", "))
	}
}

// together makes one of neighbors that have no value and the same effect.
func together(parts []part) []part {
	var all []part
	for _, p := range parts {
		if n := len(all) - 1; n >= 0 && p.Value == "" && all[n].Value == "" && all[n].Does == p.Does && all[n].change == p.change {
			all[n].Key += ", " + p.Key
			continue
		}
		all = append(all, p)
	}
	return all
}

func printPart(a *cli.App, r *trustRequest, p part, sign change) {
	does := visible(p.Does)
	if sign == removed {
		does = "no longer " + does
	}
	term.Printf(a.Stdout, "%s %s\n      %s\n", sign, strings.TrimRight(p.Key+"  "+visible(cli.FromHere(p.Value)), " "), does)
	if sign == changed && p.was != p.Value {
		term.Printf(a.Stdout, "      was %s\n", visible(cli.FromHere(p.was)))
	}
	ap, ok := r.approvals[p.Key]
	switch {
	case !ok:
	case ap.why != nil:
		term.Printf(a.Stdout, "      cannot be approved yet: %s\n", visible(ap.why.Error()))
	case ap.was != "" && ap.was != ap.is:
		term.Printf(a.Stdout, "      current checksum %s; approved was %s\n", ap.is, ap.was)
	default:
		term.Printf(a.Stdout, "      current checksum %s\n", ap.is)
	}
	if s, module := plugins.Sandbox(ap.target); module {
		term.Printf(a.Stdout, "      %s\n", visible(s))
	}
	if d, ran := plugins.Known(ap.is); ran {
		term.Printf(a.Stdout, "      abilities %s\n", visible(d.Abilities.Told()))
	}
}

// trustRequests returns the requests of the file, or of the active files.
func trustRequests(a *cli.App, store trust.Store, file string) ([]trustRequest, error) {
	load := func(path, dir string) (*config.Config, error) {
		opts := a.Names()
		opts.Path, opts.Dir, opts.CheckProvider = path, dir, nil
		opts.Trust = func(config.Claims) bool { return true }  // nothing is started here
		opts.Require = func(config.Claim) bool { return true } // also show parts that only a gateway needs
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
	// When it is found by search, it is merged with the user's own file and may need more.
	found, err := load("", filepath.Dir(file))
	if err != nil {
		return requests, nil //nolint:nilerr // another file is invalid, not the named one
	}
	more, err := requestsOf(found, store)
	if err != nil {
		return nil, err
	}
	for _, r := range more {
		if r.file != trust.RealPath(file) {
			continue
		}
		if len(requests) > 0 {
			r.agreements = append(r.agreements, requests[0].agreements...)
		}
		requests = []trustRequest{r}
	}
	return requests, nil
}

func requestsOf(c *config.Config, store trust.Store) ([]trustRequest, error) {
	var requests []trustRequest
	for _, claims := range c.Claims() {
		if n := len(requests); n == 0 || requests[n-1].file != claims.File {
			requests = append(requests, trustRequest{file: claims.File, approvals: map[string]approval{}})
		}
		r := &requests[len(requests)-1]
		if err := r.add(claims, store); err != nil {
			return nil, err
		}
		for _, name := range c.Providers() {
			p, err := c.Provider(name)
			if err != nil {
				return nil, err
			}
			if p.Plugin == "" || p.SHA256 != "" {
				continue
			}
			ap := approval{target: cmp.Or(p.Folder, p.Plugin), folder: p.Folder != "", of: p}
			if ap.was, err = store.Pin(ap.target, ap.folder); err != nil {
				return nil, err
			}
			if wrong := plugins.Program(p.Plugin); wrong != "" {
				ap.why = errors.New(wrong)
			} else {
				ap.is, ap.why = plugins.Digest(*p)
			}
			for _, part := range claims.Parts {
				if part.Is("providers", name, "plugin") {
					r.approvals[part.Key] = ap
				}
			}
		}
	}
	return requests, nil
}

// add adds a set of claims, compared with the user's last agreement.
func (r *trustRequest) add(claims config.Claims, store trust.Store) error {
	now := []trust.Claim{}
	for _, p := range claims.Parts {
		now = append(now, trust.Claim{Key: p.Key, Value: p.Value, Does: p.Does})
	}
	kind := trust.Config
	if claims.Gateway {
		kind = trust.Gateway
	}
	r.agreements = append(r.agreements, trust.ConfigEntry(kind, claims.File, now))
	former, err := store.Of(kind, claims.File)
	if err != nil {
		return err
	}
	before := map[string]trust.Claim{}
	if i := slices.IndexFunc(former, func(e trust.Entry) bool { return e.Claims != nil }); i >= 0 {
		if r.since.Before(former[i].Time) {
			r.since = former[i].Time
		}
		for _, c := range former[i].Claims {
			before[c.Key] = c
		}
	}
	for _, c := range now {
		old, known := before[c.Key]
		p := part{Claim: c, was: old.Value, change: unchanged}
		switch {
		case !known:
			p.change = added
		case old != c:
			p.change = changed
		}
		r.parts = append(r.parts, p)
		delete(before, c.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		r.parts = append(r.parts, part{Claim: before[key], change: removed})
	}
	return nil
}

// known reports whether the user has agreed to all of it.
func (r *trustRequest) known(store trust.Store) (bool, error) {
	for _, e := range r.agreements {
		if ok, err := store.Trusts(e); !ok || err != nil {
			return false, err
		}
	}
	for _, ap := range r.approvals {
		if ap.changed() {
			return false, nil
		}
	}
	return true, nil
}

// unapprovable names the programs that cannot be approved, because they are missing or damaged.
func (r *trustRequest) unapprovable() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(r.approvals)) {
		if why := r.approvals[key].why; why != nil {
			errs = append(errs, fmt.Errorf("%s: the program cannot be approved: %w", key, why))
		}
	}
	return errors.Join(errs...)
}

func (r *trustRequest) agree(store trust.Store) error {
	for _, e := range r.agreements {
		if err := store.Add(e); err != nil {
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

// visible returns a text from a file with invisible characters escaped.
func visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
