package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
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
type Claims struct {
	File    string  `json:"file"`   // absolute, without links
	Digest  string  `json:"sha256"` // of the parts; other values may change
	Trusted bool    `json:"trusted"`
	Parts   []Claim `json:"parts"` // in order of key
}

// A Claim is one such part.
type Claim struct {
	Key    string `json:"key"`   // as users write it: providers.ours.plugin
	Value  string `json:"value"` // strings verbatim, everything else as JSON
	Does   string `json:"does"`  // what it does, as a predicate of the key
	Origin Origin `json:"origin"`

	path tree.Path
}

// Claims returns the parts of each file that need trust, whether or not they have it. It omits
// files without such parts.
func (c *Config) Claims() []Claims {
	all := slices.Clone(c.claims)
	for i := range all {
		all[i].Parts = slices.Clone(all[i].Parts)
	}
	return all
}

// Is reports whether the claim is about key.
func (c Claim) Is(key ...string) bool { return slices.Equal(c.path, key) }

// Remedy returns a message that the file is not trusted, and what to do.
func (c *Claims) Remedy() string {
	return fmt.Sprintf("%s is not trusted: 'condense trust %s' shows what it would do and asks", disk.FromHere(c.File), disk.FromHere(c.File))
}

// Names returns what the claims are about: "provider ours", "model cheap", "serve.listen".
func (c *Claims) Names() []string {
	var names []string
	for _, part := range c.Parts {
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

// judge finds the parts of a file's layer that need trust. Without trust, it removes those of the
// section serve and those that change a provider or model of a lower layer, and withholds the
// providers and models that this layer declares.
func (b *builder) judge(file string, c *checker) {
	if users(file, environment(b.opts.Env)) {
		return
	}
	claims := Claims{File: trust.RealPath(file), Parts: b.claimsOf(c)}
	if len(claims.Parts) == 0 {
		return
	}
	claims.Digest = claims.digest()
	if b.opts.Trust != nil {
		claims.Trusted = b.opts.Trust(claims)
	} else {
		trusted, err := trust.Open(trustDir(environment(b.opts.Env))).Config(claims.File, claims.Digest)
		if err != nil {
			b.errs = append(b.errs, &Error{Origin: Origin{Kind: FromFile, File: disk.FromHere(file)}, Problem: "cannot read whether the file is trusted: " + err.Error()})
		}
		claims.Trusted = trusted
	}
	b.claims = append(b.claims, claims)
	if claims.Trusted {
		return
	}
	before := b.k.Raw()
	for _, part := range claims.Parts {
		entry := part.path[:2]
		if _, below := lookup(before, entry); !below && entry[0] != string(inServe) {
			b.withheld[entry.ID()] = disk.FromHere(claims.File) + " is not trusted ('condense trust')"
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

// digest identifies the parts. It includes what they do: another wording would ask every user
// again.
func (c *Claims) digest() string {
	h := sha256.New()
	for _, part := range c.Parts {
		fmt.Fprintf(h, "%q %q %q\n", part.Key, part.Value, part.Does)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// claimsOf returns the parts of a layer that need trust, given the layers below.
func (b *builder) claimsOf(c *checker) []Claim {
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
	serve, _ := c.values[string(inServe)].(map[string]any)
	serveClaims(serve, add)
	return parts
}

// serveKeys are the keys of the section serve that say where conversations and keys go and who
// may send them.
var serveKeys = []struct{ key, does string }{
	{"listen", "listens on this address"},
	{"admin", "shows what the gateway does at this address"},
	{"upstreams", "sends conversations, with the keys of your agents, to this address"},
	{"store", "keeps what it condensed in this file or database"},
	{"token_env", "lets in callers who know the value of this environment variable"},
	{"token_file", "lets in callers who know the content of this file"},
	{"tokens", "lets in callers who know a token of this file"},
	{"tls", "shows this certificate to callers"},
	{"behind_proxy", "accepts keys and conversations unencrypted, from what is said to be a proxy"},
	{"key_file", "hashes with the key in this file"},
	{"audit", "writes who did what into this file"},
	{"record", "writes your conversations into this folder"},
}

func serveClaims(serve map[string]any, add func(tree.Path, any, string)) {
	for _, k := range serveKeys {
		f, _ := fieldAt(inServe, k.key)
		p := tree.Path{string(inServe), k.key}
		switch v := serve[k.key].(type) {
		case map[string]any:
			for _, name := range sortedKeys(v) {
				add(p.With(name), v[name], k.does)
			}
		case string:
			if !slices.Contains(f.enum, v) {
				add(p, v, k.does)
			}
		case bool:
			if v {
				add(p, v, k.does)
			}
		}
	}
}

// providerKeys are the keys that say which program runs and with what input. They include
// settings, because condense does not know what a program does with its own.
var providerKeys = []struct{ key, does string }{
	{"plugin", "starts this program"},
	{"folder", "runs it from this folder"},
	{"sha256", "approves the program with this checksum"},
	{"env", "hands the program these environment variables"},
	{"settings", "hands the program these settings"},
}

// fileSetting ends the names of settings that are files to read. Case is ignored, as in the
// decoding of JSON.
const fileSetting = "_file"

func providerClaims(entry, below map[string]any, p tree.Path, add func(tree.Path, any, string)) {
	if entry["plugin"] != nil || entry["strategy"] == nil && below["plugin"] != nil {
		for _, k := range providerKeys {
			if v, ok := entry[k.key]; ok {
				add(p.With(k.key), v, k.does)
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
