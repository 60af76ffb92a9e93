package live_test

import (
	"bytes"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// A growingCall is one request of a client.
type growingCall struct {
	Kind   string // the client's action: grow, retry, rewind, fork, agent, compaction, side, bypass
	Branch int    // which conversation of the client it is for
	Again  bool   // the messages that this branch sent last are a prefix of these, or are the same
	Model  string
	Tenant int    // whose credentials it has
	Body   []byte // a request of the Messages API
}

// A growingWorld is the environment of a run.
type growingWorld struct {
	// Send forwards the call to the vendor and returns its answer. Epoch reports whether earlier messages were
	// allowed to change.
	Send    func(growingCall) (answer growingAnswer, epoch bool)
	Restart func()      // the gateway ends and starts again; nil if it cannot
	Epoch   func(n int) // the next request is to be condensed, n is random; nil if it cannot
	Ask     func(n int) // the user asks for something between two requests, n is random; nil if that cannot be
	Words   int         // how many words a tool result has more than it needs
	Tenants bool        // two tenants use the same session
}

// Models that bind thinking to the messages before it, and models that do not.
const (
	boundModel   = "claude-opus-5-5"
	unboundModel = "claude-sonnet-4-5"
)

type growingBranch struct {
	system   string
	messages []string
	sent     []string // the messages of the last request that the gateway saw
	model    string
	tenant   int
}

type growingClient struct {
	t        *rapid.T
	w        growingWorld
	v        *growingVendor
	branches []*growingBranch
	thinking string
	markers  int
	hour     bool
	texts    int
}

// runGrowing simulates, by random draws, the clients of one session over up to steps actions, and the vendor v, which checks every
// request. Tests put the gateway between the two, which replaces messages. A fault that the vendor finds fails t.
func runGrowing(t *rapid.T, v *growingVendor, w growingWorld, steps int) {
	c := &growingClient{t: t, w: w, v: v}
	c.thinking = rapid.SampledFrom([]string{"", "adaptive", "adaptive", "enabled"}).Draw(t, "thinking")
	c.markers = rapid.IntRange(0, 3).Draw(t, "markers")
	c.hour = rapid.Bool().Draw(t, "hour")
	models := []string{boundModel, unboundModel}
	if c.thinking == "enabled" {
		models = models[1:] // the bound ones take "adaptive" only
	}
	model := rapid.SampledFrom(models).Draw(t, "model")
	c.branches = []*growingBranch{{system: "main", model: model, messages: []string{c.typed()}}}
	if b := c.branches[0]; rapid.IntRange(0, 3).Draw(t, "resumed") == 0 { // a conversation that began past the gateway
		b.messages = append(b.messages, c.answered(), c.typed(), c.answered(), c.typed())
		if w.Epoch != nil {
			w.Epoch(rapid.IntRange(0, 1<<20).Draw(t, "epoch"))
		}
	}
	c.send(c.branches[0], "grow", true)
	last := 29
	if w.Ask != nil {
		last = 37
	}
	for range rapid.IntRange(1, steps).Draw(t, "steps") {
		b := c.branches[rapid.IntRange(0, len(c.branches)-1).Draw(t, "branch")]
		c.step(b, rapid.IntRange(0, last).Draw(t, "action"), models)
	}
	c.leave()
}

// step does the action n with a branch.
func (c *growingClient) step(b *growingBranch, n int, models []string) {
	t, w := c.t, c.w
	switch {
	case n < 12:
		c.grow(b)
		c.send(b, "grow", true)
	case n < 14:
		c.grow(b)
		c.send(b, "retry", false) // the answer is lost
		c.send(b, "retry", true)
	case n < 17:
		c.rewind(b)
		c.send(b, "rewind", true)
	case n < 19 && len(c.branches) < 5:
		f := *b
		f.messages, f.sent = append([]string(nil), b.messages...), nil
		c.branches = append(c.branches, &f)
		c.moves(&f)
		if rapid.Bool().Draw(t, "elsewhere") {
			c.rewind(&f)
		} else {
			c.grow(&f)
		}
		c.send(&f, "fork", true)
	case n < 20 && len(c.branches) < 5: // a sub-agent, which begins like the main one
		system := rapid.SampledFrom([]string{"main", "agent"}).Draw(t, "system")
		a := &growingBranch{system: system, model: b.model, messages: []string{b.messages[0]}, tenant: b.tenant}
		c.branches = append(c.branches, a)
		c.moves(a)
		c.send(a, "agent", true)
	case n < 21: // the agent's own compaction
		b.messages = []string{c.typed()}
		if rapid.Bool().Draw(t, "keep first") {
			b.messages = []string{b.messages[0], c.answered(), c.typed()}
		}
		c.send(b, "compaction", true)
	case n < 23: // a side question with the whole history
		old := append([]string(nil), b.messages...)
		c.grow(b)
		c.send(b, "side", false)
		b.messages = old
	// Past the gateway; not where a user asks for epochs at any time: the answer to a request that went past it,
	// and later through it, cannot be distinguished from the answer of the other.
	case n < 24 && c.thinking != "enabled" && w.Ask == nil:
		c.grow(b)
		c.bypass(b)
	case n < 25 && len(models) > 1:
		b.model = models[rapid.IntRange(0, 1).Draw(t, "switch")]
	case n < 26 && w.Restart != nil:
		w.Restart()
	case n > 29: // every other time it meets another branch's request
		w.Ask(rapid.IntRange(0, 1<<20).Draw(t, "ask"))
		if rapid.Bool().Draw(t, "at once") {
			c.grow(b)
			c.send(b, "grow", true)
		}
	case w.Epoch != nil:
		w.Epoch(rapid.IntRange(0, 1<<20).Draw(t, "epoch"))
		c.grow(b)
		c.send(b, "grow", true)
	default:
		c.grow(b)
		c.send(b, "grow", true)
	}
}

// moves gives a new branch to another tenant, perhaps. Thinking that is bound to another's requests cannot go with it.
func (c *growingClient) moves(b *growingBranch) {
	if !c.w.Tenants || rapid.IntRange(0, 2).Draw(c.t, "tenant") > 0 {
		return
	}
	for _, m := range b.messages {
		if strings.Contains(m, `"signature"`) && !strings.Contains(m, `"signature":"free"`) {
			return
		}
	}
	b.tenant = 1 - b.tenant
}

// leave checks that the vendor takes the client's own history of every branch, as it does when the gateway is no longer
// in between. Thinking that is bound to the requests of the gateway is not the client's own.
func (c *growingClient) leave() {
	for _, b := range c.branches {
		c.grow(b)
		own := *b
		own.model = unboundModel
		if err := c.v.Check(c.body(&own)); err != nil {
			c.t.Fatalf("without the gateway, the vendor refuses: %v\nclient: %s", err, c.body(&own))
		}
	}
}

func (c *growingClient) text() string {
	c.texts++
	return fmt.Sprintf("tok%d", c.texts)
}

func (c *growingClient) typed() string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Do %s."}]}`, c.text())
}

func (c *growingClient) answered() string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Done, %s."}]}`, c.text())
}

// grow adds messages after the last one: results of its calls, or the user's text.
func (c *growingClient) grow(b *growingBranch) {
	last := b.messages[len(b.messages)-1]
	if !strings.HasPrefix(last, `{"role":"assistant"`) {
		b.messages = append(b.messages, c.typed()) // two in a row are allowed
		return
	}
	var blocks []string
	for _, id := range growingCalls(last) {
		var long strings.Builder
		long.WriteString(strings.Repeat(" x", rapid.IntRange(0, 1).Draw(c.t, "long")*20))
		name := c.text()
		for i := range c.w.Words {
			fmt.Fprintf(&long, " %s_%d", name, i*i%97)
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":"Result %s.%s"}]}`, id, name, long.String()))
	}
	if len(blocks) == 0 {
		b.messages = append(b.messages, c.typed())
		return
	}
	b.messages = append(b.messages, `{"role":"user","content":[`+strings.Join(blocks, ",")+`]}`)
	if rapid.IntRange(0, 5).Draw(c.t, "interrupt") == 0 {
		b.messages = append(b.messages, c.typed())
	}
}

// rewind goes back to some message and goes on differently.
func (c *growingClient) rewind(b *growingBranch) {
	b.messages = append([]string(nil), b.messages[:rapid.IntRange(1, len(b.messages)).Draw(c.t, "to")]...)
	if rapid.Bool().Draw(c.t, "exactly") && !strings.HasPrefix(b.messages[len(b.messages)-1], `{"role":"assistant"`) {
		return
	}
	c.grow(b)
}

func (c *growingClient) send(b *growingBranch, kind string, keep bool) {
	c.shape()
	call := growingCall{Kind: kind, Model: b.model, Tenant: b.tenant, Body: c.body(b), Again: len(b.sent) > 0 && len(b.sent) <= len(b.messages)}
	for i, m := range b.sent {
		call.Again = call.Again && b.messages[i] == m
	}
	for i := range c.branches {
		if c.branches[i] == b {
			call.Branch = i
		}
	}
	c.v.expect(call)
	a, epoch := c.w.Send(call)
	c.v.settle(c.t, call, epoch)
	if b.sent = append([]string(nil), b.messages...); keep && a != nil {
		b.messages = append(b.messages, string(a))
	}
}

func (c *growingClient) bypass(b *growingBranch) {
	c.shape()
	a := c.v.past(c.body(b))
	b.sent = nil
	b.messages = append(b.messages, string(a))
}

// shape draws the form of the vendor's next answer.
func (c *growingClient) shape() {
	c.v.Next = growingShape{
		Calls: rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(c.t, "calls"),
		Think: c.thinking != "" && (c.thinking == "enabled" || rapid.Bool().Draw(c.t, "think")),
		Text:  rapid.IntRange(0, 2).Draw(c.t, "text") > 0,
	}
}

// body writes the request with cache markers, which move with every request.
func (c *growingClient) body(b *growingBranch) []byte {
	marker := `,"cache_control":{"type":"ephemeral"}`
	if c.hour {
		marker = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	head, marked := "", map[int]bool{}
	if c.markers > 0 {
		head = marker
		marked[len(b.messages)-1] = true
	}
	if c.markers > 1 {
		marked[len(b.messages)-2] = true
	}
	var out bytes.Buffer
	second := "" // a marker more in the system prompt: all four
	if c.markers > 2 {
		second = head
	}
	fmt.Fprintf(&out, `{"model":%q,"max_tokens":1000,"tools":[{"name":"Bash","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"Be brief."%s},{"type":"text","text":"You are %s."%s}]`, b.model, second, b.system, head)
	if c.thinking != "" {
		fmt.Fprintf(&out, `,"thinking":{"type":%q}`, c.thinking)
	}
	out.WriteString(`,"messages":[`)
	for i, m := range b.messages {
		if i > 0 {
			out.WriteByte(',')
		}
		if marked[i] && !strings.Contains(m[max(0, len(m)-100):], `"signature"`) {
			m = strings.TrimSuffix(m, "}]}") + marker + "}]}"
		}
		out.WriteString(m)
	}
	out.WriteString("]}")
	return out.Bytes()
}

func growingCalls(message string) []string {
	var ids []string
	for {
		_, rest, ok := strings.Cut(message, `"type":"tool_use","id":"`)
		if !ok {
			return ids
		}
		id, after, _ := strings.Cut(rest, `"`)
		ids, message = append(ids, id), after
	}
}
