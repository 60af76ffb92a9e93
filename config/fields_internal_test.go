package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/registry"
)

// Every tag of every setting is one that is read, and can be read.
func TestTags(t *testing.T) {
	known := []string{"json", "doc", "unit", "default", "min", "max", "enum", "refers", "of", "rule", "trust", "restart", "example"}
	name := regexp.MustCompile(`(\w+):"(?:[^"\\]|\\.)*"`)
	var check func(at string, settings []registry.Setting)
	check = func(at string, settings []registry.Setting) {
		for _, s := range settings {
			at := at + "." + s.Name
			for _, m := range name.FindAllStringSubmatch(string(s.Tag), -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: there is no tag %s", at, m[1])
				}
			}
			if unit := s.Tag.Get("unit"); unit != "" {
				if _, ok := units[unit]; !ok {
					t.Errorf("%s: there is no unit %q", at, unit)
				}
			}
			for _, key := range []string{"min", "max"} {
				if text := s.Tag.Get(key); text != "" && limit(text) == 0 {
					t.Errorf("%s: %s %q is no number", at, key, text)
				}
			}
			for word := range strings.FieldsSeq(s.Tag.Get("rule")) {
				if new(field).rule(word) == nil {
					t.Errorf("%s: there is no rule %q", at, word)
				}
			}
			if of := place(s.Tag.Get("of")); of != "" && len(fieldsAt(of)) == 0 {
				t.Errorf("%s: there are no settings at %q", at, of)
			}
			check(at, s.Fields)
		}
	}
	for _, v := range []any{Values{}, ProfileValues{}, ModeValues{}, ProviderValues{}, ModelValues{}, upstreams{}, ServeRule{}} {
		check(fmt.Sprintf("%T", v), registry.Settings[any](func() any { return v }).List())
	}
	if preset, _ := fieldAt(inProfile, "preset"); !slices.Equal(preset.enum, presetNames()) {
		t.Errorf("preset: the tag has %q, and there are %q", preset.enum, presetNames())
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	var all []field
	for _, at := range fields.order {
		for _, f := range fieldsAt(at) {
			if id := string(at) + "." + f.key; seen[id] {
				t.Errorf("%s stands twice", id)
			} else {
				seen[id] = true
			}
			all = append(all, f)
		}
	}
	for _, f := range all {
		if f.doc == "" || !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: documentation %q", f.key, f.doc)
		}
		if f.of == "" && f.example == "" {
			t.Errorf("%s: no example", f.key)
		}
		if f.of != "" {
			continue
		}
		// The example and the default must be valid values of their own field; a default that is not has none.
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
		if f.has && f.def() == nil {
			t.Errorf("%s: the default %q is not a value", f.key, f.standard)
		}
		if f.inherits && f.min <= inherit {
			t.Errorf("%s: -1 is a value and inherits", f.key)
		}
	}
	for hint, key := range synonyms {
		if suggest.Fold(hint) != hint {
			t.Errorf("synonym %s is not folded", hint)
		}
		if !slices.ContainsFunc(all, func(f field) bool { return f.key == key }) {
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
