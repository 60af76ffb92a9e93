package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/internal/trust"
)

// Claims are the parts of one configuration file that need the user's trust: those that start a
// program, name an address, read a variable or a file, or decide who reads, keeps, deletes or pays
// for a conversation. For a gateway, that are all but those with which it shortens less.
//
// A file has two sets of them, which are trusted independently: one of its providers and
// models, and one of what a gateway does.
type Claims struct {
	File    string  `json:"file"`              // absolute, without links
	Gateway bool    `json:"gateway,omitempty"` // of what a gateway does
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
	// Tunes means that the part decides only when, how far or by which strategy a gateway condenses. Its Value is empty:
	// trust in it covers later values. All other commands use it without trust, and so does a gateway whose file is
	// named by [Options.Path].
	Tunes bool `json:"tunes,omitempty"`

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

// Names returns the subjects of the claims: "provider ours", "model cheap", "serve.listen", "profiles.code.chain".
func (c *Claims) Names() []string {
	var names []string
	for _, part := range slices.Concat(c.Parts, c.Gone) {
		name := part.Key
		if !c.Gateway {
			name = strings.TrimSuffix(part.path[0], "s") + " " + part.path[1:2].String()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Skipped returns the claims without the parts that are used all the same, see [Claim.Tunes].
func (c Claims) Skipped() Claims {
	c.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p Claim) bool { return p.Tunes })
	return c
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
	b.keepRetention(file, c)
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

// keepRetention withholds how long a store keeps conversations from a file that does not name the store: it would delete those of
// all other projects.
func (b *builder) keepRetention(file string, c *checker) {
	p := tree.Path{string(inServe), "retention"}
	serve, _ := c.values[p[0]].(map[string]any)
	if serve[p[1]] == nil || serve["store"] != nil {
		return
	}
	b.warnings = append(b.warnings, &Error{
		Key: p.String(), Origin: Origin{Kind: FromFile, File: disk.FromHere(file)},
		Problem: "is not used: the file names no store (serve.store), and the store of another file has conversations of other projects",
	})
	delete(serve, p[1])
	c.forget(p)
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
		if !claims.Gateway {
			entry := part.path[:2]
			if _, below := lookup(before, entry); !b.withholds || !below {
				b.withheld[entry.ID()] = disk.FromHere(claims.File) + " is not trusted ('condense trust')"
				continue
			}
		}
		if !b.withholds || part.Tunes { // a gateway without trust does not start
			continue
		}
		if at, ok := lookup(c.values, part.path[:len(part.path)-1]); ok {
			if m, ok := at.(map[string]any); ok {
				delete(m, part.path[len(part.path)-1])
			}
		}
		c.forget(part.path)
	}
}

// forget removes the origins of the values at a place.
func (c *checker) forget(p tree.Path) {
	maps.DeleteFunc(c.origins, func(id string, _ Origin) bool { return id == p.ID() || strings.HasPrefix(id, p.ID()+tree.Sep) })
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
		named := p.Tunes && c.opts.Path != "" && trust.RealPath(c.opts.Path) == claims.File
		return c.opts.Require == nil || replaced || named || !c.opts.Require(p) || !which(p)
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
// models and providers, and of what a gateway does.
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
	b.tunes(atTop, nil, c.values, before, func(p tree.Path) {
		if !slices.ContainsFunc(slices.Concat(declared, parts), func(known Claim) bool { return known.path.ID() == p.ID() }) {
			add(p, "", "changes when, how far and how a gateway condenses your conversations")
			parts[len(parts)-1].Tunes = true
		}
	})
	return declared, parts
}

// ofModels are the settings of a model that decide where it is and who pays.
var ofModels = []string{"api", "model", "base_url", "api_key_env", "api_key_file", "price"}

// tunes calls add for each value of a place that decides how a gateway condenses, and may shorten more than the layers below: for
// every value that is neither theirs, nor known to shorten less, nor in need of trust in any case.
func (b *builder) tunes(at place, p tree.Path, values, below map[string]any, add func(tree.Path)) {
	for _, f := range fieldsOf(at, values) {
		v, ok := values[f.key]
		p, own := p.With(f.key), f.trust != "" && (at != inProvider || values["plugin"] != nil) || at == inModel && slices.Contains(ofModels, f.key)
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
		case !f.shortensLess(v, either(below[f.key], b.inherited(f))):
			add(p)
		}
	}
}

// inherited returns the value of a setting of the layers below where they do not set it at its place.
func (b *builder) inherited(f field) any {
	if f.at == atTop {
		return either(b.k.Get(f.key), b.opts.def(f))
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
				does = either(accountDoes[v], does)
			}
			same := v == either(below[f.key], f.def()) && !f.lock
			if does != "" && !same && (f.key != "account" || v != AccountOff) {
				add(p, v, does)
			}
		default:
			if f.trust != "" && v != false && !reflect.DeepEqual(v, either(below[f.key], f.def())) {
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
		s, _ := either(entry[key], below[key]).(string)
		return s
	}
	api := text("api")
	if known, err := catalog.Lookup(either(text("model"), p[1])); err == nil && api == "" {
		api = known.Provider
	}
	if api == "" && entry["base_url"] == nil && entry["price"] == nil { // it cannot be asked, and has a window only
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
	if v, ok := entry["model"]; ok || below == nil {
		add(p.With("model"), either(v, any(p[1])), asks)
	}
}
