package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/rawjson"
)

// Parse reads a request in one scan of its body, which must not change afterwards.
//
// The hash of a message depends on its content, not on its encoding: spaces, escapes in strings and the order of
// members make no difference, and neither do cache markers, volatile texts, and whether a content that is one text is
// a string or a block. Numbers are compared as written. Of members with the same name the last one counts, as in the
// vendors' decoders. The vendors ignore the order of members, and some JSON libraries write maps in random order.
//
// An error names the byte of the body where it is malformed.
func Parse(api API, body []byte, opts *Options) (*Request, error) {
	r := &Request{API: api, Body: body, begin: -1}
	p := &parser{api: api, data: body, r: r}
	if opts != nil {
		p.volatile, p.requires = opts.Volatile, opts.Requires
		if p.cache = opts.Cache; p.cache != nil {
			p.salt = p.cache.salt(api, p.volatile)
		}
	}
	if requestParts[api] == nil {
		return nil, fmt.Errorf("unknown API %q", api)
	}
	p.space()
	if p.peek() != '{' {
		p.fail("want a JSON object")
	} else if p.object(inRequest) {
		if p.space(); p.at < len(body) {
			p.fail("unexpected data after the request")
		}
	}
	if p.err == nil && r.begin < 0 && api != Responses {
		p.err = errors.New("the request has no messages")
	}
	if p.err != nil {
		return nil, p.err
	}
	if opts != nil {
		r.Model, r.Stream = cmp.Or(r.Model, opts.Model), r.Stream || opts.Stream
	}
	system, tools := &p.head[inContent], &p.head[inTools]
	r.Head = half(sha256.Sum256(append(system.sum[:], tools.sum[:]...)))
	r.headTTLs = append(tools.ttls, system.ttls...)
	r.HeadMarkers = len(r.headTTLs) + len(r.wholeTTL)
	r.TTL = max(r.TTL, longestOf(r.headTTLs), longestOf(r.wholeTTL))
	for i := range r.Messages {
		r.TTL = max(r.TTL, longestOf(r.Messages[i].ttls))
	}
	return r, nil
}

// parseMessage reads one message.
func parseMessage(api API, raw []byte) (Message, error) {
	p := &parser{api: api, data: raw, r: &Request{}}
	m := p.message()
	m.Raw = raw
	if p.space(); p.err == nil && p.at < len(raw) {
		p.fail("unexpected data after the message")
	}
	return m, p.err
}

// A place is the position of a value in a request. It determines how the value is read.
type place int

const (
	ignored   place = iota // checked, but no part of a hash
	plain                  // any value
	inRequest              // the request itself
	inMessages
	inContent     // of a message, or the system prompt: a string or an array of blocks
	inBlock       // a block of content
	inText        // the text of a block
	inResult      // the content of a tool result
	inResultBlock // a block of it
	inResultText  // the text of that
	inTools
	inTool
	inMessage
)

// deepest is the limit of nesting that encoding/json has too.
const deepest = 10000

// A parser scans a request. While it does, it writes each value that is hashed to buf in its canonical
// form: its bytes or its parts, then its kind and size. A value longer than longest is replaced by its
// SHA-256, so that buf stays small and putting members in order is cheap.
type parser struct {
	api      API
	data     []byte
	at       int
	depth    int
	err      error
	volatile []Volatile
	cache    *Cache // may be nil
	salt     uint64
	requires string // see [Options]
	r        *Request

	buf     []byte
	members []member // of the objects that are being read, the innermost ones last
	spare   []byte   // for members in order
	m       Message  // the message being read, or the fields of one from the head

	gone, cut bool // the last text was volatile as a whole; a text was in part
	head      [inMessage + 1]struct {
		sum  [32]byte
		ttls []time.Duration
	}
}

// A member of an object.
type member struct {
	key            []byte
	raw            []byte
	from, mid, end int // in buf: the value, then the key
	gone           bool
}

const longest = 512

func half(sum [32]byte) Hash { return Hash(sum[:16]) }

// fail records the first fault.
func (p *parser) fail(what string) bool {
	if p.err == nil {
		p.err = fmt.Errorf("byte %d: %s", p.at, what)
	}
	return false
}

func (p *parser) space() { p.at = rawjson.SkipSpace(p.data, p.at) }

// peek returns the next byte, or 0.
func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

// finish ends the canonical form that begins at from.
func (p *parser) finish(from int, kind byte, size int) {
	p.buf = append(p.buf, kind)
	p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(size))
	if len(p.buf)-from > longest {
		sum := sha256.Sum256(p.buf[from:])
		p.buf = append(append(p.buf[:from], sum[:]...), '#')
	}
}

// value reads the value at p.at, which is at a place.
func (p *parser) value(at place) bool {
	switch p.peek() {
	case '{':
		return p.nested(at, p.object)
	case '[':
		return p.nested(at, p.array)
	case '"':
		if at == inMessages && p.api == Responses {
			return p.input()
		}
		from := len(p.buf)
		if _, ok := p.text(at); !ok {
			return false
		}
		if at == inContent || at == inResult { // one text block
			p.list(from)
		}
		return true
	case 0:
		return p.fail("unexpected end")
	}
	return p.literal(at)
}

// list makes the text at the end of buf an array of one, or none.
func (p *parser) list(from int) {
	if p.gone {
		p.buf = p.buf[:from]
		p.finish(from, 'a', 0)
		return
	}
	p.finish(from, 'a', 1)
}

func (p *parser) nested(at place, read func(place) bool) bool {
	if p.depth++; p.depth > deepest {
		return p.fail("nested too deeply")
	}
	ok := read(at)
	p.depth--
	return ok
}

// literal reads the number or the word at p.at.
func (p *parser) literal(at place) bool {
	start := p.at
	for p.at < len(p.data) && strings.IndexByte("+-.0123456789Eaeflnrstu", p.data[p.at]) >= 0 {
		p.at++
	}
	word := p.data[start:p.at]
	if !json.Valid(word) {
		p.at = start
		return p.fail("want a JSON value")
	}
	if at != ignored {
		from := len(p.buf)
		p.buf = append(p.buf, word...)
		p.finish(from, 'n', len(word))
	}
	return true
}

// special returns the index from i on of the first byte that is a quote, a backslash or a control
// character. It looks at eight bytes at a time.
func special(data []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		if found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// text reads the string at p.at and returns it with its quotes. Its canonical form is the text, in
// UTF-8 unless the body is not, with halves of surrogate pairs encoded like other characters.
func (p *parser) text(at place) (raw []byte, ok bool) {
	start, from, keep := p.at, len(p.buf), at != ignored
	for p.at++; ; {
		begin := p.at
		p.at = special(p.data, begin)
		if keep {
			p.buf = append(p.buf, p.data[begin:p.at]...)
		}
		switch p.peek() {
		case '"':
			p.at++
			raw = p.data[start:p.at]
			if keep {
				p.gone = (at == inText || at == inContent) && p.drop(from)
				p.finish(from, 's', len(p.buf)-from)
			}
			return raw, true
		case '\\':
			if !p.escape(keep) {
				return nil, p.fail("invalid escape in a string")
			}
		default:
			if p.at == len(p.data) {
				return nil, p.fail("unexpected end in a string")
			}
			return nil, p.fail("control character in a string")
		}
	}
}

// escaped are the characters that a letter after a backslash means.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the escape at p.at.
func (p *parser) escape(keep bool) bool {
	if p.at+1 < len(p.data) && escaped[p.data[p.at+1]] != 0 {
		if keep {
			p.buf = append(p.buf, escaped[p.data[p.at+1]])
		}
		p.at += 2
		return true
	}
	r, size := rawjson.Hex4(p.data[p.at:]), 6
	if r < 0 {
		return false
	}
	if utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, rawjson.Hex4(p.data[p.at+size:])); pair != utf8.RuneError {
			r, size = pair, 12
		}
	}
	if p.at += size; keep {
		p.buf = appendRune(p.buf, r)
	}
	return true
}

// appendRune appends r, which may be half of a surrogate pair: two texts that differ in one must not
// have the same hash.
func appendRune(out []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
	}
	return append(out, string(r)...)
}

// drop removes volatile texts from the text that begins at from, and reports whether nothing but
// space is left of one that had some.
func (p *parser) drop(from int) bool {
	dropped := false
	for _, v := range p.volatile {
		kept, rest := p.buf[:from], p.buf[from:]
		end := cmp.Or(v.End, "\n")
		for v.Begin != "" {
			i := bytes.Index(rest, []byte(v.Begin))
			if i < 0 {
				break
			}
			dropped = true
			kept, rest = append(kept, rest[:i]...), rest[i+len(v.Begin):]
			if i = bytes.Index(rest, []byte(end)); i < 0 {
				i = len(rest) - len(end)
			}
			rest = rest[max(0, i+len(end)):]
		}
		p.buf = append(kept, rest...) // never longer than it was
	}
	p.cut = p.cut || dropped
	return dropped && len(bytes.TrimSpace(p.buf[from:])) == 0
}

// elements are the places of the elements of an array at a place; others are plain.
var elements = map[place]place{ignored: ignored, inContent: inBlock, inResult: inResultBlock, inTools: inTool}

// array reads the array at p.at.
func (p *parser) array(at place) bool {
	from, n := len(p.buf), 0
	if at == inMessages {
		return p.messages()
	}
	each, ok := elements[at]
	if !ok {
		each = plain
	}
	p.at++
	for p.space(); p.peek() != ']'; p.space() {
		start, begin := p.at, len(p.buf)
		p.gone = false
		if !p.value(each) {
			return false
		}
		if each == inBlock && p.data[start] != '{' {
			p.broken(noBlock)
		}
		if p.gone && (each == inBlock || each == inTool) {
			p.buf = p.buf[:begin]
		} else {
			n++
		}
		if !p.comma(']') {
			return false
		}
	}
	p.at++
	if p.gone = false; at != ignored {
		p.finish(from, 'a', n)
	}
	return true
}

// comma reads the comma after a value unless end follows.
func (p *parser) comma(end byte) bool {
	if p.space(); p.peek() == end {
		return true
	}
	if p.peek() != ',' {
		return p.fail("want a comma or " + string(end))
	}
	p.at++
	if p.space(); p.peek() == end {
		return p.fail("unexpected " + string(end))
	}
	return true
}

// object reads the object at p.at.
func (p *parser) object(at place) bool {
	from, first := len(p.buf), len(p.members)
	p.at++
	for p.space(); p.peek() != '}'; p.space() {
		if p.peek() != '"' {
			return p.fail("want the name of a member")
		}
		raw, ok := p.text(ignored)
		if !ok {
			return false
		}
		key := raw[1 : len(raw)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(rawjson.Unquote(raw))
		}
		if p.space(); p.peek() != ':' {
			return p.fail("want a colon")
		}
		p.at++
		p.space()
		m := member{key: key, from: len(p.buf)}
		start := p.at
		p.gone = false
		where := p.of(at, key)
		if at == inRequest || at == inMessage && where == inContent {
			p.m = Message{} // the last one counts
		}
		if where == inMessages {
			p.r.begin, p.r.end, p.r.Messages = -1, -1, nil
		}
		if !p.value(where) {
			return false
		}
		m.raw, m.gone, m.mid = p.data[start:p.at:p.at], p.gone, len(p.buf)
		if at == inRequest {
			p.head[where].sum, p.head[where].ttls = sha256.Sum256(p.buf[m.from:]), p.m.ttls
			p.buf = p.buf[:m.from]
		} else if at != ignored {
			p.buf = append(p.buf, key...)
			p.finish(m.mid, 's', len(key))
		}
		m.end = len(p.buf)
		p.members = append(p.members, m)
		if !p.comma('}') {
			return false
		}
	}
	p.at++
	own := p.members[first:]
	p.gone = false
	if at == inRequest {
		p.request(own)
	} else if at != ignored {
		own = p.last(own)
		p.read(at, own)
		p.write(at, own, from)
	}
	p.members = p.members[:first]
	return true
}

// parts are the places of the members of an object, by the object's place; other members are plain, and are ignored
// in a request.
var parts = [inMessage + 1]map[string]place{
	inMessage:     {"content": inContent, "output": inResult},
	inBlock:       {"content": inResult, "text": inText},
	inResultBlock: {"text": inResultText},
}

// requestParts are the places of the members of a request.
var requestParts = map[API]map[string]place{
	Messages:  {"messages": inMessages, "system": inContent, "tools": inTools},
	Chat:      {"messages": inMessages, "tools": inTools},
	Responses: {"input": inMessages, "instructions": inContent, "tools": inTools},
	Gemini:    {"contents": inMessages, "systemInstruction": inContent, "system_instruction": inContent, "tools": inTools},
	Generate:  {"messages": inMessages, "tools": inTools},
	Converse:  {"messages": inMessages, "system": inContent, "toolConfig": inTools},
}

// of returns the place of the member called key.
func (p *parser) of(at place, key []byte) place {
	if at == inRequest {
		return requestParts[p.api][string(key)]
	}
	of := &parts
	switch p.api {
	case Gemini:
		of = &geminiParts
	case Converse:
		of = &converseParts
	case Messages, Chat, Responses, Generate:
	}
	if where, ok := of[at][string(key)]; ok || at == ignored {
		return where
	}
	return plain
}

// last drops all but the last of members with the same name, and puts them in the order of their
// names.
func (p *parser) last(own []member) []member {
	sorted := slices.IsSortedFunc(own, func(a, b member) int {
		return cmp.Or(bytes.Compare(a.key, b.key), -1) // equal names are not sorted
	})
	if !sorted {
		slices.SortStableFunc(own, func(a, b member) int { return bytes.Compare(a.key, b.key) })
		kept := own[:0]
		for i, m := range own {
			if i+1 == len(own) || !bytes.Equal(m.key, own[i+1].key) {
				kept = append(kept, m)
			}
		}
		own = kept
	}
	return own
}

// write replaces the canonical forms of members, which begin at from, by the object's.
func (p *parser) write(at place, own []member, from int) {
	if at == inBlock || at == inResultBlock {
		if t, only := oneText(own); only {
			p.buf = append(p.buf[:from], p.buf[t.from:t.mid]...)
			p.gone = t.gone
			return
		}
	}
	if p.api == Converse && at != inMessage && len(own) == 1 {
		if p.gone = own[0].gone || isPoint(own); p.gone {
			p.buf = p.buf[:from]
			return
		}
	}
	p.spare = p.spare[:0]
	n := 0
	for _, m := range own {
		if at != plain && isMarker(m.key) || at == inBlock && p.api == Gemini && isSignature(m.key) ||
			p.api == Responses && p.marginal(at, own, m) {
			continue
		}
		n++
		p.spare = append(p.spare, p.buf[m.from:m.end]...)
	}
	p.buf = append(p.buf[:from], p.spare...)
	p.finish(from, 'o', n)
}

// marginal reports whether a member of an item of the Responses API, or of a block in one, is left out by some clients
// when they send an answer back.
func (p *parser) marginal(at place, own []member, m member) bool {
	switch string(m.key) {
	case "type":
		return at == inMessage && string(m.raw) == `"message"`
	case "id", "status":
		switch word(find(own, "type")) {
		case "function_call", "custom_tool_call", "reasoning":
			return at == inMessage
		case "message":
			return at == inMessage && word(find(own, "role")) == "assistant"
		}
	case "annotations", "logprobs":
		return at == inBlock && isEmptyArray(m.raw)
	}
	return false
}

// oneText returns the text of a block that has only that.
func oneText(own []member) (member, bool) {
	var t member
	n := 0
	for _, m := range own {
		switch {
		case isMarker(m.key), isEmptyArray(m.raw) && (string(m.key) == "annotations" || string(m.key) == "logprobs"):
			continue
		case string(m.key) == "text" && rawjson.IsString(m.raw):
			t = m
		case string(m.key) != "type" || !isTextType(m.raw):
			return t, false
		}
		n++
	}
	return t, n == 2
}

func isTextType(raw []byte) bool {
	switch string(raw) {
	case `"text"`, `"input_text"`, `"output_text"`:
		return true
	}
	return false
}

// isMarker reports whether key is a cache marker of Anthropic, of OpenAI or of Amazon.
func isMarker(key []byte) bool {
	return string(key) == "cache_control" || string(key) == "prompt_cache_breakpoint" || string(key) == cachePoint
}

// find returns the raw value of the member called name; nil if there is none.
func find(own []member, name string) []byte {
	for i := range slices.Backward(own) {
		if string(own[i].key) == name {
			return own[i].raw
		}
	}
	return nil
}

// messages reads the array of messages at p.at.
func (p *parser) messages() bool {
	r := p.r
	begin := p.at
	p.at++
	for p.space(); p.peek() != ']'; p.space() {
		m := p.cached()
		if p.err != nil {
			return false
		}
		r.Messages = append(r.Messages, m)
		if !p.comma(']') {
			return false
		}
	}
	p.at++
	r.begin, r.end = begin, p.at
	return true
}

// message reads the message at p.at.
func (p *parser) message() Message {
	start, volatile := p.at, p.volatile
	defer func() { p.volatile = volatile }()
	for {
		if p.at = start; p.peek() != '{' {
			p.fail("want a message, which is an object")
			return Message{}
		}
		p.m, p.cut = Message{}, false
		from := len(p.buf)
		if !p.nested(inMessage, p.object) {
			return Message{}
		}
		p.m.Hash = half(sha256.Sum256(p.buf[from:]))
		p.m.Raw = p.data[start:p.at:p.at]
		p.buf = p.buf[:from]
		if !p.cut || p.m.Role != "assistant" && p.m.Role != "tool" {
			return p.m
		}
		p.volatile = nil // the agent did not write this: read it again
	}
}

// input reads the string at p.at as the only message of a request.
func (p *parser) input() bool {
	begin := p.at
	raw, ok := p.text(ignored)
	if !ok {
		return false
	}
	sub := &parser{api: p.api, data: userItem(raw), r: p.r, volatile: p.volatile}
	m := sub.message()
	m.Raw = slices.Clip(raw)
	p.r.Messages = []Message{m}
	p.r.begin, p.r.end = begin, p.at
	return true
}

// userItem returns the message of the user that the string raw is as an input.
func userItem(raw []byte) []byte {
	return rawjson.Append(nil, `{"role":"user","content":?}`, raw)
}
