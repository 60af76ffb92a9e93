package plugincmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/install"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/registry"
)

// An installation is one run of install, update, outdated or remove.
type installation struct {
	a     *cli.App
	in    install.Installer
	store trust.Store
	used  []plugins.Plugin // of the configuration
	wd    string           // sources are relative to it
	yes   bool
}

// begin finds the project: the folder of the configuration, or the working folder.
func (i *installation) begin(a *cli.App) error {
	used, c, err := a.LoadPlugins()
	if err != nil {
		return err
	}
	dir := "."
	for _, file := range c.Files() {
		if filepath.Dir(file) != filepath.Dir(c.TrustDir()) {
			dir = filepath.Dir(file)
		}
	}
	if i.wd, err = os.Getwd(); err != nil {
		return err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(i.wd, dir)
	}
	i.a, i.used, i.store = a, used, trust.Open(c.TrustDir())
	i.in.Dir, i.in.Version = trust.RealPath(dir), cli.Version()
	return nil
}

func pluginInstallCommand(a *cli.App) *cobra.Command {
	var i installation
	cmd := &cobra.Command{
		Use: "install [SOURCE]", Short: "Install a plugin from a release: a folder, a file, an https address or GitHub",
		Args: cli.Arguments(0, 1, "want one source; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := i.begin(a); err != nil {
				return err
			}
			switch i.in.SHA256 = strings.ToLower(i.in.SHA256); {
			case i.in.SHA256 != "" && !checksum().MatchString(i.in.SHA256):
				return cli.Usage(cmd, "--sha256: %q is not a checksum of 64 hexadecimal digits", i.in.SHA256)
			case i.in.SHA256 != "" && len(args) == 0:
				return cli.Usage(cmd, "--sha256: name the source that it belongs to")
			case len(args) == 0:
				return i.locked(cmd)
			}
			src, err := i.in.Parse(args[0], i.wd)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			return i.install(cmd, func(ctx context.Context) (*install.Staged, error) { return i.in.Stage(ctx, src, "") })
		},
	}
	cmd.Flags().BoolVar(&i.yes, "yes", false, "agree without a question, for scripts")
	cmd.Flags().StringVar(&i.in.SHA256, "sha256", "", "the `checksum` of the release: of its file SHA256SUMS, or of a single file")
	return cmd
}

var checksum = plain.Pattern(`^[0-9a-f]{64}$`)

// locked installs everything in condense.lock.
func (i *installation) locked(cmd *cobra.Command) error {
	lock, err := i.in.Lock()
	if err != nil {
		return err
	}
	if len(lock.Plugins) == 0 {
		return cli.Usage(cmd, "there is no condense.lock in %s; name a source", i.in.Dir)
	}
	return i.each(cmd.Context(), nil, func(name string, _ install.Source) error {
		return i.install(cmd, func(ctx context.Context) (*install.Staged, error) { return i.in.StageLocked(ctx, name) })
	})
}

// each calls f with plugins of condense.lock: those named, or all. It goes on after an error.
func (i *installation) each(ctx context.Context, names []string, f func(name string, src install.Source) error) error {
	lock, err := i.in.Lock()
	if err != nil {
		return err
	}
	known := slices.Sorted(maps.Keys(lock.Plugins))
	if len(names) == 0 {
		names = known
	}
	var errs []error
	for _, name := range names {
		pin, ok := lock.Plugins[name]
		if !ok {
			errs = append(errs, fmt.Errorf("condense.lock has no plugin %q%s", name, suggest.DidYouMean(name, known)))
			continue
		}
		src, err := i.in.Parse(pin.Source, i.in.Dir)
		if err == nil {
			err = f(name, src)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// install shows a staged release, asks, and installs and approves it.
func (i *installation) install(cmd *cobra.Command, stage func(context.Context) (*install.Staged, error)) (err error) {
	s, err := stage(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := config.AllowPlugin(s.Name, func() (string, error) { return s.Approves, nil }); err != nil {
		return err
	}
	about, err := facts(s)
	if err != nil {
		return err
	}
	program, folder := s.Program()
	p := plugins.Plugin{Provider: config.Provider{Plugin: program, Folder: folder}}
	target, tree := p.Target()
	approved, err := i.store.Pin(target, tree)
	if err != nil {
		return err
	}
	if is, err := plugins.Digest(p.Provider); err == nil && is == s.Approves && is == approved && s.Same() {
		term.Printf(i.a.Stdout, "%s  is installed already\n", s.Name)
		return nil
	}
	i.show(s, approved, about)
	if err := i.a.Agree(cmd, i.yes, "install and approve it?"); err != nil {
		return err
	}
	if err := s.Commit(); err != nil {
		return err
	}
	if m := s.About; m != nil { // the shown manifest is the limit of later declarations
		plugins.Remember(s.Approves, &plugins.Description{
			Name: m.Name, Version: m.Version, Doc: m.Doc, SDK: m.SDK, Settings: m.Settings, Abilities: m.Abilities,
		})
	}
	if err := i.store.SetPin(target, tree, s.Approves); err != nil {
		return fmt.Errorf("installed, but not approved: %w", err)
	}
	term.Printf(i.a.Stdout, "installed and approved in %s\n", cli.FromHere(filepath.Join(i.in.Dir, filepath.FromSlash(install.Folder), s.Name)))
	i.hint(s)
	return nil
}

// show prints the identity and the demands of a plugin. Texts of the release have no control characters.
func (i *installation) show(s *install.Staged, approved string, about [][2]string) {
	w, m := i.a.Stdout, cmp.Or(s.About, &install.Manifest{})
	term.Printf(w, "%s %s  %s\n", s.Name, m.Version, s.Source)
	if m.Doc != "" {
		term.Printf(w, "  %s\n", term.Indented{Text: strings.Join(strings.Fields(m.Doc), " "), By: "  "})
	}
	if s.Was != nil && s.Was.Source != s.Source.String() {
		term.Printf(w, "  was          %s\n", s.Was.Source)
	}
	term.Printf(w, "  asset        %s, %s bytes\n  sha256       %s\n", s.Asset, size.Group(int(s.Size)), s.SHA256)
	for _, f := range about {
		term.Printf(w, "  %-12s %s\n", f[0], f[1])
		if former, ran := plugins.Known(approved); f[0] == "abilities" && s.About != nil && ran && former.Abilities != m.Abilities {
			term.Printf(w, "               were: %s\n", former.Abilities.Told())
		}
	}
}

// facts returns the claims of a release about its plugin, and the reach of the plugin. A module that cannot run is an error.
func facts(s *install.Staged) (all [][2]string, _ error) {
	m, may := s.About, ""
	if m == nil {
		m, may = &install.Manifest{}, "unknown: the release has no "+install.ManifestFile+"; "
	}
	env := "PATH, LANG, LC_*, TZ and nothing else"
	if len(m.Env) > 0 {
		env = listed(m.Env) + ": only if you list them in env in the configuration"
	}
	requires := m.Requires
	if requires != "" {
		requires += " or later"
	}
	reads, sandbox := "the conversations that it shortens; files and network are not restricted", ""
	if config.IsModule(s.File()) {
		asks, err := plugins.Asks(s.File())
		if err != nil {
			return nil, fmt.Errorf("%s: %s is %w", s.Source, s.Asset, err)
		}
		env, reads, sandbox = "", "the conversations that it shortens", plugins.Reach(asks)
	}
	all = [][2]string{
		{"stability", m.Stability},
		{"abilities", may + m.Abilities.Told()},
		{"environment", env},
		{"reads", reads},
		{"runs as", sandbox},
		{"made with", m.SDK},
		{"for condense", requires},
		{"settings", listed(plain.Each(m.Settings, func(s registry.Setting) string { return s.Name }))},
	}
	return slices.DeleteFunc(all, func(f [2]string) bool { return f[1] == "" }), nil
}

// listed joins names of a release, which may have any number of them.
func listed(names []string) string {
	const most = 40
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), size.Group(more))
	}
	return strings.Join(names, ", ")
}

// hint prints how to use a plugin that no provider names.
func (i *installation) hint(s *install.Staged) {
	program, _ := s.Program()
	if slices.ContainsFunc(i.used, func(p plugins.Plugin) bool { return p.Plugin == program }) {
		return
	}
	term.Printf(i.a.Stdout, `
to use it, write this into condense.yaml, name it in a chain, and run 'condense trust':
  providers:
    %s
`, i.declared(s))
}

// declared returns the line of the configuration that declares a plugin.
func (i *installation) declared(s *install.Staged) string {
	program, folder := s.Program()
	if folder != "" {
		folder = ", folder: " + strategies.YAMLName(within(i.in.Dir, folder))
	}
	return fmt.Sprintf("%s: {plugin: %s%s}", strategies.YAMLName(s.Name), strategies.YAMLName(within(i.in.Dir, program)), folder)
}

func pluginUpdateCommand(a *cli.App) *cobra.Command {
	var i installation
	cmd := &cobra.Command{
		Use: "update [NAME...]", Short: "Install newer releases of installed plugins",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := i.begin(a); err != nil {
				return err
			}
			return i.each(cmd.Context(), args, func(name string, src install.Source) error {
				newest, err := i.in.Newest(cmd.Context(), src)
				if err != nil {
					return err
				}
				return i.install(cmd, func(ctx context.Context) (*install.Staged, error) { return i.in.Stage(ctx, newest, name) })
			})
		},
	}
	cmd.Flags().BoolVar(&i.yes, "yes", false, "agree without a question, for scripts")
	return cmd
}

func pluginOutdatedCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "outdated", Short: "List installed plugins and whether there is a newer release",
		Args: cli.NoArguments("it lists everything in condense.lock"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var i installation
			if err := i.begin(a); err != nil {
				return err
			}
			t := term.NewTable("plugin", "installed", "newest")
			err := i.each(cmd.Context(), nil, func(name string, src install.Source) error {
				newest, changed, err := i.in.Outdated(cmd.Context(), name, src)
				switch {
				case err != nil:
					t.Row(name, src, "not known")
				case !changed:
					t.Row(name, src, "the same")
				case newest.String() == src.String():
					t.Row(name, src, "has changed")
				default:
					t.Row(name, src, newest)
				}
				return err
			})
			return errors.Join(term.PrintText(a.Stdout, t.Text("")), err)
		},
	}
}

func pluginRemoveCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME...", Short: "Remove installed plugins, their approvals and their places in condense.lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "name the plugins to remove; 'condense plugin outdated' lists them")
			}
			var i installation
			if err := i.begin(a); err != nil {
				return err
			}
			return errors.Join(plain.Each(args, func(name string) error { return i.remove(a.Stdout, name) })...)
		},
	}
}

func (i *installation) remove(w io.Writer, name string) error {
	home := filepath.Join(i.in.Dir, filepath.FromSlash(install.Folder), name)
	removed, err := i.in.Remove(name)
	if err != nil {
		return err
	}
	if !removed {
		return fmt.Errorf("there is no installed plugin %q", name)
	}
	all, err := i.store.All()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Path == home || filepath.Dir(e.Path) == home {
			if _, err := i.store.Remove(e.Path); err != nil {
				return err
			}
		}
	}
	term.Printf(w, "%s  removed\n", name)
	for _, p := range i.used {
		if p.Plugin != "" && strings.HasPrefix(p.Plugin, home+string(filepath.Separator)) {
			term.Printf(w, "  %s still names it: provider %s\n", p.Origin, p.Name)
		}
	}
	return nil
}
