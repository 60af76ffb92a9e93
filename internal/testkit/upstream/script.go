package upstream

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lines are the formats of the output of Loop's commands, for seq -f.
var lines = []string{
	"ok   internal/part/unit%04g_test.go  passed in 12 ms, 3 assertions, no allocation",
	"src/service/handler%04g.ts:41:  const result = await repository.find(query, options)",
	"-rw-r--r-- 1 root dev 18240 Nov 22 10:14 build/output/chunk-%04g.min.js",
	"2026-11-22T10:14:07Z INFO worker: job %04g finished, 118 rows read, 7 rows written",
	"error TS2345: argument %04g is of type string | undefined, expected string in module core",
}

// Loop returns a script of n calls, each of which prints about size bytes, and a last text. The command of step i
// (the first is 1) also prints needles[i].
func Loop(n, size int, needles map[int]string) []Step {
	script := make([]Step, 0, n+1)
	for i := 1; i <= n; i++ {
		format := lines[i%len(lines)]
		first := 1000 + 61*i%7000
		last := first + max(0, size/(len(format)-1)-1)
		command := fmt.Sprintf(`seq -f "%s" %d %d`, format, first, last)
		if s := needles[i]; s != "" {
			command = fmt.Sprintf(`echo "%s" && %s`, s, command)
		}
		script = append(script, Step{Commands: []string{command}})
	}
	return append(script, Step{Text: fmt.Sprintf("All %d steps are done.", n)})
}

var (
	echo = regexp.MustCompile(`^echo "(.*)"$`)
	seq  = regexp.MustCompile(`^seq -f "(.*)" (\d+) (\d+)$`)
)

// Output returns a shell's output for a command of Loop. It is for clients without a shell.
func Output(command string) string {
	var b strings.Builder
	for c := range strings.SplitSeq(command, " && ") {
		if m := echo.FindStringSubmatch(c); m != nil {
			b.WriteString(m[1] + "\n")
		} else if m := seq.FindStringSubmatch(c); m != nil {
			first, _ := strconv.Atoi(m[2])
			last, _ := strconv.Atoi(m[3])
			for i := first; i <= last; i++ {
				fmt.Fprintf(&b, m[1]+"\n", float64(i))
			}
		} else {
			b.WriteString(c + ": command not found\n")
		}
	}
	return b.String()
}

// A conversation is the vendor's memory of how far the script is.
type conversation struct {
	id     string
	played int
	last   [16]byte // the prompt that the last step answered: if it comes again, so does the answer
	record int      // the last turn
	blocks []part   // its prompt
}

// summaries begin or are in the last message of agents that condense by themselves: Claude Code, Codex, OpenCode,
// Gemini CLI.
var summaries = []string{
	"Your task is to create a detailed summary of the ", "CONTEXT CHECKPOINT COMPACTION", "Provide a detailed prompt for continuing our conversation",
	"First, reason in your scratchpad. Then, generate the ",
}

// script returns the script of the prompt's conversation.
func (v *Vendor) script(p *prompt) []Step {
	if p.agent != "" && v.o.SubAgents != nil {
		return v.o.SubAgents
	}
	return v.o.Script
}

// IsAccount reports whether a prompt, or the body of a request, asks for an account of the work as condense does.
func IsAccount(body []byte) bool {
	return bytes.Contains(body, []byte("[System operation: this is not a message from the user.]")) && bytes.Contains(body, []byte("account of the work "))
}

// side returns why the request is no turn of a conversation, or "".
func (v *Vendor) side(p *prompt) string {
	switch n := len(p.blocks); {
	case p.count:
		return "count"
	case n > 0 && p.blocks[n-1].kind == "compaction_trigger":
		return "compaction"
	case p.limit == 1:
		return "probe"
	case p.format != nil || p.forced:
		return "format"
	case slices.ContainsFunc(summaries, func(s string) bool { return strings.Contains(p.last, s) }):
		return "summary"
	case v.o.Account != nil && IsAccount([]byte(p.last)):
		return "account"
	case p.forbids():
		return "no tool"
	case p.shell() == nil && slices.ContainsFunc(v.script(p), func(s Step) bool { return len(s.Commands) > 0 }):
		return "no tool"
	}
	return ""
}

// next returns the conversation of the prompt, and the step to play, from 1. n is the number of the record. v.mu is
// held.
func (v *Vendor) next(p *prompt, n int) (id string, step int) {
	switch id = p.known; {
	case v.o.ByCredential:
		id = digest("credential", p.tenant, p.agent)
	case p.session != "":
		id = digest("session", p.tenant, p.session, p.agent)
	case id == "":
		id = digest("first", p.tenant, p.agent, p.first)
	}
	c := v.conversations[id]
	if c == nil {
		c = &conversation{id: id}
		v.conversations[id] = c
	}
	if sum := p.blocks[len(p.blocks)-1].sum; c.played == 0 || c.last != sum {
		c.played++
		c.last = sum
		v.follow(c, p, n)
	}
	return id, c.played
}

// An answer is the model's answer, in no wire format.
type answer struct {
	id       string
	thinking string
	seal     string
	omitted  bool
	text     string
	calls    []call
	output   object // the item of a compaction
	stop     string // Anthropic's stop reason
	tokens   int
}

type call struct {
	id    string
	tool  *tool
	input object
	raw   string // the input of a freeform tool
}

// play returns the answer to a prompt. n is the number of the request.
func (v *Vendor) play(p *prompt, r *Record) *answer {
	a := &answer{id: identifier("", r.N), stop: "end_turn"}
	switch r.Side {
	case "":
		s := Step{Text: "Done."}
		if script := v.script(p); r.Step <= len(script) {
			s = script[r.Step-1]
		}
		a.text = s.Text
		prefix := map[API]string{Messages: "toolu", Chat: "call", Responses: "call", Gemini: "call", Converse: "tooluse"}[p.api]
		add := func(t *tool, input object, raw string) {
			id := fmt.Sprintf("%s_%s_%d_%d", prefix, r.Conversation, r.Step, len(a.calls))
			a.calls, a.stop = append(a.calls, call{id, t, input, raw}), "tool_use"
		}
		if shell := p.shell(); shell != nil {
			for _, command := range s.Commands {
				input, raw := shell.run(command)
				add(shell, input, raw)
			}
		}
		all := s.Calls
		if s.Make != nil {
			all = append(slices.Clone(all), s.Make(r.Prompt())...)
		}
		for _, c := range all {
			if t := p.pick(func(t *tool) bool { return t.namespace+t.name == c.Tool }); t != nil {
				add(t, c.Input, "")
			} else if t := p.shell(); t != nil && t.name == codeMode {
				add(t, nil, fmt.Sprintf("const r = await tools.%s(%s); for (const c of r.content) text(c.text);", c.Tool, encode(c.Input)))
			}
		}
		if p.thinking != "" && len(a.calls) > 0 {
			v.think(a, p, r.Step)
		}
	case "account":
		a.text = v.o.Account(*r)
	case "probe":
		a.text, a.stop = "Hi", "max_tokens"
	case "summary":
		asked := strings.ToValidUTF8(p.first[:min(len(p.first), 300)], "")
		a.text = "<summary>The user asked: " + asked + "\nSome steps have been run; go on with the next one.</summary>"
	case "compaction":
		if v.o.NoCompaction != "" {
			a.text = "What should be done next?"
			break
		}
		a.output = object{"type": "compaction", "id": identifier("cmp", r.N), "encrypted_content": seal{text: p.blocks[len(p.blocks)-1].sum}.String()}
	case "format":
		a.text = "Short answer"
		if p.format != nil {
			a.text = string(encode(example(p.format)))
		} else if t := p.pick(func(*tool) bool { return true }); t != nil && p.wants() {
			a.calls = append(a.calls, call{id: fmt.Sprintf("call_side_%d", r.N), tool: t, input: obj(example(t.schema))})
			a.text, a.stop = "", "tool_use"
		}
	default:
		a.text = "Short answer"
	}
	size := len(a.thinking) + len(a.text)
	for _, c := range a.calls {
		size += len(encode(c.input)) + len(c.raw)
	}
	a.tokens = v.tokens(size)
	return a
}

// think puts thinking, with characters of several bytes, before the calls.
func (v *Vendor) think(a *answer, p *prompt, step int) {
	if a.omitted = p.omitted; !a.omitted {
		a.thinking = fmt.Sprintf("Step %d – the next command follows; its result decides what is to be done → “go on”. ✓", step)
	}
	if p.api == Responses {
		s := seal{text: hashOf("reasoning", a.calls[0].id)}
		if a.text != "" {
			s.text = hashOf("reasoning", "message")
		}
		a.seal = s.String()
		return
	}
	s := seal{prefix: p.blocks[len(p.blocks)-1].bound, text: hashOf("thinking", a.thinking)}
	for _, b := range p.blocks {
		if b.kind == "thinking" {
			if before, ok := unseal(text(b.value["signature"])); ok {
				s.before = before.id()
			}
		}
	}
	a.seal = s.String()
}

// identifier is the nth identifier of a kind.
func identifier(kind string, n int) string {
	return strings.TrimPrefix(fmt.Sprintf("%s_%024d", kind, n), "_")
}

// wants reports whether one tool must be called.
func (p *prompt) wants() bool {
	if s, ok := p.doc["tool_choice"].(string); ok {
		return s == "required"
	}
	o, ok := p.doc["tool_choice"].(object)
	return ok && text(o["type"]) != "none"
}

// forbids reports whether no tool may be called.
func (p *prompt) forbids() bool {
	calling := obj(obj(p.doc["toolConfig"])["functionCallingConfig"])
	return text(p.doc["tool_choice"]) == "none" || text(obj(p.doc["tool_choice"])["type"]) == "none" || text(calling["mode"]) == "NONE"
}

// pick returns the first tool that fits.
func (p *prompt) pick(fits func(*tool) bool) *tool {
	for i := range p.tools {
		if fits(&p.tools[i]) {
			return &p.tools[i]
		}
	}
	return nil
}

// shells are the names of the tools that run commands: Claude Code; OpenCode and pi; Codex.
var shells = []string{"Bash", "bash", "exec_command", "shell_command", "shell", "local_shell", codeMode}

// codeMode is the tool of Codex that runs JavaScript, which calls the others.
const codeMode = "exec"

// shell returns the client's tool that runs commands: one of a known name, or the first that has a property "command",
// "cmd" or "commands".
func (p *prompt) shell() *tool {
	for _, name := range shells {
		if t := p.pick(func(t *tool) bool { return t.name == name }); t != nil {
			return t
		}
	}
	return p.pick(func(t *tool) bool { return t.property() != "" })
}

// property is the name of the property that takes the command.
func (t *tool) property() string {
	properties, _ := t.schema["properties"].(object)
	for _, name := range []string{"command", "cmd", "commands"} {
		if o, ok := properties[name].(object); ok && (has(o, "string") || has(o, "array")) {
			return name
		}
	}
	return ""
}

// has reports whether a schema allows the type.
func has(schema object, name string) bool {
	if list, ok := schema["type"].([]any); ok {
		return slices.Contains(list, any(name))
	}
	return strings.EqualFold(text(schema["type"]), name) // Google writes them in capitals, too
}

// run returns the input of the tool that runs a command.
func (t *tool) run(command string) (input object, raw string) {
	argv := []any{"bash", "-lc", command}
	if t.kind == "local_shell" {
		return object{"type": "exec", "command": argv, "env": object{}}, ""
	}
	if t.kind == "custom" {
		if t.name == codeMode {
			command = fmt.Sprintf("const r = await tools.exec_command({cmd: %q}); text(r.output);", command)
		}
		return nil, command
	}
	name := t.property()
	input, _ = example(t.schema).(object)
	if input == nil {
		input = object{}
	}
	if name == "commands" { // Cline
		input[name] = []any{command}
	} else if o, _ := obj(t.schema["properties"])[name].(object); name != "" && !has(o, "string") {
		input[name] = argv
	} else {
		input[firstOf(name, "command")] = command
	}
	return input, ""
}

// example returns a value that a JSON schema accepts, with only the required members.
func example(schema object) any {
	if list, ok := schema["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	if c, ok := schema["const"]; ok {
		return c
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := schema[key].([]any); ok && len(list) > 0 {
			if slices.ContainsFunc(list, func(s any) bool { return has(obj(s), "null") }) { // pi
				return nil
			}
			return example(obj(list[0]))
		}
	}
	switch {
	case has(schema, "string"):
		return "Next step"
	case has(schema, "integer"), has(schema, "number"):
		if n, ok := schema["minimum"]; ok {
			return n
		}
		if has(schema, "number") { // Gemini CLI: the confidence that the agent is in a loop
			return 0
		}
		return 1
	case has(schema, "boolean"):
		return false
	case has(schema, "array"):
		return []any{}
	}
	out := object{}
	properties, _ := schema["properties"].(object)
	for _, name := range anys(schema["required"]) {
		out[text(name)] = example(obj(properties[text(name)]))
	}
	return out
}
