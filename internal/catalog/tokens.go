package catalog

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

//go:embed tokens.json
var tokensJSON []byte

// TokenFactor returns how many tokens the model of this name, in any form that [Lookup] understands, counts for a
// token of the encoding o200k_base: 1 if it is unknown.
func TokenFactor(name string) float64 {
	id := cachingName(name)
	for _, r := range tokenRows() {
		if slices.ContainsFunc(r.rules, func(rule rule) bool { return rule.match(id) }) {
			return r.tokens
		}
	}
	return 1
}

type tokenRow struct {
	rules  []rule
	tokens float64
}

var tokenRows = sync.OnceValue(func() []tokenRow {
	var file struct {
		Rows []struct {
			Match  []string
			Tokens float64
		}
	}
	if err := json.Unmarshal(tokensJSON, &file); err != nil {
		panic("catalog: tokens.json: " + err.Error()) // embedded and tested
	}
	rows := make([]tokenRow, len(file.Rows))
	for i, r := range file.Rows {
		rows[i].tokens = r.Tokens
		for _, m := range r.Match {
			rows[i].rules = append(rows[i].rules, rule{m[0], m[1:]})
		}
	}
	return rows
})
