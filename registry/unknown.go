package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// home finds the object in raw, which was to be decoded into t, that has a key name which it
// should not have: encoding/json says which key it did not know, but not where. It returns
// the way there ("" for raw itself, "accept: ", "steps: 2: ") and the keys that the object
// may have.
func home(raw json.RawMessage, t reflect.Type, name string) (path string, keys []string, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "", nil, false // it knows its keys itself
	}
	switch t.Kind() { //nolint:exhaustive // others hold no objects
	case reflect.Struct:
		return homeInStruct(raw, t, name)
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return "", nil, false
		}
		for i, e := range list {
			if path, keys, ok = home(e, t.Elem(), name); ok {
				return strconv.Itoa(i+1) + ": " + path, keys, true
			}
		}
	case reflect.Map:
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return "", nil, false
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if path, keys, ok = home(all[key], t.Elem(), name); ok {
				return key + ": " + path, keys, true
			}
		}
	}
	return "", nil, false
}

func homeInStruct(raw json.RawMessage, t reflect.Type, name string) (path string, keys []string, ok bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return "", nil, false
	}
	fields := map[string]reflect.Type{}
	for _, s := range describe(reflect.Zero(t).Interface()) {
		keys = append(keys, s.Name)
	}
	for f := range t.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" {
			key = f.Name
		}
		fields[strings.ToLower(key)] = f.Type // encoding/json takes either case
	}
	if _, there := all[name]; there && fields[strings.ToLower(name)] == nil {
		return "", keys, true
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		f := fields[strings.ToLower(key)]
		if f == nil {
			continue
		}
		if path, keys, ok := home(all[key], f, name); ok {
			return key + ": " + path, keys, true
		}
	}
	return "", nil, false
}
