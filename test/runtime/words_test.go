package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/providers/smart"
)

// keepers are the strategies, presets and chains that keep the user's words.
var keepers = map[string]func() (core.CondensationProvider, error){
	"smart/gentle":     ofSmart(smart.Config{Preset: "gentle"}),
	"smart/balanced":   ofSmart(smart.Config{Preset: "balanced"}),
	"smart/aggressive": ofSmart(smart.Config{Preset: "aggressive"}),
}

func ofSmart(c smart.Config) func() (core.CondensationProvider, error) {
	return func() (core.CondensationProvider, error) { return smart.New(c) }
}

// TestUsersWordsGoLast: at every target no word of the user is missing while anything else is there that could go, the
// newest request is whole, and a larger target keeps all words that a smaller one keeps.
func TestUsersWordsGoLast(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for name, open := range keepers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := open()
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) { checkWords(rt, p, drawTalk(rt)) })
		})
	}
}

// A saying is a conversation with the texts of the user and of others in it, each of which occurs once.
type saying struct {
	messages     []core.Message
	said, others []string
}

// checkWords condenses s to rising targets. The limit is far away, so that nothing but the target forces a loss.
func checkWords(rt *rapid.T, p core.CondensationProvider, s saying) {
	messages := coretest.Conversation(s.messages...)
	overhead := rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "system prompt")
	counter := coretest.Counter{}
	all := 0
	for i := range messages {
		all += messages[i].Tokens
	}
	var before []string // the user's texts at the target before
	for _, percent := range []int{1, 2, 4, 6, 8, 11, 15, 20, 30, 45, 70, 95} {
		req := &core.Request{
			Messages: messages, Counter: counter, Trigger: core.TriggerAutomatic, Typed: dialog.Typed,
			Budget: core.Budget{Window: 2 * (all + overhead), Overhead: overhead, Limit: all + overhead, Target: overhead + all*percent/100},
		}
		res, err := p.Condense(context.Background(), req.Clone())
		if err != nil {
			rt.Fatal(err)
		}
		if err := core.Verify(req, res); err != nil {
			rt.Fatal(err)
		}
		view := textOf(res.Messages)
		has := func(text string) bool { return strings.Contains(view, text) }
		kept := slices.DeleteFunc(slices.Clone(s.said), func(text string) bool { return !has(text) })
		if len(kept) < len(s.said) {
			if i := slices.IndexFunc(s.others, has); i >= 0 {
				rt.Errorf("%d %%: of %q there is %q, but %q\n%s", percent, s.said, kept, s.others[i], view)
			}
		}
		if newest := s.said[len(s.said)-1]; !has(newest) {
			rt.Errorf("%d %%: the newest request %q is not whole\n%s", percent, newest, view)
		}
		for _, text := range before {
			if !has(text) {
				rt.Errorf("%d %%: %q is gone, which a smaller target keeps\n%s", percent, text, view)
			}
		}
		before = kept
	}
}

// textOf returns the texts, calls and results of messages.
func textOf(messages []core.Message) string {
	var b strings.Builder
	var write func(parts []core.Part)
	write = func(parts []core.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case core.Text:
				b.WriteString(string(p) + "\n")
			case core.ToolCall:
				b.WriteString(p.Args + "\n")
			case core.ToolResult:
				write(p.Content)
			case core.Reasoning, core.Image, core.Opaque:
			}
		}
	}
	for i := range messages {
		fmt.Fprintf(&b, "-- %s\n", messages[i].Role)
		write(messages[i].Parts)
	}
	return b.String()
}

// utterances are what users type, with a number at %d. Many are alike.
var utterances = []string{
	"Rule %d: never push to main.", "Rule %d: from now on answer in German.", "RULE-%d: instead of English answer in German.", "Point %d: no longer use tabs.",
	"Step %d: now use the table users in the form.", "Requirement %d: prices are in euros.", "Fix issue %d", "Never delete table %d", "Pay invoice 10%d", "Deploy v1.2.%d to staging",
	"My budget is %d00", "Meeting on 2026-12-%d", "go on %d", "yes, %d", "%d?", "UTX-%d-END DO 4", "规则 %d：不要修改 lynx 目录下的文件。", "从现在起改成用中文回答 %d。", "スキーマ %d を変更しないでください。",
	"Ab sofort Regel %d: nie direkt pushen.", "No toques la carpeta %d. Haz las pruebas primero. Luego dime qué falta.", "Ne renomme jamais le dossier %d !", "правило %d: не удаляй файлы",
	"Look at this:\n- first %d\n- then the rest\n\nNever touch vendor/. No underscore may appear.", "Please mend parser%d.go. It drops the last line. Do not change the tests.",
}

// drawTalk returns a random conversation of a user with an agent.
func drawTalk(rt *rapid.T) saying {
	var s saying
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
	n := 0
	other := func(format string) string {
		n++
		s.others = append(s.others, fmt.Sprintf("canary%dx", n))
		return fmt.Sprintf(format, s.others[n-1])
	}
	say := func() core.Text {
		text := fmt.Sprintf(utterances[r.IntN(len(utterances))], 10+len(s.said)) // two digits: none is a part of another
		s.said = append(s.said, text)
		return core.Text(text)
	}
	if rapid.Bool().Draw(rt, "rules") {
		s.messages = append(s.messages, coretest.User(core.Text("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\n"+strings.Repeat(other("- Never touch %s.\n"), r.IntN(300))+"</INSTRUCTIONS>")))
	}
	tools := rapid.IntRange(0, 6).Draw(rt, "tools") // calls after each message of the user, at most
	rounds := rapid.IntRange(1, 30).Draw(rt, "rounds")
	for i := range rounds {
		parts := []core.Part{say()}
		if r.IntN(4) == 0 {
			parts = slices.Insert(parts, 0, core.Part(core.Text("<system-reminder>\n"+strings.Repeat(other("Think of %s.\n"), 1+r.IntN(20))+"</system-reminder>")))
		}
		s.messages = append(s.messages, coretest.User(parts...))
		last := i == rounds-1
		if last && rapid.Bool().Draw(rt, "unanswered") {
			break
		}
		for range min(tools, r.IntN(7)) {
			id := fmt.Sprint("c", len(s.messages))
			s.messages = append(s.messages,
				coretest.Assistant(core.Text(other("I look at %s.")), core.ToolCall{ID: id, Name: "Read", Args: fmt.Sprintf(`{"file_path":"/w/%s.go"}`, id)}),
				coretest.User(coretest.Result(id, strings.Repeat(other("%s := parse(line)\n"), 1+r.IntN(80)))))
		}
		if tools > 0 && !last && r.IntN(6) == 0 { // the user rejects a call, and says why
			id := fmt.Sprint("r", len(s.messages))
			rejected := "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\n" + string(say())
			s.messages = append(s.messages,
				coretest.Assistant(core.Text(other("I change %s.")), core.ToolCall{ID: id, Name: "Edit", Args: `{"file_path":"/w/a.go"}`}),
				coretest.User(core.ToolResult{CallID: id, IsError: true, Content: []core.Part{core.Text(rejected)}}))
		}
		if !last || rapid.Bool().Draw(rt, "answered") {
			s.messages = append(s.messages, coretest.Assistant(core.Text(other("%s is done. ")+strings.Repeat("All of it works now. ", r.IntN(30)))))
		}
	}
	return s
}
