package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/condensehq/condense/internal/tree"
	"go.yaml.in/yaml/v3"
)

// Show returns the merged configuration as a YAML file that would load to the same, each
// value with a comment that says where it came from. There are no secrets in it, because
// there are none in a configuration.
func (c *Config) Show() (string, error) {
	return writeYAML(c.showObject(c.raw, atTop, nil))
}

func writeYAML(root *yaml.Node) (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return "", fmt.Errorf("write yaml: %w", err)
	}
	if err := enc.Close(); err != nil {
		return "", fmt.Errorf("write yaml: %w", err)
	}
	return b.String(), nil
}

// showObject writes the fields of a place in their order. Of what somebody declared, it
// leaves out what only the defaults say: written down, the window of the built-in profile
// would override that of a model.
func (c *Config) showObject(values map[string]any, at place, p tree.Path) *yaml.Node {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsAt(at) {
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
			if o, ok := c.origins[sub.ID()]; ok && child.Kind == yaml.ScalarNode {
				child.LineComment = o.String()
			} else if ok {
				child.Style = yaml.FlowStyle
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
		for _, item := range v {
			out.Content = append(out.Content, yamlNode(item))
		}
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
