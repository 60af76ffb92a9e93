package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Splice joins one or more answers of the vendor, of which all but the last have calls of the gateway's own tool,
// into one answer for the client. The client sees the model's text and its own calls, numbered as in one answer, and
// the end of the last answer. Without calls of the tool, all bytes pass unchanged.
//
// The answers are written to it one after the other, streamed or not; [Splice.Next] begins a new one. It stores the
// answers so far. When they become too large, the rest passes unchanged, unless the client would miss something: see
// [Splice.Broken]. It is not safe for concurrent use.
type Splice struct {
	d      *Dialect
	tool   string
	left   int64 // bytes that may still come
	begun  bool
	frame  framing
	ended  bool   // the client has the end
	passes bool   // the rest is not looked at
	rest   []byte // the beginning of an event, or of a body

	listed int    // elements of an array that the client has
	gap    bool   // one was left out
	closed bool   // the array has ended
	crlf   bool   // events end with CR LF
	kind   string // of the frame that is read

	rounds int  // that are over, all of them with calls of the tool
	shown  int  // blocks, calls or items that the client has seen
	spoken bool // text, in an API that joins pieces
	id     string
	seq    int // of the next event of the Responses API
	usages [][]byte
	seen   [][]byte // items of the Responses API, or blocks

	// Of this round.
	parts []*part
	usage []byte
	stop  string
	said  *part // the message of the Chat API, without calls
	tail  []sseEvent
	over  bool
}

// NewSplice returns a splice of answers, of together so many bytes, in which the gateway answers the calls of one tool.
func NewSplice(api API, tool string, most int64) *Splice {
	return &Splice{d: Of(api), tool: tool, left: most}
}

// Broken reports whether the answers became too large after something was held back: the client gets an error in
// place of the rest.
func (s *Splice) Broken() bool { return s.passes && s.ended }

// Write reads the next bytes of an answer and returns bytes for the client.
func (s *Splice) Write(p []byte) []byte {
	switch {
	case s.ended:
		return nil
	case s.passes:
		return p
	}
	s.rest = append(s.rest, p...)
	if s.left -= int64(len(p)); s.left < 0 {
		return s.giveUp()
	}
	if !s.begun {
		head := bytes.TrimLeft(s.rest, " \t\r\n\xef\xbb\xbf")
		if len(head) == 0 {
			return nil
		}
		s.begun, s.frame = true, s.frameOf(head[0])
	}
	if s.frame == inWhole {
		return nil
	}
	var out []byte
	at := 0
	for {
		n := s.frame.end(s.rest[at:])
		if n == 0 {
			break
		}
		out = s.event(out, sseEvent{raw: slices.Clone(s.rest[at : at+n])})
		at += n
	}
	s.rest = s.rest[:copy(s.rest, s.rest[at:])]
	return out
}

// Close reads the end of an answer and returns the bytes for the client that were left.
func (s *Splice) Close() []byte {
	rest := s.rest
	s.rest = nil
	var out []byte
	switch {
	case s.ended, s.passes:
		return nil
	case s.frame == inWhole:
		shown := s.body(rest)
		if !s.over {
			return rest
		}
		s.tail = []sseEvent{{data: shown}}
	case len(rest) > 0 && s.over:
	case len(rest) > 0 && s.frame == inEvents && strings.IndexByte("\r\n", rest[len(rest)-1]) >= 0: // the vendor left out the last empty line
		out = s.event(nil, sseEvent{raw: rest})
	default:
		out = rest
	}
	if s.frame != inWhole && s.d.reply.looseEnd && s.held() && s.stop != "" { // without "[DONE]"
		s.over = true
	}
	if s.closed && s.held() && !s.over {
		out = append(s.close(), out...)
	}
	return out
}

// giveUp returns the rest for the client.
func (s *Splice) giveUp() []byte {
	out := s.rest
	if s.frame != inWhole && s.held() {
		const status = 502
		s.ended = true
		out = s.Failed(status, s.d.Refuse(status, "condense: the answer is longer than the gateway reads (serve.max_body)"))
	}
	s.passes, s.over, s.rest, s.parts, s.said, s.tail, s.seen = true, false, nil, nil, nil, nil, nil
	return out
}

// Over reports whether a complete answer has arrived whose end is held back, because it or an earlier one has calls
// of the tool: either answer them and call [Splice.Next], or send the end.
func (s *Splice) Over() bool { return s.over }

// Stopped reports whether the model has said everything, though the end of the answer may be missing.
func (s *Splice) Stopped() bool { return s.stop != "" }

// Calls returns the calls of the tool in this answer.
func (s *Splice) Calls() []Call {
	var calls []Call
	if !s.called() {
		return nil
	}
	for _, p := range s.parts {
		if p.shown < 0 && p.done {
			c, _ := s.d.tool.call(s.d, p.raw)
			calls = append(calls, c)
		}
	}
	return calls
}

// Own reports whether the answer has calls that the client is to answer.
func (s *Splice) Own() bool {
	return slices.ContainsFunc(s.parts, func(p *part) bool {
		_, ok := s.d.tool.call(s.d, p.raw)
		return ok && p.shown >= 0
	})
}

// called reports whether the model stopped to have its calls answered.
func (s *Splice) called() bool { return slices.Contains(s.d.reply.ends, s.stop) }

func (s *Splice) held() bool {
	return s.rounds > 0 || slices.ContainsFunc(s.parts, func(p *part) bool { return p.shown < 0 })
}

// Message returns the answer as messages of a request. Calls of the tool that were cut short are not in it.
func (s *Splice) Message() [][]byte {
	var parts [][]byte
	for _, p := range s.parts {
		if p.shown < 0 && (!p.done || !s.called()) || s.d.reply.forgets != nil && s.d.reply.forgets(p.raw) {
			continue
		}
		parts = append(parts, p.raw)
	}
	return s.d.reply.message(s, parts)
}

// inTurn returns a function that makes a message of a form of parts; none without parts.
func inTurn(form string) func(*Splice, [][]byte) [][]byte {
	return func(_ *Splice, parts [][]byte) [][]byte {
		if len(parts) == 0 {
			return nil
		}
		return [][]byte{rawjson.Append(nil, form, rawjson.Array(parts))}
	}
}

// keepParts keeps the parts of an answer that the client has.
func (s *Splice) keepParts() {
	for _, p := range s.parts {
		switch {
		case p.shown < 0:
		case p.as != nil:
			s.seen = append(s.seen, p.as)
		default:
			s.seen = append(s.seen, p.raw)
		}
	}
}

// Next begins the answer to another request, in which the calls of the tool are answered.
func (s *Splice) Next() {
	s.d.reply.keep(s)
	if s.usage != nil {
		s.usages = append(s.usages, s.usage)
	}
	s.rounds++
	s.parts, s.usage, s.stop, s.said, s.tail, s.over, s.begun, s.closed, s.rest = nil, nil, "", nil, nil, false, false, false, nil
}

// End returns the end of the answer that was held back, with the usage and the parts of all answers.
func (s *Splice) End() []byte {
	var out []byte
	for _, e := range s.tail {
		if s.frame == inWhole {
			out = append(out, s.d.reply.whole(s, e.data)...)
		} else {
			out = append(out, s.render(e, s.d.reply.last(s, e.data))...)
		}
	}
	if s.frame == inArray {
		out = append(out, s.close()...)
	}
	s.over, s.ended = false, true
	return out
}

// Failed returns the end of a stream whose next answer is an error of the vendor, with a status and a body. Without a
// stream the client gets that answer itself.
func (s *Splice) Failed(status int, body []byte) []byte {
	if s.frame == inFrames || s.d.reply.failed == nil {
		return failedFrame(status, body)
	}
	if o := rawjson.Field(body, "error"); !json.Valid(body) || !rawjson.IsObject(o) || len(o) == 0 {
		body = s.d.Refuse(status, "the vendor answered with status "+strconv.Itoa(status))
	}
	return s.d.reply.failed(s, body)
}

// comment is a comment in a stream of events.
const comment = ": ping\n\n"

// Ping returns an event that says nothing, for a stream in which the client waits.
func (s *Splice) Ping() []byte {
	if s.frame == inFrames {
		return s.d.reply.pinging
	}
	return []byte(s.d.reply.ping)
}

// A Call is a call of the gateway's tool.
type Call struct {
	ID        string // "" in APIs whose calls may have none
	Arguments []byte // JSON, as the model wrote it

	key  string // identifies it among others of its answer: its ID or, in APIs whose calls may have none, its name and content
	name string // of the function
}

// callIDs are the keys of the calls of a message in APIs whose calls have IDs.
func callIDs(_ *Dialect, m *Message) []string { return m.Calls }

// ours reports whether a part is a call of the tool.
func (s *Splice) ours(part []byte) bool {
	c, ok := s.d.tool.call(s.d, part)
	return ok && c.name == s.tool
}
