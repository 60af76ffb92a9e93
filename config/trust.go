package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/internal/trust"
)

// Claims are the parts of one configuration file that need the user's trust, because they
// start a program, name an address, or read a variable or a file. Strategies, numbers and
// prompts need no trust, and neither does a model at its vendor's own address with its
// vendor's own key.
//
// A file has two sets of them, which are trusted independently: one of its providers and
// models, and one of its section serve.
type Claims struct {
	File    string  `json:"file"`              // absolute, without links
	Gateway bool    `json:"gateway,omitempty"` // of the section serve
	Digest  string  `json:"sha256"`            // of the parts; other values may change
	Trusted bool    `json:"trusted"`
	Parts   []Claim `json:"parts"` // in the order of the settings
	// Gone are the locks of the gateway, such as its token, that an earlier content of the file
	// had, and that it has no more. Parts is empty then: the file says nothing of the gateway, and
	// that needs trust too. It is set with [Options.Require] only.
	Gone []Claim `json:"gone,omitempty"`
}

// A Claim is one such part.
type Claim struct {
	Key    string `json:"key"`   // as users write it: providers.ours.plugin
	Value  string `json:"value"` // strings verbatim, everything else as JSON
	Does   string `json:"does"`  // its effect, as a predicate of the key
	Origin Origin `json:"origin"`

	path tree.Path
}

// An UntrustedError says that a configuration cannot be used because parts that
// [Options.Require] demands are withheld, or would no longer hold.
type UntrustedError struct {
	Claims Claims // of one file: Parts and Gone are those that are missing
	// Dropped reports that the file is not read any more, or has lost its trust and its parts, while
	// a watched configuration had them. Only a new start of the program can accept that.
	Dropped bool
}

func (e *UntrustedError) Error() string {
	names := strings.Join(e.Claims.Names(), ", ")
	switch {
	case e.Dropped:
		return fmt.Sprintf("%s would no longer hold, because %s does not say so any more: start condense again if that is meant", names, disk.FromHere(e.Claims.File))
	case len(e.Claims.Gone) > 0:
		return fmt.Sprintf("%s would no longer hold: %s", names, e.Claims.Remedy())
	}
	return fmt.Sprintf("%s would not be used: %s", names, e.Claims.Remedy())
}

// Claims returns the parts of each file that need trust, whether or not they have it. It omits
// files without such parts.
func (c *Config) Claims() []Claims {
	all := slices.Clone(c.claims)
	for i := range all {
		all[i].Parts, all[i].Gone = slices.Clone(all[i].Parts), slices.Clone(all[i].Gone)
	}
	return all
}

// Is reports whether the claim is about key.
func (c Claim) Is(key ...string) bool { return slices.Equal(c.path, key) }

// Remedy returns a message that the file is not trusted, and how to change that.
func (c *Claims) Remedy() string {
	return fmt.Sprintf("%s is not trusted: 'condense trust %s' shows what it would do and asks", disk.FromHere(c.File), disk.FromHere(c.File))
}

// Names returns the subjects of the claims: "provider ours", "model cheap", "serve.listen".
func (c *Claims) Names() []string {
	var names []string
	for _, part := range slices.Concat(c.Parts, c.Gone) {
		name := strings.TrimSuffix(part.path[0], "s") + " " + part.path[1:2].String()
		if part.path[0] == string(inServe) {
			name = part.Key
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// TrustDir returns the folder with the user's agreements, see package internal/trust. It is
// empty if there is none.
func (c *Config) TrustDir() string { return trustDir(environment(c.opts.Env)) }

func trustDir(env environment) string {
	if dir := userDir(env); dir != "" {
		return filepath.Join(dir, "trust")
	}
	return ""
}

// users reports whether a file is in the user's own configuration folder.
func users(file string, env environment) bool {
	dir := userDir(env)
	if abs, err := filepath.Abs(file); dir != "" && err == nil {
		return filepath.Dir(abs) == filepath.Clean(dir) || filepath.Dir(trust.RealPath(file)) == trust.RealPath(dir)
	}
	return false
}

// agreement returns the entry in the store of agreements if the user trusts the parts.
func (c *Claims) agreement() trust.Entry {
	kind := trust.Config
	if c.Gateway {
		kind = trust.Gateway
	}
	parts := make([]trust.Claim, len(c.Parts))
	for i, p := range c.Parts {
		parts[i] = trust.Claim{Key: p.Key, Value: p.Value, Does: p.Does}
	}
	return trust.ConfigEntry(kind, c.File, parts)
}

// judge finds the parts of a file's layer that need trust. Without trust, it withholds the
// providers and models that the layer declares. If the builder is to withhold everything, it
// removes the parts of the section serve and those that change a provider or model of a lower
// layer; else these are marked too, so that nothing is started with them while they are checked.
func (b *builder) judge(file string, c *checker) {
	if users(file, environment(b.opts.Env)) {
		return
	}
	declared, serve := b.claimsOf(c)
	for _, claims := range []Claims{{Parts: declared}, {Parts: serve, Gateway: true}} {
		if claims.File = trust.RealPath(file); len(claims.Parts) == 0 && !b.remember(&claims) {
			continue
		}
		claims.Digest = claims.agreement().Digest
		claims.Trusted = b.trusts(&claims)
		b.claims = append(b.claims, claims)
		if !claims.Trusted {
			b.keepFrom(c, &claims)
		}
	}
}

func (b *builder) trusts(claims *Claims) bool {
	if b.opts.Trust != nil {
		return b.opts.Trust(*claims)
	}
	trusted, err := b.agreements().Trusts(claims.agreement())
	b.unreadable(claims, err)
	return trusted
}

// remember adds the locks that the gateway had by an agreement to a file without any, and reports
// whether there are some.
func (b *builder) remember(claims *Claims) bool {
	if !claims.Gateway || b.opts.Require == nil {
		return false
	}
	former, err := b.agreements().Of(trust.Gateway, claims.File)
	b.unreadable(claims, err)
	for _, e := range former {
		for _, part := range e.Claims {
			if p := tree.Path(strings.SplitN(part.Key, ".", 3)); locks(p) { //nolint:mnd // section, key, rest
				claims.Gone = append(claims.Gone, Claim{Key: part.Key, Value: part.Value, Does: part.Does, path: p})
			}
		}
		if len(claims.Gone) > 0 {
			return true
		}
	}
	return false
}

func (b *builder) agreements() trust.Store {
	return trust.Open(trustDir(environment(b.opts.Env)))
}

func (b *builder) unreadable(claims *Claims, err error) {
	if err != nil {
		b.errs = append(b.errs, &Error{Origin: Origin{Kind: FromFile, File: disk.FromHere(claims.File)}, Problem: "cannot read whether the file is trusted: " + err.Error()})
	}
}

func (b *builder) keepFrom(c *checker, claims *Claims) {
	before := b.k.Raw()
	for _, part := range claims.Parts {
		entry := part.path[:2]
		_, below := lookup(before, entry)
		if !claims.Gateway && (!b.withholds || !below) {
			b.withheld[entry.ID()] = disk.FromHere(claims.File) + " is not trusted ('condense trust')"
			continue
		}
		if !b.withholds {
			continue
		}
		if at, ok := lookup(c.values, part.path[:len(part.path)-1]); ok {
			if m, ok := at.(map[string]any); ok {
				delete(m, part.path[len(part.path)-1])
			}
		}
		for id := range c.origins {
			if id == part.path.ID() || strings.HasPrefix(id, part.path.ID()+tree.Sep) {
				delete(c.origins, id)
			}
		}
	}
}

// required returns an error if a part that must not be withheld has no trust. A part that a variable or a
// flag replaces is not missing.
func (c *Config) required() error {
	for _, claims := range c.claims {
		if missing := c.demanded(claims, func(Claim) bool { return true }); !claims.Trusted && len(missing.Parts)+len(missing.Gone) > 0 {
			return &UntrustedError{Claims: missing}
		}
	}
	return nil
}

// demanded returns the parts for which [Options.Require] and which both hold.
func (c *Config) demanded(claims Claims, which func(Claim) bool) Claims {
	other := func(p Claim) bool {
		kind := c.origins[p.path.ID()].Kind
		v, _ := lookup(c.raw, p.path)
		_, several := v.(map[string]any) // of which a variable may set some
		replaced := !several && (kind == FromEnv || kind == FromFlag)
		return c.opts.Require == nil || replaced || !c.opts.Require(p) || !which(p)
	}
	claims.Parts = slices.DeleteFunc(slices.Clone(claims.Parts), other)
	claims.Gone = slices.DeleteFunc(slices.Clone(claims.Gone), other)
	return claims
}

// dropped returns an error if a lock of the gateway that c has by a file would be open in after,
// although the user has not agreed to that: another file has taken the place of the file, or its
// agreement was removed with its parts.
func (c *Config) dropped(after *Config) error {
	for _, claims := range c.claims {
		same := func(other Claims) bool { return other.File == claims.File && other.Gateway == claims.Gateway }
		missing := c.demanded(claims, func(p Claim) bool { return locks(p.path) })
		if missing.Gone = nil; claims.Gateway && len(missing.Parts) > 0 && !slices.ContainsFunc(after.claims, same) {
			return &UntrustedError{Claims: missing, Dropped: true}
		}
	}
	return nil
}

// claimsOf returns the parts of a layer that need trust, given the layers below: of its
// models and providers, and of its section serve.
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
	for _, section := range []struct {
		name   string
		claims func(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string))
	}{{"models", modelClaims}, {"providers", providerClaims}} {
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
	serveClaims(inServe, tree.Path{string(inServe)}, serve, add)
	return declared, parts
}

// accountDoes has the effects of the values of serve.account that are no models.
var accountDoes = map[string]string{
	AccountClient: "has the models of your agents write about your conversations, with your agents' API keys",
	AccountPlan:   "has the models of your agents write about your conversations, with your agents' API keys and the logins of your plans",
}

// locks reports whether the value at p, of the gateway, lets in more callers or sends requests elsewhere if it is absent.
func locks(p tree.Path) bool {
	if len(p) < 2 || p[0] != string(inServe) { //nolint:mnd // section and key
		return false
	}
	f, _ := fieldAt(inServe, p[1])
	return f.lock
}

// serveClaims adds the values at a place of the section serve whose settings have the tag trust.
func serveClaims(at place, p tree.Path, values map[string]any, add func(tree.Path, any, string)) {
	for _, f := range fieldsAt(at) {
		p := p.With(f.key)
		switch v := values[f.key].(type) {
		case nil:
		case map[string]any:
			if f.trust == "" {
				serveClaims(f.of, p, v, add)
				continue
			}
			for _, name := range sortedKeys(v) {
				add(p.With(name), v[name], f.trust)
			}
		case string:
			does := f.trust
			if f.key == "account" {
				does = either(accountDoes[v], does)
			}
			if does != "" && !slices.Contains(f.enum, v) && (f.key != "account" || v != AccountOff) {
				add(p, v, does)
			}
		default:
			if f.trust != "" && !reflect.DeepEqual(v, f.def()) {
				add(p, v, f.trust)
			}
		}
	}
}

// fileSetting ends the names of settings that are files to read. Case is ignored, as in the
// decoding of JSON.
const fileSetting = "_file"

func providerClaims(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string)) {
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
	}
}

// usualKeys are the variables with the keys of vendors, which are sent to the vendors' own
// addresses by default.
var usualKeys = map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}

func modelClaims(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string)) {
	text := func(key string) string {
		s, _ := either(entry[key], below[key]).(string)
		return s
	}
	api := text("api")
	if known, err := catalog.Lookup(either(text("model"), p[1])); err == nil && api == "" {
		api = known.Provider
	}
	own := entry["base_url"] == nil && entry["api_key_file"] == nil && entry["price"] == nil &&
		(entry["api_key_env"] == nil || usualKeys[api] != "" && entry["api_key_env"] == usualKeys[api])
	if own && below == nil {
		return
	}
	to := either(text("base_url"), "the vendor of the API "+api)
	for _, k := range []struct{ key, does string }{
		{"api", "speaks this API"},
		{"base_url", "sends conversations to this address"},
		{"api_key_env", "sends the value of this environment variable to " + to},
		{"api_key_file", "sends the content of this file to " + to},
		{"price", "counts this as its price, also where you are asked before money is spent"},
	} {
		if v, ok := entry[k.key]; ok {
			add(p.With(k.key), v, k.does)
		}
	}
	if v, ok := entry["model"]; ok && below != nil {
		add(p.With("model"), v, "asks for another model than yours")
	}
}
