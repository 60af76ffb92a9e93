package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/internal/trust"
)

// Claims are the parts of one configuration file that need the user's trust: those that start a
// program, name an address, read a variable or a file, or decide who reads, keeps, deletes or pays
// for a conversation. For a gateway, that are all but those with which it shortens less.
//
// A file has two sets of them, which are trusted independently: one of its providers and
// models, and one of the settings of a gateway.
type Claims struct {
	File    string  `json:"file"`              // absolute, without links
	Gateway bool    `json:"gateway,omitempty"` // of the settings of a gateway
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
	// trust in it covers later values. All other commands but hook use it without trust, and so does a gateway whose file is
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
	text := fmt.Sprintf("%s would not be used: %s", names, e.Claims.Remedy())
	if !slices.ContainsFunc(e.Claims.Parts, func(p Claim) bool { return !p.Tunes }) {
		text += "; or name the file for this start: --config " + disk.FromHere(e.Claims.File)
	}
	return text
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
	names, seen := []string{}, map[string]bool{}
	for _, part := range slices.Concat(c.Parts, c.Gone) {
		name := part.Key
		if !c.Gateway {
			name = strings.TrimSuffix(part.path[0], "s") + " " + part.path[1:2].String()
		}
		if !seen[name] {
			names, seen[name] = append(names, name), true
		}
	}
	return names
}

// Skipped returns the claims without the parts that are used all the same, see [Claim.Tunes].
func (c *Claims) Skipped() Claims {
	skipped := *c
	skipped.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p Claim) bool { return p.Tunes })
	return skipped
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
	parts := plain.Each(c.Parts, func(p Claim) trust.Claim { return trust.Claim{Key: p.Key, Value: p.Value, Does: p.Does} })
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

func (b *builder) agreements() trust.Store { return trust.Open(trustDir(environment(b.opts.Env))) }

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
