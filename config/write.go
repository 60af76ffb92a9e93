package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// Show returns the merged configuration as a YAML file that loads to the same configuration.
// Each value has a comment with its origin. It has no secrets, since a configuration has none.
func (c *Config) Show() (string, error) { return writeYAML(c.showObject(c.raw, atTop, nil)) }

func writeYAML(root *yaml.Node) (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(root), enc.Close()); err != nil {
		return "", fmt.Errorf("write yaml: %w", err)
	}
	return b.String(), nil
}

// showObject writes the fields of a place in their order. From a declared entry it omits the
// defaults: the window of the built-in profile, once written, would override the window of a model.
func (c *Config) showObject(values map[string]any, at place, p tree.Path) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(at, values) {
		v, ok := values[f.key]
		if !ok {
			continue
		}
		sub := p.With(f.key)
		if c.origins[sub.ID()].Kind == FromDefault && c.declared(p) {
			continue
		}
		var child *yaml.Node
		switch inner, isMap := v.(map[string]any); {
		case f.kind == kindSection && isMap:
			child = &yaml.Node{Kind: yaml.MappingNode}
			for _, name := range sortedKeys(inner) {
				fields, _ := inner[name].(map[string]any)
				child.Content = append(child.Content, textNode(name), c.showObject(fields, f.of, sub.With(name)))
			}
		case f.kind == kindObject && isMap:
			child = c.showObject(inner, f.of, sub)
		default:
			child = yamlNode(v)
			if o, ok := c.origins[sub.ID()]; ok {
				child.LineComment = o.String()
			}
		}
		out.Content = append(out.Content, textNode(f.key), child)
	}
	return out
}

// declared reports whether a layer above the defaults has the entry of a section at p.
func (c *Config) declared(p tree.Path) bool {
	return len(p) > 1 && c.origins[p.ID()].Kind != FromDefault
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// yamlNode writes a value of a merged configuration.
func yamlNode(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		out := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		for _, key := range sortedKeys(v) {
			out.Content = append(out.Content, textNode(key), yamlNode(v[key]))
		}
		return out
	case []any:
		out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		out.Content = append(out.Content, plain.Each(v, yamlNode)...)
		return out
	case string:
		return textNode(v)
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v, 10)}
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(v, 'f', -1, 64)}
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return textNode(fmt.Sprint(v))
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: string(text)}
	}
}

// Init returns a commented configuration to start from: two chains, one for each of two
// modes, and every other setting with its default. The first line names schema, the path or
// address of the schema for editors, unless that is empty. Of opts, it uses Strategies and
// Chain.
func Init(schema string, opts Options) string {
	var b strings.Builder
	if schema != "" {
		b.WriteString("# yaml-language-server: $schema=" + schema + "\n")
	}
	b.WriteString(initHead)
	for _, f := range fieldsAt(atTop) {
		def := opts.def(f)
		if def == nil || f.refers == toProfile || f.key == "threshold" {
			continue
		}
		line := fmt.Sprintf("# %s: %s", f.key, compact(def))
		fmt.Fprintf(&b, "%-28s # %s\n", line, firstSentence(f.doc))
	}
	for _, s := range starters {
		if !slices.ContainsFunc(s.needs, func(name string) bool { return !opts.has(name) }) {
			fmt.Fprintf(&b, initBody, s.one, s.two, s.providers)
			break
		}
	}
	b.WriteString(initServe)
	initObject(&b, inServe, "#   ")
	return b.String()
}

// initObject writes the fields of a place that have a default, as comments.
func initObject(b *strings.Builder, at place, indent string) {
	for _, f := range fieldsAt(at) {
		line := fmt.Sprintf("%s%s: %s", indent, f.key, compact(f.def()))
		switch {
		case f.kind == kindObject:
			line = indent + f.key + ":"
		case f.def() == nil:
			continue
		case f.kind == kindBytes:
			line = indent + f.key + ": " + f.example
		}
		fmt.Fprintf(b, "%-28s # %s\n", line, firstSentence(f.doc))
		if f.kind == kindObject {
			initObject(b, f.of, indent+"  ")
		}
	}
}

// has reports whether there is a strategy of that name.
func (o *Options) has(strategy string) bool {
	return o.Strategies == nil || slices.Contains(o.Strategies, strategy)
}

func firstSentence(doc string) string {
	s, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(s, ".")
}

// initHead and initBody are a new file above and below the settings of its top level. The body is a format for the two chains and the
// providers.
var (
	//go:embed init_head.yaml
	initHead string
	//go:embed init_body.txt
	initBody string
)

const initServe = `
# The gateway between agents and their vendors, 'condense serve' and 'condense wrap'. It works
# without any of this:
# serve:
`

// A starter is a pair of chains to start from.
type starter struct {
	needs     []string // strategies
	one, two  string   // chains
	providers string   // the providers in the chains
}

var (
	//go:embed init_smart.yaml
	smartProviders string
	//go:embed init_window.yaml
	windowProviders string
)

// starters are in order of preference. The last one needs no optional strategy.
var starters = []starter{
	{needs: []string{"smart", "native"}, one: "[tidy]", two: "[lossless, summary]", providers: smartProviders},
	{one: "[newest]", two: "[ends, newest]", providers: windowProviders},
}
