package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Splice makes one answer for the client of one or more answers of the vendor, of which all but the last have calls of a
// tool that is the gateway's own. The client sees what the model said and its own calls, numbered as in one answer, and
// the end of the last one. As long as there is no such call, everything passes as it came.
//
// The answers are written to it one after the other, streamed or not; a new one begins with [Splice.Next]. It is not safe for
// concurrent use.
type Splice struct {
	api    API
	tool   string
	begun  bool
	stream bool
	ended  bool   // the client has the end
	rest   []byte // the beginning of an event, or what has come of a body

	rounds int  // that are over, all of them with calls of the tool
	shown  int  // blocks, calls or items that the client has seen
	spoken bool // text of the Chat API
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

// A part is a block of content, a call or an item, as it is put together.
type part struct {
	at    int // the vendor's index
	shown int // the client's, -1 for a call of the tool
	raw   []byte
	texts map[string][]byte // strings of raw that come in pieces: the inside of their quotes
	input []byte            // the same, of the JSON that is the input of a call
	done  bool
}

// A Call is a call of the gateway's tool.
type Call struct {
	ID        string
	Arguments []byte // JSON, as the model wrote it
}

// NewSplice returns a splice of answers in which the gateway answers the calls of one tool.
func NewSplice(api API, tool string) *Splice { return &Splice{api: api, tool: tool} }

// Write reads the next bytes of an answer and returns those for the client.
func (s *Splice) Write(p []byte) []byte {
	s.rest = append(s.rest, p...)
	if !s.begun {
		head := bytes.TrimLeft(s.rest, " \t\r\n\xef\xbb\xbf")
		if len(head) == 0 {
			return nil
		}
		s.begun, s.stream = true, strings.IndexByte("{[<", head[0]) < 0
	}
	if !s.stream {
		return nil
	}
	var out []byte
	at := 0
	for {
		n := eventEnd(s.rest[at:])
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
	case s.ended:
		return nil
	case !s.stream:
		if s.body(rest); !s.over {
			return rest
		}
		s.tail = []sseEvent{{data: rest}}
	case len(rest) > 0 && s.over:
	case len(rest) > 0 && bytes.HasSuffix(rest, []byte("\n")): // the vendor left out the last empty line
		out = s.event(nil, sseEvent{raw: rest})
	default:
		out = rest
	}
	if s.stream && s.api == Chat && s.held() && s.stop != "" { // without [DONE]
		s.over = true
	}
	return out
}

// Over reports whether an answer has arrived whole whose end is held back, because it or one before it has calls of the tool: either
// these are answered and [Splice.Next] is called, or the end is sent.
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
			calls = append(calls, Call{id, arguments})
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
func (s *Splice) called() bool {
	return s.stop == "tool_use" || s.stop == "tool_calls" || s.stop == "completed" || s.api == Chat && s.stop == "stop"
}

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
		parts = append(parts, p.raw)
	}
	switch {
	case s.api == Responses:
		return parts
	case s.api == Messages && len(parts) == 0:
		return nil
	case s.api == Messages:
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
		if p.shown >= 0 && s.api != Chat {
			s.seen = append(s.seen, p.raw)
		}
	}
	if s.usage != nil {
		s.usages = append(s.usages, s.usage)
	}
	if s.api == Chat && s.said != nil {
		s.spoken = s.spoken || rawjson.Text(rawjson.Field(s.said.raw, "content")) != ""
		s.seen = append(s.seen, s.said.raw)
	}
	s.rounds++
	s.parts, s.usage, s.stop, s.said, s.tail, s.over, s.begun, s.rest = nil, nil, "", nil, nil, false, false, nil
}

// End returns the end of the answer that was held back, as that of the whole.
func (s *Splice) End() []byte {
	var out []byte
	for _, e := range s.tail {
		if s.stream {
			out = append(out, e.with(s.last(e.data))...)
		} else {
			out = append(out, s.whole(e.data)...)
		}
	}
	s.over, s.ended = false, true
	return out
}

// Failed returns the end of a stream whose next answer is an error of the vendor: a status and its body. Without a stream the client
// gets that answer itself.
func (s *Splice) Failed(status int, body []byte) []byte {
	o := rawjson.Field(body, "error")
	if !json.Valid(body) || !rawjson.IsObject(o) {
		body = Refusal(s.api, status, "the vendor answered with status "+strconv.Itoa(status))
		o = rawjson.Field(body, "error")
	}
	switch s.api {
	case Messages:
		return slices.Concat([]byte("event: error\ndata: "), oneLine(body), []byte("\n\n"))
	case Chat:
		return slices.Concat([]byte("data: "), oneLine(body), []byte("\n\n"))
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
	if s.api == Messages {
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}
	return []byte(": ping\n\n")
}

// Stream reports whether the answer is a stream of events.
func (s *Splice) Stream() bool { return s.stream }

func oneLine(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return []byte("{}")
	}
	return b.Bytes()
}

// An sseEvent is an event of a stream.
type sseEvent struct{ raw, data []byte }

// read fills in the data.
func (e *sseEvent) read() {
	for line := range bytes.Lines(bytes.ReplaceAll(e.raw, []byte("\r"), []byte("\n"))) {
		if value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("data:")); ok {
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		}
	}
}

// with returns the event with other data; nil is none.
func (e *sseEvent) with(data []byte) []byte {
	if data == nil {
		return nil
	}
	if bytes.Equal(data, e.data) {
		return e.raw
	}
	var out []byte
	for line := range bytes.Lines(bytes.ReplaceAll(e.raw, []byte("\r"), []byte("\n"))) {
		if len(bytes.TrimSpace(line)) > 0 && !bytes.HasPrefix(line, []byte("data:")) {
			out = append(out, line...)
		}
	}
	return slices.Concat(out, []byte("data: "), data, []byte("\n\n"))
}

// eventEnd returns the length of the first event of data with the empty line after it; 0 if it has not ended.
func eventEnd(data []byte) int {
	for i := 0; i < len(data); {
		n := lineEnd(data[i:])
		end := i + n
		if end == len(data) {
			return 0
		}
		if data[end] == '\r' && end+1 == len(data) && n > 0 {
			return 0
		}
		next := end + 1
		if data[end] == '\r' && next < len(data) && data[next] == '\n' {
			next++
		}
		if n == 0 {
			return next
		}
		i = next
	}
	return 0
}

// event reads an event and appends what the client gets of it.
func (s *Splice) event(out []byte, e sseEvent) []byte {
	e.read()
	if s.over || s.ended || e.data == nil {
		if s.over || s.ended {
			return out // nothing follows the end
		}
		return append(out, e.raw...)
	}
	var data []byte
	hold := false
	switch s.api {
	case Messages:
		data, hold = s.messages(e.data)
	case Chat:
		if data, hold = s.chunk(e.data); hold {
			if early, late := parted(data); early != nil {
				out = append(out, e.with(early)...)
				data = late
			}
		}
	case Responses:
		data, hold = s.response(e.data)
	}
	if hold {
		s.tail = append(s.tail, sseEvent{e.with(data), data})
		return out
	}
	return append(out, e.with(data)...)
}

// set replaces a value inside of an object.
func set(raw, value []byte, path ...string) []byte {
	raw = slices.Clip(raw)
	if len(path) == 1 {
		return rawjson.SetField(raw, path[0], value)
	}
	inner := rawjson.Field(raw, path[0])
	if inner == nil {
		inner = []byte("{}")
	}
	return rawjson.SetField(raw, path[0], set(slices.Clone(inner), value, path[1:]...))
}

func number(n int) []byte { return []byte(strconv.Itoa(n)) }

// messages reads an event of the Messages API. It returns what the client gets, nil for nothing, and whether it is held back.
func (s *Splice) messages(data []byte) ([]byte, bool) {
	switch rawjson.Text(rawjson.Field(data, "type")) {
	case "message_start":
		s.usage = overlay(s.usage, rawjson.Field(rawjson.Field(data, "message"), "usage"))
		if s.rounds > 0 {
			return nil, false
		}
	case "content_block_start":
		block := rawjson.Field(data, "content_block")
		s.add(rawjson.Int(rawjson.Field(data, "index")), block, rawjson.Text(rawjson.Field(block, "type")) == "tool_use" && rawjson.Text(rawjson.Field(block, "name")) == s.tool)
		return s.indexed(data, "index"), false
	case "content_block_delta":
		if p := s.part(rawjson.Int(rawjson.Field(data, "index"))); p != nil {
			p.grow(rawjson.Field(data, "delta"))
		}
		return s.indexed(data, "index"), false
	case "content_block_stop":
		if p := s.part(rawjson.Int(rawjson.Field(data, "index"))); p != nil {
			p.finish()
		}
		return s.indexed(data, "index"), false
	case "message_delta":
		s.usage = overlay(s.usage, rawjson.Field(data, "usage"))
		s.stop = rawjson.Text(rawjson.Field(rawjson.Field(data, "delta"), "stop_reason"))
		return data, s.held()
	case "message_stop":
		s.over = s.held()
		return data, s.over
	}
	return data, false
}

// add begins a part.
func (s *Splice) add(at int, raw []byte, ours bool) *part {
	p := &part{at: at, shown: -1, raw: slices.Clone(raw)}
	if !ours {
		p.shown = s.shown
		s.shown++
	}
	s.parts = append(s.parts, p)
	return p
}

func (s *Splice) part(at int) *part {
	for _, p := range slices.Backward(s.parts) {
		if p.at == at {
			return p
		}
	}
	return nil
}

// indexed returns data with the client's index in place of the vendor's; nil if it is about a call of the tool.
func (s *Splice) indexed(data []byte, name string) []byte {
	at := rawjson.Int(rawjson.Field(data, name))
	switch p := s.part(at); {
	case p == nil || p.shown == at:
		return data
	case p.shown < 0:
		return nil
	default:
		return set(data, number(p.shown), name)
	}
}

// grow adds a delta to the part: what is a string is a piece of one.
func (p *part) grow(delta []byte) {
	for key, value := range rawjson.Fields(delta) {
		switch name := string(key); {
		case name == "type":
		case name == "partial_json":
			p.input = append(p.input, inside(value)...)
		case name == "citation":
			list := slices.Collect(rawjson.Elements(rawjson.Field(p.raw, "citations")))
			p.raw = set(p.raw, rawjson.Array(append(list, value)), "citations")
		case rawjson.IsString(value):
			p.append(name, value)
		default:
			p.raw = set(p.raw, value, name)
		}
	}
}

// append adds to a string of the part.
func (p *part) append(name string, value []byte) {
	if p.texts == nil {
		p.texts = map[string][]byte{}
	}
	text, ok := p.texts[name]
	if was := rawjson.Field(p.raw, name); !ok && rawjson.IsString(was) {
		text = slices.Clone(inside(was))
	}
	p.texts[name] = append(text, inside(value)...)
}

// inside returns the inside of the quotes of a string.
func inside(raw []byte) []byte {
	if !rawjson.IsString(raw) || len(raw) < 2 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

func quoted(inside []byte) []byte { return slices.Concat([]byte{'"'}, inside, []byte{'"'}) }

// finish puts the part together. A call whose input is no JSON is not done.
func (p *part) finish() {
	for name, text := range p.texts {
		p.raw = set(p.raw, quoted(text), name)
	}
	p.texts = nil
	if len(p.input) > 0 {
		input := []byte(rawjson.Unquote(quoted(p.input)))
		if !json.Valid(input) || !rawjson.IsObject(bytes.TrimSpace(input)) {
			return
		}
		p.raw, p.input = set(p.raw, oneLine(input), "input"), nil
	}
	p.done = true
}

// chunk reads a chunk of the Chat API, of which the first choice counts.
func (s *Splice) chunk(data []byte) ([]byte, bool) {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		s.over = s.held()
		return data, s.over
	}
	if u := rawjson.Field(data, "usage"); rawjson.IsObject(u) {
		s.usage = slices.Clone(u)
	}
	if id := rawjson.Field(data, "id"); s.rounds == 0 && s.id == "" {
		s.id = rawjson.Text(id)
	} else if s.rounds > 0 && id != nil && s.id != "" {
		data = set(data, rawjson.AppendQuote(nil, s.id), "id")
	}
	var choice []byte
	for choice = range rawjson.Elements(rawjson.Field(data, "choices")) {
		break
	}
	if choice == nil {
		return data, s.held() && s.stop != ""
	}
	delta := rawjson.Field(choice, "delta")
	shown := s.grow(delta)
	stop := rawjson.Text(rawjson.Field(choice, "finish_reason"))
	if stop != "" {
		s.stop = stop
		s.said.finish()
		for _, p := range s.parts {
			if p.done = true; rawjson.Field(p.raw, "function") != nil {
				p.raw = set(p.raw, quoted(p.input), "function", "arguments")
			}
		}
	} else if len(shown) != len(delta) && says(delta) && !says(shown) || s.rounds > 0 && !says(shown) {
		return nil, false
	}
	if !bytes.Equal(shown, delta) {
		data = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "delta", shown))
	}
	return data, s.stop != "" && s.held()
}

// says reports whether a delta has more than a role and empty values.
func says(delta []byte) bool {
	for name, value := range rawjson.Fields(delta) {
		if string(name) != "role" && !rawjson.IsNull(value) && string(value) != `""` && !isEmptyArray(value) {
			return true
		}
	}
	return false
}

// parted returns the last chunk of a choice as one with what it says and one with how it ends, or nil if it says nothing.
func parted(data []byte) (early, late []byte) {
	for choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		if !says(rawjson.Field(choice, "delta")) {
			return nil, data
		}
		early = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "finish_reason", []byte("null")))
		late = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "delta", []byte("{}")))
		return early, late
	}
	return nil, data
}

// grow adds a delta to the message of the Chat API and returns what the client gets of it.
func (s *Splice) grow(delta []byte) []byte {
	shown := delta
	if s.said == nil {
		s.said = &part{raw: []byte(`{"role":"assistant","content":null}`)}
	}
	for key, value := range rawjson.Fields(delta) {
		switch name := string(key); {
		case name == "role":
			if s.rounds > 0 {
				shown = rawjson.CutField(shown, name)
			}
		case name == "tool_calls":
			shown = s.growCalls(shown, value)
		case rawjson.IsString(value):
			if len(inside(value)) == 0 {
				continue
			}
			if name == "content" && s.spoken && len(s.said.texts[name]) == 0 {
				shown = set(shown, quoted(slices.Concat([]byte(`\n\n`), inside(value))), name)
			}
			s.said.append(name, value)
		case rawjson.IsArray(value):
			was := rawjson.Field(s.said.raw, name)
			s.said.raw = set(s.said.raw, rawjson.Array(append(slices.Collect(rawjson.Elements(was)), slices.Collect(rawjson.Elements(value))...)), name)
		case !rawjson.IsNull(value):
			s.said.raw = set(s.said.raw, value, name)
		}
	}
	return shown
}

// growCalls adds pieces of calls, and returns the delta without those of the tool.
func (s *Splice) growCalls(delta, calls []byte) []byte {
	var shown [][]byte
	same := true
	for c := range rawjson.Elements(calls) {
		at, f := len(s.parts)-1, rawjson.Field(c, "function")
		if i := rawjson.Field(c, "index"); i != nil {
			at = rawjson.Int(i)
		} else if rawjson.Text(rawjson.Field(c, "id")) != "" {
			at++
		}
		p := s.part(at)
		if p == nil {
			p = s.add(at, rawjson.CutField(slices.Clone(c), "index"), rawjson.Text(rawjson.Field(f, "name")) == s.tool)
		}
		p.growCall(c, f)
		switch {
		case p.shown < 0:
			same = false
		case p.shown != at:
			same = false
			shown = append(shown, set(slices.Clone(c), number(p.shown), "index"))
		default:
			shown = append(shown, c)
		}
	}
	switch {
	case same:
		return delta
	case len(shown) == 0:
		return rawjson.CutField(delta, "tool_calls")
	}
	return set(delta, rawjson.Array(shown), "tool_calls")
}

// growCall adds a piece to a call of the Chat API.
func (p *part) growCall(c, f []byte) {
	p.input = append(p.input, inside(rawjson.Field(f, "arguments"))...)
	for key, value := range rawjson.Fields(c) {
		if name := string(key); name != "index" && name != "function" && !rawjson.IsNull(value) && string(value) != `""` {
			p.raw = set(p.raw, value, name)
		}
	}
}

// response reads an event of the Responses API.
func (s *Splice) response(data []byte) ([]byte, bool) {
	kind := rawjson.Text(rawjson.Field(data, "type"))
	item, at := rawjson.Field(data, "item"), rawjson.Int(rawjson.Field(data, "output_index"))
	hold := false
	switch kind {
	case "response.created", "response.in_progress", "response.queued":
		if s.rounds > 0 {
			return nil, false
		}
		s.id = rawjson.Text(rawjson.Field(rawjson.Field(data, "response"), "id"))
	case "response.output_item.added":
		s.add(at, item, s.ours(item))
	case "response.output_item.done":
		p := s.part(at)
		if p == nil {
			p = s.add(at, item, s.ours(item))
		}
		p.raw, p.done = slices.Clone(item), true
	case "response.completed", "response.incomplete":
		r := rawjson.Field(data, "response")
		s.usage, s.stop = slices.Clone(rawjson.Field(r, "usage")), strings.TrimPrefix(kind, "response.")
		hold = s.held()
		s.over = hold
	}
	if rawjson.Field(data, "output_index") != nil {
		if data = s.indexed(data, "output_index"); data == nil {
			return nil, false
		}
	}
	return s.sequenced(data), hold
}

// sequenced gives an event its number.
func (s *Splice) sequenced(data []byte) []byte {
	if n := rawjson.Field(data, "sequence_number"); n != nil {
		if rawjson.Int(n) != s.seq && s.held() {
			data = set(data, number(s.seq), "sequence_number")
		} else if !s.held() {
			s.seq = rawjson.Int(n)
		}
		s.seq++
	}
	return data
}

func (s *Splice) ours(item []byte) bool {
	return rawjson.Text(rawjson.Field(item, "type")) == "function_call" && rawjson.Text(rawjson.Field(item, "name")) == s.tool && rawjson.Field(item, "namespace") == nil
}

// last returns an event of the end as that of the whole stream.
func (s *Splice) last(data []byte) []byte {
	switch s.api {
	case Messages:
		if rawjson.Text(rawjson.Field(data, "type")) != "message_delta" {
			return data
		}
		if s.stop == "tool_use" && !s.Own() {
			data = set(data, []byte(`"end_turn"`), "delta", "stop_reason")
		}
		if s.rounds > 0 {
			data = set(data, s.sum(), "usage")
		}
		return data
	case Chat:
		if rawjson.IsObject(rawjson.Field(data, "usage")) && s.rounds > 0 {
			data = set(data, s.sum(), "usage")
		}
		for choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
			if rawjson.Text(rawjson.Field(choice, "finish_reason")) == "tool_calls" && !s.Own() {
				data = rawjson.ReplaceValue(data, choice, rawjson.SetField(slices.Clone(choice), "finish_reason", []byte(`"stop"`)))
			}
			break
		}
		return data
	}
	return set(data, s.finished(rawjson.Field(data, "response")), "response")
}

// finished returns the response at the end as that of the whole.
func (s *Splice) finished(r []byte) []byte {
	r = slices.Clone(r)
	items := slices.Clone(s.seen)
	for _, p := range s.parts {
		if p.shown >= 0 {
			items = append(items, p.raw)
		}
	}
	if s.id != "" {
		r = set(r, rawjson.AppendQuote(nil, s.id), "id")
	}
	if s.rounds > 0 && s.usage != nil {
		r = set(r, s.sum(), "usage")
	}
	return set(r, rawjson.Array(items), "output")
}

// body reads an answer that is no stream.
func (s *Splice) body(body []byte) {
	if !json.Valid(body) || !rawjson.IsObject(bytes.TrimSpace(body)) || rawjson.IsObject(rawjson.Field(body, "error")) {
		return
	}
	if u := rawjson.Field(body, "usage"); rawjson.IsObject(u) {
		s.usage = slices.Clone(u)
	}
	if s.rounds == 0 {
		s.id = rawjson.Text(rawjson.Field(body, "id"))
	}
	var parts []byte
	switch s.api {
	case Messages:
		parts, s.stop = rawjson.Field(body, "content"), rawjson.Text(rawjson.Field(body, "stop_reason"))
	case Responses:
		parts, s.stop = rawjson.Field(body, "output"), rawjson.Text(rawjson.Field(body, "status"))
	case Chat:
		for choice := range rawjson.Elements(rawjson.Field(body, "choices")) {
			message := rawjson.Field(choice, "message")
			parts, s.stop = rawjson.Field(message, "tool_calls"), rawjson.Text(rawjson.Field(choice, "finish_reason"))
			s.said = &part{raw: rawjson.CutField(slices.Clone(message), "tool_calls")}
			break
		}
	}
	for raw := range rawjson.Elements(parts) {
		name := rawjson.Text(rawjson.Field(raw, "name"))
		ours := s.api == Messages && name == s.tool && rawjson.Text(rawjson.Field(raw, "type")) == "tool_use" ||
			s.api == Chat && rawjson.Text(rawjson.Field(rawjson.Field(raw, "function"), "name")) == s.tool || s.api == Responses && s.ours(raw)
		s.add(len(s.parts), raw, ours).done = true
	}
	s.over = s.held()
}

// whole returns the last body as that of the whole answer.
func (s *Splice) whole(body []byte) []byte {
	if s.rounds > 0 && s.usage != nil && s.api != Responses {
		body = set(slices.Clone(body), s.sum(), "usage")
	}
	if s.id != "" {
		body = set(slices.Clone(body), rawjson.AppendQuote(nil, s.id), "id")
	}
	var kept [][]byte
	for _, p := range s.parts {
		if p.shown >= 0 {
			kept = append(kept, p.raw)
		}
	}
	stop := s.called() && !s.Own()
	switch s.api {
	case Messages:
		if stop && s.stop == "tool_use" {
			body = set(body, []byte(`"end_turn"`), "stop_reason")
		}
		return set(body, rawjson.Array(append(slices.Clone(s.seen), kept...)), "content")
	case Responses:
		return s.finished(body)
	}
	for choice := range rawjson.Elements(rawjson.Field(body, "choices")) {
		message := slices.Clone(s.said.raw)
		for _, before := range slices.Backward(s.seen) {
			for _, name := range []string{"content", "reasoning_content", "reasoning"} {
				a, b := inside(rawjson.Field(before, name)), inside(rawjson.Field(message, name))
				if len(a) > 0 && len(b) > 0 {
					a = slices.Concat(a, []byte(`\n\n`))
				}
				if len(a) > 0 {
					message = set(message, quoted(slices.Concat(a, b)), name)
				}
			}
		}
		if len(kept) > 0 {
			message = set(message, rawjson.Array(kept), "tool_calls")
		}
		changed := set(slices.Clone(choice), message, "message")
		if stop && s.stop == "tool_calls" {
			changed = set(changed, []byte(`"stop"`), "finish_reason")
		}
		return rawjson.ReplaceValue(body, choice, changed)
	}
	return body
}

// sum returns the usage of all answers. The Messages API says next to the sum what each took, as it does for steps of its own:
// the last of them is the size of the conversation.
func (s *Splice) sum() []byte {
	all := append(slices.Clone(s.usages), s.usage)
	total := all[0]
	for _, u := range all[1:] {
		total = plus(total, u)
	}
	if s.api != Messages || rawjson.Field(total, "iterations") != nil {
		return total
	}
	var steps [][]byte
	for _, u := range all {
		step := []byte(`{"type":"message"}`)
		for _, name := range []string{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			if n := rawjson.Field(u, name); n != nil {
				step = set(step, n, name)
			}
		}
		steps = append(steps, step)
	}
	return set(total, rawjson.Array(steps), "iterations")
}

// plus adds the numbers of two objects; of other values, the second counts.
func plus(a, b []byte) []byte {
	if !rawjson.IsObject(a) {
		return b
	}
	out := slices.Clone(a)
	for key, value := range rawjson.Fields(b) {
		name := string(key)
		was := rawjson.Field(a, name)
		switch {
		case rawjson.IsNull(value):
			continue
		case rawjson.IsObject(value):
			value = plus(was, value)
		case rawjson.IsArray(value):
			value = rawjson.Array(append(slices.Collect(rawjson.Elements(was)), slices.Collect(rawjson.Elements(value))...))
		case len(value) > 0 && value[0] >= '0' && value[0] <= '9':
			value = number(rawjson.Int(was) + rawjson.Int(value))
		}
		out = set(out, value, name)
	}
	return out
}

// overlay returns the members of a with those of b over them.
func overlay(a, b []byte) []byte {
	if !rawjson.IsObject(b) {
		return a
	}
	if a == nil {
		return slices.Clone(b)
	}
	for name, value := range rawjson.Fields(b) {
		if !rawjson.IsNull(value) {
			a = set(slices.Clone(a), value, string(name))
		}
	}
	return a
}

// isCall reports whether a part is a call that a client answers.
func isCall(api API, raw []byte) bool {
	kind := rawjson.Text(rawjson.Field(raw, "type"))
	return api == Chat || api == Messages && kind == "tool_use" || api == Responses && strings.HasSuffix(kind, "_call") && rawjson.Field(raw, "call_id") != nil
}

// callOf returns the ID and the arguments of a call.
func callOf(api API, raw []byte) (id string, arguments []byte) {
	switch api {
	case Messages:
		return rawjson.Text(rawjson.Field(raw, "id")), rawjson.Field(raw, "input")
	case Chat:
		return rawjson.Text(rawjson.Field(raw, "id")), []byte(rawjson.Text(rawjson.Field(rawjson.Field(raw, "function"), "arguments")))
	}
	return rawjson.Text(rawjson.Field(raw, "call_id")), []byte(rawjson.Text(rawjson.Field(raw, "arguments")))
}
