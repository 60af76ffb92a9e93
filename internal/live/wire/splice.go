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
	api    API
	tool   string
	left   int64 // bytes that may still come
	begun  bool
	frame  framing
	ended  bool   // the client has the end
	passes bool   // the rest is not looked at
	rest   []byte // the beginning of an event, or of a body

	listed int  // elements of an array that the client has
	gap    bool // one was left out
	closed bool // the array has ended
	crlf   bool // events end with CR LF

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

// ends are the reasons for the end of an answer that let the model have its calls answered.
var ends = map[API][]string{
	Messages: {"tool_use"}, Chat: {"tool_calls", "stop"}, Responses: {"completed"}, Gemini: {"STOP"},
	Converse: {"tool_use"},
}

// NewSplice returns a splice of answers, of together so many bytes, in which the gateway answers the calls of one tool.
func NewSplice(api API, tool string, most int64) *Splice {
	return &Splice{api: api, tool: tool, left: most}
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
	if s.frame != inWhole && (s.api == Chat || s.api == Gemini) && s.held() && s.stop != "" { // without "[DONE]"
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
		out = s.Failed(status, Refusal(s.api, status, "condense: the answer is longer than the gateway reads (serve.max_body)"))
	}
	s.passes, s.over, s.rest, s.parts, s.said, s.tail, s.seen = true, false, nil, nil, nil, nil, nil
	return out
}

// Over reports whether a complete answer has arrived whose end is held back, because it or an earlier one has calls
// of the tool: either answer them and call [Splice.Next], or send the end.
func (s *Splice) Over() bool { return s.over }

// Calls returns the calls of the tool in this answer.
func (s *Splice) Calls() []Call {
	var calls []Call
	if !s.called() {
		return nil
	}
	for _, p := range s.parts {
		if p.shown < 0 && p.done {
			id, arguments := callOf(s.api, p.raw)
			calls = append(calls, Call{id, arguments, keyOf(s.api, p.raw)})
		}
	}
	return calls
}

// Own reports whether the answer has calls that the client is to answer.
func (s *Splice) Own() bool {
	for _, p := range s.parts {
		if p.shown >= 0 && isCall(s.api, p.raw) {
			return true
		}
	}
	return false
}

// called reports whether the model stopped to have its calls answered.
func (s *Splice) called() bool { return slices.Contains(ends[s.api], s.stop) }

func (s *Splice) held() bool {
	return s.rounds > 0 || slices.ContainsFunc(s.parts, func(p *part) bool { return p.shown < 0 })
}

// Message returns the answer as messages of a request. Calls of the tool that were cut short are not in it.
func (s *Splice) Message() [][]byte {
	var parts [][]byte
	for _, p := range s.parts {
		if p.shown < 0 && (!p.done || !s.called()) {
			continue
		}
		if s.api == Responses && rawjson.Text(rawjson.Field(p.raw, "type")) == "reasoning" && rawjson.Text(rawjson.Field(p.raw, "encrypted_content")) == "" {
			continue // a vendor that stores nothing does not know it any more
		}
		if s.api == Gemini && rawjson.IsTrue(rawjson.Field(p.raw, "thought")) && !signed(p.raw) {
			continue // a summary for readers
		}
		parts = append(parts, p.raw)
	}
	switch {
	case s.api == Responses:
		return parts
	case (Marks(s.api) || s.api == Gemini) && len(parts) == 0:
		return nil
	case s.api == Gemini:
		return [][]byte{rawjson.Append(nil, `{"role":"model","parts":?}`, rawjson.Array(parts))}
	case Marks(s.api):
		return [][]byte{rawjson.Append(nil, `{"role":"assistant","content":?}`, rawjson.Array(parts))}
	}
	message := []byte(`{"role":"assistant","content":null}`)
	if s.said != nil {
		message = s.said.raw
	}
	if len(parts) > 0 {
		message = rawjson.SetField(slices.Clip(message), "tool_calls", rawjson.Array(parts))
	}
	return [][]byte{message}
}

// Next begins the answer to another request, in which the calls of the tool are answered.
func (s *Splice) Next() {
	for _, p := range s.parts {
		switch {
		case p.shown < 0 || s.api == Chat:
		case p.as != nil:
			s.seen = append(s.seen, p.as)
		default:
			s.seen = append(s.seen, p.raw)
		}
	}
	if s.usage != nil {
		s.usages = append(s.usages, s.usage)
	}
	if s.api == Gemini {
		s.spoken = s.spoken || slices.ContainsFunc(s.parts, func(p *part) bool { return isPlain(p.raw) })
	}
	if s.api == Chat && s.said != nil {
		s.spoken = s.spoken || rawjson.Text(rawjson.Field(s.said.raw, "content")) != ""
		s.seen = append(s.seen, s.said.raw)
	}
	s.rounds++
	s.parts, s.usage, s.stop, s.said, s.tail, s.over, s.begun, s.closed, s.rest = nil, nil, "", nil, nil, false, false, false, nil
}

// End returns the end of the answer that was held back, with the usage and the parts of all answers.
func (s *Splice) End() []byte {
	var out []byte
	for _, e := range s.tail {
		if s.frame == inWhole {
			out = append(out, s.whole(e.data)...)
		} else {
			out = append(out, s.render(e, s.last(e.data))...)
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
	if s.frame == inFrames {
		return failedFrame(status, body)
	}
	o := rawjson.Field(body, "error")
	if !json.Valid(body) || !rawjson.IsObject(o) || len(o) == 0 {
		body = Refusal(s.api, status, "the vendor answered with status "+strconv.Itoa(status))
		o = rawjson.Field(body, "error")
	}
	switch s.api {
	case Messages:
		return slices.Concat([]byte("event: error\ndata: "), oneLine(body), []byte("\n\n"))
	case Chat:
		return slices.Concat([]byte("data: "), oneLine(body), []byte("\n\n"))
	case Gemini:
		return slices.Concat(s.render(sseEvent{}, oneLine(body)), s.close())
	case Responses, Converse:
	}
	code := rawjson.Text(rawjson.Field(o, "code"))
	if code == "" {
		code = rawjson.Text(rawjson.Field(o, "type"))
	}
	data := rawjson.Append(nil, `{"type":"response.failed","sequence_number":?,"response":{"id":?,"object":"response","status":"failed","output":[],"error":{"code":?,"message":?}}}`,
		[]byte(strconv.Itoa(s.seq)), s.id, code, rawjson.Text(rawjson.Field(o, "message")))
	return slices.Concat([]byte("event: response.failed\ndata: "), data, []byte("\n\n"))
}

// Ping returns an event that says nothing, for a stream in which the client waits.
func (s *Splice) Ping() []byte {
	if s.frame == inFrames {
		return pingFrames[s.api]
	}
	switch s.api {
	case Messages:
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	case Gemini: // some of Google's clients take a comment for a broken stream
		return nil
	case Chat, Responses, Converse:
	}
	return []byte(": ping\n\n")
}
