package core

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/condensehq/condense/internal/plain"
)

// A Trigger is the reason for a condensation.
type Trigger string

// The triggers.
const (
	TriggerAutomatic Trigger = "automatic" // the policy found the conversation too large
	TriggerManual    Trigger = "manual"    // the user or a program asked
	TriggerOverflow  Trigger = "overflow"  // the model's API refused the request as too large
	// TriggerIngest asks for shorter tool results before the model has seen them: the messages are the user's newest request, if it is known,
	// a round of calls and their results, and a closing answer. Only results may change. A provider that does not do that declines.
	TriggerIngest Trigger = "ingest"
)

// A Request asks a provider for a shorter conversation.
type Request struct {
	// Messages are the view, oldest first: original messages, and the summaries and markers of earlier condensations.
	// Tokens is set on every one.
	Messages []Message
	Budget   Budget
	Trigger  Trigger
	// Profile and Mode name the configuration in force; either may be empty.
	Profile, Mode string
	// System is the system prompt that is sent in addition to the messages; empty if there
	// is none or if it is one of the messages.
	System string
	// Environment describes where the agent works (open files, time, …), in the form that
	// the agent sends to the model; empty if unknown.
	Environment string
	// FilesRead are the files that the agent has read, newest first.
	FilesRead []string
	// Dir is the directory that the agent works in and that relative paths of FilesRead
	// start from; empty if unknown. Providers read no file outside of it.
	Dir string
	// Tools are the definitions of the agent's tools in the form in which they are sent, a JSON array of the vendor's
	// API; empty if unknown.
	Tools string
	// API names the vendor's API in whose form the conversation is sent: anthropic (Messages), openai
	// (Chat Completions), responses; empty if it is unknown or none. Content that only one vendor
	// reads, in an [Opaque] part, can be added only there.
	API   string
	Model string // for which the conversation is, as the configuration names it; empty if unknown
	Price Price  // of its tokens; zero if unknown
	Quota Quota  // of language models, in this call; zero if unknown
	Host  string // name and version of the host of a plugin; empty in a provider that is compiled in
	// Conversation names the conversation, the same in every request about it, and says nothing else of it; empty if unknown.
	Conversation string
	// State is the [Result.State] of the provider's newest result that is applied in the conversation; nil if there is none.
	State []byte
	// States are those of the providers of a [Chain], by name and strategy. It gives each only its own, as State.
	States map[string][]byte
	// MayWait says that [Result.Later] is an answer: the conversation is below its limit, and nobody asked for the condensation.
	MayWait bool
	// Instructions are the user's instructions for this condensation.
	Instructions string
	// Originals is the path, as the agent would open it, of the file in which the agent can read hidden and rewritten
	// content verbatim. The host writes it once the result is applied. Providers name it in their texts. Empty means
	// that the agent cannot read the originals.
	Originals string
	// NoRecall says that the agent cannot recall hidden or rewritten content by a handle: providers write no handles.
	NoRecall bool
	// Typed returns the texts in a message of the user that the user typed, in order, without those that the agent's
	// program put there; if it is nil, as in a plugin, the user typed all of those that are not a [Message.Program]'s.
	Typed func(m *Message) []string
	// Hidden returns messages that earlier condensations hid or rewrote, as they were, by ID; without IDs all, without parts. Nil: unknown.
	// Their IDs cannot stand in a result: put a text that is worth reading again into a new message.
	Hidden func(ids ...string) ([]Message, error)
	// File returns the newest text of a file, as the conversation shows it by reads, writes and edits, hidden ones too, without secrets:
	// nothing if it shows none. No file is read. Nil: unknown.
	File func(path string) ([]FilePiece, error)
	// Cached is what a vendor's prompt cache has of Messages; zero if unknown.
	Cached Cached
	// Abilities are those that the provider declared: its result may do nothing else. A [Chain] sets them.
	Abilities Abilities
	// Counter is the host's counter, with which results are measured.
	Counter Counter
}

// A Price is in US dollars per million tokens. A zero cache price is unknown, not free.
type Price struct {
	Input      float64 `json:"input,omitempty" unit:"dollars" example:"3" doc:"US dollars per million input tokens."`
	Output     float64 `json:"output,omitempty" unit:"dollars" example:"15" doc:"US dollars per million output tokens."`
	CacheRead  float64 `json:"cache_read,omitempty" unit:"dollars" example:"0.3" doc:"US dollars per million input tokens read from the cache."`
	CacheWrite float64 `json:"cache_write,omitempty" unit:"dollars" example:"3.75" doc:"US dollars per million input tokens written to the cache."`
}

// A Cached says that a change of one of the first Messages, which the last request had as they are now, makes the cache useless from
// there on.
type Cached struct {
	Messages int
	Until    time.Time // when the cache forgets them; zero if unknown
}

// A FilePiece is consecutive lines of a file.
type FilePiece struct {
	First  int // the number of its first line; 0 if unknown
	Text   string
	Unsure bool // the file was changed since, in a way that is not known
}

// A Quota limits the use of language models in one call to a provider. Zero is no limit.
type Quota struct {
	ModelCalls int     `json:"model_calls,omitempty" unit:"count" default:"64" example:"200" doc:"Requests to language models in one call. 0 is no limit."`
	USD        float64 `json:"usd,omitempty" unit:"dollars" example:"1" doc:"US dollars for these requests: after that much is spent, no further one is made. 0 is no limit."`
}

// A Budget says how many tokens a conversation may have. All numbers are tokens by the
// host's counter; Limit and Target have the same scope: system prompt, tool definitions
// and messages together.
type Budget struct {
	Window   int `json:"window"`   // the model's context window
	Reserve  int `json:"reserve"`  // kept free for the model's answer
	Overhead int `json:"overhead"` // system prompt and tool definitions
	Limit    int `json:"limit"`    // the most that may be sent
	Target   int `json:"target"`   // a condensation should end at or below it; at most Limit
}

// Room returns the tokens that the messages may have for the conversation to be on
// target.
func (b Budget) Room() int { return b.Target - b.Overhead }

// Tokens returns the size of req in the scope of its budget: overhead and messages.
func (r *Request) Tokens() int { return r.Budget.Overhead + TotalTokens(r.Messages) }

// Clone returns a copy of r for a provider: it shares no slice with r, so that nothing
// a provider does to it reaches the conversation, and holds no Source.
func (r *Request) Clone() *Request {
	c := *r
	c.Messages = slices.Clone(r.Messages)
	total := plain.Sum(c.Messages, func(x Message) int { return partsIn(x.Parts) })
	// One array for all parts, so that a copy of a long history takes few allocations.
	free := make([]Part, total)
	for i := range c.Messages {
		m := &c.Messages[i]
		m.Parts, free = copyParts(m.Parts, free)
		m.Source, m.Labels = nil, maps.Clone(m.Labels)
	}
	c.FilesRead, c.State = append([]string(nil), r.FilesRead...), bytes.Clone(r.State)
	return &c
}

// partsIn counts parts and the contents of tool results among them.
func partsIn(parts []Part) int {
	n := len(parts)
	for _, p := range parts {
		if t, ok := p.(ToolResult); ok {
			n += partsIn(t.Content)
		}
	}
	return n
}

// copyParts is [cloneParts] into the beginning of free. It returns the rest of that.
func copyParts(parts, free []Part) (c, rest []Part) {
	if parts == nil {
		return nil, free
	}
	n := copy(free, parts)
	c, free = free[:n:n], free[n:]
	for i, p := range c {
		if t, ok := p.(ToolResult); ok {
			t.Content, free = copyParts(t.Content, free)
			c[i] = t
		}
	}
	return c, free
}

// FramingTokens is the cost of a message in addition to its parts: role and separators. The
// number is from OpenAI's published recipe for chat models (three tokens per message and one
// for the role); other vendors do not publish theirs.
const FramingTokens = 4

// A Counter measures content in tokens. Implementations are safe for concurrent use, return the same number for the
// same parts, and cache their counts.
type Counter interface {
	// Count returns the tokens of parts, without the framing of a message.
	Count(parts ...Part) int
}

// A BatchCounter is a [Counter] that counts several contents in one call. It is worth
// having where a call is expensive: in a plugin each one asks the host.
type BatchCounter interface {
	Counter
	// CountEach returns the tokens of each content.
	CountEach(contents ...[]Part) []int
}

// CountEach returns the tokens of each content by c, in one call if c is a [BatchCounter].
func CountEach(c Counter, contents ...[]Part) []int {
	if c, ok := c.(BatchCounter); ok {
		return c.CountEach(contents...)
	}
	return plain.Each(contents, func(parts []Part) int { return c.Count(parts...) })
}

// MessageTokens returns the size of m by c, including framing.
func MessageTokens(c Counter, m Message) int { return FramingTokens + c.Count(m.Parts...) }

// Measure sets Tokens on every message where it is 0.
func Measure(c Counter, messages []Message) {
	for i := range messages {
		if messages[i].Tokens == 0 {
			messages[i].Tokens = MessageTokens(c, messages[i])
		}
	}
}
