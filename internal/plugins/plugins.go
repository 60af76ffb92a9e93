// Package plugins handles the plugins of a configuration for hosts and the command line: it lists the approved ones,
// runs them under supervision, tries a plugin for its author, and distinguishes a broken plugin from one that
// declined.
package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/model"
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
	return fmt.Errorf("plugin %s: %s is not pinned, and only what was approved is started: if you trust it, run 'condense plugin pin %s'",
		p.Name, p.Plugin, p.Name)
}

// Digest returns the current checksum of the program or folder of a plugin.
func Digest(p config.Provider) (string, error) {
	return supervise.Digest(supervise.Spec{Path: p.Plugin, Tree: p.Folder})
}

// Env has the host's resources for the plugins that it runs.
type Env struct {
	Logger *slog.Logger
	// Models returns the resolver in force. It is called for every request of the plugin.
	Models func() *resolver.Models
}

func (e *Env) options() *supervise.Options {
	opts := &supervise.Options{Logger: e.Logger}
	opts.Client.Host = host()
	opts.Client.Model = func(req *core.Request, name string) (model.Generator, error) {
		m := e.Models()
		return m.Model(m.Agent(req), name)
	}
	opts.Client.Models = func(req *core.Request) []wire.NamedModel {
		var list []wire.NamedModel
		m := e.Models()
		m.Available(m.Agent(req), func(name string, info model.Info) {
			list = append(list, wire.NamedModel{Name: name, Info: info})
		})
		return list
	}
	return opts
}

// Open returns a configured plugin as a provider. The program must exist. Whether it has
// the approved checksum is checked when the first call starts it; otherwise the call fails.
func Open(p config.Provider, pin string, env *Env) (core.CondensationProvider, error) {
	return supervise.Open(spec(p, pin), env.options())
}

func spec(p config.Provider, pin string) supervise.Spec {
	return supervise.Spec{Name: p.Name, Path: p.Plugin, Tree: p.Folder, SHA256: pin, Env: p.Env, Settings: p.Settings}
}

// Running are plugins that run already, in a debugger for instance, by name.
type Running map[string]wire.Reattach

// ParseRunning reads the value of CONDENSE_REATTACH that a plugin prints with -debug; an
// empty one names none.
func ParseRunning(value string) (Running, error) {
	if value == "" {
		return nil, nil
	}
	var r Running
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return nil, fmt.Errorf("%s: %w; want the line that a plugin prints with -debug", wire.EnvReattach, err)
	}
	return r, nil
}

// Open returns a plugin of r as a provider. Closing it does not end the process.
func (r Running) Open(p config.Provider, env *Env) (core.CondensationProvider, error) {
	attach := r[p.Name]
	return supervise.Open(supervise.Spec{Name: p.Name, Path: p.Plugin, Settings: p.Settings, Attach: &attach}, env.options())
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

// RefusesSettings reports whether the error of a start means that the plugin does not accept its settings.
func RefusesSettings(err error) bool { return errors.As(err, new(*wire.SettingsError)) }

// Broken reports whether the error of a call means that the plugin is broken, and not that
// it declined: its process ended, its code panicked, or it broke the protocol.
func Broken(err error) bool {
	if _, crashed := errors.AsType[*supervise.CrashError](err); crashed || errors.Is(err, wire.ErrProtocol) {
		return true
	}
	remote, ok := errors.AsType[*wire.RemoteError](err)
	return ok && remote.Code == codes.Internal
}
