package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
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
	p := &parser{d: Of(api), data: body, r: r}
	if opts != nil {
		p.volatile, p.requires = opts.Volatile, opts.Requires
		if p.cache = opts.Cache; p.cache != nil {
			p.salt = p.cache.salt(api, p.volatile)
		}
	}
	if p.d == unknown {
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
	if p.err == nil && r.begin < 0 && !p.d.read.loose {
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
func parseMessage(d *Dialect, raw []byte) (Message, error) {
	p := &parser{d: d, data: raw, r: &Request{}}
	m := p.message()
	m.Raw = raw
	if p.space(); p.err == nil && p.at < len(raw) {
		p.fail("unexpected data after the message")
	}
	return m, p.err
}

// A place is the position of a value in a request. It determines how the value is read.
type place int

// A parser scans a request. While it does, it writes each value that is hashed to buf in its canonical
// form: its bytes or its parts, then its kind and size. A value longer than longest is replaced by its
// SHA-256, so that buf stays small and putting members in order is cheap.
type parser struct {
	d        *Dialect
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

// parts are the places of the members of an object in the APIs of OpenAI and of Anthropic, by the object's place.
var parts = [inMessage + 1]map[string]place{
	inMessage:     {"content": inContent, "output": inResult},
	inBlock:       {"content": inResult, "text": inText},
	inResultBlock: {"text": inResultText},
}

// of returns the place of the member called key.
func (p *parser) of(at place, key []byte) place {
	if at == inRequest {
		return p.d.read.members[string(key)]
	}
	if where, ok := p.d.read.parts[at][string(key)]; ok || at == ignored {
		return where
	}
	return ordinary
}

// elements are the places of the elements of an array at a place; others are ordinary.
var elements = map[place]place{ignored: ignored, inContent: inBlock, inResult: inResultBlock, inTools: inTool}

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
		if n := len(r.Messages); n == cap(r.Messages) && n >= 32 { // as many more as the rest has if they are alike
			r.Messages = slices.Grow(r.Messages, min(4*n, 1+n*(len(p.data)-p.at)/(p.at-begin)))
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
	sub := &parser{d: p.d, data: userItem(raw), r: p.r, volatile: p.volatile}
	m := sub.message()
	m.Raw = slices.Clip(raw)
	p.r.Messages = []Message{m}
	p.r.begin, p.r.end = begin, p.at
	return true
}

// userItem returns the message of the user that the string raw is as an input.
func userItem(raw []byte) []byte { return rawjson.Append(nil, `{"role":"user","content":?}`, raw) }

func half(sum [32]byte) Hash { return Hash(sum[:16]) }

const (
	ignored   place = iota // checked, but no part of a hash
	ordinary               // any value
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

// plainHash returns a hash of a message of the Messages API that stays the same when Claude Code goes on with another model:
// of its role, texts, calls and results, without thinking and reminders. For some models Claude Code sends reminders as
// system messages, for others between tags within the user's texts and results; and it leaves out the thinking of other
// models. Ok is false for a system message, or if nothing is left.
func plainHash(message []byte) (h Hash, ok bool) {
	role := rawjson.Text(rawjson.Field(message, "role"))
	if role == "system" {
		return h, false
	}
	var p plainer
	p.add(role)
	p.content(rawjson.Field(message, "content"))
	return p.sum()
}

// plainItem is plainHash for an item of the Responses API: agents leave out the reasoning of other models, and IDs of items.
func plainItem(item []byte) (h Hash, ok bool) {
	role := textAt(item, "role")
	var p plainer
	switch {
	case role == "user", role == "assistant":
		p.add(role)
		p.content(rawjson.Field(item, "content"))
	case role == "" && rawjson.Field(item, "call_id") != nil:
		for _, name := range []string{"type", "call_id", "name", "arguments", "input", "output"} {
			p.add(string(rawjson.Field(item, name)))
		}
		p.parts++
	}
	return p.sum()
}

// A plainer collects the parts of a message, each after its length.
type plainer struct {
	all   []byte
	parts int
}

// sum is false if nothing was added but a role.
func (p *plainer) sum() (h Hash, ok bool) {
	return half(sha256.Sum256(p.all)), p.parts > 0
}

func (p *plainer) add(s string) {
	p.all = binary.AppendUvarint(p.all, uint64(len(s)))
	p.all = append(p.all, s...)
}

// content adds a text, or the blocks of a list.
func (p *plainer) content(raw []byte) {
	if rawjson.IsString(raw) {
		p.text(rawjson.Text(raw))
		return
	}
	for b := range rawjson.Elements(raw) {
		switch kind := rawjson.Text(rawjson.Field(b, "type")); kind {
		case "thinking", "redacted_thinking":
		case "text", "input_text", "output_text":
			p.text(rawjson.Text(rawjson.Field(b, "text")))
		case "tool_result":
			p.add(kind + rawjson.Text(rawjson.Field(b, "tool_use_id")))
			p.parts++
			p.content(rawjson.Field(b, "content"))
		default:
			p.add(string(Unmark(b)))
			p.parts++
		}
	}
}

var reminder = plain.Pattern(`(?s)[ \t\r\n]*` + toolcall.ReminderOpen + `.*?` + toolcall.ReminderClose)

// text adds a text without reminders; nothing if it has nothing else.
func (p *plainer) text(s string) {
	if s = strings.TrimSpace(reminder().ReplaceAllLiteralString(s, "")); s != "" {
		p.add(s)
		p.parts++
	}
}

// Remind returns a message of the system as one of the user, with each text between the tags of reminders, for a model
// that takes no messages of the system among the others. Any other message is returned unchanged.
func Remind(message []byte) []byte {
	if rawjson.Text(rawjson.Field(message, "role")) != "system" {
		return message
	}
	content := rawjson.Field(message, "content")
	texts := []string{rawjson.Text(content)}
	for b := range rawjson.Elements(content) {
		texts = append(texts, rawjson.Text(rawjson.Field(b, "text")))
	}
	var blocks [][]byte
	for _, text := range texts {
		if text != "" {
			blocks = append(blocks, rawjson.Append(nil, `{"type":"text","text":?}`, toolcall.ReminderOpen+"\n"+text+"\n"+toolcall.ReminderClose))
		}
	}
	if blocks == nil {
		return message
	}
	return rawjson.SetField([]byte(`{"role":"user"}`), "content", rawjson.Array(blocks))
}
