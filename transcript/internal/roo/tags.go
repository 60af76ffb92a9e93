package roo

import (
	"slices"
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
)

// tags are the tags of a message. Names that are equal to Roo are spelled alike: a string in
// quotes, anything else as JSON; empty if the tag names nothing.
type tags struct {
	summary          string // isSummary as JSON: true, or another value that counts as true
	marker           bool
	condenseID       string
	condenseParent   string
	truncationID     string
	truncationParent string
}

// see sets a tag from a field of a message.
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

// A fate is Roo's treatment of a message.
type fate struct {
	shown   bool
	trimmed bool        // only parts of it are sent
	parts   []core.Part // these
}

// effective returns, by index, Roo's treatment of the messages of a file.
//
// If there is a summary, Roo sends the last one and everything after it, whatever the tags say, except the tool
// results in user messages whose call is not among them (a user message that holds nothing else, or nothing, is left
// out) and the messages that a marker among them hides.
//
// If there is none, Roo sends all messages except those hidden by an existing marker, or by a summary whose flag
// counts as true without being true. Tool results remain.
//
// This is the behaviour of getEffectiveApiHistory in Roo-Code v3.52.1, defects included: other rules would show
// another conversation than Roo does.
func effective(file []message) []fate {
	fates := make([]fate, len(file))
	pivot := lastSummary(file)
	summaries, markers := map[string]bool{}, map[string]bool{}
	if pivot == none {
		for i := range file {
			fates[i].shown = true
			if t := &file[i].tags; t.summary != "" {
				summaries[t.condenseID] = true
			}
		}
	} else {
		withoutOrphans(file[pivot:], fates[pivot:])
	}
	for i := range file {
		if t := &file[i].tags; t.marker && fates[i].shown {
			markers[t.truncationID] = true
		}
	}
	delete(summaries, "") // a tag that names nothing hides nothing
	delete(markers, "")
	for i := range file {
		if t := &file[i].tags; summaries[t.condenseParent] || markers[t.truncationParent] {
			fates[i] = fate{}
		}
	}
	return fates
}

// lastSummary returns the index of the summary that Roo begins with, or none.
func lastSummary(file []message) int {
	for i, m := range slices.Backward(file) {
		if m.tags.summary == "true" {
			return i
		}
	}
	return none
}

// withoutOrphans shows the messages of file without the tool results whose call is in none of them.
func withoutOrphans(file []message, fates []fate) {
	calls := map[string]bool{}
	for i := range file {
		if file[i].role != string(core.RoleAssistant) || !file[i].blocks {
			continue
		}
		for _, p := range file[i].said {
			if c, ok := p.(core.ToolCall); ok && c.ID != "" {
				calls[c.ID] = true
			}
		}
	}
	orphan := func(p core.Part) bool {
		r, ok := p.(core.ToolResult)
		return ok && !calls[r.CallID]
	}
	for i := range file {
		m := &file[i]
		fates[i].shown = true
		if m.role != string(core.RoleUser) || !m.blocks {
			continue
		}
		switch kept := slices.DeleteFunc(slices.Clone(m.said), orphan); {
		case len(kept) == 0:
			fates[i].shown = false
		case len(kept) < len(m.said):
			fates[i].trimmed, fates[i].parts = true, kept
		}
	}
}
