package upstream

import (
	"strings"
	"time"
)

// A prefix is a key of the cache: caches are per credential, model and settings of thinking.
type prefix struct {
	scope string
	sum   [16]byte
}

// An entry is a prefix that is cached.
type entry struct {
	until time.Time
	ttl   time.Duration
}

// A cache simulates the vendors' prompt caches. Every prefix that was ever sent is also kept for ever, as an ideal cache would.
type cache struct {
	entries map[prefix]entry
	ever    map[prefix]bool
}

// usage is what an answer reports, and what the cache is to learn when the answer begins.
type usage struct {
	prompt, read, write int
	long                int  // part of write that lives for an hour
	writes              bool // OpenAI: written tokens are reported
	ideal               int
	store               map[prefix]entry
}

// scope names what a prompt shares its cache with.
func (p *prompt) scope() string {
	var parts []string
	for _, v := range []any{p.tenant, p.model, p.doc["thinking"], p.doc["reasoning"], p.doc["output_config"], p.doc["tool_choice"]} {
		parts = append(parts, string(encode(v)))
	}
	return strings.Join(parts, "\n")
}

// lookup returns what the caches have of a prompt at a time, and what they are to learn. v.mu is held.
func (v *Vendor) lookup(p *prompt, now time.Time) usage {
	u := usage{prompt: v.tokens(p.size), store: map[prefix]entry{}}
	m, scope := v.o.Model(p.model), p.scope()
	key := func(i int) prefix { return prefix{scope, p.blocks[i].sum} }
	size := func(i int) int { return v.tokens(p.blocks[i].end) }
	live := func(i int) (entry, bool) {
		e, ok := v.cache.entries[key(i)]
		return e, ok && now.Before(e.until)
	}
	for i := range p.blocks {
		if size(i) >= m.Minimum && v.cache.ever[key(i)] {
			u.ideal = size(i)
		}
	}
	if p.api != Messages {
		ttl := p.retention()
		for i := range p.blocks {
			if e, ok := live(i); ok && size(i) >= m.Minimum {
				u.read, ttl = size(i)/128*128, max(ttl, e.ttl)
			}
		}
		for i := range p.blocks {
			u.store[key(i)] = entry{now.Add(ttl), ttl}
		}
		if u.writes = m.Writes; m.Writes && u.prompt >= m.Minimum {
			u.write = u.prompt - u.read
		}
		return u
	}
	hit, last := -1, -1
	for i, b := range p.blocks {
		if b.mark == 0 || size(i) < m.Minimum {
			continue
		}
		last = i
		for j, positions := i, 1; j > hit && positions <= 20; j-- {
			if e, ok := live(j); ok {
				hit = j
				u.read = size(j)
				u.store[key(j)] = entry{now.Add(e.ttl), e.ttl} // reading refreshes
			}
			if j > 0 && !sameRun(p.blocks[j-1], p.blocks[j]) {
				positions++
			}
		}
	}
	if last < 0 {
		return u
	}
	for i, b := range p.blocks[:last+1] {
		switch e, ok := live(i); {
		case b.mark == 0 || size(i) < m.Minimum:
		case i > hit:
			u.store[key(i)] = entry{now.Add(b.mark), b.mark}
			if b.mark == time.Hour {
				u.long = size(i) - u.read
			}
		case ok:
			u.store[key(i)] = entry{now.Add(e.ttl), e.ttl}
		}
	}
	u.write = max(0, size(last)-u.read)
	return u
}

// sameRun reports whether two blocks are one position of the lookback: calls, or results, of one message.
func sameRun(a, b block) bool {
	return a.message == b.message && a.kind == b.kind && (a.kind == "tool_use" || a.kind == "tool_result")
}

// learn makes the prompt readable: its answer has begun. v.mu is held.
func (v *Vendor) learn(p *prompt, u usage) {
	for k, e := range u.store {
		if e.until.After(v.cache.entries[k].until) {
			v.cache.entries[k] = e
		}
	}
	scope := p.scope()
	for _, b := range p.blocks {
		v.cache.ever[prefix{scope, b.sum}] = true
	}
}

// retention is how long OpenAI keeps a prefix that is not read.
func (p *prompt) retention() time.Duration {
	if text(p.doc["prompt_cache_retention"]) == "24h" {
		return 24 * time.Hour
	}
	options, _ := p.doc["prompt_cache_options"].(object)
	if d, err := time.ParseDuration(text(options["ttl"])); err == nil {
		return d
	}
	return 10 * time.Minute // 5 to 10 minutes without use
}

// A Break is a place where a prompt differs from the one before it in the same conversation, other than at its end.
type Break struct {
	Conversation string
	From, To     int    // numbers of the records
	Where        string // the first block that differs, such as messages[3].content[0]; of From if To is shorter
	Shared       int    // tokens before it
	Lost         int    // tokens of From after it
}

// follow compares a turn with the one before it. v.mu is held.
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

// A part is what follow needs of a block.
type part struct {
	where string
	end   int
	sum   [16]byte
}
