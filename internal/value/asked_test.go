package value_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/value"
)

// pasted returns a message that asks something, holds so many tokens that were pasted, and ends
// with another request.
func pasted(tokens int) core.Message {
	var b strings.Builder
	b.WriteString("Why does the build fail? This is what it says:\n")
	for i := 0; b.Len() < 4*tokens; i++ {
		fmt.Fprintf(&b, "./okapi/%d/walrus-%d.o: symbol zebra%d\n", i, i*37, i*11)
	}
	b.WriteString("Do not touch the linker script.")
	return coretest.User(core.Text(b.String()))
}

// isIn reports whether the lines of cut, but for marks, are lines of text in the same order.
func isIn(cut, text string) bool {
	rest := strings.Split(text, "\n")
	for line := range strings.SplitSeq(cut, "\n") {
		if line == "…" || strings.HasPrefix(line, "[… ") {
			continue
		}
		i := slices.Index(rest, line)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// TestLargeLastMessageLeavesTheTail: the message that has to be answered stays a message, the last one. It is whole if it
// fits, else it has its beginning and its end, and at least half of the turns stay that would before a message of a few
// words.
func TestLargeLastMessageLeavesTheTail(t *testing.T) {
	testkit.Slow(t)
	rapid.Check(t, func(rt *rapid.T) {
		before := sessionOf(rapid.IntRange(20, 60).Draw(rt, "turns"), 8)
		room := tokensOf(coretest.Conversation(before...)) * rapid.IntRange(5, 60).Draw(rt, "percent") / 100
		counter := coretest.HalfRequest(before).Counter
		shorten := func(last core.Message) []core.Message {
			messages := coretest.Conversation(append(slices.Clone(before), last)...)
			res, err := value.Shorten(context.Background(), messages, value.Options{Room: room, Counter: counter})
			if err != nil {
				rt.Fatal(err)
			}
			req := coretest.HalfRequest(messages)
			req.Budget.Limit = room // with more, smart makes the request whole
			if err := core.Verify(req, &core.Result{Messages: res.Messages}); err != nil {
				rt.Fatal(err)
			}
			if res.Tokens > room {
				rt.Fatalf("%d tokens, room is %d", res.Tokens, room)
			}
			return res.Messages
		}
		last := pasted(room * rapid.IntRange(1, 400).Draw(rt, "size") / 100)
		got := shorten(last)
		is, _ := got[len(got)-1].Parts[0].(core.Text)
		was, _ := last.Parts[0].(core.Text)
		if got[len(got)-1].ID != fmt.Sprint("m", len(before)+1) || got[len(got)-1].Role != core.RoleUser {
			rt.Fatalf("the last message is %s of %s: %.80q", got[len(got)-1].ID, got[len(got)-1].Role, is)
		}
		fits := core.MessageTokens(counter, last) < room-100
		if fits && is != was {
			rt.Errorf("the request fits, and became\n%s", is)
		}
		if !strings.HasPrefix(string(is), "Why does the build fail?") || !strings.HasSuffix(string(is), "Do not touch the linker script.") || !isIn(string(is), string(was)) {
			rt.Errorf("the request became\n%s", is)
		}
		if want := len(shorten(coretest.User(core.Text("Go on.")))); core.MessageTokens(counter, last) > room && len(got)-2 < (want-2)/2-1 {
			rt.Errorf("%d messages stay, before a short one %d", len(got), want)
		}
	})
}

// TestLargeMessageInTheTail: a large message that was answered does not cost those before it
// their place either.
func TestLargeMessageInTheTail(t *testing.T) {
	before := session(40)
	room := tokensOf(before) / 4
	messages := coretest.Conversation(append(before, pasted(room), coretest.Assistant(core.Text("The linker finds no zebra.")), coretest.User(core.Text("Go on.")), coretest.Assistant(core.Text("I do.")))...)
	res := shorten(t, messages, room)
	if n := len(res.Messages); n < 6 || res.Messages[n-4].ID != messages[len(messages)-4].ID {
		t.Errorf("%d messages stay", n)
	}
}

// TestSeveralLastMessages: of messages that follow one another without an answer, each stays.
func TestSeveralLastMessages(t *testing.T) {
	before := session(40)
	room := tokensOf(before) / 4
	messages := coretest.Conversation(append(before, pasted(2*room), coretest.User(core.Text("And one more thing: keep the tests.")))...)
	res := shorten(t, messages, room)
	n := len(res.Messages)
	if n < 6 || res.Messages[n-1].ID != messages[len(messages)-1].ID || res.Messages[n-2].ID != messages[len(messages)-2].ID {
		t.Errorf("%d messages stay; the last ones are gone", n)
	}
}
