package live

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/model"
)

// Limits are what holds for a request: those of its profile and of its model.
type limits struct {
	profile, mode string
	resolved      *resolved
	policy        epoch.Policy
	known         int  // tokens of the window in the table or the section models; 0 if unknown
	declared      bool // known is from the section models
	output        int  // tokens of the window kept free for the answer
	model         model.Info
	caching       catalog.Caching
}

// Resolved are the values of a profile and mode.
type resolved struct {
	*config.Resolved
	asks, asksNot atomic.Bool // whether the chain asks a language model other than the client's own, once that is known
	client        bool        // it asks that
	pace          pace
}

// A profileKey names what a configuration resolves to.
type profileKey struct{ profile, mode string }

// resolve returns the values of a profile and mode. Unknown ones mean the default.
func (g *Gateway) resolve(k profileKey) (*resolved, error) {
	c := g.host.Config()
	if !slices.Contains(c.Modes(), k.mode) {
		k.mode = ""
	}
	if !slices.Contains(c.Profiles(), k.profile) {
		k.profile = ""
	}
	g.profiles.mu.Lock()
	defer g.profiles.mu.Unlock()
	if g.profiles.of != c {
		g.profiles.of, g.profiles.all = c, map[profileKey]*resolved{}
	}
	if r := g.profiles.all[k]; r != nil {
		return r, nil
	}
	values, err := c.Resolve(k.profile, k.mode)
	if err != nil {
		return nil, err
	}
	r := &resolved{Resolved: values}
	r.client = r.asksClient()
	g.profiles.all[k] = r
	return r, nil
}

// limitsOf finds what holds for a request.
func (g *Gateway) limitsOf(x *exchange) (limits, error) {
	choice := x.s.choose(x.t, x.agent.Name, x.r)
	r, err := g.resolve(choice)
	if err != nil {
		return limits{}, err
	}
	l := limits{profile: r.Profile, mode: r.Mode, resolved: r, known: x.known, declared: x.declared, model: x.model, caching: x.caching}
	window := r.Window
	// The user's own number counts, even if it is smaller than the truth.
	if !usersOwn(r) {
		window = x.windowOf(r.Window)
	}
	// Vendors accept a request whose longest answer would exceed the window, so that a large limit says
	// little about the answer: Claude Code asks for 128,000 tokens.
	const share = 5
	if l.output = min(x.r.MaxOutput, window/share); l.output == 0 {
		l.output = r.MaxOutput
	}
	rule := r.ForWindow(window).Rule()
	rule.MaxOutput = l.output
	l.output = rule.Budget(policy.Size{}, core.TriggerAutomatic).Reserve // a default that the host does not know of would not grow with its count
	l.policy = x.s.Epoch.over(epoch.Of(rule))
	l.policy.Turns = x.s.ExpectedTurns
	return l, nil
}

// over returns the policy of a profile with the wishes for the gateway.
func (o *EpochOptions) over(p epoch.Policy) epoch.Policy {
	p.Target, p.MinSize, p.Risk = cmp.Or(o.Target, p.Target), o.MinSize, o.Risk/100
	p.IgnoreCold, p.IgnorePayback = p.IgnoreCold || o.IgnoreCold, p.IgnorePayback || o.IgnorePayback
	return p
}

// priced sets what a model costs and how its vendor caches. That holds for every request, whether it is a turn of a conversation or not.
func (x *exchange) priced(name string) {
	x.model, x.known, x.declared = model.Info{Name: name}, 0, false
	if known := modelOf(x.host.Config(), name); known != nil {
		_, x.declared = x.host.Config().Origin("models", known.Name, "window")
		x.model.Price, x.model.Tiers, x.model.Free, x.known = known.Price, known.Tiers, known.Free, known.Window
	}
	x.caching = catalog.CachingOf(name, x.model.Price)
	switch {
	case x.r.API != wire.Messages:
		x.caching.Bound = false
	case x.bound.has(x):
		x.caching.Bound = true
	}
}

// binding are the models that were seen to bind their thinking, which the table does not say of them. A vendor has refused thinking, and taken the
// request without it.
type binding struct {
	mu sync.Mutex
	of map[windowKey]bool
}

func (b *binding) has(x *exchange) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return x.t.upstream != nil && b.of[windowKey{x.t.upstream.base.String(), x.r.Model}]
}

func (b *binding) add(x *exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil || len(b.of) >= mostWindows {
		b.of = map[windowKey]bool{}
	}
	b.of[windowKey{x.t.upstream.base.String(), x.r.Model}] = true
}

// modelOf returns what is known about a model: a name of the section models, its ID, or a name of the table.
func modelOf(c *config.Config, name string) *config.Model {
	for _, declared := range c.Models() {
		if m, err := c.Model(declared); err == nil && (declared == name || m.ID == name) {
			return m
		}
	}
	if m, err := c.Model(name); err == nil {
		return m
	}
	return nil
}

// choose returns the profile and mode of a request: those that it names, those of the first rule that
// matches, or the default.
func (s *settings) choose(t *target, agent string, r *wire.Request) profileKey {
	if t.profile != "" || t.mode != "" {
		return profileKey{t.profile, t.mode}
	}
	for i := range s.Rules {
		rule := &s.Rules[i]
		if rule.matches(agent, r.Model, func(phrase string) bool { return inSystem(r, phrase) }) {
			return profileKey{rule.Profile, rule.Mode}
		}
	}
	return profileKey{s.Profile, s.Mode}
}

// inSystem reports whether a phrase is in the system prompt or in a message of the system.
func inSystem(r *wire.Request, phrase string) bool {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(phrase) != nil {
		return false
	}
	raw := bytes.Trim(bytes.TrimSpace(b.Bytes()), `"`)
	if bytes.Contains(r.System, raw) {
		return true
	}
	return slices.ContainsFunc(r.Messages, func(m wire.Message) bool {
		return (m.Role == "system" || m.Role == "developer") && bytes.Contains(m.Raw, raw)
	})
}

// bytesPerToken is of text and code, with the usual tokenizers.
const bytesPerToken = 4

// mediaSize is an image of usual size, in tokens.
const mediaSize = 1600

// tokensOf estimates the tokens of JSON: what vendors report corrects it. The data of images and files
// counts as an image of usual size. It is linear: each byte is looked at a few times, whatever the texts hold.
func tokensOf(raw []byte) int {
	const media = mediaSize
	const near = 200 // an Anthropic source has its data after the mark and a short media type
	n, size := 0, len(raw)
	for _, mark := range []string{`"base64"`, ";base64,"} {
		for rest := raw; ; {
			i := bytes.Index(rest, []byte(mark))
			if i < 0 {
				break
			}
			rest = rest[i+len(mark):]
			data := rest
			if mark[0] == '"' {
				const member = `"data":`
				k := bytes.Index(rest[:min(len(rest), near+len(member))], []byte(member))
				if k < 0 {
					continue
				}
				data = bytes.TrimLeft(rest[k+len(member):], ` "`)
			}
			end := bytes.IndexByte(data, '"')
			if end < 0 {
				break
			}
			if end > media*bytesPerToken {
				n += media
				size -= end
			}
			rest = data[end:]
		}
	}
	return n + (size+bytesPerToken-1)/bytesPerToken
}
