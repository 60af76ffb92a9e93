package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
)

// A Registry is an immutable set of strategies with distinct names. It is safe for concurrent
// use. There is no global one: a program lists the strategies that it uses.
type Registry struct {
	byName map[string]Strategy
}

var nameForm = plain.Pattern(`^[a-z][a-z0-9_]*$`)

// New returns the registry of the given strategies. The error reports every fault.
func New(strategies ...Strategy) (*Registry, error) {
	r := &Registry{byName: map[string]Strategy{}}
	var errs []error
	for _, s := range strategies {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("strategy %q: "+format, append([]any{s.Name}, args...)...))
		}
		if !nameForm().MatchString(s.Name) {
			fault("a name has lower-case letters, digits and underscores and begins with a letter")
		}
		if s.open == nil {
			fault("not made by registry.Define")
		}
		if strings.TrimSpace(s.Doc) == "" {
			fault("no documentation")
		}
		if _, ok := r.byName[s.Name]; ok {
			fault("registered twice")
		}
		r.byName[s.Name] = s
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Get returns the strategy with that name. The error lists all names.
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
	return slices.Values(slices.SortedFunc(maps.Values(r.byName), func(a, b Strategy) int { return strings.Compare(a.Name, b.Name) }))
}

// home finds the object in raw, which was to be decoded into t, that has the unknown key name:
// encoding/json reports the key but not its position. It returns the path ("" for raw itself,
// "accept: ", "steps: 2: ") and the keys that the object may have.
func home(raw json.RawMessage, t reflect.Type, name string) (path string, keys []string, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "", nil, false // it knows its keys itself
	}
	switch t.Kind() { //nolint:exhaustive // others hold no objects
	case reflect.Struct:
		return homeInStruct(raw, t, name)
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return "", nil, false
		}
		for i, e := range list {
			if path, keys, ok = home(e, t.Elem(), name); ok {
				return strconv.Itoa(i+1) + ": " + path, keys, true
			}
		}
	case reflect.Map:
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return "", nil, false
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if path, keys, ok = home(all[key], t.Elem(), name); ok {
				return key + ": " + path, keys, true
			}
		}
	}
	return "", nil, false
}

func homeInStruct(raw json.RawMessage, t reflect.Type, name string) (path string, keys []string, ok bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return "", nil, false
	}
	fields := map[string]reflect.Type{}
	for _, s := range describe(reflect.Zero(t).Interface()) {
		keys = append(keys, s.Name)
	}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		key = cmp.Or(key, f.Name)
		fields[strings.ToLower(key)] = f.Type // encoding/json takes either case
	}
	if _, there := all[name]; there && fields[strings.ToLower(name)] == nil {
		return "", keys, true
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f := fields[strings.ToLower(key)]
		if f == nil {
			continue
		}
		if path, keys, ok := home(all[key], f, name); ok {
			return key + ": " + path, keys, true
		}
	}
	return "", nil, false
}
