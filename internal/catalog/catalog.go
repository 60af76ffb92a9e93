// Package catalog knows the context windows and prices of language models. Its table is
// generated from public data, embedded, and therefore always a little out of date: every
// number can be set in the configuration instead.
package catalog

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/model"
)

//go:generate sh internal/gen/generate.sh

//go:embed table.json
var tableJSON []byte

// A Model has the public data of one model of one provider.
type Model struct {
	Provider string // the server's operator: anthropic, openai, google, openrouter, …
	ID       string
	Window   int          // context window in tokens; 0 = not known
	Output   int          // the longest answer it can give, in tokens; 0 = not known
	Price    model.Price  // for requests up to the first tier; all zero = not known or free
	Tiers    []model.Tier // higher prices of long requests, ascending
	rules    []rule
}

// Name returns the name of m for [Lookup]: provider, slash, id.
func (m *Model) Name() string { return m.Provider + "/" + m.ID }

// An UnknownError reports a name that is not in the table.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %q is not in the table of known models: set its window in the configuration", e.Name)
}

// Lookup finds a model by "provider/id" or by id alone; case does not matter. Of several
// providers that serve the same id, the first of the table counts: vendors of models come
// before resellers.
//
// A reseller, a cloud or a gateway serves models of others under the vendor's name, with a prefix
// ("openrouter/google/gemini-2.5-pro", "azure/gpt-5", "us.anthropic.claude-…-v1:0") or a variant after a colon
// (":free"). If the table does not list such a model for the reseller, or lists it without a window, it has the
// window and the longest answer of the model itself, and no known price. The error is an [*UnknownError].
func Lookup(name string) (*Model, error) {
	t := table()
	want := strings.ToLower(strings.TrimSpace(name))
	m, prefix, id := t.direct(want)
	if m != nil && m.Window > 0 {
		return m, nil
	}
	if !vendors[prefix] {
		if own := t.served(id); own != nil {
			if m == nil {
				return &Model{Provider: prefix, ID: id, Window: own.Window, Output: own.Output}, nil
			}
			same := *m
			same.Window, same.Output = own.Window, own.Output
			return &same, nil
		}
	}
	if m == nil {
		return nil, &UnknownError{Name: name}
	}
	return m, nil
}

// direct returns the model that the table has by this very name, nil if it has none, and the
// name cut into provider and id. The provider is empty if the name has no prefix.
func (t *parsed) direct(want string) (m *Model, provider, id string) {
	if provider, id, ok := strings.Cut(want, "/"); ok {
		if alias := aliases[provider]; alias != "" {
			provider = alias
		}
		if list, known := t.byProvider[provider]; known {
			return find(id, list), provider, id
		}
	}
	if want == "" {
		return nil, "", ""
	}
	// An id of its own anywhere beats a pattern that happens to fit.
	if m = t.byID[want]; m == nil {
		m = find(want, t.all)
	}
	if provider, id, ok := strings.Cut(want, "/"); ok {
		return m, provider, id
	}
	return m, "", want
}

// served returns the model with a window that a provider of other vendors' models means by
// id; nil if there is none.
func (t *parsed) served(id string) *Model {
	for {
		for _, name := range []string{id, variant().ReplaceAllString(id, ""), bedrock().ReplaceAllString(id, "")} {
			if m, _, _ := t.direct(name); m != nil && m.Window > 0 {
				return m
			}
		}
		_, rest, ok := strings.Cut(id, "/")
		if !ok {
			return nil
		}
		id = rest
	}
}

// All yields every model of the table, provider by provider.
func All() iter.Seq[*Model] {
	return func(yield func(*Model) bool) {
		for _, m := range table().all {
			if !yield(m) {
				return
			}
		}
	}
}

// aliases are other names of providers, as other tools write them.
var aliases = map[string]string{
	"amazon-bedrock": "aws", "azure-openai": "azure", "bedrock": "aws", "fireworks-ai": "fireworks", "gemini": "google",
	"moonshot": "moonshotai", "openai-native": "openai", "togetherai": "together", "vertex": "google", "xai": "x-ai",
}

// vendors are the providers whose models are only looked up under their own name: vendors that serve their own models
// only, and servers on the user's machine, which give a model the window with which they were started.
var vendors = map[string]bool{
	"ollama": true, "lmstudio": true, "llamacpp": true, "llama.cpp": true, "vllm": true, "local": true,
	"anthropic": true, "openai": true, "google": true, "x-ai": true, "deepseek": true, "mistral": true,
	"moonshotai": true, "minimax": true, "cohere": true, "perplexity": true,
}

var (
	// variant matches the variant that OpenRouter adds to the name of a model: ":free", ":beta", ":thinking".
	variant = plain.Pattern(`:[a-z]+$`)
	// bedrock matches the text that Amazon puts around the vendor's name of a model: region, vendor, and version. See
	// "Supported Regions and models for inference profiles" in the user guide of Amazon Bedrock.
	bedrock = plain.Pattern(`^(?:(?:us|eu|ap|apac|jp|au|ca|us-gov|global)\.)?[a-z]+\.|-v\d+(?::\d+)?$`)
)

// A parsed is the table, ready for look-ups. It is made once and never changed.
type parsed struct {
	all        []*Model
	byProvider map[string][]*Model
	byID       map[string]*Model
}

// row is a line of table.json.
type row struct {
	ID     string
	Window int
	Output int
	Match  []string
	Price  []float64
	Tiers  [][]float64
}

// order is the order of preference among providers of the same model: vendors, then clouds, then resellers.
var order = []string{
	"anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "minimax", "cohere",
	"perplexity", "groq", "cerebras", "aws", "azure", "fireworks", "together", "novita", "ovhcloud",
	"openrouter", "avian",
}

var table = sync.OnceValue(func() *parsed {
	var file struct {
		Providers map[string][]row
	}
	if err := json.Unmarshal(tableJSON, &file); err != nil {
		panic("catalog: table.json: " + err.Error()) // embedded and tested; cannot happen in a build that passed
	}
	t := &parsed{byProvider: map[string][]*Model{}, byID: map[string]*Model{}}
	for _, p := range order {
		for _, r := range file.Providers[p] {
			m := &Model{Provider: p, ID: r.ID, Window: r.Window, Output: r.Output, Price: price(r.Price)}
			for _, tier := range r.Tiers {
				m.Tiers = append(m.Tiers, model.Tier{Above: int(tier[0]), Price: price(tier[1:])})
			}
			m.rules = parseRules(r)
			t.all = append(t.all, m)
			t.byProvider[p] = append(t.byProvider[p], m)
			if id := strings.ToLower(r.ID); t.byID[id] == nil {
				t.byID[id] = m
			}
		}
	}
	return t
})

func price(v []float64) model.Price {
	if len(v) < 4 {
		return model.Price{}
	}
	return model.Price{Input: v[0], Output: v[1], CacheRead: v[2], CacheWrite: v[3]}
}

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

var date = plain.Pattern(`[-@](\d{8}|\d{4}-\d{2}-\d{2})$`)

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
		return date().ReplaceAllString(id, "") == r.text
	}
	return false
}

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
		rows[i].rules = append(rows[i].rules, plain.Each(r.Match, func(m string) rule { return rule{m[0], m[1:]} })...)
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
		rows[i].rules = append(rows[i].rules, plain.Each(r.Match, func(m string) rule { return rule{m[0], m[1:]} })...)
	}
	return rows
})
