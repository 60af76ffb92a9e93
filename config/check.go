package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// A layer has the values of one source, checked by themselves: a file, the environment, flags,
// a program, the defaults.
type layer struct {
	values  map[string]any    // as merged: float64, int64, bool, string, lists, mappings
	origins map[string]Origin // of every value and mapping, by path.id
	keys    map[string]Origin // of the keys themselves
	// soft are numbers that only a preset allows. Whether a profile has that preset is known
	// when all layers are merged.
	soft []softError
}

type softError struct {
	path  tree.Path
	value any
	err   *Error
}

// A checker checks one tree against the settings of each place and collects its values.
type checker struct {
	layer
	source func(tree.Position) Origin
	dir    string // the base of relative paths
	opts   *Options
	errs   Errors
	vars   bool // a tree from the environment or flags: lists may be written a,b
}

func newChecker(opts *Options, dir string, source func(tree.Position) Origin) *checker {
	return &checker{
		layer:  layer{values: map[string]any{}, origins: map[string]Origin{}, keys: map[string]Origin{}},
		source: source, dir: dir, opts: opts,
	}
}

// check reads a whole tree, whose keys are the fields of a place.
func (c *checker) check(root *tree.Node, of place) {
	if root.Shape != tree.Mapping {
		c.fail(root.At, nil, &fault{problem: "the file is " + root.Describe(), allowed: "must be a mapping of settings"})
		return
	}
	c.secrets(root, nil)
	c.values = c.object(root, of, nil)
}

func (c *checker) fail(at tree.Position, p tree.Path, f *fault) {
	err := c.error(at, p, f)
	if f.soft && len(p) == 3 && p[0] == "profiles" {
		return // the caller keeps it
	}
	c.errs = append(c.errs, err)
}

func (c *checker) error(at tree.Position, p tree.Path, f *fault) *Error {
	return &Error{Origin: c.source(at), Key: p.String(), Problem: f.problem, Allowed: f.allowed, Suggestion: f.suggestion, id: p.ID()}
}

// ownPrefix begins the keys of the top level that are the user's: a place for values that YAML's anchors
// refer to. They are not read, but a secret is not accepted there either.
const ownPrefix = "x-"

// object reads a mapping whose keys are the fields of a place.
func (c *checker) object(n *tree.Node, at place, p tree.Path) map[string]any {
	c.origins[p.ID()] = c.source(n.At)
	out := map[string]any{}
	for _, pair := range n.Pairs {
		sub := p.With(pair.Key)
		f, ok := fieldAt(at, pair.Key)
		if !ok && at == atTop && strings.HasPrefix(pair.Key, ownPrefix) {
			continue
		}
		if !ok {
			c.unknown(pair, at, sub)
			continue
		}
		c.keys[sub.ID()] = c.source(pair.At)
		if v, ok := c.field(f, pair.Value, sub); ok {
			out[pair.Key] = v
		}
	}
	return out
}

func (c *checker) unknown(pair tree.Pair, at place, p tree.Path) {
	if s, ok := pair.Value.Value.(string); ok && s != "" && secretKey(pair.Key) {
		return // reported as a secret
	}
	keys := keysAt(at)
	f := &fault{problem: "unknown key", suggestion: suggest.Key(pair.Key, keys)}
	if hint, ok := synonyms[suggest.Fold(pair.Key)]; ok && f.suggestion == "" {
		f.suggestion = hint
	}
	elsewhere := otherPlace(pair.Key, at)
	switch {
	case f.suggestion != "":
	case elsewhere != "":
		f.problem = "not a key of " + at.article() + " but of " + elsewhere.article()
	default:
		f.allowed = "known here: " + strings.Join(keys, ", ")
	}
	c.fail(pair.At, p, f)
}

// synonyms are the names of our settings in other tools, without separators.
var synonyms = map[string]string{
	"autocondensecontext": "auto", "autocondensecontextpercent": "threshold", "autocompact": "auto", "contextwindow": "window",
	"contextlength": "window", "maxtokens": "max_output", "maxoutputtokens": "max_output", "customcondensingprompt": "prompt",
	"fallback": "chain", "percent": "threshold", "apibase": "base_url", "endpoint": "base_url", "url": "base_url",
	"condenser": "strategy", "type": "strategy", "command": "plugin", "path": "plugin", "checksum": "sha256", "deadline": "timeout",
	"options": "settings", "environment": "env", "directory": "folder", "encoding": "tokenizer", "inherits": "extends",
}

// otherPlace returns the first place other than not that has such a key, "" if none has.
func otherPlace(key string, not place) place {
	for _, at := range fields().order {
		for _, f := range fieldsAt(at) {
			if f.key == key && f.at != not {
				return f.at
			}
		}
	}
	return ""
}

func (p place) article() string {
	switch {
	case p == atTop:
		return "the top level"
	case strings.HasPrefix(string(p), string(inServe)):
		return string(p)
	}
	return "a " + string(p)
}

// field reads one value; false means that there is no usable one.
func (c *checker) field(f field, n *tree.Node, p tree.Path) (any, bool) {
	c.origins[p.ID()] = c.source(n.At)
	empty := n.Shape == tree.Scalar && n.Value == nil
	if f.kind == kindBool || readers[f.kind] == nil {
		if v, isNumber := number(n.Value); isNumber && v == inherit && n.Shape == tree.Scalar {
			remedy := "remove the line to inherit"
			if c.vars {
				remedy = "unset it to inherit"
			}
			c.fail(n.At, p, &fault{problem: "is -1, with which only numbers inherit", allowed: "must be " + f.allowed() + "; " + remedy})
			return nil, false
		}
	}
	if f.kind == kindNames || f.kind == kindVariables {
		return c.names(f, n, p)
	}
	if f.kind == kindObjects {
		return c.objects(f, n, p)
	}
	if f.kind == kindSection || f.kind == kindObject || f.kind == kindFree {
		if empty {
			return nil, false // a mapping whose lines are all commented out
		}
		if n.Shape != tree.Mapping {
			c.fail(n.At, p, &fault{problem: "is " + n.Describe(), allowed: "must be " + f.allowed()})
			return nil, false
		}
		if f.kind == kindSection {
			return c.section(f, n, p), true
		}
		if f.kind == kindObject {
			return c.object(n, f.of, p), true
		}
		c.places(n, p)
		return n.Plain(), true
	}
	v, wrong := f.scalarValue(n)
	if wrong != nil {
		c.fail(n.At, p, wrong)
		if wrong.soft && len(p) == 3 && p[0] == "profiles" {
			c.soft = append(c.soft, softError{p, v, c.error(n.At, p, wrong)})
			return v, true
		}
		return nil, false
	}
	if text, ok := v.(string); ok && f.kind == kindPath && !slices.Contains(f.enum, text) && (!f.database || !isPostgres(text)) {
		return c.absolute(text), true
	}
	return v, true
}

// absolute makes a path absolute: it is relative to the file that contains it, and ~ is the
// home directory.
func (c *checker) absolute(file string) string {
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		if home := environment(c.opts.Env).get("HOME"); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(c.dir, file)
}

// objects reads a list of objects.
func (c *checker) objects(f field, n *tree.Node, p tree.Path) (any, bool) {
	if n.Shape == tree.Scalar && n.Value == nil {
		return nil, false // a list whose lines are all commented out
	}
	if n.Shape != tree.Sequence {
		c.fail(n.At, p, &fault{problem: "is " + n.Describe(), allowed: "must be " + f.allowed()})
		return nil, false
	}
	out := []any{}
	for i, item := range n.Items {
		sub := p.With(strconv.Itoa(i))
		if item.Shape != tree.Mapping {
			c.fail(item.At, sub, &fault{problem: "is " + item.Describe(), allowed: "must be a mapping with the keys " + strings.Join(keysAt(f.of), ", ")})
			out = append(out, map[string]any{}) // the others keep their positions
			continue
		}
		out = append(out, c.object(item, f.of, sub))
	}
	return out, true
}

// places records the positions of the values of a free mapping.
func (c *checker) places(n *tree.Node, p tree.Path) {
	for _, pair := range n.Pairs {
		sub := p.With(pair.Key)
		c.origins[sub.ID()], c.keys[sub.ID()] = c.source(pair.Value.At), c.source(pair.At)
		if pair.Value.Shape == tree.Mapping {
			c.places(pair.Value, sub)
		}
	}
}

// section reads a mapping of names to objects.
func (c *checker) section(f field, n *tree.Node, p tree.Path) map[string]any {
	out := map[string]any{}
	for _, pair := range n.Pairs {
		sub := p.With(pair.Key)
		if wrong := badName(pair.Key); wrong != "" {
			c.fail(pair.At, sub, &fault{problem: "the name " + wrong})
			continue
		}
		c.keys[sub.ID()], c.origins[sub.ID()] = c.source(pair.At), c.source(pair.Value.At)
		v := pair.Value
		switch {
		case v.Shape == tree.Mapping:
			out[pair.Key] = c.object(v, f.of, sub)
		case v.Shape == tree.Scalar && v.Value == nil:
			out[pair.Key] = map[string]any{} // everything is inherited
		case f.of == inMode && v.Shape == tree.Scalar:
			// A mode that is a profile's name.
			profile, _ := fieldAt(inMode, "profile")
			if name, ok := c.field(profile, v, sub.With("profile")); ok {
				out[pair.Key] = map[string]any{"profile": name}
			}
		default:
			allowed := "must be a mapping with the keys " + strings.Join(keysAt(f.of), ", ")
			if f.of == inMode {
				allowed = "must be the name of a profile or a mapping with the keys " + strings.Join(keysAt(f.of), ", ")
			}
			c.fail(v.At, sub, &fault{problem: "is " + v.Describe(), allowed: allowed})
			out[pair.Key] = map[string]any{} // the name exists: uses of it are valid
		}
	}
	return out
}

// badName returns why a profile, mode, provider or model cannot have this name, or "".
func badName(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "is empty"
	case name != strings.TrimSpace(name):
		return "begins or ends with a space"
	case len(name) > 200:
		return "is longer than 200 bytes"
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return "contains a control character"
	}
	return ""
}

// emptyList is how to write a list without elements.
var emptyList = map[reference]string{
	toProvider: "; write [] for truncation only, or remove the line to inherit",
}

// onceOnly is why a list has no duplicates.
var onceOnly = map[reference]string{toProvider: "each provider is asked once"}

// names reads a list of names. Whether they exist is checked when all layers are merged.
func (c *checker) names(f field, n *tree.Node, p tree.Path) (any, bool) {
	wrong := &fault{problem: "is " + n.Describe(), allowed: "must be " + f.allowed()}
	if s, ok := n.Value.(string); ok && n.Shape == tree.Scalar {
		if !c.vars {
			wrong.suggestion = "[" + s + "]"
			if looksSecret(s) {
				wrong.suggestion = ""
			}
			c.fail(n.At, p, wrong)
			return nil, false
		}
		list := &tree.Node{Shape: tree.Sequence, At: n.At}
		for name := range strings.SplitSeq(s, ",") {
			if name = strings.TrimSpace(name); name != "" {
				list.Items = append(list.Items, &tree.Node{At: n.At, Value: name, Text: name})
			}
		}
		n = list
	}
	if n.Shape != tree.Sequence {
		if n.Shape == tree.Scalar && n.Value == nil {
			wrong.allowed += cmp.Or(emptyList[f.refers], "; write [] for none, or remove the line")
		}
		c.fail(n.At, p, wrong)
		return nil, false
	}
	out := []any{}
	seen := map[string]bool{}
	element := field{kind: kindName, refers: f.refers}
	if f.kind == kindVariables {
		element = field{kind: kindVariable, example: "HTTPS_PROXY"}
	}
	for i, item := range n.Items {
		sub := p.With(strconv.Itoa(i))
		v, wrong := element.scalarValue(item)
		if wrong != nil {
			c.fail(item.At, sub, wrong)
			continue
		}
		name, _ := v.(string)
		if seen[name] {
			c.fail(item.At, sub, &fault{problem: fmt.Sprintf("duplicate %q", plain.Abbreviate(name)), allowed: cmp.Or(onceOnly[f.refers], "once is enough")})
			continue
		}
		seen[name] = true
		c.origins[p.With(strconv.Itoa(len(out))).ID()] = c.source(item.At)
		out = append(out, name)
	}
	return out, true
}

func looksSecret(s string) bool { return secret.Shown(s) }

// secretKeys are keys whose value would be a secret, without separators.
var secretKeys = []string{
	"accesskey", "accesstoken", "apikey", "apisecret", "apitoken", "authorization", "authtoken",
	"bearertoken", "clientsecret", "credential", "credentials", "passphrase", "passwd", "password",
	"privatekey", "secret", "secretaccesskey", "secretkey", "sessiontoken", "token",
}

func secretKey(key string) bool { return slices.Contains(secretKeys, suggest.Fold(key)) }

const secretAdvice = "secrets do not belong in a configuration: put it into an environment variable and name that with %s"

// secrets reports every literal secret in n, never its value.
func (c *checker) secrets(n *tree.Node, p tree.Path) {
	switch n.Shape {
	case tree.Mapping:
		for _, pair := range n.Pairs {
			if s, ok := pair.Value.Value.(string); ok && s != "" && secretKey(pair.Key) && !looksSecret(s) {
				c.fail(pair.Value.At, p.With(pair.Key), &fault{problem: "is a literal secret", allowed: advice(p)})
				continue
			}
			c.secrets(pair.Value, p.With(pair.Key))
		}
	case tree.Sequence:
		for _, item := range n.Items {
			c.secrets(item, p)
		}
	case tree.Scalar:
		if s, ok := n.Value.(string); ok && looksSecret(s) {
			c.fail(n.At, p, &fault{problem: "contains what looks like a literal secret", allowed: advice(p)})
		}
	}
}

func advice(p tree.Path) string {
	key := "api_key_env"
	if len(p) > 0 && p[0] == string(inServe) {
		key = "token_env"
	}
	return fmt.Sprintf(secretAdvice, key)
}
