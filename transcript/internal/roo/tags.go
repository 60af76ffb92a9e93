package roo

import (
	"strconv"

	"github.com/condensehq/condense/internal/rawjson"
)

// tags are the tags of a message. Names are spelled such that two that are one to Roo
// are spelled alike: a string in quotes, anything else as JSON; empty if it names nothing.
type tags struct {
	summary          string // isSummary as JSON: true, or another value that counts as true
	marker           bool
	condenseID       string
	condenseParent   string
	truncationID     string
	truncationParent string
}

// see takes a field of a message.
func (t *tags) see(name string, raw []byte) {
	switch name {
	case "isSummary":
		t.summary = ""
		if truthy(raw) {
			t.summary = string(raw)
		}
	case "isTruncationMarker":
		t.marker = truthy(raw)
	case "condenseId":
		t.condenseID = tagName(raw)
	case "condenseParent":
		t.condenseParent = tagName(raw)
	case "truncationId":
		t.truncationID = tagName(raw)
	case "truncationParent":
		t.truncationParent = tagName(raw)
	}
}

// truthy reports whether JavaScript takes raw for true.
func truthy(raw []byte) bool {
	switch raw[0] {
	case '"':
		return len(raw) > 2
	case 't', '{', '[':
		return true
	case 'f', 'n':
		return false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return err != nil || n != 0
}

// tagName returns the name that the value of a tag is; empty if it is none.
func tagName(raw []byte) string {
	if !truthy(raw) || rawjson.IsArray(raw) || rawjson.IsObject(raw) {
		return ""
	}
	switch raw[0] {
	case '"':
		return `"` + rawjson.Unquote(raw) + `"`
	case 't':
		return "true"
	}
	n, _ := strconv.ParseFloat(string(raw), 64)
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// plainName returns a name as an ID.
func plainName(name string) string {
	if len(name) >= 2 && name[0] == '"' {
		return name[1 : len(name)-1]
	}
	return name
}
