package native_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// A life is a conversation with its journal, a chain and what the host would tell it.
type life struct {
	t         *testing.T
	journal   *history.Journal
	chain     *core.Chain
	req       core.Request // what does not change from one condensation to the next
	said      int
	condensed int
}

// newLife starts a conversation in a window of so many tokens, with a provider, followed by
// truncation.
func newLife(t *testing.T, window int, p core.CondensationProvider) *life {
	t.Helper()
	chain, err := core.NewChain([]core.NamedProvider{
		{Name: "summary", Provider: p},
		{Name: "truncation", Provider: slidingwindow.New(slidingwindow.DefaultConfig())},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, journal: history.New(), chain: chain}
	l.req = core.Request{
		Budget:  core.Budget{Window: window, Limit: window * 9 / 10, Target: window / 2},
		Trigger: core.TriggerAutomatic, Counter: coretest.Counter{},
	}
	l.journal.Measure(coretest.Counter{})
	return l
}

// say appends messages.
func (l *life) say(messages ...core.Message) {
	l.t.Helper()
	for _, m := range messages {
		l.said++
		m.ID = fmt.Sprintf("m%d", l.said)
		if err := l.journal.Append(m); err != nil {
			l.t.Fatal(err)
		}
	}
}

// turn has the user ask for something, and the assistant call a tool and report, in about
// so many tokens.
func (l *life) turn(ask string, tokens int) {
	l.t.Helper()
	id := fmt.Sprintf("call%d", l.said)
	l.say(
		coretest.User(core.Text(ask)),
		coretest.Assistant(core.Text("I will look at it."), core.ToolCall{ID: id, Name: "read_file", Args: `{"path":"src/` + id + `.go"}`}),
		coretest.User(coretest.Result(id, strings.Repeat("func x() {}\n", tokens/3))),
		coretest.Assistant(core.Text("Done with: "+ask)),
	)
}

func (l *life) view() []core.Message { return l.journal.View() }

func (l *life) tokens() int {
	n := 0
	for _, m := range l.view() {
		n += core.MessageTokens(coretest.Counter{}, m)
	}
	return n
}

// condense asks the chain and records what it did.
func (l *life) condense(trigger core.Trigger) *core.ChainResult {
	l.t.Helper()
	req := l.req
	req.Trigger = trigger
	req.Messages = l.view()
	done, err := l.chain.Run(l.t.Context(), &req)
	if err != nil {
		l.t.Fatal(err)
	}
	if !done.Edit.Empty() {
		l.condensed++
		c := history.Condensation{ID: fmt.Sprintf("condensation %d", l.condensed), Provider: done.Provider, Trigger: trigger, Edit: done.Edit}
		if err := l.journal.Condense(c); err != nil {
			l.t.Fatal(err)
		}
	}
	return done
}

// outcome returns the outcome of the first provider.
func outcome(c *core.ChainResult) core.Outcome { return c.Attempts[0].Outcome }

// text returns all that a message says.
func text(m core.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			b.WriteString(string(p) + "\n")
		case core.ToolResult:
			for _, c := range p.Content {
				if t, ok := c.(core.Text); ok {
					b.WriteString(string(t) + "\n")
				}
			}
		case core.ToolCall:
			b.WriteString(p.Name + " " + p.Args + "\n")
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

func allText(messages []core.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(text(m))
	}
	return b.String()
}

// shape says in short what messages are: "user assistant summary:user".
func shape(messages []core.Message) string {
	var words []string
	for _, m := range messages {
		w := string(m.Role)
		if m.Kind != core.KindOriginal {
			w = string(m.Kind) + ":" + w
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// wantAll reports every one of the words that s lacks.
func wantAll(t *testing.T, what, s string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(s, w) {
			t.Errorf("%s lacks %q:\n%.2000s", what, w, s)
		}
	}
}

func wantNone(t *testing.T, what, s string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(s, w) {
			t.Errorf("%s has %q:\n%.2000s", what, w, s)
		}
	}
}
