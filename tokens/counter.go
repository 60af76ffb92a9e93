package tokens

import (
	"hash/maphash"
	"math/bits"
	"slices"
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

const (
	// maxPiece is the size in bytes up to which pieces are merged as a whole. The working
	// memory is about 40 bytes for each byte.
	maxPiece = 1 << 20
	// maxKept is the size of the longest piece whose working memory a worker keeps.
	maxKept = 1 << 16

	// Words and parts of identifiers repeat, so most pieces have been merged before. A cache
	// of them makes prose, code and JSON 30 to 50 percent faster.
	cacheSize    = 1 << 13
	maxCacheable = 16 // bytes of a piece
)

// A worker has the working memory of one call.
type worker struct {
	*bpe
	merger merger
	cache  [cacheSize]cached
}

// cached is the count of a piece. A new piece replaces an old one.
type cached struct {
	lo, hi uint64 // the piece, zero padded
	size   uint8
	count  uint8
}

// count returns the tokens of s, which is valid UTF-8.
func (w *worker) count(s string) int {
	total := 0
	for p := 0; p < len(s); {
		e := w.split(w.classes, s, p)
		total += w.piece(s, p, e)
		p = e
	}
	return total
}

// piece returns the tokens of s[p:e], which is a piece.
func (w *worker) piece(s string, p, e int) int {
	// A piece that is a token is not merged. This is for speed and by definition: merging
	// would not arrive at some tokens.
	n := e - p
	switch {
	case n == 1 || w.vocabulary.rank(s, p, e) != noRank:
		return 1
	case n == 2:
		return 2
	case n <= maxCacheable:
		return w.cachedPiece(s, p, e)
	}
	total := 0
	for p < e {
		end := min(e, p+maxPiece)
		w.merger.merge(w.vocabulary, s[p:end])
		total += len(w.merger.starts)
		p = end
	}
	return total
}

func (w *worker) cachedPiece(s string, p, e int) int {
	n := e - p
	lo, hi := load(s, p, min(n, 8)), uint64(0)
	if n > 8 {
		hi = load(s, p+8, n-8)
	}
	c := &w.cache[spread(spread(lo)^hi)%cacheSize]
	if c.lo != lo || c.hi != hi || int(c.size) != n {
		w.merger.merge(w.vocabulary, s[p:e])
		*c = cached{lo, hi, uint8(n), uint8(len(w.merger.starts))}
	}
	return int(c.count)
}

// A rankQueue holds possible merges and returns them by rank, all of one rank at a time. Ranks
// are small numbers, so each has a list of its own, and two levels of bit sets show which are
// not empty: adding and removing cost the same for any number of merges.
type rankQueue struct {
	nodes []node
	lists []int32  // by rank: the first node
	some  []uint64 // bit r is set if there are merges of rank r
	words []uint64 // bit w is set if some[w] is not 0
	low   int      // all words below are 0
}

// A node is a merge of the token that starts at start with the one after it.
type node struct{ start, next int32 }

// none ends a list.
const none = -1

// reset empties q and makes it ready for n ranks.
func (q *rankQueue) reset(n int) {
	q.nodes = q.nodes[:0]
	if len(q.lists) < n {
		q.lists = make([]int32, n)
		q.some = make([]uint64, n/64+1)
		q.words = make([]uint64, n/64/64+1)
	}
	q.low = len(q.words)
}

func (q *rankQueue) add(rank uint32, start int32) {
	next := int32(none)
	word, bit := int(rank/64), uint64(1)<<(rank%64)
	if q.some[word]&bit != 0 {
		next = q.lists[rank]
	}
	q.lists[rank] = int32(len(q.nodes))
	q.nodes = append(q.nodes, node{start, next})
	q.some[word] |= bit
	q.words[word/64] |= 1 << (word % 64)
	q.low = min(q.low, word/64)
}

// pop takes the list of the lowest rank. It returns none if the queue is empty.
func (q *rankQueue) pop() (rank uint32, first int32) {
	for ; q.low < len(q.words); q.low++ {
		if q.words[q.low] == 0 {
			continue
		}
		word := q.low*64 + bits.TrailingZeros64(q.words[q.low])
		rank := word*64 + bits.TrailingZeros64(q.some[word])
		q.some[word] &= q.some[word] - 1
		if q.some[word] == 0 {
			q.words[q.low] &= q.words[q.low] - 1
		}
		return uint32(rank), q.lists[rank]
	}
	return 0, none
}

// A Kind is a use of tokens.
type Kind string

// The kinds. The texts of a message, and its framing, are of the kind of its role.
const (
	KindSystem     Kind = "system"
	KindUser       Kind = "user"
	KindAssistant  Kind = "assistant"
	KindReasoning  Kind = "reasoning"
	KindToolCall   Kind = "tool_call"
	KindToolResult Kind = "tool_result"
	KindImage      Kind = "image" // in a message or in a tool result
	// KindSummary is inserted by a condensation, in any role: summaries, extracts and stubs.
	KindSummary Kind = "summary"

	// KindInjected and the two after it are written into the texts of users by programs. No [Counter] returns them,
	// because only a reader of texts can tell them apart; reports have them. These are reminders, commands and
	// notices.
	KindInjected Kind = "injected"
	// KindEnvironment is the state of the surroundings.
	KindEnvironment Kind = "environment"
	// KindProjectRules are instructions as in AGENTS.md.
	KindProjectRules Kind = "project_rules"
)

var kinds = [...]Kind{
	KindSystem, KindUser, KindAssistant, KindReasoning, KindToolCall, KindToolResult, KindImage, KindSummary,
	KindInjected, KindEnvironment, KindProjectRules,
}

// Kinds returns all kinds in the order in which a report should list them.
func Kinds() []Kind { return slices.Clone(kinds[:]) }

// Breakdown returns the tokens of messages by kind. The sum over all kinds is the sum of
// [core.MessageTokens]. Kinds without tokens are absent.
func (c *Counter) Breakdown(messages ...core.Message) map[Kind]int {
	var by amounts
	for i := range messages {
		c.breakDown(&by, &messages[i])
	}
	return by.byKind()
}

// BreakdownMeasured is [Counter.Breakdown] for messages that c has measured: their Tokens are set. It counts fewer
// texts, and for a message of one kind none: the kind with the most bytes receives the rest of the message's tokens.
func (c *Counter) BreakdownMeasured(messages ...core.Message) map[Kind]int {
	var by amounts
	for i := range messages {
		m := &messages[i]
		kind := kindOf(m)
		var bytes, counted amounts
		bytes.each(kind, m.Parts, func(_ int, p core.Part) int { return core.ContentBytes(p) })
		most := bytes.most(kind)
		counted.each(kind, m.Parts, func(k int, p core.Part) int {
			if k == most {
				return 0
			}
			return c.Count(p)
		})
		counted[kind] += core.FramingTokens
		rest := m.Tokens - counted.sum()
		if rest < 0 { // measured by another counter
			c.breakDown(&by, m)
			continue
		}
		counted[most] += rest
		by.add(&counted)
	}
	return by.byKind()
}

// breakDown adds the tokens of m.
func (c *Counter) breakDown(by *amounts, m *core.Message) {
	kind := kindOf(m)
	by[kind] += core.FramingTokens
	by.each(kind, m.Parts, func(_ int, p core.Part) int { return c.Count(p) })
}

// amounts has a number for each kind, by its index.
type amounts [atSummary + 1]int

// The indices.
const (
	atSystem = iota
	atUser
	atAssistant
	atReasoning
	atToolCall
	atToolResult
	atImage
	atSummary
)

// each adds amount(p) for each part p, by kind. For a tool result, amount is called for its
// content instead. Parts without a kind of their own are of the given one.
func (a *amounts) each(kind int, parts []core.Part, amount func(kind int, p core.Part) int) {
	for _, p := range parts {
		k := kind
		switch p := p.(type) {
		case core.ToolResult:
			a.each(atToolResult, p.Content, amount)
			continue
		case core.ToolCall:
			k = atToolCall
		case core.Image:
			k = atImage
		case core.Reasoning:
			k = atReasoning
		case core.Text, core.Opaque:
		}
		a[k] += amount(k, p)
	}
}

// most returns the kind with the largest amount, the given one if there is none.
func (a *amounts) most(kind int) int {
	for k := range a {
		if a[k] > a[kind] {
			kind = k
		}
	}
	return kind
}

func (a *amounts) sum() int {
	n := 0
	for _, m := range a {
		n += m
	}
	return n
}

func (a *amounts) add(b *amounts) {
	for k := range a {
		a[k] += b[k]
	}
}

func (a *amounts) byKind() map[Kind]int {
	by := make(map[Kind]int)
	for k, n := range a {
		if n > 0 {
			by[kinds[k]] = n
		}
	}
	return by
}

func kindOf(m *core.Message) int {
	if m.Kind != core.KindOriginal {
		return atSummary
	}
	switch m.Role {
	case core.RoleSystem:
		return atSystem
	case core.RoleAssistant:
		return atAssistant
	case core.RoleTool:
		return atToolResult
	case core.RoleUser:
	}
	return atUser // an unknown role counts as the user
}
