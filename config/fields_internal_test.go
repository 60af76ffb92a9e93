package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// The table of fields and the types have the same keys, at every place.
func TestTableMatchesTypes(t *testing.T) {
	for at, v := range map[place]any{
		atTop: Values{}, inProfile: ProfileValues{}, inMode: ModeValues{},
		inProvider: ProviderValues{}, inModel: ModelValues{}, inServe: ServeValues{},
		inIngest: IngestValues{}, inRecall: RecallValues{}, inEpoch: EpochValues{}, inRule: ServeRule{},
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
		// The example and the default must be valid values of their own field.
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
		if suggest.Fold(hint) != hint {
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
