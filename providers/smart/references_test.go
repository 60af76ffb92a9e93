package smart_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// eventful makes up a session in which files are read and written again and again.
func eventful(t *rapid.T) []core.Message {
	g := history{protocol: protocol(rapid.Bool().Draw(t, "protocol")), env: rapid.IntRange(10, 60).Draw(t, "env")}
	g.user("Go.")
	version := map[int]int{}
	for range rapid.IntRange(1, 25).Draw(t, "turns") {
		file := rapid.IntRange(0, 2).Draw(t, "file")
		path := fmt.Sprintf("src/f%d.ts", file)
		body := code(100+file, 120)
		if v := version[file]; v > 0 {
			body = strings.Replace(body, "\n", fmt.Sprintf("\nchanged in version %d\n", v), 1)
		}
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0, 1:
			g.read(path, body)
		case 2:
			version[file]++
			g.tool("write_to_file", "path", path, body, "The content was written.")
		case 3:
			g.tool("execute_command", "command", "npm test", "", body+fmt.Sprintf("\nran in %d ms", version[file]))
		case 4:
			version[file]++
		}
	}
	g.messages = append(g.messages, coretest.Assistant(core.Text("Done.")))
	return coretest.Conversation(g.messages...)
}

var stubForm = regexp.MustCompile(`\[… [^\]\n]*left out(?:: ([^\]\n;]*))?; recall h:([0-9a-f]{10})\]`)

// TestWhatIsRemovedIsFound follows every reference that the lossless passes leave: the
// handle leads to the original, and a text that is said to be below is there.
func TestWhatIsRemovedIsFound(t *testing.T) {
	p := open(t, `{"preset": "lossless"}`)
	rapid.Check(t, func(t *rapid.T) {
		req := coretest.Request(eventful(t), 1)
		original := map[string]core.Part{}
		for _, m := range req.Messages {
			for _, part := range m.Parts {
				original[core.Handle(part)] = part
			}
		}
		res := condense(t, p, req)
		for i, m := range res.Messages {
			below := textOf(res.Messages[i+1:]...)
			for _, part := range m.Parts {
				now := textOf(core.Message{Parts: []core.Part{part}})
				for _, found := range stubForm.FindAllStringSubmatchIndex(now, -1) {
					where, handle := "", now[found[4]:found[5]]
					if found[2] >= 0 {
						where = now[found[2]:found[3]]
					}
					was, ok := original[handle]
					if !ok {
						t.Fatalf("nothing has the handle of %s", now[found[0]:found[1]])
					}
					before := textOf(core.Message{Parts: []core.Part{was}})
					if !strings.HasPrefix(before, now[:found[0]]) {
						t.Fatalf("%s: not where it was:\n%s\n%s", now[found[0]:found[1]], before, now)
					}
					if strings.HasPrefix(where, "same text") {
						gone := strings.TrimSuffix(strings.TrimPrefix(before, now[:found[0]]), now[found[1]:])
						if !strings.Contains(below, gone) {
							t.Fatalf("not below: %q\n%s", gone, dump(res.Messages))
						}
					}
				}
			}
		}
		// The newest state of every file that was read is still there.
		for file := range 3 {
			head := fmt.Sprintf("<file><path>src/f%d.ts</path>", file)
			newest := ""
			for _, m := range req.Messages {
				for _, part := range m.Parts {
					if s := textOf(core.Message{Parts: []core.Part{part}}); strings.HasPrefix(s, head) {
						newest = s
					}
				}
			}
			if newest != "" && !strings.Contains(textOf(res.Messages...), newest) {
				t.Fatalf("the newest state of file %d is gone", file)
			}
		}
	})
}

// textOf returns all text of messages.
func textOf(messages ...core.Message) string {
	var b strings.Builder
	var add func(parts []core.Part)
	add = func(parts []core.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case core.Text:
				b.WriteString(string(p))
			case core.ToolCall:
				b.WriteString(p.Args)
			case core.ToolResult:
				add(p.Content)
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	for _, m := range messages {
		add(m.Parts)
	}
	return b.String()
}

func dump(messages []core.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s:\n%s\n", m.ID, m.Role, textOf(m))
	}
	return b.String()
}

// TestReferencesEnd: stubs of a former condensation no longer say where their content is when
// lines are chosen among all there is; its handles stay.
func TestReferencesEnd(t *testing.T) {
	first, second := open(t, `{"preset": "lossless"}`), open(t, `{"preset": "balanced"}`)
	tied := 0
	rapid.Check(t, func(t *rapid.T) {
		req := coretest.Request(eventful(t), 1)
		next := again(req, condense(t, first, req))
		tied += len(reference.FindAllString(textOf(next.Messages...), -1))
		next.Budget.Target = total(next.Messages) * 2 / 3
		res := condense(t, second, next)
		if i := slices.IndexFunc(res.Steps, func(s core.Step) bool { return s.Name == "value" && s.Changed > 0 }); i < 0 {
			return
		}
		if found := reference.FindString(textOf(res.Messages...)); found != "" {
			t.Fatalf("%s is left", found)
		}
	})
	if tied == 0 {
		t.Error("nothing referred to anything")
	}
}
