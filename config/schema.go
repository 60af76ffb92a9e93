package config

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/condensehq/condense/internal/catalog"
)

// A StrategyDoc is what a schema should know about a built-in strategy.
type StrategyDoc struct {
	Name     string
	Doc      string
	Settings []SettingDoc // nil if they are not known, empty if there are none
}

// A SettingDoc is one setting of a strategy.
type SettingDoc struct {
	Name    string
	Type    string          // a JSON type; empty allows any
	Default json.RawMessage // nil if there is none
	Doc     string
	Enum    []string // the values allowed, if they are few
}

// Schema returns a JSON schema (draft 2020-12) of configuration files, for completion and
// checks in editors. It knows the keys, their types and limits, and the names handed in:
// opts.Builtin, opts.Chain, opts.Tokenizers and the strategies with their settings. That a name in a
// file refers to something in the same file is beyond a schema, and left to [Load].
func Schema(strategies []StrategyDoc, opts Options) ([]byte, error) {
	s := schemaWriter{strategies: strategies, opts: opts}
	root := s.object(atTop)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of condense"
	root["$defs"] = schema{
		string(inProfile):  s.profile(),
		string(inMode):     s.mode(),
		string(inProvider): s.provider(),
		string(inModel):    s.object(inModel),
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return append(text, '\n'), nil
}

type schema map[string]any

type schemaWriter struct {
	strategies []StrategyDoc
	opts       Options
}

func (s *schemaWriter) object(at place) schema {
	properties := schema{}
	for _, f := range fieldsAt(at) {
		properties[f.key] = s.field(f)
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

// nameSchema is the rule of badName, as far as a pattern can say it.
var nameSchema = schema{"type": "string", "minLength": 1, "maxLength": 200, "pattern": `^\S(.*\S)?$`}

const (
	percentPattern = `^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)\s*%$`
	countPattern   = `^[0-9][0-9_]*(\.[0-9]+)?\s*([kKmM]i?)?$`
)

// field returns the schema of a field, with its documentation.
func (s *schemaWriter) field(f field) schema {
	out := s.value(f)
	out["description"] = f.doc
	if def := s.opts.def(f); def != nil {
		out["default"] = def
	}
	return out
}

func (s *schemaWriter) value(f field) schema {
	if f.kind == kindSection {
		return schema{
			"type": []string{"object", "null"}, "propertyNames": nameSchema,
			"additionalProperties": schema{"$ref": "#/$defs/" + string(f.of)},
		}
	}
	if f.kind == kindObject {
		return s.object(f.of)
	}
	if f.kind == kindNames {
		return schema{"type": "array", "uniqueItems": true, "items": anyOf(enum(s.providerNames()), schema{"type": "string", "minLength": 1})}
	}
	if f.kind == kindVariables {
		return schema{"type": "array", "uniqueItems": true, "items": textSchema(field{kind: kindVariable})}
	}
	if f.kind == kindName {
		return s.name(f)
	}
	if out, ok := numberSchema(f); ok {
		return out
	}
	return textSchema(f)
}

// numberSchema covers the kinds that are numbers, or texts that stand for them.
func numberSchema(f field) (schema, bool) {
	number := schema{"type": "number", "minimum": f.min}
	if f.max > 0 {
		number["maximum"] = f.max
	}
	if f.kind == kindDollars {
		return number, true
	}
	alternatives := []schema{number}
	switch f.kind { //nolint:exhaustive // only these are numbers
	case kindPercent:
		alternatives = append(alternatives, schema{"type": "string", "pattern": percentPattern})
	case kindTokens:
		number["type"] = "integer"
		alternatives = append(alternatives, schema{"type": "string", "pattern": countPattern})
	case kindAmount:
		number["type"] = "integer"
		alternatives = append(alternatives,
			schema{"type": "string", "pattern": countPattern}, schema{"type": "string", "pattern": percentPattern})
	default:
		return nil, false
	}
	if f.inherits {
		alternatives = append(alternatives, schema{"const": inherit})
	}
	return anyOf(alternatives...), true
}

func textSchema(f field) schema {
	switch f.kind { //nolint:exhaustive // the rest are any texts
	case kindBool:
		return schema{"type": "boolean"}
	case kindEnum:
		return enum(f.enum)
	case kindDuration:
		return schema{"type": "string", "pattern": `^\+?([0-9]*\.?[0-9]+(ns|us|µs|μs|ms|s|m|h))+$`}
	case kindHash:
		return schema{"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}
	case kindVariable:
		return schema{"type": "string", "pattern": variableName.String()}
	case kindURL:
		return schema{"type": "string", "format": "uri", "pattern": "^https?://[^/@]+(/.*)?$"}
	case kindFree:
		return schema{"type": []string{"object", "null"}}
	case kindText:
		if f.min == 0 {
			return schema{"type": "string"}
		}
	}
	return schema{"type": "string", "pattern": `\S`}
}

func (s *schemaWriter) name(f field) schema {
	text := schema{"type": "string", "minLength": 1}
	switch f.refers {
	case toTokenizer:
		if s.opts.Tokenizers != nil {
			return enum(s.opts.Tokenizers)
		}
	case toStrategy:
		if len(s.strategies) > 0 {
			return enum(s.strategyNames())
		}
	case toModel:
		return anyOf(enum(vendorModels()), text)
	case toProfile, toProvider:
	}
	return text
}

// providerNames are the providers that exist without a declaration.
func (s *schemaWriter) providerNames() []string {
	names := append(slices.Clone(s.opts.Builtin), Truncation)
	for _, p := range presets() {
		names = append(names, sortedKeys(p.providers)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *schemaWriter) strategyNames() []string {
	var names []string
	for _, d := range s.strategies {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

// vendors are the providers whose models are worth offering in an editor; resellers repeat
// them.
var vendors = []string{"anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "minimax"}

func vendorModels() []string {
	var names []string
	for m := range catalog.All() {
		if m.Window > 0 && slices.Contains(vendors, m.Provider) {
			names = append(names, m.Name())
		}
	}
	return names
}

// profile is an object whose limits are lifted by a preset, which may be inherited.
func (s *schemaWriter) profile() schema {
	out := s.object(inProfile)
	out["type"] = []string{"object", "null"}
	properties, _ := out["properties"].(schema)
	strict := schema{}
	for _, f := range fieldsAt(inProfile) {
		if f.roo {
			strict[f.key] = s.value(f)
			free := f
			free.min, free.max = -maxTokens, maxTokens
			properties[f.key] = s.field(free)
		}
	}
	out["if"] = schema{"not": anyOf(schema{"required": []string{"preset"}}, schema{"required": []string{"extends"}})}
	out["then"] = schema{"properties": strict}
	return out
}

// mode is an object, or the name of a profile.
func (s *schemaWriter) mode() schema {
	out := s.object(inMode)
	out["type"] = []string{"object", "null"}
	return schema{"anyOf": []schema{{"type": "string", "minLength": 1, "description": "The profile of this mode."}, out}}
}

// provider is an object whose settings are those of its strategy.
func (s *schemaWriter) provider() schema {
	out := s.object(inProvider)
	out["type"] = []string{"object", "null"}
	rules := []schema{
		{"not": schema{"required": []string{"strategy", "plugin"}}},
		{"not": schema{"required": []string{"strategy", "sha256"}}},
		{"not": schema{"required": []string{"strategy", "folder"}}},
		{"not": schema{"required": []string{"strategy", "env"}}},
	}
	for _, d := range s.strategies {
		if d.Settings == nil {
			continue
		}
		properties := schema{}
		for _, set := range d.Settings {
			properties[set.Name] = set.schema()
		}
		rules = append(rules, schema{
			"if": schema{"properties": schema{"strategy": schema{"const": d.Name}}, "required": []string{"strategy"}},
			"then": schema{"properties": schema{"settings": schema{
				"type": []string{"object", "null"}, "description": d.Doc,
				"properties": properties, "additionalProperties": false,
			}}},
		})
	}
	out["allOf"] = rules
	return out
}

func (d *SettingDoc) schema() schema {
	out := schema{"description": d.Doc}
	if d.Type != "" {
		out["type"] = d.Type
	}
	if len(d.Enum) > 0 {
		out["enum"] = d.Enum
	}
	if len(d.Default) > 0 {
		out["default"] = d.Default
	}
	return out
}

func enum(values []string) schema { return schema{"type": "string", "enum": values} }

func anyOf(alternatives ...schema) schema { return schema{"anyOf": alternatives} }
