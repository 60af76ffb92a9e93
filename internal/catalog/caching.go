package catalog

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

//go:embed caching.json
var cachingJSON []byte

// A Caching has a vendor's documented rules of the prompt cache for one model, and whether the model's thinking is
// bound. Zero means unknown, except for Bound and Automatic.
type Caching struct {
	// Bound says that a thinking block is valid only after exactly the system prompt, tools and
	// messages that it was written after. Claude models that the table does not know are bound:
	// removing valid thinking costs a little, sending invalid thinking is refused.
	Bound     bool
	Automatic bool          // prefixes are cached without being marked
	MinPrefix int           // tokens of the shortest prefix that is cached
	Lifetime  time.Duration // of an entry, if the request does not say
	Read      float64       // price of a token that is read from the cache, as a share of the input price
	Write     float64       // price of a token that is written to the cache, likewise
	WriteHour float64       // of one that is written for an hour
}

// CachingOf returns the rules of the cache of the model of this name, in any form that [Lookup] understands. Price is
// the price of its tokens; if it is zero, the price in the table.
func CachingOf(name string, price model.Price) Caching {
	id := cachingName(name)
	var c Caching
	for _, r := range cachingRows() {
		if r.matches(id) {
			c = r.Caching
			break
		}
	}
	if price == (model.Price{}) {
		if m, err := Lookup(name); err == nil {
			price = m.Price
		}
	}
	if price.Input > 0 && price.CacheRead > 0 {
		c.Read = price.CacheRead / price.Input
	}
	if price.Input > 0 && price.CacheWrite > 0 {
		c.Write = price.CacheWrite / price.Input
	}
	return c
}

// Prices returns the prices of writing and reading a token of the cache as shares of the input price, for a request
// for entries of this lifetime. Both are 1 if nothing is cached, and 0 if they are unknown.
func (c Caching) Prices(ttl time.Duration) (write, read float64) {
	if ttl == 0 && !c.Automatic && c.Write > 0 {
		return 1, 1
	}
	if ttl >= time.Hour && c.WriteHour > 0 {
		return c.WriteHour, c.Read
	}
	return c.Write, c.Read
}

type cachingRow struct {
	rules []rule
	Caching
}

func (r *cachingRow) matches(id string) bool {
	return slices.ContainsFunc(r.rules, func(rule rule) bool { return rule.match(id) })
}

var cachingRows = sync.OnceValue(func() []cachingRow {
	var file struct {
		Rows []struct {
			Match             []string
			Bound, Automatic  bool
			Min               int
			Lifetime          string
			Read, Write, Hour float64
		}
	}
	if err := json.Unmarshal(cachingJSON, &file); err != nil {
		panic("catalog: caching.json: " + err.Error()) // embedded and tested
	}
	rows := make([]cachingRow, len(file.Rows))
	for i, r := range file.Rows {
		rows[i].Caching = Caching{Bound: r.Bound, Automatic: r.Automatic, MinPrefix: r.Min, Read: r.Read, Write: r.Write, WriteHour: r.Hour}
		if r.Lifetime != "" {
			d, err := time.ParseDuration(r.Lifetime)
			if err != nil {
				panic("catalog: caching.json: " + err.Error())
			}
			rows[i].Lifetime = d
		}
		for _, m := range r.Match {
			rows[i].rules = append(rows[i].rules, rule{m[0], m[1:]})
		}
	}
	return rows
})

// servedAs matches the text that resellers put before the name of a model, and after it.
var servedAs = plain.Pattern(`^.*/|^.*\.(?:anthropic|openai)\.|^(?:anthropic|openai)\.|[-@](?:\d{8}|\d{4}-\d{2}-\d{2})(?:-v\d+(?::\d+)?)?$|-v\d+(?::\d+)?$|-latest$|:[a-z0-9]+$|\[\w+\]$`)

// cachingName returns the part of a model's name that the rows of caching.json match.
func cachingName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	for {
		short := servedAs().ReplaceAllString(name, "")
		if short == name || short == "" {
			return strings.ReplaceAll(name, ".", "-")
		}
		name = short
	}
}

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
