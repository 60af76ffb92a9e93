package config

import "github.com/condensehq/condense/internal/tree"

// merge puts the values of a layer over those below it, mapping by mapping. Anything but a mapping replaces what was there. Below
// may refer to parts of above afterwards.
func merge(above, below map[string]any) {
	for key, v := range above {
		inner, isMap := v.(map[string]any)
		under, both := below[key].(map[string]any)
		if isMap && both {
			merge(inner, under)
		} else {
			below[key] = v
		}
	}
}

// remove deletes the value at a path, and the mappings on the path that are empty without it.
func remove(values map[string]any, p tree.Path) {
	if inner, ok := values[p[0]].(map[string]any); ok && len(p) > 1 {
		if remove(inner, p[1:]); len(inner) > 0 {
			return
		}
	} else if len(p) > 1 {
		return
	}
	delete(values, p[0])
}

// copied returns a copy that shares no mapping and no list with m.
func copied(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, v := range m {
		out[key] = copiedValue(v)
	}
	return out
}

func copiedValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copied(v)
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = copiedValue(inner)
		}
		return list
	}
	return v
}
