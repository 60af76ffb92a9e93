package upstream

import (
	"strings"
	"time"

	"github.com/condensehq/condense/internal/promptcache"
)

// A prefix is a key of the cache: caches are per credential, model and settings of thinking.
type prefix struct {
	scope string
	sum   [16]byte
}

// A cache simulates the vendors' prompt caches. Every prefix that was ever sent is also kept for ever, as an ideal
// cache would.
type cache struct {
	promptcache.Cache
	ever map[prefix]bool
}

// usage is the usage that an answer reports, and the cache entries to add when the answer begins.
type usage struct {
	promptcache.Use
	writes bool // OpenAI: written tokens are reported
	ideal  int
	twice  string // of [Options.CountsTwice]
}

// scope names the requests with which a prompt shares its cache.
func (p *prompt) scope() string {
	var parts []string
	for _, v := range []any{p.tenant, p.model, p.doc["thinking"], p.doc["reasoning"], p.doc["output_config"], p.doc["tool_choice"]} {
		parts = append(parts, string(encode(v)))
	}
	return strings.Join(parts, "\n")
}

// lookup returns a prompt's use of the caches at a time, and the entries to add. v.mu is held.
func (v *Vendor) lookup(p *prompt, now time.Time) usage {
	m, scope := v.o.Model(p.model), p.scope()
	u, q := usage{twice: v.o.CountsTwice}, promptcache.Prompt{Scope: scope, Blocks: make([]promptcache.Block, len(p.blocks))}
	run := 0
	for i, b := range p.blocks {
		q.Blocks[i] = promptcache.Block{Sum: b.sum, End: v.tokens(b.end)}
		if b.kind == "tool_use" || b.kind == "tool_result" { // one position of the lookback: calls, or results, of one message
			if i == 0 || p.blocks[i-1].message != b.message || p.blocks[i-1].kind != b.kind {
				run++
			}
			q.Blocks[i].Run = run
		}
		if b.mark > 0 {
			q.Marks = append(q.Marks, promptcache.Mark{Block: i, Life: b.mark})
		}
		if q.Blocks[i].End >= m.Minimum && v.cache.ever[prefix{scope, b.sum}] {
			u.ideal = q.Blocks[i].End
		}
	}
	rules := promptcache.Rules{Minimum: m.Minimum}
	if p.api != Messages && p.api != Converse {
		rules = promptcache.Rules{Automatic: true, Minimum: m.Minimum, Life: p.retention(), Step: 128, Writes: m.Writes}
		u.writes = m.Writes
	}
	u.Use = v.cache.Lookup(&q, rules, now)
	return u
}

// retention is how long OpenAI keeps a prefix that is not read.
func (p *prompt) retention() time.Duration {
	if text(p.doc["prompt_cache_retention"]) == "24h" {
		return 24 * time.Hour
	}
	if d, err := time.ParseDuration(text(obj(p.doc["prompt_cache_options"])["ttl"])); err == nil {
		return d
	}
	return 10 * time.Minute // 5 to 10 minutes without use
}

// A Break is a place where a prompt differs from the previous one of the same conversation, other than at its end.
type Break struct {
	Conversation string
	From, To     int    // numbers of the records
	Where        string // the first block that differs, such as messages[3].content[0]; in From if To is shorter
	Shared       int    // tokens before it
	Lost         int    // tokens of From after it
}

// follow compares a turn with the previous one. v.mu is held.
func (v *Vendor) follow(c *conversation, p *prompt, n int) {
	was := c.blocks
	i := 0
	for i < len(was) && i < len(p.blocks) && was[i].sum == p.blocks[i].sum {
		i++
	}
	if i < len(was) {
		b := Break{Conversation: c.id, From: c.record, To: n, Where: was[i].where}
		if i < len(p.blocks) {
			b.Where = p.blocks[i].where
		}
		if i > 0 {
			b.Shared = v.tokens(was[i-1].end)
		}
		b.Lost = v.tokens(was[len(was)-1].end) - b.Shared
		v.breaks = append(v.breaks, b)
	}
	c.record, c.blocks = n, make([]part, len(p.blocks))
	for i, b := range p.blocks {
		c.blocks[i] = part{b.where, b.end, b.sum}
	}
}

// A part has the fields of a block that follow needs.
type part struct {
	where string
	end   int
	sum   [16]byte
}
