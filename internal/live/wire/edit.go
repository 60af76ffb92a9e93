package wire

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/internal/rawjson"
)

// With returns the body with the messages of view in place of its own, all else byte for byte. If view
// has the same messages, that is the body itself.
func (r *Request) With(view [][]byte) []byte {
	same := slices.EqualFunc(r.Messages, view, func(m Message, v []byte) bool { return bytes.Equal(m.Raw, v) })
	if same || r.begin < 0 {
		return r.Body
	}
	size := r.begin + len(r.Body) - r.end + len("[]") + len(view)
	for _, v := range view {
		size += len(v)
	}
	d := Of(r.API)
	view, _ = Joined(r.API, view)
	out := append(make([]byte, 0, size), r.Body[:r.begin]...)
	out = append(out, '[')
	for i, v := range view {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element(d, v)...)
	}
	return append(append(out, ']'), r.Body[r.end:]...)
}

// element returns raw, which may be the string that was a whole input, as an element of an array.
func element(d *Dialect, raw []byte) []byte {
	if d.read.loose && rawjson.IsString(raw) {
		return userItem(raw)
	}
	return raw
}

// Input returns the items of a body of the Responses API. A string is one of the user's.
func Input(body []byte) [][]byte {
	input := rawjson.Field(body, "input")
	if rawjson.IsString(input) {
		return [][]byte{userItem(input)}
	}
	return slices.Collect(rawjson.Elements(input))
}

// LimitOutput returns the body of a request whose limits of the answer are at most so many tokens.
func LimitOutput(api API, body []byte, most int) []byte {
	for _, path := range Of(api).read.limits {
		if value := at(body, path...); rawjson.Int(value) > most {
			body = rawjson.ReplaceValue(body, value, number(most))
		}
	}
	return body
}

// blocksWithout returns the content of a message, the blocks of it that are not dropped, and the number of all; nil and no
// blocks if it is no array.
func blocksWithout(message []byte, drop func(b []byte) bool) (content []byte, kept [][]byte, n int) {
	if content = rawjson.Field(message, "content"); !rawjson.IsArray(content) {
		return nil, nil, 0
	}
	for b := range rawjson.Elements(content) {
		if n++; !drop(b) {
			kept = append(kept, b)
		}
	}
	return content, kept, n
}

// StripThinking returns message without the model's thinking, or nil if nothing is left. Only Anthropic binds
// thinking to the messages before it, so only its APIs have blocks that can be removed from a message; in the
// Responses API a reasoning item is removed as a whole, and the item after it must be removed, too. The thinking of
// the Chat API is kept: vendors that have it want it back.
func StripThinking(api API, message []byte) []byte { return Of(api).edit.strip(message) }

func asIs(raw []byte) []byte { return raw }

// stripThinking removes blocks of thinking.
func stripThinking(message []byte) []byte {
	content, kept, n := blocksWithout(message, thinks)
	switch {
	case content == nil, len(kept) == n:
		return message
	case kept == nil:
		return nil
	}
	return rawjson.ReplaceValue(message, content, rawjson.Array(kept))
}

func thinks(block []byte) bool {
	switch rawjson.Text(rawjson.Field(block, "type")) {
	case "thinking", "redacted_thinking":
		return true
	}
	return rawjson.Field(block, "reasoningContent") != nil
}

// Unmark returns message without cache markers, all else byte for byte.
func Unmark(message []byte) []byte {
	message = cutPoints(message)
	if !bytes.Contains(message, []byte(`"cache_control"`)) && !bytes.Contains(message, []byte(`"prompt_cache_breakpoint"`)) {
		return message
	}
	return unmark(message, 2)
}

// unmark removes the markers of an object and of the blocks in its content, down to a depth.
func unmark(object []byte, depth int) []byte {
	if !rawjson.IsObject(object) {
		return object
	}
	object = rawjson.CutField(rawjson.CutField(object, "cache_control"), "prompt_cache_breakpoint")
	if depth == 0 {
		return object
	}
	for _, name := range []string{"content", "output"} {
		list := rawjson.Field(object, name)
		changed := false
		var blocks [][]byte
		for b := range rawjson.Elements(list) {
			u := unmark(b, depth-1)
			changed = changed || len(u) != len(b)
			blocks = append(blocks, u)
		}
		if changed {
			object = rawjson.ReplaceValue(object, list, rawjson.Array(blocks))
		}
	}
	return object
}

// Mark returns a message of an API that [Marks] with a cache marker on its last block that may have one, replacing the
// block's own. Thinking and empty texts may have none; without any other block, message is returned unchanged. TTL is
// 5 minutes or an hour.
func Mark(api API, message []byte, ttl time.Duration) []byte { return Of(api).edit.mark(message, ttl) }

// Joined returns messages with neighbours of one role joined if the API refuses them, and for each the index of the first
// that it is made of.
func Joined(api API, view [][]byte) (out [][]byte, origin []int) {
	joins, role := Of(api).Joins, ""
	for i, raw := range view {
		was, n := role, len(out)-1
		if role = rawjson.Text(rawjson.Field(raw, "role")); !joins || n < 0 || role != was {
			out, origin = append(out, raw), append(origin, i)
			continue
		}
		before := rawjson.Field(out[n], "content")
		var blocks [][]byte
		for _, content := range [][]byte{before, rawjson.Field(raw, "content")} {
			blocks = slices.AppendSeq(blocks, rawjson.Elements(content))
		}
		out[n] = rawjson.ReplaceValue(out[n], before, rawjson.Array(blocks))
	}
	return out, origin
}

// OpenRound returns the beginning of the round of tools that is still open at the end of messages: the first of the
// assistant's messages, reasoning included, whose calls are answered at the end or not at all. It is len(messages) if
// the conversation ends with a user's message, or with an answer without calls. In the Messages API a text directly
// after results is in the same turn, so it leaves the round open.
func OpenRound(messages []Message) int {
	typed := false
	for i, m := range slices.Backward(messages) {
		switch {
		case m.Role == "user" && len(m.Results) > 0:
			typed = false
		case m.Role == "user":
			typed = typed || m.Typed
		case m.Role == "assistant" && !typed:
			begin, calls := i, false
			for ; begin >= 0 && messages[begin].Role == "assistant"; begin-- {
				calls = calls || len(messages[begin].Calls) > 0
			}
			if calls {
				return begin + 1
			}
			return len(messages)
		case m.Role == "assistant", m.Role == "tool" && typed:
			return len(messages)
		}
	}
	return len(messages)
}

// Signed reports whether a message of the Messages API begins with a compaction that the vendor has signed.
func Signed(message []byte) bool {
	for b := range rawjson.Elements(rawjson.Field(message, "content")) {
		return rawjson.IsObject(b) && rawjson.Text(rawjson.Field(b, "type")) == "compaction" && rawjson.IsString(rawjson.Field(b, "signature"))
	}
	return false
}

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
