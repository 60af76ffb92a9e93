package tokens

import (
	"hash/maphash"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/media"
)

// A Counter counts the parts of messages by an encoding and remembers the counts: measuring a history at every turn
// costs only the new messages. It is a [core.Counter], safe for concurrent use. One counter should serve all
// conversations that use its encoding.
//
// The cost of a part is the cost of its texts:
//
//	Text        the text
//	ToolCall    the name and the arguments, counted separately; not the ID
//	ToolResult  its content
//	Reasoning   the text, or the thinking in its encrypted data or signature if that is more
//	Opaque      the JSON of the block, but for its media
//	Image       see below
//
// The vendors do not publish the cost of encoding the structure; [core.FramingTokens] for each message is the
// estimate.
//
// Media cost the same here, in the gateway and in files. An image costs a token for every 28 by 28 pixels, after scaling to
// at most 2576 pixels on the long edge and 4784 tokens (Anthropic's rule); its size is read from the header of PNG,
// JPEG, GIF and WebP data, and one of unknown size costs 1600 tokens. A PDF costs 2,500 tokens a page (560 in Gemini's
// API), audio up to 32 and video 290 a second. Where pages or seconds cannot be read, four pages or a minute are
// assumed. A document that is text costs as much as its text.
//
// Encrypted reasoning, which only the vendor can count, is estimated as in Codex: a token for every four bytes, less 650
// bytes for the envelope. A signature of Anthropic's holds the whole thinking in the same way, whatever is shown of it.
type Counter struct {
	*Encoding
	memory memory
}

var _ core.Counter = (*Counter)(nil)

// NewCounter returns an empty counter.
func NewCounter(e *Encoding) *Counter {
	return &Counter{Encoding: e, memory: memory{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}}
}

// Count returns the tokens of parts. The count of several parts is the sum of their
// counts.
func (c *Counter) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += c.CountText(string(p))
		case core.ToolCall:
			n += c.CountText(p.Name) + c.CountText(p.Args)
		case core.ToolResult:
			n += c.Count(p.Content...)
		case core.Image:
			n += media.OfImage(p.Data).Tokens()
		case core.Reasoning:
			n += max(c.CountText(p.Text), encryptedTokens(p.Encrypted), encryptedTokens(p.Signature))
		case core.Opaque:
			n += c.countOpaque(p.JSON)
		}
	}
	return n
}

// Overhead returns the tokens of a request without its messages: the system prompt, including
// the framing of a message, and the definitions of the tools as JSON.
func (c *Counter) Overhead(system string, definitions []byte) (prompt, tools int) {
	if system != "" {
		prompt = core.FramingTokens + c.CountText(system)
	}
	return prompt, c.CountText(string(definitions))
}

// CountText is [Encoding.CountText] with memory.
func (c *Counter) CountText(s string) int { return c.remember(s, 0, c.Encoding.CountText) }

// countOpaque counts JSON that may have media. It is not the count of the same text.
func (c *Counter) countOpaque(s string) int {
	return c.remember(s, 1, func(s string) int {
		n, _ := media.Count([]byte(s), func(b []byte) int { return c.Encoding.CountText(string(b)) })
		return n
	})
}

// remember returns what count returns for s, from memory if s is long. Each kind of count has a memory of its own.
func (c *Counter) remember(s string, kind uint64, count func(string) int) int {
	if len(s) < minRemembered {
		return count(s)
	}
	k := c.memory.key(s)
	k.hash[0] += kind
	n, ok := c.memory.get(k)
	if !ok {
		n = count(s)
		c.memory.put(k, n)
	}
	return n
}

// encryptedTokens estimates the tokens of reasoning from its ciphertext in base64.
func encryptedTokens(s string) int {
	const envelope, bytesPerToken = 650, 4
	return max(0, (len(s)/4*3-envelope+bytesPerToken-1)/bytesPerToken)
}

const (
	// minRemembered is the length in bytes from which a text is remembered. Counting a shorter
	// one takes about as long as looking it up.
	minRemembered = 256
	// generation limits the memory: it holds at most two generations, of about 4 MB each.
	generation = 1 << 16
)

// A memory holds counts by content. It does not hold the content: a text is identified by its
// length and 128 bits of hash, with two seeds that are secret to the process, so that
// collisions cannot be constructed. A billion texts of the same length have one by chance with
// a probability of 10^-21.
type memory struct {
	seeds [2]maphash.Seed
	mu    sync.Mutex
	// The generation that is filled, and the full one before it. When a generation is full, entries that are still
	// used move to the next; the rest is dropped with its generation.
	young, old map[key]int
}

type key struct {
	size int
	hash [2]uint64
}

func (m *memory) key(s string) key {
	return key{len(s), [2]uint64{maphash.String(m.seeds[0], s), maphash.String(m.seeds[1], s)}}
}

func (m *memory) get(k key) (n int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, ok = m.young[k]; ok {
		return n, true
	}
	if n, ok = m.old[k]; ok {
		m.add(k, n)
	}
	return n, ok
}

func (m *memory) put(k key, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(k, n)
}

// add remembers n in the young generation. The caller holds m.mu.
func (m *memory) add(k key, n int) {
	if len(m.young) >= generation || m.young == nil {
		m.young, m.old = make(map[key]int), m.young
	}
	m.young[k] = n
}
