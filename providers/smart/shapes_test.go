package smart_test

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// A shape is what a recorded session consists of: the seven on which an ancestor of this
// provider was tried. The sessions themselves are not ours to copy; these are made up to
// the same measure. Shares are of all tokens, in percent: what stale environment blocks,
// exact duplicates and superseded reads take.
type shape struct {
	name             string
	messages, tokens int
	env, dup, sup    float64
	params           float64 // share of what calls write, of the rest
}

func (s shape) total() float64 { return s.env + s.dup + s.sup }

var shapes = []shape{
	{"already condensed", 30, 50_000, 22.7, 22.5, 0, 0.05},
	{"mini", 20, 36_200, 8.0, 0, 17.8, 0.05},
	{"heavy", 54, 76_600, 24.3, 0, 0, 0.1},
	{"heavy write", 58, 75_700, 21.5, 0, 0, 0.93},
	{"heavy read", 32, 105_100, 2.5, 0, 0, 0.01},
	{"tool dedup", 92, 161_900, 6.8, 26.1, 22.3, 0.02},
	{"mixed", 40, 19_000, 40.5, 0, 2.9, 0.3},
}

// A protocol says how a session calls tools: with parts, or as text.
type protocol bool

const (
	parts protocol = false
	xml   protocol = true
)

func (p protocol) String() string {
	if p == xml {
		return "text"
	}
	return "native"
}

// history makes up a session of shape s.
func (s shape) history(p protocol) []core.Message {
	turns := s.messages / 2
	share := func(percent float64, n int) int { return int(percent / 100 * float64(s.tokens) / float64(max(1, n))) }
	g := history{protocol: p, env: share(s.env, turns-1)}
	dups, sups := 0, 0
	if s.dup > 0 {
		dups = turns / 4
	}
	if s.sup > 0 {
		sups = max(1, turns/5)
	}
	dup, sup := share(s.dup, dups), share(s.sup, sups)
	others := turns - 1 - dups - sups
	if s.dup > 0 {
		others--
	}
	if s.sup > 0 {
		others--
	}
	rest := s.tokens - (g.env+10)*turns - dup*(dups+1) - sup*(sups+1) - 60*turns
	if s.dup == 0 {
		rest += dup
	}
	if s.sup == 0 {
		rest += sup
	}
	each := max(20, rest/others)
	writes := int(s.params * float64(others))
	g.user("Make the build pass. " + text(7, 30))
	for i := range turns - 1 {
		switch {
		case dups > 0 && i%3 == 0 && dups >= 0:
			g.tool("execute_command", "command", "npm run check", "", text(99, dup))
			dups--
			if dups == 0 {
				g.tool("execute_command", "command", "npm run check", "", text(99, dup))
			}
		case sups > 0 && i%3 == 1:
			g.read("src/changing.ts", code(1000+i, sup))
			sups--
			if sups == 0 {
				g.read("src/changing.ts", code(2000, sup))
			}
		case writes > 0 && i%3 != 0 || others <= writes && writes > 0:
			g.tool("write_to_file", "path", fmt.Sprintf("src/new%d.ts", i), code(3000+i, each), "The content was written.")
			writes--
			others--
		case others > 0:
			g.read(fmt.Sprintf("src/f%d.ts", i), code(4000+i, each))
			others--
		}
	}
	g.messages = append(g.messages, coretest.Assistant(core.Text("The build passes.")))
	return coretest.Conversation(g.messages...)
}

// A history grows by turns.
type history struct {
	protocol protocol
	env      int // tokens of an environment block
	messages []core.Message
	calls    int
}

func (g *history) user(words string) {
	g.messages = append(g.messages, coretest.User(core.Text("<task>\n"+words+"\n</task>"), core.Text(g.environment())))
}

func (g *history) environment() string {
	return "<environment_details>\n# VSCode Open Tabs\n" + text(5000+len(g.messages), max(10, g.env)) + "\n</environment_details>"
}

// tool adds a call with its result.
func (g *history) tool(name, key, target, content, result string) {
	g.calls++
	id := fmt.Sprintf("call_%d", g.calls)
	say := core.Text(fmt.Sprintf("Step %d: %s.", g.calls, text(6000+g.calls, 12)))
	env := core.Text(g.environment())
	if g.protocol == xml {
		inner := "<" + key + ">" + target + "</" + key + ">"
		if content != "" {
			inner += "\n<content>\n" + content + "\n</content>"
		}
		g.messages = append(g.messages,
			coretest.Assistant(core.Text(string(say)+"\n\n<"+name+">\n"+inner+"\n</"+name+">")),
			coretest.User(core.Text("["+name+" for '"+target+"'] Result:"), core.Text(result), env))
		return
	}
	args := fmt.Sprintf(`{"%s":%q}`, key, target)
	if content != "" {
		args = fmt.Sprintf(`{"%s":%q,"content":%q}`, key, target, content)
	}
	g.messages = append(g.messages,
		coretest.Assistant(say, core.ToolCall{ID: id, Name: name, Args: args}),
		coretest.User(coretest.Result(id, result), env))
}

// read adds a read of a file, answered as Roo-Code does.
func (g *history) read(path, content string) {
	n := strings.Count(content, "\n") + 1
	g.tool("read_file", "path", path, "", fmt.Sprintf("<file><path>%s</path>\n<content lines=\"1-%d\">\n%s\n</content>\n</file>", path, n, content))
}

var vocabulary = strings.Fields(`parser reads line returns number before next one asked last file ends newline column
scanner stops early char value function test passes build output written second table skipped issue module import
export const await promise string number object array index length name path config option default handler request
response server client message token limit window cache buffer queue worker thread signal timer event state store`)

// text returns about n tokens of prose, always the same for the same seed.
func text(seed, n int) string { return words(seed, n, 12) }

// code returns about n tokens in short lines.
func code(seed, n int) string { return words(seed, n, 6) }

func words(seed, n, perLine int) string {
	var b strings.Builder
	x := uint64(seed)*2654435761 + 12345
	n = n * perLine / (perLine + 1) // a word is a token, and so is the end of a line
	for i := range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		if i > 0 {
			if i%perLine == 0 {
				b.WriteByte('\n')
			} else {
				b.WriteByte(' ')
			}
		}
		b.WriteString(vocabulary[x%uint64(len(vocabulary))])
	}
	return b.String()
}
