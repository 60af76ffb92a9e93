// Package wire reads and edits the requests of the vendors' APIs and watches their answers. A request is read once:
// its messages are found as spans of its bytes, each with a hash of its content. An edit replaces whole messages; all
// other bytes are the client's. A [Watcher] sees copies of answers; only a [Splice] changes them.
//
// The package has no state and no I/O. All functions may be called concurrently, but values must not be changed while
// others use them. All input comes from a client or a vendor and may be anything: malformed input is an error, never
// a panic.
package wire

import (
	"slices"
	"time"
)

// A Dialect is what is known of an API: how its requests are read and changed, what its answers look like, and facts that
// decide what the gateway may do. Shared code asks the dialect and compares no APIs.
type Dialect struct {
	API    API
	Vendor Vendor // whose API it is
	Format string // the name of its codec, in internal/live/messages

	Said, Asked string // a message of the model, and one of the user, with ? as its text
	Extra       string // the member of a request that has options of the model's own API

	Apart       bool // all servers take two messages of the user one after the other
	Joins       bool // the vendor refuses neighbours of one role
	Texts       bool // a content can be a string, which a cache marker makes a list
	Signs       bool // a block can be a compaction that the vendor has signed
	Seals       bool // an item can be a compaction that only its maker reads
	Stores      bool // the vendor stores the answer, unless "store" is false
	Chains      bool // a request may continue an answer that the vendor has
	Sockets     bool // requests also come over WebSockets
	Arrays      bool // a stream can be a JSON array
	Announces   bool // the error that a prompt is too long comes in a stream that has begun
	PromptFirst bool // a stream reports the usage of the prompt at its beginning
	Unnumbered  bool // messages without a plain form have no number: agents send them to some models only

	// Refuse returns the body of an answer with a status and a message in the shape of the vendor's errors, and ErrorType what its
	// header x-amzn-errortype says.
	Refuse    func(status int, message string) []byte
	ErrorType func(status int) string
	// Plain returns a hash of a message that stays the same when the agent goes on with another model; false if it has none.
	Plain func(message []byte) (Hash, bool)

	read  reading
	edit  editing
	tool  tooling
	reply replying
}

// A reading is how requests are read.
type reading struct {
	members map[string]place                 // places of the members of a request
	parts   *[inMessage + 1]map[string]place // and of those of other objects; other members are ordinary, and are ignored in a request

	limits [][]string // paths of the most tokens of an answer, of which the last one counts

	loose     bool // the messages may be missing, or a string, which is one of the user's
	byMember  bool // the kind of a block is the name of its member, and a cache marker is a block
	plainIDs  bool // IDs have letters, digits, _ and - only
	fullTexts bool // texts must not be empty

	block   func(p *parser, own []member, marked bool)    // extracts the facts about a block of a message's content
	message func(p *parser, own []member, content []byte) // about a message, whose blocks have been read
	request func(p *parser, own []member)                 // about a request, in places that only this API has

	// marginal reports whether a member is no part of a hash, because clients change it or leave it out when they send an answer back.
	marginal func(at place, own []member, m member) bool
	// check adds the rules that messages break by their order.
	check func(c *checker, r *Request)
}

// An editing is how messages are changed.
type editing struct {
	content string // the member of a message that has its content
	// strip returns a message without the model's thinking; nil if nothing is left.
	strip func(message []byte) []byte
	// mark returns a message with a single cache marker: see [Mark].
	mark func(message []byte, ttl time.Duration) []byte
	// says reports whether the text of a block is the model's answer.
	says func(block []byte) bool
}

// A tooling is how tools are declared, called and answered.
type tooling struct {
	form string   // of a declaration
	list []string // the path of the tools in a request
	// declared returns the list of functions in the tools.
	declared func(tools []byte) []byte
	choices  [][]string // paths of the number of answers that a request wants

	// call returns the call that a part of an answer is, if a client answers it.
	call func(d *Dialect, part []byte) (c Call, ok bool)
	// calls returns the keys of a message's calls.
	calls func(d *Dialect, m *Message) []string

	result func(tool, call, text string, failed bool) []byte // see [Result]
	turn   string                                            // a message with the results of several calls
	// answers returns the ID of the call that a block of content answers; "" if it is no result.
	answers func(block []byte) string
}

// A replying is how answers are written.
type replying struct {
	leaves map[string]leaf // the paths of the fields in an answer, streamed or not

	ends     []string // the reasons for the end of an answer that let the model have its calls answered
	looseEnd bool     // a stream may end with that reason
	noEnd    bool     // and always does

	frames  bool   // a stream can be one of AWS's binary frames
	encoded string // the member of a frame's payload that has the event in base64; else the payload is the event, and a header its kind
	ping    string // an event that says nothing
	pinging []byte // a frame that says nothing

	// event reads an event of a stream. It returns the client's version, nil for none, and whether the event is held back.
	event func(s *Splice, data []byte) ([]byte, bool)
	// divide divides the last piece of an answer into one with its content, nil if it has none, and one with its end.
	divide func(data []byte) (early, late []byte)
	// last returns an event of the end of the last answer as the end of the whole stream.
	last func(s *Splice, data []byte) []byte
	// failed returns the end of a stream of events whose next answer is an error.
	failed func(s *Splice, body []byte) []byte

	// The paths of fields of an answer that is no stream, by the first elements of arrays.
	content []string   // of its parts; without it, the answer is like an event
	said    []string   // of the message, if its parts are only the calls
	stops   [][]string // of the reason for its end, also in an event

	done  string   // the reason that a client gets in place of the first of ends, if it has no calls
	steps []string // fields of the usage of an answer, which that of several lists for each
	// whole merges the answers into the last body.
	whole func(s *Splice, body []byte) []byte
	// keep keeps the parts of an answer that the client has for the end of the last one.
	keep func(s *Splice)
	// message returns parts as messages of a request, and forgets reports whether a part is left out.
	message func(s *Splice, parts [][]byte) [][]byte
	forgets func(part []byte) bool
}

// dialects are those of all APIs.
var dialects = map[API]*Dialect{Messages: messagesAPI, Chat: chatAPI, Responses: responsesAPI, Gemini: geminiAPI, Converse: converseAPI}

// unknown is the dialect of what no API is known of: for its clients, errors are written as most vendors do.
var unknown = &Dialect{Refuse: refuseOpenAI, read: reading{parts: &parts}, edit: editing{strip: asIs}}

// Of returns the dialect of an API; one that can only refuse if there is none.
func Of(api API) *Dialect {
	if d := dialects[api]; d != nil {
		return d
	}
	return unknown
}

// Marks reports whether requests of an API have cache markers at places of their own.
func Marks(api API) bool { return Of(api).edit.mark != nil }

// A ModelReader finds the model in a request of any size that is written to it in pieces. It is for requests that
// [Parse] cannot read, and keeps nothing else. The zero value is ready. It is not safe for concurrent use.
type ModelReader struct {
	json leafScanner
	name string
}

// Write reads the next bytes of the request. It never fails.
func (m *ModelReader) Write(p []byte) (int, error) {
	if m.json.leaf == nil {
		m.json.wanted = func(path []byte) bool { return string(path) == "model" }
		m.json.leaf = func(_ []byte, value string) { m.name = value }
	}
	m.json.write(p)
	return len(p), nil
}

// Model returns the name of the model; empty if it has not come yet. Of several, the last counts, as for most servers.
func (m *ModelReader) Model() string { return m.name }

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
	Compacts   bool          // the vendor is asked to shorten the history, or has done so in a block of it
	Structured bool          // an output format or a tool is forced
	Toolless   bool          // calls of tools are forbidden
	TTL        time.Duration // the longest lifetime of the vendor's cache that is asked for; 0 if none is

	HeadMarkers int // cache markers in System and Tools, and for the whole request

	begin, end int             // of the array of messages, or of the string; negative if there is none
	headTTLs   []time.Duration // that markers in tools, then in the system prompt, ask for
	wholeTTL   []time.Duration // of a marker for the whole request
}

// Answered reports whether a request contains an answer of the model: then its conversation is not new.
func (r *Request) Answered() bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == "assistant" })
}

// A Message is an element of a request's messages.
type Message struct {
	Raw  []byte // part of the body
	Hash Hash   // of its content: see [Parse]
	Role string // user, assistant, system, developer, tool; of an item without role, by its type

	Calls, Results []string // IDs of tool calls, and of calls that results answer; not of tools that the vendor runs
	Typed          bool     // has text, an image or a file of the user, not only results and volatile texts
	Thinking       bool     // has the model's thinking, readable or not
	Compaction     bool     // is an item that stands for what is before it, which the vendor may ignore
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
