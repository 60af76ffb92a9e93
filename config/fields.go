package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/registry"
)

// A place is a part of a file that has fields. An object in a place is the place "serve.epoch".
type place string

const (
	atTop       place = "top level"
	inProfile   place = "profile"
	inMode      place = "mode"
	inProvider  place = "provider"
	inModel     place = "model"
	inServe     place = "serve"
	inUpstreams place = "serve.upstreams"
	inRule      place = "serve.modes"
	inPolicy    place = "policy"
)

// A kind says how a field's value is written and read.
type kind int

const (
	kindBool      kind = iota
	kindPercent        // 70 or "70%"
	kindTokens         // 4000, "4k", "4Ki"
	kindAmount         // tokens, or "2%" of the window
	kindDollars        // a number, not negative
	kindText           // any string
	kindEnum           // one of field.enum
	kindName           // the name of something that field.refers to
	kindNames          // a list of such names
	kindVariables      // a list of names of environment variables
	kindDuration       // "45s"
	kindHash           // SHA-256, 64 hexadecimal digits
	kindVariable       // the name of an environment variable
	kindURL            // http or https
	kindAddress        // host:port, to listen on
	kindBytes          // 4000, "4k", "4Ki"
	kindCount          // 600, "1k"
	kindPath           // a file, relative to the one that names it, or one of field.enum
	kindFree           // any mapping, passed on as JSON
	kindObject         // an object with the fields of field.of
	kindSection        // a mapping of names to objects with the fields of field.of
	kindObjects        // a list of objects with the fields of field.of
)

// units are the values of the tag unit.
var units = map[string]kind{
	"percent": kindPercent, "tokens": kindTokens, "amount": kindAmount, "dollars": kindDollars, "bytes": kindBytes, "count": kindCount,
	"duration": kindDuration, "hash": kindHash, "variable": kindVariable, "url": kindURL, "address": kindAddress, "path": kindPath,
	"settings": kindFree, "object": kindObject,
}

// A reference is the kind of thing that a name refers to.
type reference string

const (
	toProfile   reference = "profile"
	toMode      reference = "mode"
	toProvider  reference = "provider"
	toModel     reference = "model"
	toStrategy  reference = "strategy"
	toTokenizer reference = "tokenizer"
)

// A field is one key that a file may contain, as its tags describe it. All fields make the
// defaults, the checks, the schema for editors and the reference documentation.
type field struct {
	key      string
	kind     kind
	at       place   // for a key that profiles and modes share with the top level: that
	standard string  // the tag default
	has      bool    // that it has the tag
	min, max float64 // limits, both included; max 0 means none
	refers   reference
	enum     []string
	of       place
	trust    string
	less     string
	restart  bool
	example  string
	doc      string

	// The words of the tag rule.
	inherits bool // -1 inherits
	soft     bool // a preset may lift the limits, see [policy.Exceptions]
	fraction bool // numbers below 1 are fractions: 0.1 is 10 %
	secure   bool // of addresses: https, or on this machine
	spoken   bool // of addresses: begins with an API that is spoken there
	usual    bool // with spoken: may begin with one
	database bool // of paths: the address of a PostgreSQL database is allowed too
	lock     bool // of the gateway: without it more callers are let in, or requests go elsewhere
}

// fields are all settings by place, in the order of the documentation; [Values] and [Serve] declare them.
var fields = sync.OnceValue(func() *table {
	return tableOf(
		placed{atTop, Values{}}, placed{inProfile, ProfileValues{}}, placed{inMode, ModeValues{}}, placed{inProvider, ProviderValues{}},
		placed{inModel, ModelValues{}}, placed{inUpstreams, upstreams{}}, placed{inRule, ServeRule{}}, placed{inPolicy, PolicyValues{}},
	)
})

// A placed is a struct with settings, and where they are in a file.
type placed struct {
	at place
	of any
}

// A table has the fields of each place. Order has the places.
type table struct {
	at    map[place][]field
	order []place
}

func tableOf(all ...placed) *table {
	t := &table{at: map[place][]field{}}
	for _, p := range all {
		t.add(p.at, registry.Settings[any](func() any { return p.of }).List())
	}
	return t
}

// add adds the settings of a place and of the objects in it.
func (t *table) add(at place, settings []registry.Setting) {
	t.order = append(t.order, at)
	for _, s := range settings {
		f := fieldOf(at, s)
		if at == inProfile || at == inMode {
			if slices.ContainsFunc(t.at[atTop], func(top field) bool { return top.key == f.key }) {
				f.at = atTop
			}
		}
		t.at[at] = append(t.at[at], f)
		if len(s.Fields) > 0 {
			t.add(f.of, s.Fields)
		}
	}
}

func fieldOf(at place, s registry.Setting) field {
	tag := s.Tag.Get
	f := field{
		key: s.Name, at: at, kind: kindOf(s), of: place(tag("of")), refers: reference(tag("refers")), enum: s.Enum,
		min: limit(tag("min")), max: limit(tag("max")), trust: tag("trust"), less: tag("less"), example: tag("example"), doc: s.Doc,
	}
	f.standard, f.has = s.Tag.Lookup("default")
	switch f.kind { //nolint:exhaustive // the others have no limit
	case kindTokens, kindBytes, kindCount, kindDollars:
		f.max = cmp.Or(f.max, maxTokens)
	case kindObject:
		if f.of == "" && at == atTop {
			f.of = place(f.key)
		} else if f.of == "" {
			f.of = at + "." + place(f.key)
		}
	}
	for word := range strings.FieldsSeq(tag("rule")) {
		*f.rule(word) = true
	}
	if f.trust != "" && !strings.Contains(f.doc, "trust") {
		f.doc += " Needs trust."
	}
	if f.restart = tag("restart") != ""; f.restart {
		f.doc += " Read at the start only."
	}
	return f
}

// rule returns the exception of that name.
func (f *field) rule(word string) *bool {
	return map[string]*bool{
		"inherits": &f.inherits, "soft": &f.soft, "fraction": &f.fraction, "secure": &f.secure,
		"spoken": &f.spoken, "usual": &f.usual, "database": &f.database, "lock": &f.lock,
	}[word]
}

// kindOf returns the kind of a setting by its unit or, without one, by its type.
func kindOf(s registry.Setting) kind {
	unit, list, refers := s.Tag.Get("unit"), s.Type == "array", s.Tag.Get("refers") != ""
	switch k, ok := units[unit]; {
	case k == kindVariable && ok && list:
		return kindVariables
	case ok:
		return k
	case refers && list:
		return kindNames
	case refers:
		return kindName
	case list:
		return kindObjects
	case len(s.Fields) > 0:
		return kindObject
	case s.Type == "object":
		return kindSection
	case s.Type == "boolean":
		return kindBool
	case len(s.Enum) > 0:
		return kindEnum
	}
	return kindText
}

// limit reads the tags min and max.
func limit(text string) float64 {
	if n, ok := size.Parse(text); ok {
		return float64(n)
	}
	v, _ := strconv.ParseFloat(text, 64) // a test reads all
	return v
}

// standards are the values of the tags default, by place and key.
var standards = sync.OnceValue(func() map[string]any {
	all := map[string]any{}
	for _, at := range fields().order {
		for _, f := range fields().at[at] {
			if v := f.readStandard(); v != nil {
				all[string(at)+"."+f.key] = v
			}
		}
	}
	return all
})

// readStandard reads the tag default as a file is read; nil without one.
func (f *field) readStandard() any {
	n := &tree.Node{Value: f.standard, Text: f.standard}
	if !takesText(f.kind) {
		root, syntax := tree.ParseYAML([]byte(f.standard))
		if n = root; syntax != nil {
			return nil
		}
	}
	switch {
	case !f.has:
		return nil
	case f.kind == kindNames:
		return n.Plain()
	}
	v, _ := f.scalarValue(n)
	return v
}

// def returns the built-in value, nil if there is none.
func (f *field) def() any { return standards()[string(f.at)+"."+f.key] }

const (
	// inherit is the number that inherits.
	inherit = -1
	// unknownOutput is the number of tokens to keep free for the answer if max_output is
	// unknown, as in Roo Code. In small windows it is the window divided by unknownShare; Roo
	// has no such bound.
	unknownOutput = 8192
	unknownShare  = 5
	// maxTokens keeps arithmetic on tokens exact and far from overflow.
	maxTokens = 1e12
	// defaultProfile is the profile that exists without a file.
	defaultProfile = "default"
	// defaultWindow is its window.
	defaultWindow = 200_000
)

// fieldsAt returns the fields of p, in order of documentation.
func fieldsAt(p place) []field { return fields().at[p] }

// fieldAt returns the field of that key at p.
func fieldAt(p place, key string) (field, bool) {
	for _, f := range fields().at[p] {
		if f.key == key {
			return f, true
		}
	}
	if (p == inUpstreams || p == inPolicy+".plugins") && key != anyName && upstreamName().MatchString(key) {
		f, ok := fieldAt(p, anyName)
		f.key = key
		return f, ok
	}
	return field{}, false
}

// anyName is the key of the field that describes all keys of a place that have no field of their own.
const anyName = "NAME"

var upstreamName = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// fieldsOf returns the fields of p, and a field for each other name in values.
func fieldsOf(p place, values map[string]any) []field {
	at := slices.Clone(fieldsAt(p))
	for _, name := range sortedKeys(values) {
		if f, ok := fieldAt(p, name); ok && !slices.ContainsFunc(at, func(f field) bool { return f.key == name }) {
			at = append(at, f)
		}
	}
	return at
}

func keysAt(p place) []string {
	return plain.Each(fieldsAt(p), func(f field) string { return f.key })
}

// sections are the keys of the top level that hold named objects.
var sections = map[string]place{"profiles": inProfile, "modes": inMode, "providers": inProvider, "models": inModel}
