package wire

import (
	"hash/maphash"
	"sync"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Cache remembers the results of [Parse] and [Cache.Check] for messages, without their text. A conversation is sent with every
// request, a little longer each time: with a cache only new messages are read, the others are recognized by a hash of
// 128 bits with random seeds. It is safe for concurrent use.
type Cache struct {
	seeds      [2]maphash.Seed
	count      func([]byte) (tokens, media int)
	mu         sync.RWMutex
	young, old map[cacheKey]Message
}

type cacheKey [2]uint64

// maxYoung is how many messages one of the two generations has: together some 20 MB.
const maxYoung = 25_000

// NewCache returns an empty cache. Count, if not nil, counts the tokens of each message once, and those of its images
// and files.
func NewCache(count func([]byte) (tokens, media int)) *Cache {
	return &Cache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, count: count, young: map[cacheKey]Message{}}
}

func (c *Cache) key(raw []byte, salt uint64) cacheKey {
	return cacheKey{maphash.Bytes(c.seeds[0], raw) ^ salt, maphash.Bytes(c.seeds[1], raw)}
}

// salt distinguishes messages that are read in different ways.
func (c *Cache) salt(api API, volatile []Volatile) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seeds[0])
	for _, v := range append([]Volatile{{string(api), ""}}, volatile...) {
		for _, s := range []string{v.Begin, v.End} {
			_, _ = h.WriteString(s)
			_ = h.WriteByte(0)
		}
	}
	return h.Sum64()
}

func (c *Cache) get(k cacheKey) (Message, bool) {
	c.mu.RLock()
	m, ok := c.young[k]
	if ok {
		c.mu.RUnlock()
		return m, true
	}
	m, ok = c.old[k]
	c.mu.RUnlock()
	if ok {
		c.put(k, m)
	}
	return m, ok
}

func (c *Cache) put(k cacheKey, m Message) {
	m.Raw = nil // or the body would stay in memory
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young) >= maxYoung {
		c.old, c.young = c.young, make(map[cacheKey]Message, maxYoung/2)
	}
	c.young[k] = m
}

// cached reads the message at p.at, or recognizes it. One that says something about the whole request is always read.
func (p *parser) cached() Message {
	if p.cache == nil {
		return p.message()
	}
	end := rawjson.SkipValue(p.data, p.at)
	if end < 0 {
		return p.message() // which finds the fault
	}
	raw := p.data[p.at:end:end]
	k := p.cache.key(raw, p.salt)
	if m, ok := p.cache.get(k); ok {
		m.Raw, p.at = raw, end
		return m
	}
	compacts, stateful := p.r.Compacts, p.r.Stateful
	p.r.Compacts, p.r.Stateful = false, false
	m := p.message()
	if p.cache.count != nil {
		m.Tokens, m.Media = p.cache.count(raw)
	}
	if p.err == nil && p.at == end && !p.r.Compacts && !p.r.Stateful {
		p.cache.put(k, m)
	}
	p.r.Compacts, p.r.Stateful = p.r.Compacts || compacts, p.r.Stateful || stateful
	return m
}

// checked is parseMessage for a message that the gateway sends in place of the client's: the same ones come with every request of an epoch.
func (c *Cache) checked(api API, raw []byte) (Message, error) {
	if c == nil {
		return parseMessage(Of(api), raw)
	}
	k := c.key(raw, c.salt(api, []Volatile{{Begin: "checked"}}))
	if m, ok := c.get(k); ok {
		m.Raw = raw
		return m, nil
	}
	m, err := parseMessage(Of(api), raw)
	if err == nil {
		c.put(k, m)
	}
	return m, err
}
