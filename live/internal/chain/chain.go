// Package chain remembers the history behind the IDs of responses. In OpenAI's Responses API a request can name an earlier
// response and send only the new items, because the vendor stores the others. A [Request] is such a request together
// with its whole history, as a client without an ID would send it. It selects the items of a view that the vendor lacks.
//
// The package does no I/O. [Histories] may be used concurrently, a Request may not.
package chain

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A turn is a request and its answer.
type turn struct {
	before *turn
	own    [][]byte // new items of the request, then those of the answer
	length int      // items of the history
	vendor state
	of     *conversation
	// unknown means that a request without a known history, or another one than this turn, has got an answer with the same ID.
	unknown bool
}

// A state is a history as the vendor has it, which a view may have replaced and calls of the gateway's own tool extended.
type state struct {
	id    string // of its last response
	items int
	sum   uint64 // of the items
}

// history returns the items up to the end of the turn, as the client knows them.
func (t *turn) history() [][]byte {
	if t == nil {
		return nil
	}
	items := make([][]byte, t.length)
	for end := t.length; t != nil; t = t.before {
		end -= copy(items[end-len(t.own):], t.own)
	}
	return items
}

// A conversation has all turns since a request without an ID. It is forgotten as a whole.
type conversation struct {
	owner string
	ids   []key
	bytes int64
	place *list.Element
}

type key struct{ owner, id string }

// Histories holds the histories of the most recently continued conversations, up to a number of bytes.
type Histories struct {
	most, longest int64 // bytes: of all conversations, and of one

	mu     sync.Mutex
	turns  map[key]*turn
	recent *list.List // of *conversation, the latest first
	bytes  int64
	owned  map[string]int64 // bytes by owner
	seed   maphash.Seed
}

// New returns histories with so many bytes in all, of which an owner can have a half, also with one conversation.
func New(most int64) *Histories {
	const share = 2
	return &Histories{
		most: most, longest: most / share, turns: map[key]*turn{}, recent: list.New(), owned: map[string]int64{}, seed: maphash.MakeSeed(),
	}
}

// overhead is an estimate of the memory of a turn besides its items, and of an item besides its text.
const overhead = 256

// add remembers a turn.
func (h *Histories) add(k key, t *turn) {
	size := plain.Sum(t.own, func(item []byte) int64 { return int64(len(item)) + overhead/8 })
	size += overhead + int64(len(k.id))
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.turns[k]; old != nil {
		if old.unknown || !t.unknown && old.before == t.before && slices.EqualFunc(old.own, t.own, bytes.Equal) {
			return
		}
		t = &turn{unknown: true} // the server gives an ID twice: nobody can say which history a request means
	}
	if t.before != nil {
		t.of = t.before.of
	}
	if t.of == nil || t.of.place == nil { // the conversation is new, or was forgotten during the answer
		if t.before != nil {
			return
		}
		t.of = &conversation{owner: k.owner}
		t.of.place = h.recent.PushFront(t.of)
	}
	c := t.of
	h.turns[k] = t
	c.ids = append(c.ids, k)
	c.bytes += size
	h.bytes += size
	h.owned[k.owner] += size
	h.recent.MoveToFront(c.place)
	if c.bytes > h.longest {
		h.forget(c)
	}
	for e := h.recent.Back(); e != nil && (h.bytes > h.most || h.owned[k.owner] > h.longest); {
		old, _ := e.Value.(*conversation)
		e = e.Prev()
		if h.bytes > h.most || old.owner == k.owner {
			h.forget(old)
		}
	}
}

func (h *Histories) forget(c *conversation) {
	for _, k := range c.ids {
		if t := h.turns[k]; t != nil && t.of == c {
			delete(h.turns, k)
		}
	}
	h.bytes -= c.bytes
	if h.owned[c.owner] -= c.bytes; h.owned[c.owner] <= 0 {
		delete(h.owned, c.owner)
	}
	h.recent.Remove(c.place)
	c.place = nil
}

// A Request is a request with a known history.
type Request struct {
	// Raw is the body of the client's request; Whole is the body with the whole history in place of the ID.
	Raw, Whole []byte
	histories  *Histories
	owner      string
	before     *turn // nil for the first of a conversation
	own        [][]byte
	vendor     state // what the next request can continue
	sent       int   // items of the last view
	sum        maphash.Hash
}

// Open returns the request with a body from owner, which must stand for a proof of access to the answers, such as the hash of
// a credential: a history is continued for its owner only. Known is false if the history is unknown or the body malformed, and
// for clients that send answers back over HTTP, because they never name a response. Frame marks the body as a client's
// event on a WebSocket, whose type is not part of Whole.
func (h *Histories) Open(owner string, body []byte, frame bool) (r *Request, known bool) {
	r = &Request{Raw: body, histories: h, owner: owner}
	if id := Previous(body); id != "" {
		h.mu.Lock()
		if r.before = h.turns[key{owner, id}]; r.before != nil {
			h.recent.MoveToFront(r.before.of.place)
		}
		h.mu.Unlock()
		if r.before == nil || r.before.unknown {
			return nil, false
		}
		r.vendor = r.before.vendor
	}
	parsed, err := wire.Parse(wire.Responses, body, nil)
	if err != nil {
		return nil, false
	}
	r.Whole, r.own = body, wire.Input(body)
	if elsewhere(body, r.own) || r.before == nil && !frame && parsed.Answered() {
		return nil, false
	}
	if r.before != nil {
		all := append(r.before.history(), r.own...)
		if r.Whole = parsed.With(all); rawjson.Field(body, "input") == nil {
			r.Whole = rawjson.SetField(body, "input", rawjson.Array(all))
		}
		r.Whole = rawjson.CutField(trimmed(r.Whole), "previous_response_id")
	}
	if frame {
		r.Whole = rawjson.CutField(trimmed(r.Whole), "type")
	}
	for i := range r.own {
		r.own[i] = bytes.Clone(r.own[i]) // the body is not kept
	}
	return r, true
}

// elsewhere reports whether a request has items that only the vendor knows.
func elsewhere(body []byte, items [][]byte) bool {
	for _, name := range []string{"prompt", "response"} { // a stored prompt; a request in the form of another API
		if v := rawjson.Field(body, name); v != nil && !rawjson.IsNull(v) {
			return true
		}
	}
	return slices.ContainsFunc(items, func(item []byte) bool { return rawjson.Text(rawjson.Field(item, "type")) == "item_reference" })
}

// trimmed returns body without the space around it, cut to its length.
func trimmed(body []byte) []byte { return slices.Clip(bytes.TrimSpace(body)) }

// Previous returns the ID that a request names; empty if none.
func Previous(body []byte) string { return rawjson.Text(rawjson.Field(body, "previous_response_id")) }

// Sending returns what to send for body, which is Raw, or Whole with a view in place of its messages: Raw itself if it
// means the same to the vendor; else body, without the items that the vendor has if these are the beginning of the view
// (continues).
func (r *Request) Sending(body []byte) (out []byte, continues bool) {
	if bytes.Equal(body, r.Raw) {
		body = r.Whole
	}
	items := wire.Input(body)
	rest := items
	r.sum = maphash.Hash{}
	r.sum.SetSeed(r.histories.seed)
	r.sent = len(items)
	for i, item := range items {
		continues = continues || r.reached(i)
		add(&r.sum, item)
	}
	if continues = continues || r.reached(len(items)); continues {
		rest = items[r.vendor.items:]
	}
	whole := r.vendor.id == "" || continues
	before, after := outside(body)
	head, tail := outside(r.Whole)
	same := bytes.Equal(before, head) && bytes.Equal(after, tail)
	if whole && r.vendor.id == Previous(r.Raw) && same && slices.EqualFunc(rest, r.own, bytes.Equal) {
		return r.Raw, continues
	}
	if !continues {
		return body, false
	}
	out = rawjson.SetField(body, "input", rawjson.Array(rest))
	return rawjson.SetField(out, "previous_response_id", rawjson.AppendQuote(nil, r.vendor.id)), true
}

// reached reports whether the first n items of the view, which have been added to the sum, are all that the vendor has.
func (r *Request) reached(n int) bool {
	return r.vendor.id != "" && n == r.vendor.items && r.sum.Sum64() == r.vendor.sum
}

func outside(body []byte) (before, after []byte) {
	input := rawjson.Field(body, "input")
	if input == nil {
		return body, nil
	}
	at := rawjson.Offset(body, input)
	return body[:at], body[at+len(input):]
}

func add(sum *maphash.Hash, item []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(item)))
	_, _ = sum.Write(size[:])
	_, _ = sum.Write(item)
}

// Heard notes the vendor's answer to what [Request.Sending] returned last: a further request for the same answer to the
// client, and the client's next one, continue it.
func (r *Request) Heard(a *Answer) {
	id, output := a.Response()
	if id == "" {
		return
	}
	for _, item := range output {
		add(&r.sum, item)
	}
	r.vendor = state{id, r.sent + len(output), r.sum.Sum64()}
}

// Answered remembers the answer that the client got, under the ID by which it will continue that.
func (r *Request) Answered(a *Answer) {
	id, output := a.Response()
	if id == "" {
		r.Lost(a)
		return
	}
	t := &turn{before: r.before, own: slices.Concat(r.own, output), vendor: r.vendor}
	t.length = len(t.own)
	if r.before != nil {
		t.length += r.before.length
	}
	r.histories.add(key{r.owner, id}, t)
}

// Lost notes that the client goes on from an answer with more than the answer says.
func (r *Request) Lost(a *Answer) { r.histories.Unknown(r.owner, a) }

// Unknown notes that an answer for owner belongs to a history that is not known, so that no request continues its ID: a
// server may number the responses of each connection.
func (h *Histories) Unknown(owner string, a *Answer) {
	a.Response() // reads it
	if a.any != "" {
		h.add(key{owner, a.any}, &turn{unknown: true})
	}
}

// An Answer collects the items of an answer of the Responses API that is written to it, streamed or not.
type Answer struct {
	most   int64 // bytes that are kept
	kept   int64
	line   []byte // the part of a line, or of an answer that is no stream
	event  []byte // the data of the lines of an event
	begun  bool
	stream bool
	over   bool // too large
	id     string
	any    string // the ID, also of an answer that is not complete
	items  [][]byte
}

// NewAnswer returns a collector of at most so many bytes; of a larger answer it keeps nothing.
func NewAnswer(most int64) *Answer { return &Answer{most: most} }

// Write reads the next bytes. It never fails.
func (a *Answer) Write(p []byte) (int, error) {
	n := len(p)
	if !a.begun {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 {
			return n, nil
		}
		a.begun, a.stream = true, p[0] != '{'
	}
	for len(p) > 0 && !a.over {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 || !a.stream {
			a.line = append(a.line, p...)
			a.over = a.kept+int64(len(a.line)+len(a.event)) > a.most
			break
		}
		a.readLine(append(a.line, p[:end-1]...))
		a.line, p = a.line[:0], p[end:]
	}
	if a.over {
		a.line, a.event, a.items = nil, nil, nil
	}
	return n, nil
}

// readLine reads a line of a stream. An empty one ends an event.
func (a *Answer) readLine(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		a.event = append(append(a.event, data...), '\n')
	} else if len(line) == 0 && len(a.event) > 0 {
		a.read(a.event)
		a.event = a.event[:0]
	}
}

// read reads an event.
func (a *Answer) read(event []byte) {
	if a.any == "" {
		a.any = rawjson.Text(rawjson.Field(rawjson.Field(event, "response"), "id"))
	}
	switch rawjson.Text(rawjson.Field(event, "type")) {
	case "response.output_item.done":
		if item := asInput(rawjson.Field(event, "item")); item != nil {
			a.items = append(a.items, item)
			a.kept += int64(len(item))
		}
	case "response.completed", "response.incomplete":
		a.end(rawjson.Field(event, "response"))
	}
}

// end reads a response that is complete.
func (a *Answer) end(response []byte) {
	a.id = rawjson.Text(rawjson.Field(response, "id"))
	if len(a.items) > 0 {
		return
	}
	a.items = AsInput(slices.Collect(rawjson.Elements(rawjson.Field(response, "output"))))
}

// Complete reports whether the last event of a stream was written: nothing can follow it but the client's next request.
func (a *Answer) Complete() bool { return a.id != "" }

// Response returns the ID of the response and its items as a client would send them back; no ID if the answer is not
// complete, or is none. Nothing can be written afterwards.
func (a *Answer) Response() (id string, items [][]byte) {
	if !a.over && !a.stream && len(a.line) > 0 {
		a.any = rawjson.Text(rawjson.Field(a.line, "id"))
		switch rawjson.Text(rawjson.Field(a.line, "status")) {
		case "completed", "incomplete":
			a.end(a.line)
		}
	}
	if a.over {
		return "", nil
	}
	return a.id, a.items
}

// AsInput returns items of an answer as input: see asInput.
func AsInput(items [][]byte) (all [][]byte) {
	for _, item := range items {
		if item = asInput(item); item != nil {
			all = append(all, item)
		}
	}
	return all
}

// asInput returns a copy of an item of an answer as input of a request that names no earlier response: without the
// IDs by which the vendor would look for it, and nil for thinking that only the vendor has.
func asInput(item []byte) []byte {
	item = trimmed(item)
	if !rawjson.IsObject(item) {
		return nil
	}
	switch rawjson.Text(rawjson.Field(item, "type")) {
	case "reasoning":
		if !rawjson.IsString(rawjson.Field(item, "encrypted_content")) {
			return nil
		}
	case "message", "function_call", "custom_tool_call":
	default:
		return bytes.Clone(item)
	}
	return bytes.Clone(rawjson.CutField(rawjson.CutField(item, "id"), "status"))
}
