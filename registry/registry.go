package registry

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/suggest"
)

// A Registry is a fixed set of strategies with distinct names. It never changes and is
// safe for concurrent use. There is no global one: a program lists what it wants.
type Registry struct {
	byName map[string]Strategy
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// New returns the registry of the strategies given. It reports every fault that it
// finds, joined.
func New(strategies ...Strategy) (*Registry, error) {
	return (&Registry{}).With(strategies...)
}

// With returns a registry that has further strategies; r is untouched.
func (r *Registry) With(strategies ...Strategy) (*Registry, error) {
	n := &Registry{byName: maps.Clone(r.byName)}
	if n.byName == nil {
		n.byName = map[string]Strategy{}
	}
	var errs []error
	for _, s := range strategies {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("strategy %q: "+format, append([]any{s.Name}, args...)...))
		}
		if !nameForm.MatchString(s.Name) {
			fault("a name has lower-case letters, digits and underscores and begins with a letter")
		}
		if s.open == nil {
			fault("not made by registry.Define")
		}
		if strings.TrimSpace(s.Doc) == "" {
			fault("no documentation")
		}
		if _, ok := n.byName[s.Name]; ok {
			fault("registered twice")
		}
		n.byName[s.Name] = s
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return n, nil
}

// Get returns the strategy of that name. The error lists those that there are.
func (r *Registry) Get(name string) (Strategy, error) {
	if s, ok := r.byName[name]; ok {
		return s, nil
	}
	names := r.Names()
	return Strategy{}, fmt.Errorf("no strategy %q%s; there are %s", name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
}

// Names returns the names of all strategies, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// All returns the strategies in order of name.
func (r *Registry) All() iter.Seq[Strategy] {
	return func(yield func(Strategy) bool) {
		for _, n := range r.Names() {
			if !yield(r.byName[n]) {
				return
			}
		}
	}
}
