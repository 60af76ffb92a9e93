package live_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/wire"
)

// A growingAnswer is the raw message of the model.
type growingAnswer []byte

// A growingShape is the form of the next answer.
type growingShape struct {
	Calls       int
	Think, Text bool
}

// A growingVendor answers requests of the Messages API and checks the real vendor's rules: calls and results, roles, cache
// markers, and that thinking of a bound model was written after exactly the messages before it. It also checks that
// nothing changes in the messages already sent except cache markers, which would be expensive, and that a request has
// nothing that its client did not send, which a real vendor cannot know. The zero value is ready. It is not for
// concurrent use.
type growingVendor struct {
	Next growingShape
	Tool bool // a tool that is not the client's is expected, and messages with its results

	answers int
	call    growingCall
	client  *wire.Request
	got     *wire.Request // the request received for the call
	fault   error
	sent    []growingExchange
	last    map[int]int // the last exchange of a branch, by branch
	words   map[string][]string
	bared   map[string]string
	cache   *wire.Cache

	Requests, Epochs, Replaced int // how much was tested
	Past                       int // answers to requests that did not go through the gateway
}

// A growingExchange is a client's request, and the request that arrived.
type growingExchange struct {
	tenant int
	model  string
	sent   []wire.Hash
	view   []string     // without cache markers
	bodies [2]wire.Hash // of the client's request, and of the request that arrived
	cut    int          // messages of the client that were sent in another form, or after which one was, at most
}

func (v *growingVendor) parse(body []byte) (*wire.Request, error) {
	if v.cache == nil {
		v.cache = wire.NewCache(nil)
	}
	return wire.Parse(wire.Messages, body, &wire.Options{Cache: v.cache})
}

func (v *growingVendor) expect(call growingCall) {
	v.call, v.got, v.fault = call, nil, nil
	v.client, v.fault = v.parse(call.Body)
}

// Answer receives a request and returns the answer, or an error if the real vendor would refuse it.
func (v *growingVendor) Answer(body []byte) (growingAnswer, error) {
	r, err := v.accept(body)
	if err != nil {
		v.fault = errors.Join(v.fault, err)
		return nil, err
	}
	v.got = r
	return v.answer(r), nil
}

// Check returns the error with which the real vendor would refuse a request.
func (v *growingVendor) Check(body []byte) error {
	_, err := v.accept(body)
	return err
}

// accept reads a request that the real vendor would take.
func (v *growingVendor) accept(body []byte) (*wire.Request, error) {
	r, err := v.parse(body)
	if err != nil {
		return nil, err
	}
	return r, growingCheck(r)
}

// Own reports whether the last request arrived as its client sent it, but for cache markers and thinking.
func (v *growingVendor) Own() bool {
	same := func(a, b wire.Message) bool { return v.bare(a.Raw) == v.bare(b.Raw) }
	return v.got != nil && slices.EqualFunc(v.got.Messages, v.client.Messages, same)
}

// Identical reports whether the last request arrived as its client sent it, but for cache markers.
func (v *growingVendor) Identical() bool {
	same := func(a, b wire.Message) bool { return string(wire.Unmark(a.Raw)) == string(wire.Unmark(b.Raw)) }
	return v.got != nil && slices.EqualFunc(v.got.Messages, v.client.Messages, same)
}

// past answers a request that bypasses the gateway, without checks.
func (v *growingVendor) past(body []byte) growingAnswer {
	r, err := v.parse(body)
	if err != nil {
		panic(err) // the generator's own fault
	}
	v.Past++
	return v.answer(r)
}

// settle checks the request that arrived for the call.
func (v *growingVendor) settle(t *rapid.T, call growingCall, epoch bool) {
	t.Helper()
	switch {
	case v.fault != nil:
		t.Fatalf("%s on branch %d: the vendor refuses: %v\nclient: %s", call.Kind, call.Branch, v.fault, call.Body)
	case v.got == nil:
		t.Fatalf("%s on branch %d: nothing arrived", call.Kind, call.Branch)
	}
	e := growingExchange{tenant: call.Tenant, model: call.Model, bodies: [2]wire.Hash{growingHash(v.client.Body), growingHash(v.got.Body)}}
	for i := range v.client.Messages {
		e.sent = append(e.sent, v.client.Messages[i].Hash)
	}
	for i := range v.got.Messages {
		e.view = append(e.view, string(wire.Unmark(v.got.Messages[i].Raw)))
	}
	e.cut = len(e.sent)
	for i := len(e.view) - 1; i >= 0 && e.cut > 0 && v.bare(v.got.Messages[i].Raw) == v.bare(v.client.Messages[e.cut-1].Raw); i-- {
		e.cut--
	}
	v.untouched(t, call, e)
	own := map[string]bool{}
	for i := range v.client.Messages {
		for _, word := range v.wordsOf(v.client.Messages[i].Raw) {
			own[word] = true
		}
	}
	for i := range v.got.Messages {
		for _, word := range v.wordsOf(v.got.Messages[i].Raw) {
			if !own[word] {
				t.Fatalf("%s on branch %d: %s is from another conversation\nclient: %s\nsent: %s", call.Kind, call.Branch, word, call.Body, v.got.Body)
			}
		}
	}
	if v.last == nil {
		v.last = map[int]int{}
	}
	if !epoch {
		v.unchanged(t, call, e)
	} else {
		v.Epochs++
	}
	v.Requests++
	if len(e.view) < len(e.sent) {
		v.Replaced++
	}
	v.last[call.Branch] = len(v.sent)
	v.sent = append(v.sent, e)
}

var growingWords = regexp.MustCompile(`\b(?:(?:tok|ans)\d+[._]|call\d+)`) // words that were cut are of no conversation

// wordsOf returns the words that a message has of one conversation. Each message is looked at once, though it is in
// many requests.
func (v *growingVendor) wordsOf(message []byte) []string {
	found, ok := v.words[string(message)]
	if !ok {
		if v.words == nil {
			v.words = map[string][]string{}
		}
		found = growingWords.FindAllString(string(message), -1)
		v.words[string(message)] = found
	}
	return found
}

// untouched checks that nothing but messages was changed, and those only that are not the client's own: the cut is the
// number of messages at the front that may differ.
func (v *growingVendor) untouched(t *rapid.T, call growingCall, e growingExchange) {
	t.Helper()
	if v.Tool {
		return
	}
	none := [][]byte{}
	if v.Identical() && e.bodies[0] != e.bodies[1] || !bytes.Equal(v.client.With(none), v.got.With(none)) {
		t.Fatalf("%s on branch %d: more than messages was changed\nclient: %s\nsent: %s", call.Kind, call.Branch, call.Body, v.got.Body)
	}
	for i := e.cut; i < len(e.sent); i++ {
		own, got := &v.client.Messages[i], &v.got.Messages[len(e.view)-len(e.sent)+i]
		if !bytes.Equal(own.Raw, got.Raw) && (!own.Thinking || got.Thinking) {
			t.Fatalf("%s on branch %d: message %d was changed\nclient: %s\nsent: %s", call.Kind, call.Branch, i, own.Raw, got.Raw)
		}
	}
}

// Shown reports, for each message of the client's last request, whether it arrived verbatim, in any message.
func (v *growingVendor) Shown() []bool {
	arrived := map[string]bool{}
	for i := range v.got.Messages {
		arrived[v.bare(v.got.Messages[i].Raw)] = true
	}
	shown := make([]bool, len(v.client.Messages))
	for i := range shown {
		m := &v.client.Messages[i]
		shown[i] = arrived[v.bare(m.Raw)] || v.contained(m)
	}
	return shown
}

// contained reports whether all texts and calls of a message are in messages that arrived.
func (v *growingVendor) contained(m *wire.Message) bool {
	for _, text := range textBlocks.FindAll(m.Raw, -1) {
		if !slices.ContainsFunc(v.got.Messages, func(m wire.Message) bool { return bytes.Contains(m.Raw, text) }) {
			return false
		}
	}
	return !slices.ContainsFunc(m.Calls, func(id string) bool {
		return !slices.ContainsFunc(v.got.Messages, func(m wire.Message) bool { return slices.Contains(m.Calls, id) })
	})
}

// Last returns the client's last request, and the one that arrived; nil if none did.
func (v *growingVendor) Last() (client, arrived *wire.Request) { return v.client, v.got }

var textBlocks = regexp.MustCompile(`"text":"[^"]*"`)

// held returns how many messages of p were sent again in e. Without their thinking for another model, which has nothing in its
// cache and may refuse the thinking that p had.
func (v *growingVendor) held(p, e growingExchange) int {
	if p.model == e.model {
		return commonFront(p.view, e.view)
	}
	n := 0
	for n < min(len(p.view), len(e.view)) && v.bare([]byte(p.view[n])) == v.bare([]byte(e.view[n])) {
		n++
	}
	return n
}

// unchanged checks that earlier messages were sent again unchanged. A branch that continues has the view of its last
// request; a branch that goes back or divides has the view of a request with which it shares the most messages.
func (v *growingVendor) unchanged(t *rapid.T, call growingCall, e growingExchange) {
	t.Helper()
	candidates, longest := v.of(call.Tenant), 0
	i, ok := v.before(call, e.sent)
	if ok {
		candidates, longest = v.sent[i:i+1], len(v.sent[i].sent)
	} else {
		for _, p := range candidates {
			if n := commonFront(p.sent, e.sent); n < p.cut || n == p.cut && n == len(e.sent) && n < len(p.sent) {
				continue // it went back to a replaced message
			} else if n > longest {
				longest = n
			}
		}
	}
	if longest == 0 {
		if len(e.view) != len(e.sent) && !slices.ContainsFunc(candidates, func(p growingExchange) bool { return commonFront(p.sent, e.sent) > 0 }) {
			t.Fatalf("%s on branch %d: a new conversation was shortened: %q", call.Kind, call.Branch, e.view)
		}
		return
	}
	if ok && e.bodies[0] == candidates[0].bodies[0] && e.bodies[1] != candidates[0].bodies[1] {
		t.Fatalf("%s on branch %d: the same request has another form\nclient: %s\nsent: %s", call.Kind, call.Branch, call.Body, v.got.Body)
	}
	for _, p := range candidates {
		if n := commonFront(p.sent, e.sent); n >= longest && len(e.view)-v.held(p, e) <= len(e.sent)-n {
			return
		}
	}
	var before []string
	for _, p := range candidates {
		if commonFront(p.sent, e.sent) >= longest {
			before = p.view
		}
	}
	t.Fatalf("%s on branch %d: what was sent before has changed\nclient: %s\nbefore: %q\nnow: %q", call.Kind, call.Branch, call.Body, before, e.view)
}

// before returns the index of the exchange that a call surely continues. Another branch that has the same messages may
// have been condensed since its last one; the two look the same.
func (v *growingVendor) before(call growingCall, sent []wire.Hash) (i int, ok bool) {
	i, ok = v.last[call.Branch]
	return i, ok && call.Again && !slices.ContainsFunc(v.sent[i+1:], func(p growingExchange) bool {
		return p.tenant == call.Tenant && commonFront(p.sent, sent) >= len(v.sent[i].sent)
	})
}

// Continues reports whether the client's last request can only be the next one of its branch.
func (v *growingVendor) Continues() bool {
	var sent []wire.Hash
	for i := range v.client.Messages {
		sent = append(sent, v.client.Messages[i].Hash)
	}
	_, ok := v.before(v.call, sent)
	return ok
}

// of returns the exchanges of a tenant.
func (v *growingVendor) of(tenant int) []growingExchange {
	if !slices.ContainsFunc(v.sent, func(e growingExchange) bool { return e.tenant != tenant }) {
		return v.sent
	}
	return slices.DeleteFunc(slices.Clone(v.sent), func(e growingExchange) bool { return e.tenant != tenant })
}

// bare returns a message without cache markers and thinking.
func (v *growingVendor) bare(message []byte) string {
	found, ok := v.bared[string(message)]
	if !ok {
		if v.bared == nil {
			v.bared = map[string]string{}
		}
		found = string(wire.StripThinking(wire.Messages, wire.Unmark(message)))
		v.bared[string(message)] = found
	}
	return found
}

func growingHash(body []byte) wire.Hash {
	sum := sha256.Sum256(body)
	return wire.Hash(sum[:len(wire.Hash{})])
}

func commonFront[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// answer writes the model's answer, with thinking that is signed over the messages before it.
func (v *growingVendor) answer(r *wire.Request) growingAnswer {
	v.answers++
	var blocks []string
	if v.Next.Think {
		signature := "free"
		if r.Model == boundModel {
			signature = growingSign(r, len(r.Messages))
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":"","signature":%q}`, signature))
	}
	if v.Next.Text || v.Next.Calls == 0 {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":"I say ans%d."}`, v.answers))
	}
	for i := range v.Next.Calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"call%d0%d","name":"Bash","input":{"command":"ls"}}`, v.answers, i))
	}
	return growingAnswer(`{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`)
}

// growingSign returns the signature of thinking in message n: a hash of the head and of all messages before it, without
// their thinking and markers. Without their thinking, because a vendor accepts that older thinking is left out.
func growingSign(r *wire.Request, n int) string {
	h := sha256.New()
	h.Write(r.Head[:])
	for i := range n {
		if raw := wire.StripThinking(wire.Messages, wire.Unmark(r.Messages[i].Raw)); raw != nil {
			h.Write(raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// growingSignature returns the signature that a bound model has to check; empty if there is none.
func growingSignature(r *wire.Request, message []byte) string {
	if r.Model != boundModel {
		return ""
	}
	_, after, _ := bytes.Cut(message, []byte(`"signature":"`))
	signature, _, _ := bytes.Cut(after, []byte(`"`))
	return string(signature)
}

// growingCheck reports the fault for which the vendor would refuse r.
func growingCheck(r *wire.Request) error {
	if len(r.Messages) == 0 {
		return errors.New("no messages")
	}
	if r.Messages[0].Role != "user" || r.Messages[len(r.Messages)-1].Role != "user" {
		return errors.New("the first and the last message must be the user's")
	}
	markers, shortest := r.HeadMarkers, time.Hour
	if r.HeadMarkers > 0 && !strings.Contains(string(r.System), `"1h"`) {
		shortest = 5 * time.Minute
	}
	seen := map[string]bool{}
	var open []string
	for i := range r.Messages {
		m := &r.Messages[i]
		markers += m.Markers
		if ttl := m.TTL(); ttl > 0 {
			if ttl > shortest {
				return fmt.Errorf("message %d: a marker for %v after one for %v", i, ttl, shortest)
			}
			shortest = ttl
		}
		if bytes.Contains(m.Raw, []byte(`"content":[]`)) || bytes.Contains(m.Raw, []byte(`"text":""`)) {
			return fmt.Errorf("message %d: empty content", i)
		}
		for _, id := range m.Results {
			at := slices.Index(open, id)
			if at < 0 {
				return fmt.Errorf("message %d: unexpected tool_use_id %s", i, id)
			}
			open = slices.Delete(open, at, at+1)
		}
		if len(open) > 0 && len(m.Results) == 0 {
			return fmt.Errorf("message %d: calls %v were found without results immediately after", i, open)
		}
		for _, id := range m.Calls {
			if seen[id] {
				return fmt.Errorf("message %d: tool_use ids must be unique: %s", i, id)
			}
			seen[id] = true
			open = append(open, id)
		}
		if s := growingSignature(r, m.Raw); s != "" && s != "free" && s != growingSign(r, i) {
			return fmt.Errorf("message %d: invalid signature in thinking block: it is bound to a different conversation", i)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls %v were found without results", open)
	}
	if markers > 4 {
		return fmt.Errorf("%d blocks with cache_control, at most 4 are allowed", markers)
	}
	if r.Thinking == "enabled" {
		return growingOpenTurn(r)
	}
	return nil
}

// growingOpenTurn checks that a turn of tool calls that is not over begins with thinking.
func growingOpenTurn(r *wire.Request) error {
	first := -1
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == "user" && len(m.Results) == 0 {
			break
		}
		if m.Role == "assistant" {
			first = i
		}
	}
	if first >= 0 && !r.Messages[first].Thinking {
		return fmt.Errorf("message %d: expected thinking, as thinking is enabled", first)
	}
	return nil
}
