// Package registry describes strategies as values, so that they can be listed, documented,
// configured and checked before they run.
package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
)

// A Strategy is a way to condense, with its name, documentation, settings and constructor.
// The same value is compiled into a host or served by a plugin. Make one with [Define].
type Strategy struct {
	// Name is the strategy's name in configurations: lower-case letters, digits and underscores, beginning with a letter.
	Name string
	// Doc describes the strategy. Lists show its first sentence.
	Doc string
	// Abilities are those that it declares; see [Strategy.Only].
	Abilities core.Abilities

	settings func() []Setting
	removed  map[string]string // see [Settings]
	open     func(ctx context.Context, settings json.RawMessage, env Env) (core.CondensationProvider, error)
}

// Env has the host's resources for the providers that it opens.
type Env struct {
	// Logger is never nil for a provider opened through [Strategy.Open].
	Logger *slog.Logger
	// Model returns the language model that the user's configuration calls name, or the
	// host's choice if name is empty. The error names the missing configuration; a model that is
	// configured but unusable fails when it is called. Model is never nil for a provider
	// opened through Open; without models it returns an error.
	Model func(name string) (model.Generator, error)
	// Embed turns each text into a vector, by the model of the user's configuration for that. Run lets a built-in strategy shorten the
	// messages of req that are not protected: its answer is verified, and can be part of one's own. Both are never nil for a provider
	// opened through Open; the error wraps [errors.ErrUnsupported] if the host lacks them.
	Embed func(ctx context.Context, texts []string) ([][]float32, core.Usage, error)
	Run   func(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage) (*core.Result, error)
	// Dir is the folder for relative paths in the settings, usually the configuration file's; empty means the working directory.
	Dir string
}

// A Setting documents one setting of a strategy.
type Setting struct {
	Name    string          `json:"name"`
	Type    string          `json:"type"` // a JSON type: string, integer, number, boolean, array, object
	Default json.RawMessage `json:"default"`
	Doc     string          `json:"doc"`
	Enum    []string        `json:"enum,omitempty"` // the values allowed, if they are few
	Was     []string        `json:"was,omitempty"`  // its former names, which are read as well
	// Fields are the settings in an object, if it is a struct.
	Fields []Setting `json:"fields,omitempty"`
	// Tag has all tags of the field, those above included; empty for a setting of a plugin.
	Tag reflect.StructTag `json:"-"`
}

// Nested calls f with every setting in settings and in their Fields, each before its own. A nested one has its place
// in the name: "mark.style". Depth is 0 for the outermost.
func Nested(settings []Setting, f func(s Setting, depth int)) { nested(settings, "", 0, f) }

func nested(settings []Setting, prefix string, depth int, f func(s Setting, depth int)) {
	for _, s := range settings {
		s.Name = prefix + s.Name
		f(s, depth)
		nested(s.Fields, s.Name+".", depth+1, f)
	}
}

// Settings are settings of type C, a struct with json tags, given by a function that returns
// the defaults. It is a function so that two users never share a map.
//
// A `doc` tag documents a field, a `was` tag its former names, and an `enum` tag lists the values that it may have, separated by "|":
// another, but for the empty one, is an error, also as a default. If *C has a method Removed() map[string]string, its keys are settings of
// former versions, and its values explain the replacement: an error gives the explanation instead of reporting an unknown setting.
type Settings[C any] func() C

// Decode returns the defaults overridden by raw, a JSON object; empty means the defaults. Unknown names and wrong types are
// errors. If *C has a method Validate() error, Decode returns its error too.
func (defaults Settings[C]) Decode(raw json.RawMessage) (C, error) {
	c := defaults()
	return c, decode(raw, &c)
}

// List documents the settings, in the order of the fields.
func (defaults Settings[C]) List() []Setting { return describe(defaults()) }

// Define makes a strategy with settings of type C; see [Settings].
func Define[C any](name, doc string, defaults func() C,
	open func(ctx context.Context, config C, env Env) (core.CondensationProvider, error),
) Strategy {
	settings := Settings[C](defaults)
	return Strategy{
		Name:     name,
		Doc:      doc,
		settings: sync.OnceValue(settings.List), // thousands of providers may use one strategy
		removed:  removed(new(C)),
		open: func(ctx context.Context, raw json.RawMessage, env Env) (core.CondensationProvider, error) {
			c, err := settings.Decode(raw)
			if err != nil {
				return nil, err
			}
			return open(ctx, c, env)
		},
	}
}

// Only returns the strategy with a declaration of everything that its providers do: the host rejects a result that does something else.
func (s Strategy) Only(a core.Abilities) Strategy {
	s.Abilities = a
	return s
}

// Settings returns the settings of the strategy, in the order of their fields.
func (s Strategy) Settings() []Setting {
	if s.settings == nil {
		return nil
	}
	return slices.Clone(s.settings())
}

// Removed explains the replacement of a setting of a former version; empty if there was none
// of that name.
func (s Strategy) Removed(setting string) string { return s.removed[setting] }

// removed returns the explanations that settings, a pointer to a struct, gives for settings of former versions.
func removed(settings any) map[string]string {
	if r, ok := settings.(interface{ Removed() map[string]string }); ok {
		return r.Removed()
	}
	return nil
}

// Open makes a provider with the given settings, a JSON object; empty means the
// defaults. The error names the strategy and the setting that is wrong.
func (s Strategy) Open(ctx context.Context, settings json.RawMessage, env Env) (core.CondensationProvider, error) {
	env.Logger = cmp.Or(env.Logger, slog.New(slog.DiscardHandler))
	if env.Model == nil {
		env.Model = func(string) (model.Generator, error) { return nil, errors.New("this host has no language models") }
	}
	if env.Embed == nil {
		env.Embed = func(context.Context, []string) ([][]float32, core.Usage, error) { return nil, core.Usage{}, errLacks }
	}
	if env.Run == nil {
		env.Run = func(context.Context, *core.Request, string, json.RawMessage) (*core.Result, error) {
			return nil, errLacks
		}
	}
	if err := s.Abilities.Check(core.AsksModels, "", "asks a language model"); err != nil {
		env.Model = func(string) (model.Generator, error) { return nil, err }
		env.Embed = func(context.Context, []string) ([][]float32, core.Usage, error) { return nil, core.Usage{}, err }
	}
	p, err := s.open(ctx, settings, env)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Name, err)
	}
	return p, nil
}

var errLacks = fmt.Errorf("not supported by this host: %w", errors.ErrUnsupported)

// decode decodes settings strictly, with errors in the user's words.
func decode[C any](raw json.RawMessage, c *C) error {
	if len(bytes.TrimSpace(raw)) > 0 {
		raw, err := renamed(raw, describe(*c))
		if err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(c); err != nil {
			return fmt.Errorf("settings: %w", explain(err, raw, *c, removed(c)))
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return errors.New("settings: more than one JSON value")
		}
	}
	if v, ok := any(c).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
	}
	return choices(describe(*c), "settings: ")
}

// choices returns an error if a setting, or a text in a list, is none of its enum's values. Empty ones and absent sections are no choice.
func choices(all []Setting, in string) error {
	for _, s := range all {
		texts := []string{""}
		if s.Enum != nil && json.Unmarshal(s.Default, &texts[0]) != nil && s.Type != "object" && json.Unmarshal(s.Default, &texts) != nil {
			texts = []string{string(s.Default)}
		}
		if i := slices.IndexFunc(texts, func(t string) bool { return t != "" && !slices.Contains(s.Enum, t) }); i >= 0 {
			return fmt.Errorf("%s%s: %q is none of %s", in, s.Name, texts[i], strings.Join(s.Enum, ", "))
		}
		if err := choices(s.Fields, in+s.Name+"."); err != nil && string(s.Default) != "null" {
			return err
		}
	}
	return nil
}

// renamed returns settings with those of former names under their present ones.
func renamed(raw json.RawMessage, known []Setting) (json.RawMessage, error) {
	object, found := map[string]json.RawMessage{}, false
	if json.Unmarshal(raw, &object) != nil {
		return raw, nil //nolint:nilerr // explained when it is decoded
	}
	for _, s := range known {
		for _, was := range s.Was {
			if value, ok := object[was]; ok && object[s.Name] != nil {
				return nil, fmt.Errorf("%s: is the former name of %s, which is set as well", was, s.Name)
			} else if ok {
				object[s.Name], found = value, true
				delete(object, was)
			}
		}
		if inner := object[s.Name]; inner != nil && s.Fields != nil {
			now, err := renamed(inner, s.Fields)
			if err != nil {
				return nil, fmt.Errorf("%s.%w", s.Name, err)
			}
			object[s.Name], found = now, found || !bytes.Equal(now, inner)
		}
	}
	if !found {
		return raw, nil
	}
	return json.Marshal(object)
}

// explain returns an error of encoding/json in terms of settings. Gone are those of former versions.
func explain(err error, raw json.RawMessage, config any, gone map[string]string) error {
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		if wrong.Field == "" {
			return fmt.Errorf("got a JSON %s; want an object", wrong.Value)
		}
		return fmt.Errorf("%s: got a JSON %s; want %s", wrong.Field, wrong.Value, jsonType(wrong.Type))
	}
	const unknown = "json: unknown field "
	if text := err.Error(); strings.HasPrefix(text, unknown) {
		name := strings.Trim(strings.TrimPrefix(text, unknown), `"`)
		where, names, ok := home(raw, reflect.TypeOf(config), name)
		if now := gone[name]; now != "" && where == "" {
			return fmt.Errorf("there is no setting %q any more: %s", name, now)
		}
		if !ok { // it is a duplicate, or the rest cannot be read
			names = append(names, plain.Each(describe(config), func(s Setting) string { return s.Name })...)
		}
		if len(names) == 0 {
			return fmt.Errorf("%sunknown setting %q; there are none", where, name)
		}
		return fmt.Errorf("%sunknown setting %q%s; there are %s", where, name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
	}
	return err
}

// describe lists the settings that a struct with json tags takes.
func describe(config any) []Setting {
	v := reflect.ValueOf(config)
	if v.Kind() != reflect.Struct {
		return nil
	}
	var out []Setting
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct { // its fields are in this object
			out = append(out, describe(v.Field(i).Interface())...)
			continue
		}
		name = cmp.Or(name, f.Name)
		def, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			def = []byte("null")
		}
		s := Setting{Name: name, Type: jsonType(f.Type), Default: def, Doc: f.Tag.Get("doc"), Tag: f.Tag}
		if enum := f.Tag.Get("enum"); enum != "" {
			s.Enum = strings.Split(enum, "|")
		}
		s.Was = strings.FieldsFunc(f.Tag.Get("was"), func(r rune) bool { return r == '|' })
		inner := v.Field(i)
		if inner.Kind() == reflect.Pointer && inner.IsNil() {
			inner = reflect.New(f.Type.Elem())
		}
		inner = reflect.Indirect(inner)
		if inner.Kind() == reflect.Struct && !reflect.PointerTo(inner.Type()).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			s.Fields = describe(inner.Interface())
		}
		out = append(out, s)
	}
	return out
}

// jsonType names the JSON type that decodes into t.
func jsonType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "integer"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return "array"
	default:
		return "object"
	}
}

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
	keys = plain.Each(describe(reflect.Zero(t).Interface()), func(s Setting) string { return s.Name })
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
