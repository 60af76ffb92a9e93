package condense

import (
	"context"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
)

// Provider returns the provider that c describes, for programs that ask one by itself: to
// compare it with others, say. It is opened as for the chain of a profile (empty for the
// default one), with the language models of the configuration and, if it is a plugin, as a
// process that is watched over. It belongs to the host, which closes it when the
// configuration changes or the host is closed.
func (h *Host) Provider(ctx context.Context, c config.Provider, profile string) (core.CondensationProvider, error) {
	s, release := h.use()
	p, err := func() (core.CondensationProvider, error) {
		set, err := s.resolve(turnKey{profile: profile})
		if err != nil {
			return nil, err
		}
		return s.provider(ctx, c, set.Model.Name)
	}()
	if errRelease := release(); err == nil {
		err = errRelease
	}
	return p, err
}
