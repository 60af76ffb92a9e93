package growing

import (
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

// An Answer is the raw message of the model.
type Answer []byte

// A Shape is the form of the next answer.
type Shape struct {
	Calls       int
	Think, Text bool
}

// A Vendor answers requests of the Messages API and checks the real vendor's rules: calls and results, roles, cache
// markers, and that thinking of a bound model was written after exactly the messages before it. It also checks that
// nothing changes in the messages already sent except cache markers, which would be expensive, and that a request has
// nothing that its client did not send, which a real vendor cannot know. The zero value is ready. It is not for
// concurrent use.
type Vendor struct {
	Next Shape

	answers int
	call    Call
	client  *wire.Request
	got     *wire.Request // the request received for the call
	fault   error
	sent    []exchange
	last    map[int]int // the last exchange of a branch, by branch
	words   map[string][]string

	Requests, Epochs, Replaced int // how much was tested
	Past                       int // answers to requests that did not go through the gateway
}

// An exchange is a client's request, and the request that arrived.
type exchange struct {
	sent []wire.Hash
	view []string // without cache markers
	cut  int      // messages of the client that were sent in another form, or after which one was, at most
}

func parse(body []byte) (*wire.Request, error) { return wire.Parse(wire.Messages, body, nil) }

func (v *Vendor) expect(call Call) {
	v.call, v.got, v.fault = call, nil, nil
	v.client, v.fault = parse(call.Body)
}

// Answer receives a request and returns the answer, or an error if the real vendor would refuse it.
func (v *Vendor) Answer(body []byte) (Answer, error) {
	r, err := accept(body)
	if err != nil {
		v.fault = errors.Join(v.fault, err)
		return nil, err
	}
	v.got = r
	return v.answer(r), nil
}

// Check returns the error with which the real vendor would refuse a request.
func (*Vendor) Check(body []byte) error {
	_, err := accept(body)
	return err
}

// accept reads a request that the real vendor would take.
func accept(body []byte) (*wire.Request, error) {
	r, err := parse(body)
	if err != nil {
		return nil, err
	}
	return r, check(r)
}

// Own reports whether the last request arrived as its client sent it, but for cache markers and thinking.
func (v *Vendor) Own() bool {
	return v.got != nil && slices.EqualFunc(v.got.Messages, v.client.Messages, func(a, b wire.Message) bool { return bare(string(a.Raw)) == bare(string(b.Raw)) })
}

// Identical reports whether the last request arrived as its client sent it, but for cache markers.
func (v *Vendor) Identical() bool {
	return v.got != nil && slices.EqualFunc(v.got.Messages, v.client.Messages, func(a, b wire.Message) bool { return string(wire.Unmark(a.Raw)) == string(wire.Unmark(b.Raw)) })
}

// past answers a request that bypasses the gateway, without checks.
func (v *Vendor) past(body []byte) Answer {
	r, err := parse(body)
	if err != nil {
		panic(err) // the generator's own fault
	}
	v.Past++
	return v.answer(r)
}

// settle checks the request that arrived for the call.
func (v *Vendor) settle(t *rapid.T, call Call, epoch bool) {
	t.Helper()
	switch {
	case v.fault != nil:
		t.Fatalf("%s on branch %d: the vendor refuses: %v\nclient: %s", call.Kind, call.Branch, v.fault, call.Body)
	case v.got == nil:
		t.Fatalf("%s on branch %d: nothing arrived", call.Kind, call.Branch)
	}
	e := exchange{}
	for i := range v.client.Messages {
		e.sent = append(e.sent, v.client.Messages[i].Hash)
	}
	for i := range v.got.Messages {
		e.view = append(e.view, string(wire.Unmark(v.got.Messages[i].Raw)))
	}
	e.cut = len(e.sent)
	for i := len(e.view) - 1; i >= 0 && e.cut > 0 && bare(e.view[i]) == bare(string(v.client.Messages[e.cut-1].Raw)); i-- {
		e.cut--
	}
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

var words = regexp.MustCompile(`\b(?:tok|ans|call)\d+`)

// wordsOf returns the words that a message has of one conversation. Each message is looked at once, though it is in
// many requests.
func (v *Vendor) wordsOf(message []byte) []string {
	found, ok := v.words[string(message)]
	if !ok {
		if v.words == nil {
			v.words = map[string][]string{}
		}
		found = words.FindAllString(string(message), -1)
		v.words[string(message)] = found
	}
	return found
}

// unchanged checks that earlier messages were sent again unchanged. A branch that continues has the view of its last
// request; a branch that goes back or divides has the view of a request with which it shares the most messages.
func (v *Vendor) unchanged(t *rapid.T, call Call, e exchange) {
	t.Helper()
	candidates, longest := v.sent, 0
	i, ok := v.last[call.Branch]
	if ok = ok && call.Again; ok {
		longest = len(v.sent[i].sent)
		// Another branch that has the same messages may have been condensed since; the two look the same.
		ok = !slices.ContainsFunc(v.sent[i+1:], func(p exchange) bool { return common(p.sent, e.sent) >= longest })
	}
	if ok {
		candidates = v.sent[i : i+1]
	} else {
		longest = 0
		for _, p := range v.sent {
			if n := common(p.sent, e.sent); n < p.cut || n == p.cut && n == len(e.sent) && n < len(p.sent) {
				continue // it went back to a replaced message
			} else if n > longest {
				longest = n
			}
		}
	}
	if longest == 0 {
		if len(e.view) != len(e.sent) && !slices.ContainsFunc(v.sent, func(p exchange) bool { return common(p.sent, e.sent) > 0 }) {
			t.Fatalf("%s on branch %d: a new conversation was shortened: %q", call.Kind, call.Branch, e.view)
		}
		return
	}
	for _, p := range candidates {
		if n := common(p.sent, e.sent); n >= longest && len(e.view)-common(p.view, e.view) <= len(e.sent)-n {
			return
		}
	}
	var before []string
	for _, p := range candidates {
		if common(p.sent, e.sent) >= longest {
			before = p.view
		}
	}
	t.Fatalf("%s on branch %d: what was sent before has changed\nclient: %s\nbefore: %q\nnow: %q", call.Kind, call.Branch, call.Body, before, e.view)
}

func bare(message string) string {
	return string(wire.StripThinking(wire.Messages, wire.Unmark([]byte(message))))
}

func common[E comparable](a, b []E) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// answer writes the model's answer, with thinking that is signed over the messages before it.
func (v *Vendor) answer(r *wire.Request) Answer {
	v.answers++
	var blocks []string
	if v.Next.Think {
		signature := "free"
		if r.Model == Bound {
			signature = sign(r, len(r.Messages))
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":"","signature":%q}`, signature))
	}
	if v.Next.Text || v.Next.Calls == 0 {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":"I say ans%d."}`, v.answers))
	}
	for i := range v.Next.Calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":"call%d0%d","name":"Bash","input":{"command":"ls"}}`, v.answers, i))
	}
	return Answer(`{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`)
}

// sign returns the signature of thinking in message n: a hash of the head and of all messages before it, without
// their thinking and markers. Without their thinking, because a vendor accepts that older thinking is left out.
func sign(r *wire.Request, n int) string {
	h := sha256.New()
	h.Write(r.Head[:])
	for i := range n {
		if raw := wire.StripThinking(wire.Messages, wire.Unmark(r.Messages[i].Raw)); raw != nil {
			h.Write(raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

var signature = regexp.MustCompile(`"signature":"(\w+)"`)

// check reports the fault for which the vendor would refuse r.
func check(r *wire.Request) error {
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
		if strings.Contains(string(m.Raw), `"content":[]`) || strings.Contains(string(m.Raw), `"text":""`) {
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
		if s := signature.FindSubmatch(m.Raw); s != nil && r.Model == Bound && string(s[1]) != "free" && string(s[1]) != sign(r, i) {
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
		return openTurn(r)
	}
	return nil
}

// openTurn checks that a turn of tool calls that is not over begins with thinking.
func openTurn(r *wire.Request) error {
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
