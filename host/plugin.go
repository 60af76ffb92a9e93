package host

import (
	"fmt"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lock"
	"github.com/condensehq/condense/internal/supervise"
)

// plugin returns the plugin of a chain as a provider. Its program must be there and pinned;
// whether it is the one that was pinned is found out when the first call starts it, and
// costs it its turns.
func (s *setup) plugin(c config.Provider) (*supervise.Process, error) {
	pin, err := lock.Find(c)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", c.Name, err)
	}
	if pin.SHA256 == "" {
		return nil, &unpinnedError{c.Name, c.Plugin}
	}
	return supervise.Open(supervise.Spec{
		Name: c.Name, Path: c.Plugin, Tree: c.Folder, SHA256: pin.SHA256, Env: c.Env, Settings: c.Settings,
	}, &supervise.Options{Logger: s.host.opts.Logger})
}

// An unpinnedError says that nobody has approved a plugin.
type unpinnedError struct{ name, path string }

// Error says how to approve it.
func (e *unpinnedError) Error() string {
	return fmt.Sprintf("plugin %s: %s is not pinned, and only what was approved is started: if you trust it, run 'condense plugin pin %s'",
		e.name, e.path, e.name)
}
