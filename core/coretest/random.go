package coretest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
)

// A Protocol says how a conversation carries its tool calls.
type Protocol int

// The protocols.
const (
	AnyProtocol   Protocol = iota // one of the others
	ResultsByUser                 // results are parts of the next user message (Anthropic)
	ResultsByTool                 // each result is a message of its own (OpenAI)
	ToolsAsText                   // calls and results are XML in texts (Roo, Cline)
)

// RandomOptions adjust [Random]. A nil pointer and the zero value of every field mean the
// defaults.
type RandomOptions struct {
	// Max is the largest number of messages; default 40. The history may be empty.
	Max int
	// Protocol is how tools are called; default: any.
	Protocol Protocol
	// Tidy leaves out content that does not occur in a proper session of one vendor: faults of any kind (orphans,
	// duplicate IDs, blank messages, bytes that are not UTF-8), very large messages, system messages in the middle,
	// protected messages and messages from earlier condensations. The last calls may be pending.
	Tidy bool
}

// Random returns a random history: the same for the same state of r. It is measured by
// [Counter], its messages have the IDs m1, m2, …, and none has a Source.
//
// A property test with a generator of its own draws a seed from it:
//
//	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
func Random(r *rand.Rand, opts *RandomOptions) []core.Message {
	g := generator{Rand: r}
	if opts != nil {
		g.opts = *opts
	}
	if g.opts.Max <= 0 {
		g.opts.Max = 40
	}
	g.protocol = g.opts.Protocol
	if g.protocol == AnyProtocol {
		g.protocol = Protocol(1 + g.IntN(3))
	}
	size := g.IntN(g.opts.Max + 1)
	if g.chance(3) {
		g.add(System(g.text()))
	}
	for len(g.messages) < size {
		g.turn()
	}
	g.messages = g.messages[:min(size, len(g.messages))]
	if !g.opts.Tidy {
		for i := range g.messages {
			g.messages[i].Protected = g.chance(12)
		}
	}
	return Conversation(g.messages...)
}

type generator struct {
	*rand.Rand

	opts     RandomOptions
	protocol Protocol
	messages []core.Message
	calls    []string // IDs of all calls so far
	serial   int      // makes content unique
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// fault is true once in n times in a conversation that may have faults.
func (g *generator) fault(n int) bool { return g.chance(n) && !g.opts.Tidy }

func (g *generator) add(m core.Message) { g.messages = append(g.messages, m) }

// turn adds a user's message and a model's work on it. A tidy conversation is a sequence of such turns; another one
// holds anything between them.
func (g *generator) turn() {
	switch {
	case g.fault(12):
		g.add(g.condensed())
	case g.fault(15):
		g.add(g.broken())
	case g.fault(20):
		g.add(System(g.text()))
	}
	g.add(g.user())
	for range g.IntN(4) {
		g.exchange()
	}
	g.add(Assistant(g.thought(g.text())...))
}

func (g *generator) user() core.Message {
	m := User(g.text())
	if g.chance(6) {
		m.Parts = append(m.Parts, g.image())
	}
	if g.chance(10) {
		m.Parts = append(m.Parts, g.opaque())
	}
	return m
}

// exchange adds a message that calls tools and the messages that answer it.
func (g *generator) exchange() {
	if g.protocol == ToolsAsText {
		g.serial++
		g.add(Assistant(g.thought(core.Text(fmt.Sprintf("<read_file>\n<path>src/f%d.go</path>\n</read_file>", g.serial)))...))
		g.add(User(core.Text(fmt.Sprintf("[read_file for 'src/f%d.go'] Result:", g.serial)), g.text()))
		return
	}
	parts := g.thought(g.text())
	var results []core.Part
	for range 1 + g.IntN(3) {
		c := core.ToolCall{ID: g.callID(), Name: words[g.IntN(4)], Args: g.args()}
		parts = append(parts, c)
		if !g.fault(15) { // otherwise it has no answer
			results = append(results, g.result(c.ID))
		}
	}
	g.add(Assistant(parts...))
	if g.fault(15) {
		g.add(User(g.text())) // somebody interrupts
	}
	if g.protocol == ResultsByTool || g.fault(8) {
		role := core.RoleUser
		if g.protocol == ResultsByTool {
			role = core.RoleTool
		}
		for _, p := range results {
			g.add(core.Message{Role: role, Parts: []core.Part{p}})
		}
		return
	}
	if g.chance(4) && len(results) > 0 {
		results = append(results, g.text())
	}
	if len(results) > 0 {
		g.add(User(results...))
	}
}

func (g *generator) callID() string {
	if len(g.calls) > 0 && g.fault(10) {
		return g.calls[g.IntN(len(g.calls))]
	}
	id := fmt.Sprintf("call_%d", len(g.calls)+1)
	g.calls = append(g.calls, id)
	return id
}

func (g *generator) args() string {
	g.serial++
	if g.fault(20) {
		return `{"path": "cut off`
	}
	return fmt.Sprintf(`{"path":"src/f%d.go","line":%d}`, g.serial, g.IntN(500))
}

func (g *generator) result(id string) core.ToolResult {
	r := core.ToolResult{CallID: id, IsError: g.chance(8)}
	if !g.chance(10) { // else the tool had nothing to say
		r.Content = append(r.Content, g.text())
	}
	if g.chance(8) {
		r.Content = append(r.Content, g.image())
	}
	return r
}

// thought returns parts, sometimes preceded by a model's thinking.
func (g *generator) thought(parts ...core.Part) []core.Part {
	if !g.chance(4) {
		return parts
	}
	r := core.Reasoning{Text: string(g.text()), Signature: g.blob()}
	if g.chance(3) {
		r = core.Reasoning{Encrypted: g.blob()}
	}
	return append([]core.Part{r}, parts...)
}

// condensed returns a message of an earlier condensation.
func (g *generator) condensed() core.Message {
	m := User(g.text())
	m.Kind = core.KindSummary
	if g.chance(2) {
		m.Kind = core.KindMarker
	}
	if g.chance(3) {
		m.Role = core.RoleAssistant
	}
	return m
}

// broken returns a message that should not be there.
func (g *generator) broken() core.Message {
	switch g.IntN(5) {
	case 0:
		return User(g.result("nobody_asked"))
	case 1:
		return User(g.result(g.callID())) // perhaps of a call that has been answered
	case 2:
		return Assistant(core.Text(" \n"))
	case 3:
		return User()
	default:
		return Assistant(Call(g.callID()))
	}
}

func (g *generator) image() core.Image {
	if g.chance(4) {
		g.serial++
		return core.Image{URL: fmt.Sprintf("https://example.com/%d.png", g.serial)}
	}
	return core.Image{MediaType: "image/png", Data: g.blob()}
}

func (g *generator) opaque() core.Opaque {
	g.serial++
	return core.Opaque{Kind: "document", JSON: fmt.Sprintf(`{"type":"document","number":%d}`, g.serial)}
}

// blob returns base64 that no other call returned.
func (g *generator) blob() string {
	g.serial++
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%09d%d", g.serial, g.Uint64()))
}

// text returns a few words, at times many, at times no proper text at all. It is unique
// unless it is blank.
func (g *generator) text() core.Text {
	g.serial++
	n := 1 + g.IntN(30)
	switch {
	case g.fault(60):
		return ""
	case g.fault(60):
		return core.Text(fmt.Sprintf("\xff\xfe\x00 %d \xc3", g.serial))
	case g.fault(80):
		return core.Text(strings.Repeat("x", 20_000+g.IntN(100_000)) + strconv.Itoa(g.serial))
	case g.chance(10):
		n *= 20
	}
	return core.Text(fmt.Sprintf("%d: %s", g.serial, prose(n)))
}
