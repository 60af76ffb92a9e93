package roo

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// A kind is the JavaScript type of a value that was read from JSON.
type kind uint8

const (
	kindUndefined kind = iota // the member is absent
	kindNull
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// kindOf returns the kind of a JSON value. Absent is "".
func kindOf(raw string) kind {
	if raw == "" {
		return kindUndefined
	}
	switch raw[0] {
	case 'n':
		return kindNull
	case 't', 'f':
		return kindBool
	case '"':
		return kindString
	case '[':
		return kindArray
	case '{':
		return kindObject
	}
	return kindNumber
}

// truthy reports whether JavaScript's if would take raw for true.
func truthy(raw string) bool {
	switch kindOf(raw) {
	case kindUndefined, kindNull:
		return false
	case kindBool:
		return raw == "true"
	case kindNumber:
		return parseNumber(raw) != 0
	case kindString:
		return len(raw) > len(`""`)
	case kindArray, kindObject:
	}
	return true
}

// parseNumber returns the float64 nearest to a JSON number, an infinity beyond the range.
func parseNumber(raw string) float64 {
	f, _ := strconv.ParseFloat(raw, 64) // the error is the range's: f is right
	return f
}

// toNumber converts raw as JavaScript's operators < and - do. Undefined, a string that
// is no plain number, a list and an object are NaN, which is neither less than, equal to
// nor greater than anything.
func toNumber(raw string) float64 {
	switch kindOf(raw) {
	case kindNull:
		return 0
	case kindBool:
		if raw == "true" {
			return 1
		}
		return 0
	case kindNumber:
		return parseNumber(raw)
	case kindString:
		text := strings.TrimSpace(unquote(raw))
		if text == "" {
			return 0
		}
		if kindOf(text) == kindNumber && json.Valid([]byte(text)) {
			return parseNumber(text)
		}
	case kindUndefined, kindArray, kindObject:
	}
	return math.NaN()
}

// formatNumber spells f as JSON.stringify does, which is also how encoding/json does.
// JSON has no NaN and no infinities; both are null.
func formatNumber(f float64) string {
	text, err := json.Marshal(f)
	if err != nil {
		return "null"
	}
	return string(text)
}

// toString converts raw as JavaScript's String does.
func toString(raw string) string {
	switch kindOf(raw) {
	case kindUndefined:
		return "undefined"
	case kindNumber:
		switch f := parseNumber(raw); {
		case math.IsInf(f, 1):
			return "Infinity"
		case math.IsInf(f, -1):
			return "-Infinity"
		case f == 0:
			return "0" // of -0, too
		default:
			return formatNumber(f)
		}
	case kindString:
		return unquote(raw)
	case kindArray:
		var parts []string
		for c := (cursor{s: raw, i: 1}); c.more(); {
			part := ""
			if v := c.value(); kindOf(v) != kindNull {
				part = toString(v)
			}
			parts = append(parts, part)
		}
		return strings.Join(parts, ",")
	case kindObject:
		return "[object Object]"
	case kindNull, kindBool:
	}
	return raw
}

// nameOf spells a truthy value such that two values that JavaScript's Set holds for one
// are spelled alike; it is "" for a falsy one. A string keeps its quotes and loses its
// escapes.
func nameOf(raw string) string {
	if !truthy(raw) {
		return ""
	}
	switch kindOf(raw) {
	case kindString:
		if strings.IndexByte(raw, '\\') >= 0 {
			return `"` + unquote(raw) + `"`
		}
	case kindNumber:
		return toString(raw)
	case kindUndefined, kindNull, kindBool, kindArray, kindObject:
	}
	return raw
}

// A nameSet holds names as nameOf spells them.
type nameSet map[string]struct{}

// matchable reports whether name can equal another. JavaScript compares lists and objects
// by identity, and two that were read from JSON are never one.
func matchable(name string) bool {
	return name != "" && name[0] != '[' && name[0] != '{'
}

// add puts name into the set, which may be nil before, and returns it.
func (s nameSet) add(name string) nameSet {
	if !matchable(name) {
		return s
	}
	if s == nil {
		s = make(nameSet)
	}
	s[name] = struct{}{}
	return s
}

func (s nameSet) has(name string) bool {
	if len(s) == 0 || !matchable(name) {
		return false
	}
	_, ok := s[name]
	return ok
}

// milliseconds is Date.now() at t.
func milliseconds(t time.Time) float64 { return float64(t.UnixMilli()) }
