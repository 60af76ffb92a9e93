// Package plugins handles the plugins of a configuration for hosts and the command line: it lists the approved ones,
// runs them under supervision, tries a plugin for its author, and distinguishes a broken plugin from one that
// declined.
package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/internal/wire/caller"
)

// approvedByUser is the approval of a plugin that the user has pinned.
const approvedByUser = "approved by you"

// A Plugin is a configured plugin and its approval.
type Plugin struct {
	config.Provider // with its program, even if it is withheld

	Pin string // the approved checksum; empty if there is none
	By  string // the place in the configuration that approves it, or "approved by you"
}

// Declared returns the plugins that a configuration declares, in order of name.
func Declared(c *config.Config) ([]Plugin, error) {
	var all []Plugin
	declared := c.Values().Providers
	for _, name := range c.Providers() {
		provider, err := c.Provider(name)
		if err != nil {
			return nil, err
		}
		if provider.Withheld != "" {
			provider.Plugin, provider.Folder = declared[name].Plugin, declared[name].Folder
		}
		if provider.Plugin == "" {
			continue
		}
		p := Plugin{Provider: *provider, Pin: provider.SHA256}
		if p.Pin != "" {
			origin, _ := c.Origin("providers", name, "sha256")
			p.By = cmp.Or(origin.String(), "the configuration")
		} else if p.Pin, err = trust.Open(c.TrustDir()).Pin(p.Target()); err != nil {
			return nil, err
		} else if p.Pin != "" {
			p.By = approvedByUser
		}
		all = append(all, p)
	}
	return all, nil
}

// Target returns the path whose content is approved: the plugin's folder if it has one, else its program.
func (p *Plugin) Target() (path string, folder bool) {
	return cmp.Or(p.Folder, p.Plugin), p.Folder != ""
}

// Pin returns the approved checksum of a plugin. Without one the error says how to approve
// the plugin.
func Pin(c *config.Config, p config.Provider) (string, error) {
	if p.SHA256 != "" {
		return p.SHA256, nil
	}
	target, folder := (&Plugin{Provider: p}).Target()
	pin, err := trust.Open(c.TrustDir()).Pin(target, folder)
	if err != nil {
		return "", fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	if pin == "" {
		return "", notPinned(p)
	}
	return pin, nil
}

func notPinned(p config.Provider) error {
	return &resolver.UnavailableError{Text: fmt.Sprintf("plugin %s: %s is not pinned, and only what was approved is started: if you trust it, run 'condense plugin pin %s'",
		p.Name, p.Plugin, p.Name)}
}

// Program returns why the program of a plugin cannot be started, with the remedy; empty if it can.
func Program(plugin string) string {
	shown := disk.FromHere(plugin)
	switch info, err := os.Stat(plugin); {
	case os.IsNotExist(err) && strings.Contains(filepath.ToSlash(plugin), "/.condense/plugins/"):
		return "there is no file " + shown + ": 'condense plugin install' installs the plugins in condense.lock"
	case os.IsNotExist(err):
		return "there is no file " + shown
	case err != nil:
		return err.Error()
	case !info.Mode().IsRegular():
		return shown + " is not a file"
	case info.Mode().Perm()&0o111 == 0 && !config.IsModule(plugin) && runtime.GOOS != "windows":
		return shown + " is not executable"
	}
	return ""
}

// Usable returns the approved checksum of a plugin that is there. An error that wraps [core.ErrUnavailable] means that it is skipped.
func Usable(c *config.Config, p config.Provider) (pin string, err error) {
	if wrong := Program(p.Plugin); wrong != "" {
		return "", &resolver.UnavailableError{Text: fmt.Sprintf("plugin %s: %s", p.Name, wrong)}
	}
	return Pin(c, p)
}

// Digest returns the current checksum of the program or folder of a plugin. A module that cannot run has none to approve.
func Digest(p config.Provider) (string, error) {
	sum, err := supervise.Digest(base(p))
	if err == nil && config.IsModule(p.Plugin) {
		if _, err := Asks(p.Plugin); err != nil {
			return "", fmt.Errorf("%s is %w", p.Plugin, err)
		}
	}
	return sum, err
}

// A Runner runs the plugins of a host: it implements [condense.Plugins].
type Runner struct {
	// Reattach names plugins that run already, in a debugger for instance, and are not started: the value of
	// CONDENSE_REATTACH that a plugin prints with -debug. They need no approval.
	Reattach string
}

// Approved implements [condense.Plugins]. Plugins that run already have no checksum.
func (r *Runner) Approved(c *config.Config, p config.Provider) (string, error) {
	switch running, err := parseRunning(r.Reattach); {
	case err != nil:
		return "", err
	case running[p.Name] != nil && slices.ContainsFunc(c.Policy(), func(s config.Setting) bool { return s.Key == "plugins" }):
		return "", fmt.Errorf("plugin %s: a policy demands its checksum, and %s names a process", p.Name, wire.EnvReattach)
	case running[p.Name] != nil:
		return "", nil
	}
	return Usable(c, p)
}

// Open implements [condense.Plugins]. Closing a plugin that ran already does not end its process.
func (r *Runner) Open(p config.Provider, checksum string, env condense.PluginEnv) (condense.Plugin, error) {
	running, err := parseRunning(r.Reattach)
	if err != nil {
		return nil, err
	}
	opts := &supervise.Options{Logger: env.Logger}
	opts.Client.Host, opts.Client.Model, opts.Client.Run, opts.Client.Embedder = host(), env.Model, env.Run, env.Embedder
	opts.Client.Limits.ModelCalls = cmp.Or(p.Limits.ModelCalls, math.MaxInt32)
	opts.Client.Models = env.Models
	if attach := running[p.Name]; attach != nil {
		return supervise.Open(supervise.Spec{Name: p.Name, Path: p.Plugin, Settings: p.Settings, Attach: attach}, opts)
	}
	return open(spec(p, checksum), opts)
}

// RefusesSettings implements [condense.Plugins].
func (r *Runner) RefusesSettings(err error) bool { return errors.As(err, new(*caller.SettingsError)) }

func spec(p config.Provider, pin string) supervise.Spec {
	s := base(p)
	s.SHA256, s.Env, s.Settings = pin, p.Env, p.Settings
	if d, known := Known(pin); known {
		s.Abilities = d.Abilities // what the user was shown
	}
	return s
}

// parseRunning returns the plugins that a value of CONDENSE_REATTACH names.
func parseRunning(value string) (map[string]*wire.Reattach, error) {
	if value == "" {
		return nil, nil
	}
	var running map[string]*wire.Reattach
	if err := json.Unmarshal([]byte(value), &running); err != nil {
		return nil, fmt.Errorf("%s: %w; want the line that a plugin prints with -debug", wire.EnvReattach, err)
	}
	return running, nil
}

// host returns the name and version of this program for the plugins that it starts: "condense v1.2.3", or the program
// that embeds condense.
var host = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "condense"
	}
	version := func(m *debug.Module) string { return strings.TrimSpace(path.Base(m.Path) + " " + m.Version) }
	if info.Main.Path == module {
		return version(&info.Main)
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return version(&info.Main) + ", " + version(m)
		}
	}
	return "condense"
})

const module = "github.com/condensehq/condense"

// Broken reports whether the error of a call means that the plugin is broken, and not that
// it declined: its process ended, its code panicked, or it broke the protocol.
func Broken(err error) bool {
	if _, crashed := errors.AsType[*supervise.CrashError](err); crashed || errors.Is(err, caller.ErrProtocol) {
		return true
	}
	remote, ok := errors.AsType[*caller.RemoteError](err)
	return ok && remote.Fault()
}
