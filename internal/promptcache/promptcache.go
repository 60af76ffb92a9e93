// Package promptcache has the rules of the vendors' prompt caches, as pure arithmetic over hashes and sizes: how much
// of a prompt is read from the cache and written to it, and how long entries live. The simulated vendor of the tests
// and the replay of recorded sessions share it.
//
// Anthropic writes an entry at every marker, and finds entries up to 20 positions before a marker. OpenAI and Gemini
// cache all prefixes automatically. Entries live from the start of the last request that used them, and can be read
// once the answer to the request that wrote them has begun. Sources: the vendors' pages on prompt caching, as named
// in internal/catalog/caching.json.
package promptcache

import (
	"maps"
	"sort"
	"time"
)

// lookback is the number of positions up to a marker that are looked at, including the marker's own.
const lookback = 20

// A Block is a part of a prompt: a tool, or a block of the system prompt or of a message.
type Block struct {
	Sum [16]byte // of the block and of everything before it
	End int      // tokens of the prompt up to its end
	Run int      // neighbours with the same number above 0 are one position: the calls, or the results, of one message
}

// A Mark asks for an entry that ends with a block.
type Mark struct {
	Block int // its index
	Life  time.Duration
}

// A Prompt is a request in the order in which a model reads it.
type Prompt struct {
	Scope  string // requests that share a cache: the credential, the model, its effort
	Blocks []Block
	Marks  []Mark // by index
}

// Rules are the rules of one model's cache.
type Rules struct {
	Automatic bool          // all prefixes are cached, without marks
	Minimum   int           // tokens of the shortest prefix that is cached
	Life      time.Duration // of an entry; if Automatic
	Step      int           // reads are rounded down to a multiple of it; if Automatic
	Writes    bool          // tokens that are not read count as written; if Automatic
}

// A Use is one request's use of the cache. [Cache.Learn] makes its writes readable.
type Use struct {
	Prompt, Read, Write int
	Hour                int // the part of Write that lives for an hour

	scope  string
	store  map[key]entry
	blocks []Block
	entry  entry
}

// A Cache has the prompts sent so far. The zero value is empty. It is not safe for concurrent use.
type Cache struct {
	entries map[key]entry
	paths   map[string]path
}

type key struct {
	scope string
	sum   [16]byte
}

type entry struct {
	until time.Time
	life  time.Duration
}

// A path is the last prompt of a scope, every prefix of which is cached: an entry for each would take time
// proportional to the square of a conversation's length.
type path struct {
	blocks []Block
	entry
}

// Lookup returns the use of the cache by p, for a request that begins now. It keeps p.Blocks, whose elements must not
// change.
func (c *Cache) Lookup(p *Prompt, r Rules, now time.Time) Use {
	u := Use{scope: p.Scope}
	if n := len(p.Blocks); n > 0 {
		u.Prompt = p.Blocks[n-1].End
	}
	if r.Automatic {
		c.automatic(&u, p.Blocks, r, now)
	} else {
		c.marked(&u, p, r, now)
	}
	return u
}

func (c *Cache) automatic(u *Use, blocks []Block, r Rules, now time.Time) {
	life, hit := r.Life, 0
	if was := c.paths[u.scope]; now.Before(was.until) {
		if hit = common(was.blocks, blocks); hit > 0 {
			life = max(life, was.life)
		}
	}
	for i := len(blocks); i > hit && len(c.entries) > 0; i-- {
		if e := c.entries[key{u.scope, blocks[i-1].Sum}]; now.Before(e.until) {
			hit, life = i, max(life, e.life)
		}
	}
	if hit > 0 && blocks[hit-1].End >= r.Minimum {
		step := max(1, r.Step)
		u.Read = blocks[hit-1].End / step * step
	}
	if r.Writes && u.Prompt >= r.Minimum {
		u.Write = u.Prompt - u.Read
	}
	u.blocks, u.entry = blocks, entry{now.Add(life), life}
}

func (c *Cache) marked(u *Use, p *Prompt, r Rules, now time.Time) {
	live := func(i int) (entry, bool) {
		e, ok := c.entries[key{p.Scope, p.Blocks[i].Sum}]
		return e, ok && now.Before(e.until)
	}
	u.store = map[key]entry{}
	keep := func(i int, life time.Duration) { u.store[key{p.Scope, p.Blocks[i].Sum}] = entry{now.Add(life), life} }
	hit, last := -1, -1
	for _, m := range p.Marks {
		if p.Blocks[m.Block].End < r.Minimum {
			continue
		}
		last = m.Block
		for j, positions := m.Block, 1; j > hit && positions <= lookback; j-- {
			if e, ok := live(j); ok {
				hit, u.Read = j, p.Blocks[j].End
				keep(j, e.life) // reading refreshes
			}
			if j > 0 && (p.Blocks[j].Run == 0 || p.Blocks[j].Run != p.Blocks[j-1].Run) {
				positions++
			}
		}
	}
	if last < 0 {
		return
	}
	for _, m := range p.Marks {
		switch e, ok := live(m.Block); {
		case p.Blocks[m.Block].End < r.Minimum:
		case m.Block > hit:
			keep(m.Block, m.Life)
			if m.Life >= time.Hour {
				u.Hour = p.Blocks[m.Block].End - u.Read
			}
		case ok:
			keep(m.Block, e.life)
		}
	}
	u.Write = max(0, p.Blocks[last].End-u.Read)
}

// Learn makes the writes of u readable: its answer has begun, at now.
func (c *Cache) Learn(u *Use, now time.Time) {
	if c.entries == nil {
		c.entries, c.paths = map[key]entry{}, map[string]path{}
	}
	for k, e := range u.store {
		if e.until.After(c.entries[k].until) {
			c.entries[k] = e
		}
	}
	if u.blocks == nil {
		return
	}
	was := c.paths[u.scope]
	if common(was.blocks, u.blocks) < len(was.blocks) && now.Before(was.until) { // the next prompt does not continue it
		maps.DeleteFunc(c.entries, func(_ key, e entry) bool { return !now.Before(e.until) })
		for _, b := range was.blocks {
			if k := (key{u.scope, b.Sum}); was.until.After(c.entries[k].until) {
				c.entries[k] = was.entry
			}
		}
	}
	c.paths[u.scope] = path{u.blocks, u.entry}
}

// common returns how many blocks two prompts begin with in common: where sums are equal, all before is.
func common(a, b []Block) int {
	return sort.Search(min(len(a), len(b)), func(i int) bool { return a[i].Sum != b[i].Sum })
}
