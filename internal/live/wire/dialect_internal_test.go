package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every dialect has every entry, or says that its API has no such thing.
func TestDialects(t *testing.T) {
	if len(dialects) != len(APIs) {
		t.Errorf("%d dialects of %d APIs", len(dialects), len(APIs))
	}
	for _, api := range APIs {
		d := dialects[api]
		if d == nil {
			t.Errorf("%s has no dialect", api)
			continue
		}
		if d.API != api {
			t.Errorf("the dialect of %s calls itself %s", api, d.API)
		}
		var missing []string
		empty(reflect.ValueOf(*d), &missing)
		if lacks := strings.Fields(d.Lacks); !slices.Equal(missing, lacks) {
			t.Errorf("%s: not set are\n%s\nand it is said to lack\n%s", api, strings.Join(missing, " "), strings.Join(lacks, " "))
		}
	}
}

// empty finds the entries that are not set, in their order.
func empty(v reflect.Value, names *[]string) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		if f.Kind() == reflect.Struct {
			empty(f, names)
		} else if f.IsZero() {
			*names = append(*names, name)
		}
	}
}
