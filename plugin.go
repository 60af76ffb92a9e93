package condense

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/supervise"
	"github.com/condensehq/condense/internal/trust"
	"github.com/condensehq/condense/internal/wire"
	"github.com/condensehq/condense/model"
)

// pin returns the checksum that the program of a plugin must have; empty for what is no
// plugin, or is not started by the host.
func (s *setup) pin(c config.Provider) (string, error) {
	if c.Plugin == "" {
		return "", nil
	}
	if attach, err := s.attached(c.Name); err != nil || attach != nil {
		return "", err
	}
	if c.SHA256 != "" {
		return c.SHA256, nil
	}
	pin, err := trust.Open(s.config.TrustDir()).Pin(cmp.Or(c.Folder, c.Plugin), c.Folder != "")
	if err != nil {
		return "", fmt.Errorf("plugin %s: %w", c.Name, err)
	}
	if pin == "" {
		return "", &unpinnedError{c.Name, c.Plugin}
	}
	return pin, nil
}

// plugin returns the plugin of a chain as a provider. Its program must be there and pinned;
// whether it is the one that was pinned is found out when the first call starts it, and
// costs it its turns.
func (s *setup) plugin(c config.Provider, pin string, o *opened) (*supervise.Process, error) {
	attach, err := s.attached(c.Name)
	if err != nil {
		return nil, err
	}
	opts := &supervise.Options{Logger: s.host.opts.Logger}
	opts.Client.Model = func(req *core.Request, name string) (model.Generator, error) {
		l := o.lender.Load()
		return l.Model(l.agent(req), name)
	}
	opts.Client.Lent = func(req *core.Request) []wire.LentModel {
		l := o.lender.Load()
		return l.list(l.agent(req))
	}
	if attach != nil {
		return supervise.Open(supervise.Spec{Name: c.Name, Path: c.Plugin, Settings: c.Settings, Attach: attach}, opts)
	}
	return supervise.Open(supervise.Spec{
		Name: c.Name, Path: c.Plugin, Tree: c.Folder, SHA256: pin, Env: c.Env, Settings: c.Settings,
	}, opts)
}

// attached returns where the plugin of this name runs already; nil if the host is to start
// it.
func (s *setup) attached(name string) (*wire.Reattach, error) {
	if s.host.opts.Reattach == "" {
		return nil, nil //nolint:nilnil // nobody waits for us
	}
	var running map[string]wire.Reattach
	if err := json.Unmarshal([]byte(s.host.opts.Reattach), &running); err != nil {
		return nil, fmt.Errorf("%s: %w; want the line that a plugin prints with -debug", wire.EnvReattach, err)
	}
	if r, ok := running[name]; ok {
		return &r, nil
	}
	return nil, nil //nolint:nilnil // as above
}

// An unpinnedError says that nobody has approved a plugin.
type unpinnedError struct{ name, path string }

// Error says how to approve it.
func (e *unpinnedError) Error() string {
	return fmt.Sprintf("plugin %s: %s is not pinned, and only what was approved is started: if you trust it, run 'condense plugin pin %s'",
		e.name, e.path, e.name)
}

// A withheld is a provider that a file declares which the user has not trusted. It declines
// every request, so that the next of the chain is asked.
type withheld struct{ provider, why string }

// Condense implements [core.CondensationProvider].
func (w withheld) Condense(context.Context, *core.Request) (*core.Result, error) {
	return nil, &untrustedError{fmt.Sprintf("provider %s: %s", w.provider, w.why)}
}

// An untrustedError says what is not used because its file is not trusted.
type untrustedError struct{ text string }

// Error says why, and what to do.
func (e *untrustedError) Error() string { return e.text }

// Unwrap returns [core.ErrUnavailable].
func (e *untrustedError) Unwrap() error { return core.ErrUnavailable }
