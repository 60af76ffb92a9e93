package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/tree"
)

// The table and the types say the same, at every place.
func TestTableMatchesTypes(t *testing.T) {
	for at, v := range map[place]any{
		atTop: Values{}, inProfile: ProfileValues{}, inMode: ModeValues{},
		inProvider: ProviderValues{}, inModel: ModelValues{},
	} {
		got := jsonNames(reflect.TypeOf(v))
		want := keysAt(at)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the type has %v, the table %v", at, got, want)
		}
	}
}

func jsonNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		if f.Anonymous {
			names = append(names, jsonNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fields {
		for _, p := range f.in {
			if id := string(p) + "." + f.key; seen[id] {
				t.Errorf("%s stands twice", id)
			} else {
				seen[id] = true
			}
		}
		if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: documentation %q", f.key, f.doc)
		}
		if f.of == "" && f.example == "" {
			t.Errorf("%s: no example", f.key)
		}
		if f.of != "" {
			continue
		}
		// The example and the default must be lawful values of their own field.
		n, syntax := tree.ParseYAML([]byte("x: " + f.example))
		if syntax != nil {
			t.Errorf("%s: example: %s", f.key, syntax.Problem)
			continue
		}
		if _, reads := readers[f.kind]; !reads && textChecks[f.kind] == nil {
			continue
		}
		if _, wrong := f.scalarValue(n.Pairs[0].Value); wrong != nil {
			t.Errorf("%s: example %s: %s", f.key, f.example, wrong.problem)
		}
		if f.inherits && f.min <= inherit {
			t.Errorf("%s: -1 is a value and inherits", f.key)
		}
	}
	for hint, key := range synonyms {
		if fold(hint) != hint {
			t.Errorf("synonym %s is not folded", hint)
		}
		if !slices.ContainsFunc(fields, func(f field) bool { return f.key == key }) {
			t.Errorf("synonym %s: there is no field %s", hint, key)
		}
	}
	for key := range sections {
		f, ok := fieldAt(atTop, key)
		if !ok || f.of != sections[key] {
			t.Errorf("section %s: got %+v", key, f)
		}
	}
	if !slices.IsSorted(secretKeys) {
		t.Error("secretKeys is not sorted")
	}
}

func TestNearest(t *testing.T) {
	names := slices.Sorted(maps.Keys(map[string]bool{
		"threshold": true, "max_output": true, "chain": true, "target": true, "o200k_base": true, "Code": true, "a": true,
	}))
	for name, want := range map[string]string{
		"treshold": "threshold", "thresholds": "threshold", "maxOutput": "max_output", "MAX-OUTPUT": "max_output",
		"chian": "chain", "traget": "target", "o200k": "o200k_base", "code": "Code", "Code": "",
		"colour": "", "x": "", "": "", strings.Repeat("threshold", 1000): "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}

func TestPathString(t *testing.T) {
	for want, p := range map[string]tree.Path{
		"threshold":                          {"threshold"},
		`profiles."gpt-4.1".threshold`:       {"profiles", "gpt-4.1", "threshold"},
		"profiles.code.chain[2]":             {"profiles", "code", "chain", "2"},
		`modes."architect/mode".profile`:     {"modes", "architect/mode", "profile"},
		"":                                   nil,
		`profiles."a\"b"`:                    {"profiles", `a"b`},
		"providers.tidy.settings.keep_first": {"providers", "tidy", "settings", "keep_first"},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
