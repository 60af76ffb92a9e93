package catalog

import (
	"regexp"
	"strings"
)

// A rule is one way to name a model: an operator and a text in lower case.
type rule struct {
	op   byte
	text string
}

// The operators, as table.json writes them.
const (
	opEqual    = '='
	opPrefix   = '^'
	opContains = '*'
	opSuffix   = '$'
	opDated    = '~' // equal, but for a date at the end
)

func parseRules(r row) []rule {
	rules := make([]rule, 0, len(r.Match)+1)
	rules = append(rules, rule{opEqual, strings.ToLower(r.ID)})
	for _, m := range r.Match {
		if len(m) > 1 {
			rules = append(rules, rule{m[0], strings.ToLower(m[1:])})
		}
	}
	return rules
}

// find returns the first model that id names: exactly if there is one, by pattern
// otherwise. Both arguments are in lower case.
func find(id string, list []*Model) *Model {
	for _, m := range list {
		for _, r := range m.rules {
			if r.op == opEqual && r.text == id {
				return m
			}
		}
	}
	for _, m := range list {
		for _, r := range m.rules {
			if r.match(id) {
				return m
			}
		}
	}
	return nil
}

var date = regexp.MustCompile(`[-@](\d{8}|\d{4}-\d{2}-\d{2})$`)

func (r rule) match(id string) bool {
	switch r.op {
	case opEqual:
		return id == r.text
	case opPrefix:
		return strings.HasPrefix(id, r.text)
	case opContains:
		return strings.Contains(id, r.text)
	case opSuffix:
		return strings.HasSuffix(id, r.text)
	case opDated:
		return date.ReplaceAllString(id, "") == r.text
	}
	return false
}
