package smart_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// A rooTalk makes up conversations as Roo-Code and Cline write them, in which long things
// are written, read and talked about.
type rooTalk struct {
	*rand.Rand
	messages []core.Message
	n        int
}

func (g *rooTalk) lines(most int) string {
	g.n++
	return words(g.n, 5+g.IntN(most), 6)
}

// about is a text that a call may write: code, or a text about calls.
func (g *rooTalk) about() string {
	switch g.IntN(4) {
	case 0:
		return g.lines(100) + "\n<read_file>\n<path>docs/" + g.lines(3) + "</path>\n</read_file>\n" + g.lines(100)
	case 1:
		return "<write_to_file>\n<content>\n" + g.lines(150) + "\n</content>\n</write_to_file>"
	case 2:
		return "<div class=\"a\">\n" + g.lines(200) + "\n</div>"
	default:
		return g.lines(300)
	}
}

func (g *rooTalk) path() string { return fmt.Sprintf("src/f%d.ts", g.IntN(4)) }

// call returns a call and what it is answered with.
func (g *rooTalk) call() (call, head, result string) {
	p := g.path()
	switch g.IntN(7) {
	case 0:
		return "<write_to_file>\n<path>" + p + "</path>\n<content>\n" + g.about() + "\n</content>\n<line_count>9</line_count>\n</write_to_file>",
			"[write_to_file for '" + p + "'] Result:", "<file_write_result>\n<path>" + p + "</path>\n<operation>modified</operation>\n<notice>" + g.lines(60) + "</notice>\n</file_write_result>"
	case 1:
		q := g.path()
		return "<apply_diff>\n<args>\n<file>\n<path>" + p + "</path>\n<diff>\n<content>" + g.about() + "</content>\n</diff>\n</file>\n<file>\n<path>" + q + "</path>\n<diff>\n<content>" + g.about() + "</content>\n</diff>\n</file>\n</args>\n</apply_diff>",
			"[apply_diff for '" + p + "'] Result:", "<file><path>" + p + "</path><error>" + g.lines(80) + "</error></file>"
	case 2:
		return "<execute_command><command>" + g.lines(30) + "</command></execute_command>", "[execute_command for 'make'] Result:", "Exit code: 1\n" + g.lines(300)
	case 3:
		return "<attempt_completion>\n<result>" + g.lines(100) + "</result>\n</attempt_completion>", "[attempt_completion] Result:", "<feedback>\n" + g.lines(50) + "\n</feedback>"
	case 4:
		return "<update_todo_list><todos>" + g.lines(80) + "</todos></update_todo_list>", "[update_todo_list] Result:", "Done."
	default:
		var out strings.Builder
		for _, f := range []string{p, g.path()}[:1+g.IntN(2)] {
			fmt.Fprintf(&out, "<file><path>%s</path>\n<content lines=\"1-90\">\n%s\n</content>\n</file>\n", f, g.lines(300))
		}
		return "<read_file>\n<args>\n<file>\n<path>" + p + "</path>\n</file>\n</args>\n</read_file>", "[read_file for '" + p + "'] Result:", "<files>\n" + out.String() + "</files>"
	}
}

func talk(seed uint64) []core.Message {
	g := rooTalk{Rand: rand.New(rand.NewPCG(seed, 0))}
	env := func() core.Part {
		return core.Text("<environment_details>\n# Tabs\n" + g.lines(40) + "\n\n# Terminals\n</div> " + g.lines(20) + "\n\n# Mode\ncode\n</environment_details>")
	}
	g.messages = append(g.messages, coretest.User(core.Text("<task>\n"+g.lines(40)+"\n</task>"), env()))
	for range 1 + g.IntN(14) {
		call, head, result := g.call()
		said := "<thinking>\n" + g.lines(120) + "\n</thinking>\n" + g.lines(100)
		switch g.IntN(4) {
		case 0:
			said += " As in " + strings.ReplaceAll(call, "\n", " ") + ", " + g.lines(60) // a call that no line begins with
		case 1:
			said = g.lines(20)
		}
		user := []core.Part{core.Text(head), core.Text(result), env()}
		if g.IntN(2) == 0 {
			user = []core.Part{core.Text(head + "\n" + result + "\n\n" + string(env().(core.Text)))} //nolint:forcetypeassert // it is one
		}
		g.messages = append(g.messages, coretest.Assistant(core.Text(said+"\n\n"+call)), coretest.User(user...))
	}
	g.messages = append(g.messages, coretest.Assistant(core.Text("<attempt_completion>\n<result>\n"+g.lines(30)+"\n</result>\n</attempt_completion>")))
	return coretest.Conversation(g.messages...)
}

var (
	anyStub  = regexp.MustCompile(`\[… [^\]\n]* left out[^\]\n]*\]`)
	anyTag   = regexp.MustCompile(`</?([a-z_]+)(?: [^<>\n]*)?>`)
	anyHalf  = regexp.MustCompile(`</?[a-z_]*(?:$|[^a-z_ >])|(?:^|[^a-z_" ])[a-z_]+>`)
	diffLine = regexp.MustCompile(`(?m)^[-+].*$`)
)

// half returns the first tag of a text that has no counterpart, or is cut.
func half(text string) string {
	if i := strings.Index(text, " with this diff"); i >= 0 { // a diff quotes lines
		text = diffLine.ReplaceAllString(text, "")
	}
	text = anyStub.ReplaceAllString(text, "\x00")
	var open []string
	for _, m := range anyTag.FindAllStringSubmatch(text, -1) {
		switch {
		case m[0][1] != '/':
			open = append(open, m[1])
		case m[1] == "div" && !slices.Contains(open, "div"):
		case len(open) == 0 || open[len(open)-1] != m[1]:
			return fmt.Sprintf("%s ends what is not open in %v", m[0], open)
		default:
			open = open[:len(open)-1]
		}
		open = slices.DeleteFunc(open, func(s string) bool { return s == "div" }) // that is content
	}
	if len(open) > 0 {
		return fmt.Sprintf("%v is left open", open)
	}
	return anyHalf.FindString(anyTag.ReplaceAllString(text, " "))
}

// TestTagsStayWhole: no view holds a tag of the text protocols without its like, or a piece
// of one, where the conversation did not. Extracts and summaries, which quote lines, are
// messages of their own and not held to it.
func TestTagsStayWhole(t *testing.T) {
	var settings []string
	for _, f := range forms() {
		settings = append(settings, f.settings)
	}
	for _, p := range drawn {
		settings = append(settings, `{"passes": [`+p+`]}`, `{"passes": [`+p+`, {"pass": "headtail", "tokens": 40, "keep": 0}, {"pass": "mask", "keep": 1, "inputs": true}]}`)
	}
	opened := map[string]core.CondensationProvider{}
	for _, with := range settings {
		opened[with] = open(t, with)
	}
	rapid.Check(t, func(t *rapid.T) {
		messages := talk(rapid.Uint64().Draw(t, "seed"))
		for _, m := range messages {
			if h := half(textOf(m)); h != "" {
				t.Fatalf("the conversation itself: %s in\n%s", h, textOf(m))
			}
		}
		with := rapid.SampledFrom(settings).Draw(t, "settings")
		p := opened[with]
		req := coretest.Request(messages, rapid.IntRange(1, 3000).Draw(t, "target"))
		for round := range 3 {
			res := condense(t, p, req)
			for _, m := range res.Messages {
				if m.Kind != core.KindOriginal || m.ID == "" {
					continue
				}
				if h := half(textOf(m)); h != "" {
					t.Fatalf("round %d: %s in\n%s", round, h, textOf(m))
				}
			}
			req = again(req, res)
			req.Budget.Target = req.Budget.Target * 2 / 3
		}
	})
}
