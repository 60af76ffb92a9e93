package config

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// claimsOf returns the parts of a layer that need trust, given the layers below: of its
// models and providers, and of the settings of a gateway.
func (b *builder) claimsOf(c *checker) (declared, gateway []Claim) {
	var parts []Claim
	before := b.k.Raw()
	add := func(p tree.Path, v any, does string) {
		text, isText := v.(string)
		if !isText {
			raw, err := json.Marshal(v)
			if err != nil {
				raw = []byte(err.Error()) // not equal to any trusted value
			}
			text = string(raw)
		}
		parts = append(parts, Claim{Key: p.String(), Value: text, Does: does, Origin: c.origins[p.ID()], path: p})
	}
	ofFile, _ := c.values["models"].(map[string]any) // they are claims themselves
	providers := func(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string)) {
		providerClaims(entry, below, p, func(name string) bool { return ofFile[name] != nil || b.usersModel(name) }, add)
	}
	for _, section := range []struct {
		name   string
		claims func(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string))
	}{{"models", modelClaims}, {"providers", providers}} {
		entries, _ := c.values[section.name].(map[string]any)
		for _, name := range sortedKeys(entries) {
			p := tree.Path{section.name, name}
			entry, _ := entries[name].(map[string]any)
			under, _ := lookup(before, p)
			below, _ := under.(map[string]any)
			section.claims(entry, below, p, add)
		}
	}
	declared, parts = parts, nil
	serve, _ := c.values[string(inServe)].(map[string]any)
	under, _ := before[string(inServe)].(map[string]any)
	serveClaims(inServe, tree.Path{string(inServe)}, serve, under, add)
	known := plain.Set(plain.Each(slices.Concat(declared, parts), func(part Claim) string { return part.path.ID() }))
	b.tunes(atTop, nil, c.values, before, func(p tree.Path) {
		if !known[p.ID()] {
			add(p, "", "changes when, how far and how a gateway condenses your conversations")
			parts[len(parts)-1].Tunes = true
		}
	})
	return declared, parts
}

// ofModels are the settings of a model that decide where it is and who pays.
var ofModels = []string{"api", "model", "base_url", "api_key_env", "api_key_file", "price", "embeddings"}

// tunes calls add for each value of a place that decides how a gateway condenses, and may shorten more than the layers below: for
// every value that is neither theirs, nor known to shorten less, nor in need of trust in any case.
func (b *builder) tunes(at place, p tree.Path, values, below map[string]any, add func(tree.Path)) {
	for _, f := range fieldsOf(at, values) {
		v, ok := values[f.key]
		p := p.With(f.key)
		own := f.trust != "" && (at != inProvider || values["plugin"] != nil) || at == inModel && slices.Contains(ofModels, f.key)
		entries, isMap := v.(map[string]any)
		under, _ := below[f.key].(map[string]any)
		switch {
		case !ok || own || f.key == "account" && at == inServe:
		case f.kind == kindSection && isMap:
			for _, name := range sortedKeys(entries) {
				entry, isMap := entries[name].(map[string]any)
				if !isMap {
					add(p.With(name))
					continue
				}
				old, _ := under[name].(map[string]any)
				b.tunes(f.of, p.With(name), entry, old, add)
			}
		case f.kind == kindObject && isMap:
			b.tunes(f.of, p, entries, under, add)
		case !f.shortensLess(v, cmp.Or(below[f.key], b.inherited(f))):
			add(p)
		}
	}
}

// inherited returns the value of a setting of the layers below where they do not set it at its place.
func (b *builder) inherited(f field) any {
	if f.at == atTop {
		return cmp.Or(b.k.Get(f.key), b.opts.def(f))
	}
	return f.def()
}

// shortensLess reports whether a gateway shortens no more with the value v of a setting than with another.
func (f *field) shortensLess(v, than any) bool {
	if reflect.DeepEqual(v, than) || isInherit(v) {
		return true
	}
	x, y := measure(v), measure(than)
	switch f.less {
	case "true", "false":
		return v == (f.less == "true")
	case "more":
		return x > y
	case "fewer":
		return 0 < x && x < y
	}
	return false
}

// measure returns the size of a number or a duration; 0 for anything else.
func measure(v any) float64 {
	if s, ok := v.(string); ok {
		d, _ := time.ParseDuration(s)
		return float64(d)
	}
	n, _ := number(v)
	return n
}

// accountDoes has the effects of the values of serve.account that are no models.
var accountDoes = map[string]string{
	AccountClient: "has the models of your agents write about your conversations, with your agents' API keys",
}

// locks reports whether the value at p, of the gateway, lets in more callers or sends requests elsewhere if it is absent.
func locks(p tree.Path) bool {
	if len(p) < 2 || p[0] != string(inServe) { //nolint:mnd // section and key
		return false
	}
	f, _ := fieldAt(inServe, p[1])
	return f.lock
}

// serveClaims adds the values at a place of the section serve whose settings have the tag trust, as far as they differ from the
// layers below.
func serveClaims(at place, p tree.Path, values, below map[string]any, add func(tree.Path, any, string)) {
	for _, f := range fieldsAt(at) {
		p := p.With(f.key)
		under, _ := below[f.key].(map[string]any)
		switch v := values[f.key].(type) {
		case nil:
		case map[string]any:
			if f.trust == "" {
				serveClaims(f.of, p, v, under, add)
				continue
			}
			for _, name := range sortedKeys(v) {
				add(p.With(name), v[name], f.trust)
			}
		case string:
			does := f.trust
			if f.key == "account" {
				does = cmp.Or(accountDoes[v], does)
			}
			same := v == cmp.Or(below[f.key], f.def()) && !f.lock
			if does != "" && !same && (f.key != "account" || v != AccountOff) {
				add(p, v, does)
			}
		default:
			if f.trust != "" && v != false && !reflect.DeepEqual(v, cmp.Or(below[f.key], f.def())) {
				add(p, v, f.trust)
			}
		}
	}
}

// fileSetting ends the names of settings that are files to read. Case is ignored, as in the
// decoding of JSON.
const fileSetting = "_file"

func providerClaims(entry, below map[string]any, p tree.Path, known func(model string) bool, add func(tree.Path, any, string)) {
	if entry["plugin"] != nil || entry["strategy"] == nil && below["plugin"] != nil {
		for _, f := range fieldsAt(inProvider) {
			if v, ok := entry[f.key]; ok && f.trust != "" { // settings too: condense does not know their effect on the program
				add(p.With(f.key), v, f.trust)
			}
		}
		return
	}
	settings, _ := entry["settings"].(map[string]any)
	for _, name := range sortedKeys(settings) {
		if v, ok := settings[name].(string); ok && strings.HasSuffix(strings.ToLower(name), fileSetting) && v != "" {
			add(p.With("settings").With(name), v, "reads this file into what a model is sent")
		}
		if v, ok := settings[name].(string); ok && strings.EqualFold(name, "model") && v != "" && !known(v) {
			add(p.With("settings").With(name), v, asks)
		}
	}
}

// asks is the effect of a model that a project names.
const asks = "has this model read your conversations, with your key and at your cost"

// usersModel reports whether a name is of a model of the user's own configuration, or of the one that reads nothing elsewhere.
func (b *builder) usersModel(name string) bool {
	_, ok := lookup(b.k.Raw(), tree.Path{"models", name})
	return ok || name == "extractive"
}

func modelClaims(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string)) {
	text := func(key string) string {
		s, _ := cmp.Or(entry[key], below[key]).(string)
		return s
	}
	api := text("api")
	if known, err := catalog.Lookup(cmp.Or(text("model"), p[1])); err == nil && api == "" {
		api = known.Provider
	}
	if api == "" && entry["base_url"] == nil && entry["price"] == nil && entry["embeddings"] == nil { // it cannot be asked
		return
	}
	to := cmp.Or(text("base_url"), "the vendor of the API "+api)
	for _, k := range []struct{ key, does string }{
		{"api", "speaks this API"},
		{"base_url", "sends conversations to this address"},
		{"api_key_env", "sends the value of this environment variable to " + to},
		{"api_key_file", "sends the content of this file to " + to},
		{"embeddings", "has texts of conversations turned into vectors there, at your cost"},
		{"price", "counts this as its price, also where you are asked before money is spent"},
	} {
		if v, ok := entry[k.key]; ok {
			add(p.With(k.key), v, k.does)
		}
	}
	if v, ok := entry["model"]; ok || below == nil {
		add(p.With("model"), cmp.Or(v, any(p[1])), asks)
	}
}
