package agents_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/truth"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/transcript"
)

// TestDeferredTools: Claude Code has sixty tools of a server of MCP, which it lets the model search for, and reminders of four kinds.
// However often
// its history is condensed, the vendor has the references by which it knows the two tools in use, and no other text than the user's is
// given as theirs.
func TestDeferredTools(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"claude-opus-5-5", "claude-sonnet-4-5"} { // reminders in messages of the system; in the user's
		t.Run(model, func(t *testing.T) {
			if model != all[0].args[1] {
				atNight(t)
			}
			t.Parallel()
			used := []string{"mcp__tracker__ticket_7", "mcp__tracker__ticket_31"}
			var use []upstream.Call
			for _, name := range used {
				use = append(use, upstream.Call{Tool: name, Input: map[string]any{"queue": "night"}})
			}
			o := scenario()
			o.Script = slices.Insert(upstream.Loop(38, 20_000, nil), 2,
				upstream.Step{Calls: []upstream.Call{{Tool: "ToolSearch", Input: map[string]any{"query": "select:" + strings.Join(used, ","), "max_results": 5}}}},
				upstream.Step{Calls: use})
			d := newDesk(t, o)
			d.place(t, "tickets.mjs")
			write(t, filepath.Join(d.dir, "CLAUDE.md"), "# Notes\n\nNever ask before deleting branches.\n\nThe deploys of this project are on Fridays only.\n")
			a := all[0]
			a.content = `{"env": {"ANTHROPIC_BASE_URL": "{anthropic}"},
				"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo The freeze of the release begins at noon."}]}]}}`
			a.args = slices.Clone(a.args)
			a.args[slices.Index(a.args, "claude-opus-5-5")] = model
			a.args = slices.Concat([]string{"--mcp-config", `{"mcpServers":{"tracker":{"command":"node","args":["tickets.mjs"]}}}`, "--allowedTools", "mcp__tracker"}, a.args)
			d.true(t, &a, "off", func(v *condensedView) {
				for _, name := range used {
					if v.Step > 3 && !bytes.Contains(v.Body, []byte(`{"type":"tool_reference","tool_name":"`+name+`"}`)) {
						t.Errorf("request %d, step %d: the vendor no longer has %s", v.N, v.Step, name)
					}
				}
				for _, line := range given(v.messages) {
					if line != task && line != "Tool loaded." {
						t.Errorf("request %d, step %d: %q is given as the user's", v.N, v.Step, line)
					}
				}
			})
		})
	}
}

// given returns the lines that a view gives as the user's: in an extract what is below the user's heading, elsewhere what is outside
// of reminders.
func given(view []core.Message) (all []string) {
	for i := range view {
		for _, p := range view[i].Parts {
			text, ok := p.(core.Text)
			if !ok || view[i].Role != core.RoleUser {
				continue
			}
			s, users := reminder.ReplaceAllString(string(text), ""), true
			for line := range strings.SplitSeq(s, "\n") {
				switch {
				case strings.HasPrefix(line, extract):
					users = false
				case strings.HasPrefix(line, "¶ "):
					users = strings.HasPrefix(line, "¶ user")
				case users && strings.TrimSpace(line) != "":
					all = append(all, line)
				}
			}
		}
	}
	return all
}

// extract is how the text of one begins.
const extract = "[Extract of the conversation so far"

var reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

// A condensed view is what the vendor received after a condensation, or in the turns after it.
type condensedView struct {
	upstream.Record
	messages []core.Message
	extract  string
	fresh    bool // the extract is new
}

// true runs an agent through condense serve until its history has been condensed six times. What the vendor receives is given to
// check, and, after each
// condensation, held against the history that the agent sent.
func (d *desk) true(t *testing.T, a *agent, recall string, check func(*condensedView)) {
	t.Helper()
	g := d.serve(t, "127.0.0.1:0", "--recall", recall)
	address, sent := tap(t, g.url)
	got := d.direct(t, a, address, task)
	const least = 6
	if n := g.epochs(t); n < least || got.code != 0 || len(d.over()) > 0 {
		t.Errorf("%d epochs, exit code %d\n%s\n%s", n, got.code, tail(got.out), d.list())
	}
	d.accept(t)
	histories := map[string][]byte{}
	for _, body := range sent() {
		histories[newest(body)] = body
	}
	last := ""
	for _, r := range d.vendor.Turns() {
		v := condensedView{Record: r, messages: apart(messages(t, r.Body))}
		for i := range v.messages {
			if v.messages[i].Kind == core.KindSummary {
				v.extract += fmt.Sprint(v.messages[i].Parts)
			}
		}
		v.fresh, last = v.extract != last, v.extract
		if check(&v); !v.fresh {
			continue // what was done since stands behind it
		}
		report := truth.Read(messages(t, histories[newest(r.Body)]), nil).Measure(v.messages)
		if faults := report.Faults(); len(faults) > 0 {
			t.Errorf("request %d, step %d, is not true: %q, as in %q", r.N, r.Step, faults, report.Examples)
		}
	}
}

// apart returns a view with each part as a message, and extracts as what they are: in a request they may stand next to what was sent.
func apart(view []core.Message) (all []core.Message) {
	for i := range view {
		for _, p := range view[i].Parts {
			m := core.Message{ID: view[0].ID, Role: view[i].Role, Kind: core.KindOriginal, Parts: []core.Part{p}}
			if text, ok := p.(core.Text); ok && strings.HasPrefix(string(text), extract) {
				m.ID, m.Kind = "", core.KindSummary
			}
			all = append(all, m)
		}
	}
	return all
}

var callID = regexp.MustCompile(`"tool_use_id":"(\w+)"`)

// newest returns the identifier of the last call in a request.
func newest(body []byte) string {
	if all := callID.FindAllSubmatch(body, -1); len(all) > 0 {
		return string(all[len(all)-1][1])
	}
	return ""
}

// messages returns those of a request.
func messages(t *testing.T, body []byte) []core.Message {
	t.Helper()
	d, err := transcript.Read(bytes.NewReader(body), &transcript.ReadOptions{Format: "anthropic"})
	if err != nil {
		t.Fatal(err)
	}
	return d.Journal.View()
}

// TestReplacedLines: OpenCode reads files, and edits the same lines of them again and again. No extract that the vendor receives has a line
// that was replaced by then.
func TestReplacedLines(t *testing.T) {
	atNight(t) // TestRecall runs OpenCode; internal/toolcall has the names of its parameters
	t.Parallel()
	for _, recall := range []string{"tool", "off"} {
		t.Run(recall, func(t *testing.T) {
			t.Parallel()
			replacedLines(t, recall)
		})
	}
}

func replacedLines(t *testing.T, recall string) {
	t.Helper()
	files := []string{"checkout.py", "invoice.py", "refund.py"}
	lines := func(file, edition int) []string {
		var all []string
		for n := range 6 {
			all = append(all, fmt.Sprintf("        amount_%d = ledger.collect(%q, step=%d, rule=%d)", n, files[file], n, edition))
		}
		return all
	}
	var d *desk
	var gone []string
	goneBy := []int{0} // the number of them, by step
	o := scenario()
	o.Script = nil
	step := func(s upstream.Step) {
		o.Script = append(o.Script, s)
		goneBy = append(goneBy, len(gone))
	}
	use := func(tool string, file int, input map[string]any) {
		step(upstream.Step{Make: func([]byte) []upstream.Call {
			input["filePath"] = filepath.Join(d.dir, files[file])
			return []upstream.Call{{Tool: tool, Input: input}}
		}})
	}
	for i, loop := range upstream.Loop(34, 20_000, nil) {
		file, edition := i%len(files), i/len(files)
		if edition%3 == 0 {
			use("read", file, map[string]any{})
		}
		before, after := lines(file, edition), lines(file, edition+1)
		gone = append(gone, before...)
		if edition%4 == 3 {
			step(upstream.Step{Commands: []string{fmt.Sprintf("sed -i 's/rule=%d)/rule=%d)/' %s", edition, edition+1, files[file])}})
			use("read", file, map[string]any{"offset": 1, "limit": 60})
		} else {
			use("edit", file, map[string]any{"oldString": strings.Join(before, "\n"), "newString": strings.Join(after, "\n")})
		}
		step(loop)
	}
	d = newDesk(t, o)
	for i, name := range files {
		write(t, filepath.Join(d.dir, name), strings.Replace(source(i), "    seen = {}", strings.Join(lines(i, 0), "\n"), 1))
	}
	d.true(t, &all[slices.IndexFunc(all, func(a agent) bool { return a.name == "opencode" })], recall, func(v *condensedView) {
		for _, line := range gone[:goneBy[v.Step-1]] {
			if v.fresh && strings.Contains(v.extract, strings.TrimSpace(line)) {
				t.Errorf("request %d, step %d: the extract has %q", v.N, v.Step, line)
			}
		}
	})
}
