package config

import (
	"fmt"
	"reflect"
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
	known := []string{"json", "doc", "unit", "default", "min", "max", "enum", "refers", "of", "rule", "trust", "less", "restart", "example"}
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
	for _, v := range []any{Values{}, ProfileValues{}, ModeValues{}, ProviderValues{}, ModelValues{}, upstreams{}, ServeRule{}, PolicyValues{}} {
		check(fmt.Sprintf("%T", v), registry.Settings[any](func() any { return v }).List())
	}
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	if preset, _ := fieldAt(inProfile, "preset"); !slices.Equal(preset.enum, names) {
		t.Errorf("preset: the tag has %q, and there are %q", preset.enum, names)
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	var all []field
	for _, at := range fields().order {
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

// What a stranger's file says of a gateway needs trust, whatever the key: who reads, keeps, deletes or pays, and all with which more
// is shortened. A new key is on that side until it is known to shorten less; then it stands here, with a value that shortens less and one
// that shortens more.
func TestStrangersFileShortensLessOnly(t *testing.T) {
	less := map[string][2]any{
		"auto": {false, nil}, "threshold": {int64(95), int64(20)}, "buffer": {int64(5), int64(40)}, "min_gain": {int64(20), int64(1)},
		"serve.observe": {true, nil}, "serve.deadline": {"10s", "1ms"}, "serve.max_body": {int64(1 << 20), int64(1 << 30)},
		"serve.ingest.lossless": {false, nil}, "serve.epoch.cold": {false, nil}, "serve.epoch.payback": {false, nil},
		"serve.account": {AccountOff, "cheap"},
	}
	asks := func(p tree.Path, v any) bool {
		b := newBuilder(Options{Env: []string{}})
		c := newChecker(&b.opts, ".", func(tree.Position) Origin { return Origin{} })
		c.values, _ = nested(p, v).(map[string]any)
		declared, gateway := b.claimsOf(c)
		return slices.ContainsFunc(slices.Concat(declared, gateway), func(c Claim) bool { return strings.HasPrefix(c.path.ID(), p.ID()) })
	}
	keys := 0
	for at, prefix := range map[place]tree.Path{
		atTop: {}, inProfile: {"profiles", "p"}, inMode: {"modes", "m"}, inProvider: {"providers", "x"}, inModel: {"models", "gpt-4.1"}, inServe: {"serve"},
		inUpstreams: {"serve", "upstreams"}, "serve.limits": {"serve", "limits"}, "serve.admin": {"serve", "admin"}, "serve.bedrock": {"serve", "bedrock"},
		"serve.compaction": {"serve", "compaction"}, "serve.retention": {"serve", "retention"}, "serve.tls": {"serve", "tls"}, "serve.ingest": {"serve", "ingest"},
		"serve.recall": {"serve", "recall"}, "serve.epoch": {"serve", "epoch"},
	} {
		for _, f := range fieldsAt(at) {
			p := prefix.With(f.key)
			if f.kind == kindObject || f.kind == kindSection {
				if _, ok := fields().at[f.of]; !ok {
					t.Errorf("%s: its settings are not looked at", p)
				}
				continue
			}
			keys++
			key := p.String()
			if at == inProfile || at == inMode {
				key = f.key
			}
			values, free := less[key]
			root, _ := tree.ParseYAML([]byte(f.example))
			if free && f.at != "" {
				if asks(p, values[0]) {
					t.Errorf("%s: %v needs trust, and shortens less", p, values[0])
				}
				if values[1] != nil && !asks(p, values[1]) {
					t.Errorf("%s: %v needs no trust, and shortens more", p, values[1])
				}
				continue
			}
			v := root.Plain()
			if reflect.DeepEqual(v, f.def()) || f.kind == kindBool { // the default needs no trust
				if b, ok := f.def().(bool); ok {
					v = !b
				} else if f.kind == kindEnum || f.kind == kindText || f.kind == kindName || f.kind == kindDuration || f.kind == kindAddress || f.kind == kindURL {
					v = "other"
				} else {
					v = int64(7)
				}
			}
			refused := at == inProvider && slices.Contains([]string{"folder", "sha256", "env"}, f.key) // without a plugin
			if !refused && !asks(p, v) {
				t.Errorf("%s: %v needs no trust: decide whether it shortens less", p, v)
			}
		}
	}
	if keys < 90 {
		t.Errorf("%d keys were looked at", keys)
	}
}

// nested returns a value at a place of nested mappings.
func nested(p tree.Path, v any) any {
	for _, key := range slices.Backward(p) {
		v = map[string]any{key: v}
	}
	return v
}
