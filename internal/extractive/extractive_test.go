package extractive_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/tokens"
)

func say(role core.Role, text string) core.Message {
	return core.Message{Role: role, Parts: []core.Part{core.Text(text)}}
}

// story is a session in which some sentences matter and most do not.
func story() []core.Message {
	m := []core.Message{say(core.RoleUser, "Fix the parser so that nested lists keep their indentation. The tests must stay green.")}
	for i := range 40 {
		m = append(m,
			say(core.RoleAssistant, fmt.Sprintf("Let me look at file number %d now.", i)),
			core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: "c", Content: []core.Part{
				core.Text(strings.Repeat(fmt.Sprintf("line %d of some output that is like every other line\n", i), 30)),
			}}}})
	}
	return append(m,
		say(core.RoleAssistant, "I decided to keep a stack of widths in the parser because recursion lost the indentation of nested lists."),
		say(core.RoleUser, "Never rename the exported function ParseList, other teams call it."),
		say(core.RoleAssistant, "The parser tests are green; the remaining work is the changelog."))
}

func generate(tb testing.TB, messages []core.Message, limit int) string {
	tb.Helper()
	p := &model.Prompt{Messages: append(messages, say(core.RoleUser, "Summarize the conversation.")), MaxOutput: limit}
	a, err := extractive.New().Generate(tb.Context(), p)
	if err != nil {
		tb.Fatal(err)
	}
	if a.Usage != (core.Usage{}) {
		tb.Errorf("got usage %+v, want none: no model was called", a.Usage)
	}
	return a.Text
}

func TestGenerate(t *testing.T) {
	text := generate(t, story(), 300)
	if !strings.HasPrefix(text, extractive.Label+"\n") {
		t.Errorf("got %q, want the label first", text)
	}
	last := 0
	for _, want := range []string{ // in the order of the conversation
		"- Fix the parser so that nested lists keep their indentation.",
		"Assistant:\n- I decided to keep a stack of widths",
		"User:\n- Never rename the exported function ParseList",
		"the remaining work is the changelog",
	} {
		at := strings.Index(text, want)
		if at < last {
			t.Errorf("%q is not in its place in\n%s", want, text)
		}
		last = max(at, last)
	}
	for _, noise := range []string{"like every other line", "Let me look"} {
		if strings.Count(text, noise) > 2 {
			t.Errorf("%q again and again in\n%s", noise, text)
		}
	}
	if strings.Contains(text, "Summarize the conversation") {
		t.Errorf("the instruction in\n%s", text)
	}
	if again := generate(t, story(), 300); again != text {
		t.Errorf("got another answer the second time:\n%s", again)
	}
}

func TestOneMessage(t *testing.T) {
	a, err := extractive.New().Generate(t.Context(), &model.Prompt{Messages: story()[:1]})
	if err != nil || !strings.Contains(a.Text, "Fix the parser") {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestNothingToPick(t *testing.T) {
	for name, p := range map[string]*model.Prompt{
		"no messages": {},
		"blank":       {Messages: []core.Message{say(core.RoleUser, " \n"), say(core.RoleUser, "Summarize.")}},
		"no room":     {Messages: story(), MaxOutput: 10},
	} {
		a, err := extractive.New().Generate(t.Context(), p)
		if !errors.Is(err, model.ErrNoText) || a != nil {
			t.Errorf("%s: got %v, %v; want %v", name, a, err, model.ErrNoText)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := extractive.New().Generate(ctx, &model.Prompt{Messages: story()}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
}

func TestInfo(t *testing.T) {
	i := extractive.New().Info()
	if u := i.Charge(core.Usage{Calls: 1, InputTokens: 1000}); i.Name != "extractive" || u.Unpriced != 0 || u.USD != 0 {
		t.Errorf("got %+v, charge %+v; want one that is known to be free", i, u)
	}
}

// However long the conversation and in whatever script, the answer has no more tokens than
// were allowed, by either vocabulary, and says what it is.
func TestMaxOutput(t *testing.T) {
	var counters []*tokens.Encoding
	for _, name := range []string{tokens.O200kBase, tokens.CL100kBase} {
		e, err := tokens.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		counters = append(counters, e)
	}
	scripts := []string{
		"The quick brown fox jumps over the lazy dog, always. ", "日本語の文章はここで終わります。次の文も続きます。",
		"Это предложение написано по-русски. ", "zażółć gęślą jaźń bez końca. ", "{\"a\":[1,2,3],\"b\":{\"c\":null}};\n",
		"0x7ffe8a3c 9f86d081884c7d659a2feaa0c55ad015 a1b2c3d4\n", "😀😃😄 emoji here and there! ", "\xff\xfe broken bytes all over. ", "नमस्ते दुनिया यह एक वाक्य है. ",
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		for range rapid.IntRange(1, 20).Draw(t, "further") {
			s := rapid.SampledFrom(scripts).Draw(t, "script")
			messages = append(messages, say(core.RoleAssistant, strings.Repeat(s, rapid.IntRange(1, 50).Draw(t, "times"))))
		}
		limit := rapid.IntRange(60, 2000).Draw(t, "limit")
		a, err := extractive.New().Generate(context.Background(), &model.Prompt{Messages: append(messages, say(core.RoleUser, "Go.")), MaxOutput: limit})
		if err != nil {
			if errors.Is(err, model.ErrNoText) {
				return
			}
			t.Fatal(err)
		}
		if !strings.HasPrefix(a.Text, extractive.Label) {
			t.Errorf("got %q", a.Text)
		}
		for _, c := range counters {
			if n := c.CountText(a.Text); n > limit {
				t.Errorf("got %d tokens, want at most %d:\n%s", n, limit, a.Text)
			}
		}
	})
}

// large is a session of n messages of some 400 tokens.
func large(n int) []core.Message {
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%x", r.IntN(4000)) }
	var all []core.Message
	for i := range n {
		var b strings.Builder
		for range 20 {
			for range 9 {
				b.WriteString(word() + " ")
			}
			b.WriteString("end.\n")
		}
		role := core.RoleAssistant
		if i%5 == 0 {
			role = core.RoleUser
		}
		all = append(all, say(role, b.String()))
	}
	return all
}

func TestCostIsLinear(t *testing.T) {
	testkit.Linear(t, 400, func(n int) func() {
		messages := large(n)
		return func() { generate(t, messages, 2000) }
	})
}

func BenchmarkGenerate(b *testing.B) {
	messages := large(400)
	e, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, m := range messages {
		n += e.CountText(string(m.Parts[0].(core.Text)))
	}
	b.ReportMetric(float64(n), "tokens")
	for b.Loop() {
		generate(b, messages, 2000)
	}
	b.ReportMetric(float64(n), "tokens")
}
