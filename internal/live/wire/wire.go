// Package wire reads and edits the requests of the vendors' APIs and watches their answers. A request is read once:
// its messages are found as spans of its bytes, each with a hash of its content. An edit replaces whole messages; all
// other bytes are the client's. A [Watcher] sees copies of answers; only a [Splice] changes them.
//
// The package has no state and no I/O. All functions may be called concurrently, but values must not be changed while
// others use them. All input comes from a client or a vendor and may be anything: malformed input is an error, never
// a panic.
package wire

import (
	"time"
)

// An API is the shape of a request and of its answer.
type API string

// The APIs.
const (
	Messages  API = "messages"  // Anthropic's Messages API
	Chat      API = "chat"      // OpenAI's Chat Completions API, and the many that copy it
	Responses API = "responses" // OpenAI's Responses API
	Gemini    API = "gemini"    // Google's generateContent, of the Gemini API and of Vertex AI
	Converse  API = "converse"  // Amazon Bedrock's Converse
)

// APIs are all of them.
var APIs = []API{Messages, Chat, Responses, Gemini, Converse}

// A Hash is the first half of a SHA-256.
type Hash [16]byte

// A Request has the parts of a request that the gateway needs. The slices are parts of Body, cut to their length:
// appending to one copies it.
type Request struct {
	API       API
	Body      []byte // decoded
	Model     string
	MaxOutput int // in tokens; 0 if the request has no limit
	Stream    bool

	System, Tools []byte    // raw values; nil if absent. In the Chat API the system prompt is a message
	Messages      []Message // elements of messages or input. A string as input is one message
	Head          Hash      // of System and Tools, normalized like a message's

	Thinking   string        // "adaptive", "enabled"; "" if off or not in this API
	Effort     string        // how much to think, in the vendor's word
	Session    string        // the ID in the body of the conversation; "" if none. Not validated
	Stateful   bool          // the history is not, or not all, in the request
	Compacts   bool          // the vendor is asked to shorten the history, or has done so: a compaction is in it
	Structured bool          // an output format or a tool is forced
	Toolless   bool          // calls of tools are forbidden
	TTL        time.Duration // the longest lifetime of the vendor's cache that is asked for; 0 if none is

	HeadMarkers int // cache markers in System and Tools, and for the whole request

	begin, end int             // of the array of messages, or of the string; negative if there is none
	headTTLs   []time.Duration // that markers in tools, then in the system prompt, ask for
	wholeTTL   []time.Duration // of a marker for the whole request
}

// A Message is an element of a request's messages.
type Message struct {
	Raw  []byte // part of the body
	Hash Hash   // of its content: see [Parse]
	Role string // user, assistant, system, developer, tool; of an item without role, by its type

	Calls, Results []string // IDs of tool calls, and of calls that results answer; not of tools that the vendor runs
	Typed          bool     // has text, an image or a file of the user, not only results and volatile texts
	Thinking       bool     // has the model's thinking, readable or not
	Markers        int      // cache markers
	Tokens         int      // of Raw, by the counter of [Options.Cache]; 0 without one
	Media          int      // of Tokens, those of images and files

	facts
}

// TTL returns the longest lifetime of the vendor's cache that markers in the message ask for; 0 if it has none.
func (m *Message) TTL() time.Duration { return longestOf(m.ttls) }

// facts are the properties of a message that [Cache.Check] needs.
type facts struct {
	fault       string // the first rule that the message breaks by itself
	item        string // the type of an item
	ttls        []time.Duration
	other       bool // has content that is no tool result
	lateResult  bool // a result follows other content
	firstThinks bool // the first block is thinking
	lastServed  bool // the last block is the result of a tool that the vendor ran
}

// Options of [Parse].
type Options struct {
	// Volatile are texts that an agent changes from request to request in a message that it sent
	// before. They are no part of a hash.
	Volatile []Volatile
	// Cache, if not nil, spares the reading of messages that were in an earlier request.
	Cache *Cache
	// Model and Stream are said by the path of the request; the body counts if it says more.
	Model  string
	Stream bool
	// Requires, if not empty, is a member without which the request is of another API.
	Requires string
}

// A Volatile is a part of a text: from Begin to the next End, both included. Without End it is the rest of the line;
// if End does not occur, the rest of the text. It is searched in texts of the system prompt and of users, never in
// tool results, whose content is from others.
type Volatile struct{ Begin, End string }
