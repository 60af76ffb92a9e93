package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	kmaps "github.com/knadh/koanf/maps"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// envPrefix begins every variable that sets a value.
const envPrefix = "CONDENSE_"

// reservedVariables begin with the prefix but set no value.
var reservedVariables = []string{
	pathVariable,
	policyVariable,
	"CONDENSE_TOKEN",         // the usual variable for serve.token_env
	"CONDENSE_RECALL",        // what wrap gives Codex, whose commands may run the program
	"CONDENSE_STATUSLINE",    // what wrap gives plugins that run the program
	"CONDENSE_REATTACH",      // a plugin in a debugger
	"CONDENSE_CHROMIUM",      // a browser for tests
	"CONDENSE_TRACES_DIR",    // recorded sessions for tests
	"CONDENSE_REQUIRE_PEERS", // tests fail instead of skipping if a program is not installed
	"CONDENSE_GOLDEN_DIR",    // recorded inputs and outputs for tests
	"CONDENSE_FLEET",         // the size of a test
}

// An environment is a list of "NAME=value", as [os.Environ] returns it.
type environment []string

func (e environment) get(name string) string {
	value := ""
	for _, entry := range e {
		if n, v, _ := strings.Cut(entry, "="); n == name {
			value = v // the last one counts, as in os/exec
		}
	}
	return value
}

// A variable is one value from outside of files. Its key has the spelling of its source.
type variable struct {
	name  string // as the user wrote it
	key   string // the same without prefix
	value string
}

// variables returns the variables of e that set values, in order of name.
func (e environment) variables(ignore []string) []variable {
	last := map[string]string{}
	for _, entry := range e {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) {
			last[name] = value
		}
	}
	var vars []variable
	for _, name := range sortedKeys(last) {
		if !slices.Contains(reservedVariables, name) && !slices.Contains(ignore, name) {
			vars = append(vars, variable{name, strings.TrimPrefix(name, envPrefix), last[name]})
		}
	}
	return vars
}

// A spelling is how a source writes keys: CODE__MAX_OUTPUT in the environment, code.max_output
// in flags and on the command line.
type spelling struct {
	between string
	write   func(name string) string
}

var (
	envSpelling    = spelling{"__", screaming}
	dottedSpelling = spelling{".", func(name string) string { return name }}
)

// screaming writes a name as in an environment variable: in upper case, with an underscore for
// everything but letters and digits.
func screaming(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToUpper(r)
		}
		return '_'
	}, name)
}

// A keyMatch is one reading of a key.
type keyMatch struct {
	path  tree.Path
	field field
}

// matches returns every reading of key as a setting, given the names in a merged configuration.
// Names may contain the separator, so they are matched and not split off.
func (s spelling) matches(key string, merged map[string]any) []keyMatch {
	return s.matchFields(key, atTop, nil, merged)
}

func (s spelling) matchFields(key string, at place, p tree.Path, merged map[string]any) []keyMatch {
	var found []keyMatch
	if f, ok := fieldAt(at, s.name(key, merged)); ok && f.spoken {
		return []keyMatch{{p.With(f.key), f}}
	}
	for _, f := range fieldsAt(at) {
		rest, exact, ok := s.cut(key, f.key)
		switch {
		case !ok:
		case exact:
			found = append(found, keyMatch{p.With(f.key), f})
		case f.kind == kindSection:
			names, _ := merged[f.key].(map[string]any)
			for _, name := range sortedKeys(names) {
				found = append(found, s.matchName(rest, name, f, p.With(f.key), names)...)
			}
		case f.kind == kindObject:
			inner, _ := merged[f.key].(map[string]any)
			found = append(found, s.matchFields(rest, f.of, p.With(f.key), inner)...)
		case f.kind == kindFree:
			found = append(found, keyMatch{s.free(rest, p.With(f.key), merged[f.key]), field{kind: kindFree}})
		}
	}
	return found
}

func (s spelling) matchName(key, name string, f field, p tree.Path, names map[string]any) []keyMatch {
	rest, exact, ok := s.cut(key, name)
	if quoted := fmt.Sprintf("%q", name); !ok {
		rest, exact, ok = s.cut(key, quoted) // profiles."gpt-4.1".threshold
	}
	if !ok {
		return nil
	}
	if exact {
		return []keyMatch{{p.With(name), field{kind: kindObject, of: f.of}}}
	}
	inner, _ := names[name].(map[string]any)
	return s.matchFields(rest, f.of, p.With(name), inner)
}

// cut removes name and a separator from the beginning of key; exact means key is name.
func (s spelling) cut(key, name string) (rest string, exact, ok bool) {
	rest, ok = strings.CutPrefix(key, s.write(name))
	if !ok || rest == "" {
		return "", ok, ok
	}
	rest, ok = strings.CutPrefix(rest, s.between)
	return rest, false, ok && rest != ""
}

// name reads a key as a name: an existing one in its own spelling, another one in lower case if the source has no case.
func (s spelling) name(key string, existing map[string]any) string {
	for _, name := range sortedKeys(existing) {
		if s.write(name) == key {
			return name
		}
	}
	if s.between == envSpelling.between {
		return strings.ToLower(key)
	}
	return key
}

// free reads the rest of a key as keys of a provider's settings: existing ones in their own
// spelling, others in lower case if the source has no case.
func (s spelling) free(rest string, p tree.Path, settings any) tree.Path {
	for part := range strings.SplitSeq(rest, s.between) {
		m, _ := settings.(map[string]any)
		name := s.name(part, m)
		p, settings = p.With(name), m[name]
	}
	return p
}

// checkVariables reads values from outside of files, whose keys must fit the lower layers.
func checkVariables(vars []variable, s spelling, k OriginKind, merged map[string]any, opts *Options) *checker {
	all := newChecker(opts, opts.Dir, func(tree.Position) Origin { return Origin{Kind: k} })
	all.vars = true
	for _, v := range vars {
		origin := Origin{Kind: k, Name: v.name}
		c := newChecker(opts, opts.Dir, func(tree.Position) Origin { return origin })
		c.vars = true
		if m, wrong := s.one(v, merged); wrong != nil {
			if wrong.suggestion != "" {
				wrong.suggestion = strings.TrimSuffix(v.name, v.key) + wrong.suggestion // with its prefix
			}
			c.fail(tree.Position{}, m, wrong)
		} else if root, wrong := treeOf(v, s, merged); wrong != nil {
			c.fail(tree.Position{}, nil, wrong)
		} else {
			c.check(root, atTop)
		}
		all.errs = append(all.errs, c.errs...)
		all.soft = append(all.soft, c.soft...)
		kmaps.Merge(c.values, all.values)
		maps.Copy(all.origins, c.origins)
		maps.Copy(all.keys, c.keys)
	}
	return all
}

// one returns the only reading of v's key.
func (s spelling) one(v variable, merged map[string]any) (tree.Path, *fault) {
	found := s.matches(v.key, merged)
	switch len(found) {
	case 1:
		return found[0].path, nil
	case 0:
		return nil, s.noMatch(v.key, merged)
	}
	keys := plain.Each(found, func(m keyMatch) string { return m.path.String() })
	return nil, &fault{problem: "ambiguous: could be " + strings.Join(keys, " or "), allowed: "set it in a file"}
}

// noMatch is the fault of a key that has no reading.
func (s spelling) noMatch(key string, merged map[string]any) *fault {
	merged = maps.Clone(merged)
	if providers, ok := merged["providers"].(map[string]any); ok { // nobody has written those of presets
		providers = maps.Clone(providers)
		merged["providers"] = providers
		for _, p := range presets() {
			maps.DeleteFunc(providers, func(name string, _ any) bool { return p.providers[name] != nil })
		}
	}
	known := s.known(merged)
	f := &fault{problem: "unknown setting", suggestion: suggest.Key(key, known)}
	for section, of := range sections {
		rest, _, ok := s.cut(key, section)
		if !ok || rest == "" {
			continue
		}
		names, _ := merged[section].(map[string]any)
		f.problem = "no setting of a " + string(of) + " that exists"
		f.allowed = section + ": " + cmp.Or(listed(sortedKeys(names)), "there are none")
	}
	return f
}

// listed joins names for a message.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %s more", strings.Join(names[:maxListed], ", "), size.Group(more))
	}
	return strings.Join(names, ", ")
}

// known lists the keys to suggest, in the spelling of the source.
func (s spelling) known(merged map[string]any) []string {
	var keys []string
	for _, f := range fieldsAt(atTop) {
		if f.kind == kindObject {
			keys = append(keys, s.within(f, s.write(f.key))...)
			continue
		}
		if f.kind != kindSection {
			keys = append(keys, s.write(f.key))
			continue
		}
		names, _ := merged[f.key].(map[string]any)
		for _, name := range sortedKeys(names) {
			for _, inner := range keysAt(f.of) {
				keys = append(keys, s.write(f.key)+s.between+s.write(name)+s.between+s.write(inner))
			}
		}
	}
	return keys
}

// within lists the keys of an object and of the objects in it.
func (s spelling) within(object field, prefix string) []string {
	var keys []string
	for _, f := range fieldsAt(object.of) {
		key := prefix + s.between + s.write(f.key)
		if f.kind == kindObject {
			keys = append(keys, s.within(f, key)...)
		} else {
			keys = append(keys, key)
		}
	}
	return keys
}

// treeOf turns one variable into the tree of a file with this value only.
func treeOf(v variable, s spelling, merged map[string]any) (*tree.Node, *fault) {
	m := s.matches(v.key, merged)[0]
	leaf := &tree.Node{Value: v.value, Text: v.value}
	if !takesText(m.field.kind) {
		parsed, syntax := tree.ParseYAML([]byte(v.value))
		if syntax != nil {
			return nil, &fault{problem: "cannot be read: " + syntax.Problem}
		}
		leaf = parsed
		if strings.TrimSpace(v.value) == "" {
			leaf = &tree.Node{}
		}
	}
	for _, name := range slices.Backward(m.path) {
		leaf = &tree.Node{Shape: tree.Mapping, Pairs: []tree.Pair{{Key: name, Value: leaf}}}
	}
	return leaf, nil
}

// takesText reports whether all values of a kind are strings, so that a variable or flag needs
// no quotes: a profile called 4.1, a timeout, a prompt with a colon.
func takesText(k kind) bool {
	_, checked := textChecks[k]
	return checked
}
