package score_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
)

// The sentences of the agent that state a cause, a choice or a finding are looked for as they were.
func TestDecisions(t *testing.T) {
	t.Parallel()
	before := []core.Message{
		user("I decided to rewrite the whole of the parser."),
		agent(core.Text("Let me look at the tests first, because they fail.\nThe reasons are these, because of which it fails:\n- It turns out that the lexer drops the last byte of a file. Shall we stop here because of that?\n```go\n// the cause is a missing flush of the writer\n```")),
		agent(core.Text("We ruled out the cache as a source of this.\nDer Fehler liegt daran, dass der Puffer zu klein ist.\n我们决定改用互斥锁来保护缓冲区。")),
	}
	for range 12 {
		before = append(before, user("go on"))
	}
	before[8] = agent(core.Text("I have found that the newest message says nothing new here."))
	s := cutAt(t, before, nil, nil)
	kept := func(view ...core.Message) (float64, float64) {
		got := s.Continuation(view).Decisions
		return got.Kept, got.Needed
	}
	if k, n := kept(before...); k != 4 || n != 4 {
		t.Errorf("of everything %g of %g are kept, want 4 of 4", k, n)
	}
	if k, _ := kept(user("quoted: It turns out that the\n  lexer drops the last byte of a file. And more.")); k != 1 {
		t.Errorf("a sentence that is broken into lines: %g kept, want 1", k)
	}
	if k, _ := kept(user("It turns out that the lexer drops bytes. We ruled out the cache.")); k != 0 {
		t.Errorf("other words for it: %g kept, want 0", k)
	}
	silent := cutAt(t, []core.Message{user("hello"), agent(core.Text(strings.Repeat("Reading on. ", 30)))}, nil, nil)
	if _, ok := silent.Continuation(nil).Decisions.Value(); ok {
		t.Error("without such sentences the measure is not defined")
	}
}
