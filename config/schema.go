package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/registry"
)

// Schema returns a JSON schema (draft 2020-12) of configuration files, for completion and
// checks in editors. It knows the keys, their types and limits, the strategies with their
// settings, and the names in opts.Builtin, opts.Chain and opts.Tokenizers. It does not know
// whether a name refers to something in the same file: [Load] checks that, and [Config.Schema] knows it.
func Schema(strategies []registry.Strategy, opts Options) ([]byte, error) {
	s := schemaWriter{strategies: strategies, opts: opts}
	return s.text()
}

// Schema returns the schema of the function Schema for the files of this configuration: a name must be one that is declared in it,
// and plugins, by the names of their providers, have these settings. It is to be written again when a name is added.
func (c *Config) Schema(strategies []registry.Strategy, plugins map[string][]registry.Setting) ([]byte, error) {
	s := schemaWriter{strategies, c.opts, c, plugins}
	return s.text()
}

func (s *schemaWriter) text() ([]byte, error) {
	root := s.object(atTop)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration of condense"
	root["patternProperties"] = schema{"^" + ownPrefix: schema{"description": "Yours, and not read: a place for the anchors of YAML."}}
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
	strategies []registry.Strategy
	opts       Options
	config     *Config // whose names are declared; nil if any may be
	plugins    map[string][]registry.Setting
}

func (s *schemaWriter) object(at place) schema {
	properties := schema{}
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	for _, f := range fieldsAt(at) {
		if f.key == anyName {
			out["additionalProperties"] = s.field(f)
			continue
		}
		properties[f.key] = s.field(f)
	}
	return out
}

// field returns the schema of a field, with its documentation.
func (s *schemaWriter) field(f field) schema {
	out := s.value(f)
	out["description"] = f.doc
	if def := s.opts.def(f); def != nil {
		out["default"] = def
	}
	return out
}

const (
	percentPattern  = `^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)\s*%$`
	countPattern    = `^[0-9][0-9_]*(\.[0-9]+)?\s*([kKmM]i?)?$`
	addressPattern  = `^(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z._-]+):[0-9]{1,5}$`
	securePattern   = `^(https://[^/@]+|http://(localhost|127(\.[0-9]+){3}|\[::1\])(:[0-9]+)?)(/.*)?$`
	spokenPattern   = `^(anthropic|openai|both|gemini|vertex|azure|bedrock|pass)\+`
	durationPattern = `^\+?([0-9]*\.?[0-9]+(ns|us|µs|μs|ms|s|m|h))+$`
	namePattern     = `^\S(.*\S)?$` // badName, as far as a pattern can express it
)

func (s *schemaWriter) value(f field) schema {
	switch f.kind {
	case kindSection:
		of := s.object(f.of)
		of["type"] = optionalObject
		if f.at == atTop {
			of = schema{"$ref": "#/$defs/" + string(f.of)}
		}
		out := schema{
			"type":                 optionalObject,
			"propertyNames":        schema{"type": "string", "minLength": 1, "maxLength": 200, "pattern": namePattern},
			"additionalProperties": of,
		}
		if f.of == inProvider && len(s.plugins) > 0 {
			out["properties"] = s.pluginProviders(of)
		}
		return out
	case kindObject:
		return s.object(f.of)
	case kindNames:
		if f.refers != toProvider {
			return list(s.name(f))
		}
		if s.config != nil {
			return list(enum(s.config.chainNames()))
		}
		return list(suggested(enum(s.providerNames()), nonEmpty(), "a built-in provider"))
	case kindVariables:
		return list(pattern(variableName().String()))
	case kindName:
		return s.name(f)
	case kindObjects:
		return schema{"type": []string{"array", "null"}, "items": s.object(f.of)}
	case kindPercent, kindTokens, kindBytes, kindCount, kindAmount, kindDollars:
		return numberSchema(f)
	case kindBool:
		return schema{"type": "boolean"}
	case kindEnum:
		return enum(f.enum)
	case kindDuration:
		if f.enum != nil {
			return pattern("^(" + strings.Join(f.enum, "|") + ")$|" + durationPattern)
		}
		return pattern(durationPattern)
	case kindHash:
		return pattern("^[0-9a-fA-F]{64}$")
	case kindVariable:
		return pattern(variableName().String())
	case kindAddress:
		return pattern(addressPattern)
	case kindURL:
		if f.spoken {
			begin := spokenPattern
			if f.usual {
				begin = "^(" + begin[1:] + ")?"
			}
			return schema{"type": "string", "pattern": begin + securePattern[1:]}
		}
		if f.secure {
			return schema{"type": "string", "format": "uri", "pattern": securePattern}
		}
		return schema{"type": "string", "format": "uri", "pattern": "^https?://[^/@]+(/.*)?$"}
	case kindFree:
		return schema{"type": optionalObject}
	case kindText:
		if f.min == 0 {
			return schema{"type": "string"}
		}
	case kindPath:
		if f.database {
			return schema{"type": "string", "pattern": `\S`, "anyOf": []any{pattern("^postgres(ql)?://"), schema{"not": pattern("://")}}, "not": pattern("^postgres(ql)?://([^/@]*:[^/@]*@|[^?]*[?](.*&)?password=)")}
		}
	}
	return pattern(`\S`)
}

// numberSchema covers the kinds that are numbers, or strings that mean numbers.
func numberSchema(f field) schema {
	number := schema{"type": "number", "minimum": f.min}
	if f.max > 0 {
		number["maximum"] = f.max
	}
	if f.kind == kindDollars {
		return number
	}
	// One schema for numbers and texts: editors show the title of the whole for each alternative of anyOf.
	is, texts := "number", []string{}
	if f.kind == kindTokens || f.kind == kindBytes || f.kind == kindCount || f.kind == kindAmount {
		is, texts = "integer", append(texts, countPattern)
	}
	if f.kind == kindPercent || f.kind == kindAmount {
		texts = append(texts, percentPattern)
	}
	number["type"], number["pattern"] = []string{is, "string"}, strings.Join(texts, "|")
	if f.inherits && f.min > inherit {
		number["minimum"] = inherit
		number["not"] = schema{"type": "number", "exclusiveMinimum": inherit, "exclusiveMaximum": f.min}
	}
	return number
}

func (s *schemaWriter) name(f field) schema {
	switch {
	case f.refers == toTokenizer && s.opts.Tokenizers != nil:
		return enum(s.opts.Tokenizers)
	case f.refers == toStrategy && len(s.strategies) > 0:
		names := plain.Each(s.strategies, func(strategy registry.Strategy) string { return strategy.Name })
		slices.Sort(names)
		return enum(names)
	case f.refers == toModel:
		return suggested(enum(vendorModels()), nonEmpty(), "a model of the built-in table")
	case f.refers == toProfile && s.config != nil:
		return enum(s.config.Profiles())
	case f.refers == toMode && s.config != nil && len(s.config.Modes()) > 0:
		return enum(s.config.Modes())
	}
	return nonEmpty()
}

// providerNames are the providers that exist without a declaration.
func (s *schemaWriter) providerNames() []string {
	names := append(slices.Clone(s.opts.Builtin), Truncation)
	names = append(names, slices.Concat(plain.Each(presets(), func(p preset) []string { return sortedKeys(p.providers) })...)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// vendors are the providers whose models an editor should offer. Resellers repeat them.
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
	out["type"] = optionalObject
	properties, _ := out["properties"].(schema)
	strict := schema{}
	for _, f := range fieldsAt(inProfile) {
		if f.soft {
			strict[f.key] = s.value(f)
			f.min, f.max = -maxTokens, maxTokens
			properties[f.key] = s.field(f)
		}
	}
	out["if"] = schema{"not": anyOf(schema{"required": []string{"preset"}}, schema{"required": []string{"extends"}})}
	out["then"] = schema{"properties": strict}
	return out
}

// mode is an object, or the name of a profile.
func (s *schemaWriter) mode() schema {
	out := s.object(inMode)
	out["type"] = optionalObject
	name := s.name(field{refers: toProfile})
	name["title"], name["description"] = "profile", "The profile of this mode."
	out["title"] = "mode"
	return anyOf(name, out)
}

// provider is an object with the settings of its strategy.
func (s *schemaWriter) provider() schema {
	out := s.object(inProvider)
	out["type"] = optionalObject
	rules := plain.Each([]string{"plugin", "sha256", "folder", "env"}, func(key string) schema {
		return schema{"not": schema{"required": []string{"strategy", key}}}
	})
	for _, strategy := range s.strategies {
		rules = append(rules, schema{
			"if":   schema{"properties": schema{"strategy": schema{"const": strategy.Name}}, "required": []string{"strategy"}},
			"then": schema{"properties": schema{"settings": settingsSchema(strategy.Doc, strategy.Settings())}},
		})
	}
	out["allOf"] = rules
	return out
}

// pluginProviders returns the schemas of the declared providers that are plugins: the schema of any provider, with settings of their own.
func (s *schemaWriter) pluginProviders(provider schema) schema {
	out := schema{}
	for name, settings := range s.plugins {
		out[name] = schema{
			"allOf": []any{provider},
			"if":    schema{"required": []string{"plugin"}},
			"then":  schema{"properties": schema{"settings": settingsSchema("Settings of the plugin.", settings)}},
		}
	}
	return out
}

// settingsSchema returns the schema of the settings of a provider.
func settingsSchema(doc string, settings []registry.Setting) schema {
	return schema{"type": optionalObject, "description": doc, "properties": properties(settings), "additionalProperties": false}
}

func properties(settings []registry.Setting) schema {
	out := schema{}
	for _, set := range settings {
		out[set.Name] = settingSchema(set)
	}
	return out
}

func settingSchema(set registry.Setting) schema {
	out := schema{"description": set.Doc}
	if set.Type != "" {
		out["type"] = set.Type
	}
	if len(set.Enum) > 0 && set.Type == "string" {
		out["enum"] = set.Enum
	}
	if len(set.Default) > 0 {
		out["default"] = set.Default
	}
	if len(set.Fields) > 0 {
		out["properties"], out["additionalProperties"] = properties(set.Fields), false
	}
	return out
}

// optionalObject is the type of a mapping that may also be left empty.
var optionalObject = []string{"object", "null"}

func nonEmpty() schema { return schema{"type": "string", "minLength": 1} }

func pattern(p string) schema { return schema{"type": "string", "pattern": p} }

func enum(values []string) schema { return schema{"type": "string", "enum": values} }

func list(items schema) schema { return schema{"type": "array", "uniqueItems": true, "items": items} }

func anyOf(alternatives ...schema) schema { return schema{"anyOf": alternatives} }

// suggested is a list of values for an editor to offer, or another value. Alternatives without titles of their own
// would be shown with the title of the whole.
func suggested(known, other schema, title string) schema {
	known["title"], known["description"] = title, title
	other["title"], other["description"] = "another", "another"
	return anyOf(known, other)
}
