package value_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/value"
)

// accepted returns what smart makes of a result: the newest request is whole, and what is not smaller is left alone.
func accepted(req *core.Request, result []core.Message) []core.Message {
	if kept := core.KeepRequest(req, result); tokensOf(kept) < tokensOf(req.Messages) {
		return kept
	}
	return req.Messages
}

// shorten returns messages in room tokens and fails the test if the result breaks a rule.
func shorten(t *testing.T, messages []core.Message, room int) value.Result {
	t.Helper()
	req := coretest.HalfRequest(messages)
	req.Budget.Limit = room // a request that has no room is cut; smart makes it whole where the limit allows
	res, err := value.Shorten(t.Context(), messages, value.Options{Room: room, Counter: req.Counter})
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, &core.Result{Messages: accepted(req, res.Messages)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range res.Messages {
		n += core.MessageTokens(req.Counter, res.Messages[i])
	}
	if n != res.Tokens {
		t.Fatalf("result says %d tokens, has %d", res.Tokens, n)
	}
	return res
}

func tokensOf(messages []core.Message) int {
	n := 0
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

// TestRandom shortens random histories, with all the faults that there are, to a random
// share of their size: the result is valid, and fits if what must stay does.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		messages := coretest.Random(r, nil)
		room := tokensOf(messages) * rapid.IntRange(2, 100).Draw(rt, "percent") / 100
		req := coretest.HalfRequest(messages)
		res, err := value.Shorten(context.Background(), messages, value.Options{Room: room, Counter: req.Counter})
		if err != nil {
			rt.Fatal(err)
		}
		if err := core.Verify(req, &core.Result{Messages: accepted(req, res.Messages)}); err != nil {
			rt.Fatal(err)
		}
		if res.Tokens > max(room, least(messages)) {
			rt.Fatalf("%d tokens, room is %d, what must stay has %d", res.Tokens, room, least(messages))
		}
		again, err := value.Shorten(context.Background(), messages, value.Options{Room: room, Counter: req.Counter})
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(res.Messages, again.Messages); diff != "" {
			rt.Fatalf("not the same twice:\n%s", diff)
		}
	})
}

// least returns the tokens of the groups that must stay, and of an extract that says
// nothing, for every place where one may be.
func least(messages []core.Message) int {
	first := len(messages)
	if p := core.Pending(messages); len(p) > 0 {
		first = p[0]
	}
	extract := core.MessageTokens(coretest.Counter{}, coretest.User(core.Text(value.Extract("", nil, true))))
	n := extract
	for _, g := range core.Groups(messages) {
		must := g.End > first
		for i := g.Start; i < g.End; i++ {
			must = must || messages[i].Protected || messages[i].Role == core.RoleSystem
		}
		if must {
			n += tokensOf(messages[g.Start:g.End]) + extract
		}
	}
	return n
}

// session returns a session of n turns, each of which reads a file and says something
// about it.
func session(n int) []core.Message { return sessionOf(n, 30) }

// sessionOf returns the same, of files with so many lines.
func sessionOf(n, lines int) []core.Message {
	out := []core.Message{coretest.User(core.Text("Find out why parseHeader drops the last line, and mend it. Never touch vendor/."))}
	for i := range n {
		id := fmt.Sprint("call", i)
		var body strings.Builder
		for k := range lines {
			fmt.Fprintf(&body, "%d\tfunc helper%d_%d(input []byte) error { return check%d(input, %d) }\n", k, i, k, k%7, i*100+k)
		}
		out = append(out,
			coretest.Assistant(core.Text(fmt.Sprintf("I look at src/file%d.go, where helper%d_3 is called by parseHeader for %s.", i, i, letters(i))),
				core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":"module%d/src/file%d.go"}`, i, i)}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(body.String())}}))
	}
	return coretest.Conversation(append(out, coretest.Assistant(core.Text("Now I know: helper3_3 returns too early.")))...)
}

// letters returns a word for a number, without digits: no two lines with it have one shape.
func letters(i int) string {
	return "zeb" + strings.Map(func(r rune) rune { return r - '0' + 'a' }, strconv.Itoa(i*7919+1000))
}

func text(messages []core.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				b.WriteString(string(p) + "\n")
			case core.ToolResult:
				for _, q := range p.Content {
					if t, ok := q.(core.Text); ok {
						b.WriteString(string(t) + "\n")
					}
				}
			case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return b.String()
}

func TestKeepsWhatMatters(t *testing.T) {
	messages := session(40)
	room := tokensOf(messages) / 10
	res := shorten(t, messages, room)
	if res.Tokens > room || res.Tokens < room*9/10 {
		t.Errorf("got %d tokens, want nearly %d", res.Tokens, room)
	}
	if last := res.Messages[len(res.Messages)-1]; !last.Equal(messages[len(messages)-1]) {
		t.Errorf("the last message is not as it was: %v", last)
	}
	got := text(res.Messages)
	for _, want := range []string{
		"Find out why parseHeader drops the last line, and mend it. Never touch vendor/.", // what was asked
		"¶ user newest\n", "¶ assistant\n", "¶ read_file\n", value.GapMark,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	was := strings.Split(text(messages), "\n")
	have := map[string]bool{}
	for _, l := range was {
		have[strings.TrimSpace(l)] = true
		for _, s := range dialog.Sentences(l) { // a demand is a line of its own
			have[strings.TrimSpace(l[s.Start:s.End])] = true
		}
	}
	for l := range strings.SplitSeq(text(res.Messages), "\n") {
		if l = strings.TrimSpace(l); l != "" && l != value.GapMark && !strings.HasPrefix(l, "[") && !strings.HasPrefix(l, value.UsualMark) && !strings.HasPrefix(l, "path: ") && !entryForm.MatchString(l) && !have[l] {
			t.Errorf("a line that nobody wrote: %q", l)
		}
	}
}

// TestRoomIsUsed: what is left after the best lines goes to those that still fit.
func TestRoomIsUsed(t *testing.T) {
	messages := session(60)
	all := tokensOf(messages)
	for _, percent := range []int{5, 10, 25, 50} {
		room := all * percent / 100
		if res := shorten(t, messages, room); res.Tokens < room*97/100-8 {
			t.Errorf("%d %%: %d of %d tokens are used", percent, res.Tokens, room)
		}
	}
}

// TestWhoSaidIt: the words of the user are kept, even in a result or after a program's words;
// what a program wrote in a user message does not crowd them out.
func TestWhoSaidIt(t *testing.T) {
	rules := strings.Repeat("Every agent reads the manual of the house first, and then again. ", 60)
	messages := coretest.Conversation(slices.Insert(session(30), 7,
		coretest.User(core.Text("Base directory for this skill: /skills/mend\n"+rules+"\nARGUMENTS: rename the zebra flag to okapi, in every shell")),
		coretest.Assistant(core.Text("I begin with the shells.")),
		coretest.User(core.Text("<system-reminder>\n"+rules+"\n</system-reminder>\nkeep the walrus tests as they are")),
	)...)
	got := text(shorten(t, messages, tokensOf(messages)/10).Messages)
	for _, want := range []string{"rename the zebra flag to okapi, in every shell", "keep the walrus tests as they are"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is gone from\n%s", want, got)
		}
	}
	if n := strings.Count(got, "manual of the house"); n > 10 {
		t.Errorf("the rules of a program are there %d times", n)
	}
}

// TestUnread: of a result that the model has not read yet something stays, whatever else there
// is; a model that finds nothing of what it asked for asks again.
func TestUnread(t *testing.T) {
	var body strings.Builder
	for i := range 200 {
		fmt.Fprintf(&body, "%d is as it was before it was what it is, %d\n", i, i*37)
	}
	messages := coretest.Conversation(append(session(40),
		coretest.User(core.Text("Look at the stripes.")),
		coretest.Assistant(core.ToolCall{ID: "z", Name: "shell", Args: `{"command":"stripes"}`}),
		coretest.User(core.ToolResult{CallID: "z", Content: []core.Part{core.Text(body.String())}}))...)
	res := shorten(t, messages, tokensOf(messages)/10)
	last, _ := res.Messages[len(res.Messages)-1].Parts[0].(core.ToolResult)
	text, _ := last.Content[0].(core.Text)
	if n := strings.Count(string(text), "is as it was"); n < 3 {
		t.Errorf("%d lines are left, want some:\n%s", n, text)
	}
}

// TestShortResults: what a mark would not be smaller than stays, be it worth anything or not,
// and a mark says how much is missing.
func TestShortResults(t *testing.T) {
	messages := session(40)
	for i := range messages[len(messages)-5:] {
		m := &messages[len(messages)-5+i]
		if r, ok := m.Parts[0].(core.ToolResult); ok {
			r.Content = []core.Part{core.Text("[no result recorded]")}
			m.Parts, m.Tokens = []core.Part{r}, 0
		}
	}
	messages = coretest.Conversation(messages...)
	got := text(shorten(t, messages, tokensOf(messages)/10).Messages)
	if n := strings.Count(got, "[no result recorded]"); n != 2 {
		t.Errorf("%d of 2 short results stay:\n%s", n, got)
	}
	if !regexp.MustCompile(`\n\[… \d+ lines h:[0-9a-f]{10}\]\n`).MatchString(got) {
		t.Errorf("no mark says how much is missing:\n%s", got)
	}
}

// TestLargeNewest: a newest message that takes much of the room leaves those before it theirs.
func TestLargeNewest(t *testing.T) {
	messages := session(40)
	messages = coretest.Conversation(append(messages, coretest.User(core.Text(strings.Repeat("This is what I see now.\n", tokensOf(messages)/8/6))))...)
	res := shorten(t, messages, tokensOf(messages)/3)
	var ids []string
	for _, m := range res.Messages[1:] {
		ids = append(ids, m.ID)
	}
	if n := len(messages); len(ids) < 3 || !slices.Contains(ids, messages[n-2].ID) || !slices.Contains(ids, messages[n-3].ID) {
		t.Errorf("only %v stay as they are", ids)
	}
}

// TestLinesThatLookLikeHeaders: a line of a text is not taken for a header when an extract is
// read again, and what follows it not for what another said.
func TestLinesThatLookLikeHeaders(t *testing.T) {
	const pasted = "[package]\nname = \"zebra\"\n[result h:0123456789]\nokapi = 1\n[… image h:0123456789]\nwalrus = 2"
	messages := slices.Insert(session(30), 7, coretest.User(core.Text("Put this into the manifest:\n"+pasted)), coretest.Assistant(core.Text("Done.")))
	for range 2 { // the second extract is made of the first
		messages = coretest.Conversation(messages...)
		messages = shorten(t, messages, tokensOf(messages)*6/10).Messages
		c := value.Read(messages)
		found := 0
		for l := range c.Lines {
			if text := c.Lines[l].Text; strings.Contains(text, "zebra") || strings.Contains(text, "okapi") || strings.Contains(text, "walrus") {
				found++
				if p := &c.Passages[c.Lines[l].Passage]; p.Kind != dialog.KindUser {
					t.Errorf("%q is taken for a line of kind %v, want %v", text, p.Kind, dialog.KindUser)
				}
			}
		}
		if found != 3 || len(c.Media) > 0 {
			t.Errorf("got %d lines of what was pasted, want 3, and %d pictures, want none", found, len(c.Media))
		}
	}
}

// TestAccount: the account of a result is of the lines that are in it, not of those that were
// chosen beyond the room.
func TestAccount(t *testing.T) {
	messages := session(30)
	for _, percent := range []int{3, 10, 40, 80} {
		res := shorten(t, messages, tokensOf(messages)*percent/100)
		want := strings.Count(text(res.Messages), "func helper")
		if got := res.Kinds["tool_result"]; got.LinesKept != want || got.Lines != 30*30 {
			t.Errorf("%d %%: the account says %d of %d lines, want %d of 900", percent, got.LinesKept, got.Lines, want)
		}
	}
}

func TestFitsAlready(t *testing.T) {
	messages := session(3)
	res := shorten(t, messages, tokensOf(messages))
	if diff := cmp.Diff(messages, res.Messages); diff != "" {
		t.Error(diff)
	}
}

// TestGrowth condenses a conversation again and again while it grows: there is one
// extract, and the first request survives in it.
func TestGrowth(t *testing.T) {
	messages := session(20)
	more := session(120)[41:]
	room := tokensOf(messages) / 4
	for round := range 5 {
		res := shorten(t, messages, room)
		if res.Tokens > room {
			t.Fatalf("round %d: %d tokens, room is %d", round, res.Tokens, room)
		}
		twice := shorten(t, res.Messages, room)
		if diff := cmp.Diff(res.Messages, twice.Messages); diff != "" {
			t.Fatalf("round %d: a second run changed its own result:\n%s", round, diff)
		}
		got := text(res.Messages)
		if n := strings.Count(got, "[Extract of the conversation so far"); n != 1 {
			t.Fatalf("round %d: %d extracts, want 1", round, n)
		}
		if !strings.Contains(got, "¶ user newest\nFind out why parseHeader drops the last line") {
			t.Fatalf("round %d: the request is lost:\n%s", round, got)
		}
		messages = res.Messages
		for i := range messages {
			if messages[i].ID == "" {
				messages[i].ID = fmt.Sprintf("extract%d", round)
			}
		}
		messages = append(slices.Clip(messages), more[:40]...)
		more = more[40:]
	}
}

// screenshots returns a session in which the user shows a picture and a document, and a
// tool two pictures.
func screenshots() []core.Message {
	m := session(30)
	shown := coretest.User(core.Text("This is what the header looks like now; the last line is missing."), coretest.Image(1), core.Opaque{Kind: "document", JSON: `{"type":"document","title":"spec"}`})
	tool := []core.Message{
		coretest.Assistant(core.ToolCall{ID: "shot", Name: "screenshot", Args: `{"url":"http://localhost:3000"}`}),
		coretest.User(core.ToolResult{CallID: "shot", Content: []core.Part{coretest.Image(2)}}),
		coretest.Assistant(core.ToolCall{ID: "later", Name: "screenshot", Args: `{"url":"http://localhost:3000"}`}),
		coretest.User(core.ToolResult{CallID: "later", Content: []core.Part{coretest.Image(3)}}),
	}
	return coretest.Conversation(slices.Insert(m, 5, append([]core.Message{shown}, tool...)...)...)
}

// TestPicturesAreMentioned: where a message becomes part of an extract, what it showed is
// named under its header with a handle, and still is when the extract is read again. The newest picture stays.
func TestPicturesAreMentioned(t *testing.T) {
	messages := screenshots()
	want := "is missing.\n[… image h:" + core.Handle(coretest.Image(1)) + "]\n[… document h:" + core.Handle(messages[5].Parts[2]) + "]\n"
	shot := regexp.MustCompile(`(?m)^¶ result( screenshot.*)?\n\[… image h:` + core.Handle(coretest.Image(2)) + `\]$`)
	room := tokensOf(messages) / 4
	for round := range 4 {
		res := shorten(t, messages, room)
		got := text(res.Messages)
		if res.Tokens > room || strings.Count(got, want) != 1 || len(shot.FindAllString(got, -1)) != 1 {
			t.Fatalf("round %d: %d tokens in %d; want once %q and %q in:\n%s", round, res.Tokens, room, want, shot, got)
		}
		if !slices.ContainsFunc(res.Messages, func(m core.Message) bool {
			return slices.ContainsFunc(m.Parts, func(p core.Part) bool {
				r, ok := p.(core.ToolResult)
				return ok && slices.Contains(r.Content, core.Part(coretest.Image(3)))
			})
		}) {
			t.Fatalf("round %d: the newest picture is gone", round)
		}
		twice := shorten(t, res.Messages, room)
		if diff := cmp.Diff(res.Messages, twice.Messages); diff != "" {
			t.Fatalf("round %d: a second run changed its own result:\n%s", round, diff)
		}
		messages = res.Messages
		for i := range messages {
			if messages[i].ID == "" {
				messages[i].ID = fmt.Sprintf("extract%d", round)
			}
		}
		more := session(12)[1:]
		for i := range more {
			more[i].ID = fmt.Sprintf("more%d.%d", round, i)
			for j, p := range more[i].Parts {
				switch p := p.(type) {
				case core.ToolCall:
					p.ID = more[i].ID
					more[i].Parts[j] = p
				case core.ToolResult:
					p.CallID = more[i-1].ID
					more[i].Parts[j] = p
				case core.Text, core.Image, core.Reasoning, core.Opaque:
				}
			}
		}
		messages = append(slices.Clip(messages), more...)
	}
}

// TestManyPictures: marks take little of the room, and the newest picture has one.
func TestManyPictures(t *testing.T) {
	var messages []core.Message
	for i := range 300 {
		messages = append(messages, coretest.User(core.Text(fmt.Sprintf("Screenshot %d: the button that opens dialog%d is too far left.", i, i)), coretest.Image(i)), coretest.Assistant(core.Text(fmt.Sprintf("I moved the button in dialog%d.go.", i))))
	}
	messages = coretest.Conversation(messages...)
	for _, room := range []int{50, 200, 8000} { // the user's words go before marks
		res := shorten(t, messages, room)
		got := text(res.Messages)
		marks := strings.Count(got, "[… image h:")
		if res.Tokens > room || 8*marks > max(room/10, 24) || room >= 8000 && marks == 0 {
			t.Errorf("room %d: %d tokens, %d marks", room, res.Tokens, marks)
		}
	}
}

func TestExtremes(t *testing.T) {
	testkit.Slow(t)
	big := strings.Repeat("lorem ipsum dolor sit amet, consectetur 12345; ", 1<<20/47)
	for _, tt := range []struct {
		name     string
		messages []core.Message
		room     int
	}{
		{"one line of 1 MB", []core.Message{coretest.User(core.Text(big))}, 2000},
		{"1 MB without a space", []core.Message{coretest.User(core.Text(strings.Repeat("x", 1<<20)))}, 2000},
		{"a result of 1 MB of JSON", []core.Message{
			coretest.User(core.Text("go")), coretest.Assistant(coretest.Call("c")),
			coretest.User(coretest.Result("c", `{"rows":["`+strings.Repeat(`a b c","`, 1<<17)+`"]}`)),
		}, 2000},
		{"only images", []core.Message{coretest.User(coretest.Image(1), coretest.Image(2)), coretest.Assistant(core.Text("I see.")), coretest.User(coretest.Image(3))}, 30},
		{"only reasoning", []core.Message{coretest.Assistant(core.Reasoning{Text: strings.Repeat("hm ", 1000), Signature: "eA=="})}, 100},
		{"bytes that are no text", []core.Message{coretest.User(core.Text(strings.Repeat("\xff\xfe\x00 abc\xc3", 4000))), coretest.Assistant(core.Text("?"))}, 200},
		{"no room", session(5), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			messages := coretest.Conversation(tt.messages...)
			res := shorten(t, messages, tt.room)
			if tt.room > 0 && res.Tokens > tt.room {
				t.Errorf("%d tokens, room is %d", res.Tokens, tt.room)
			}
		})
	}
}

func TestManyMessages(t *testing.T) {
	testkit.Slow(t)
	const many = 30_000
	messages := make([]core.Message, 0, many)
	for i := range many {
		m := coretest.User(core.Text(fmt.Sprint("ping ", i)))
		if i%2 == 1 {
			m = coretest.Assistant(core.Text(fmt.Sprint("pong ", i)))
		}
		messages = append(messages, m)
	}
	messages = coretest.Conversation(messages...)
	if res := shorten(t, messages, 20_000); res.Tokens > 20_000 {
		t.Errorf("%d tokens, room is 20000", res.Tokens)
	}
}

func TestErrors(t *testing.T) {
	if _, err := value.Shorten(t.Context(), session(2), value.Options{Room: 10}); !errors.Is(err, core.ErrInvalidRequest) {
		t.Errorf("without a counter: got %v, want %v", err, core.ErrInvalidRequest)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := value.Shorten(ctx, session(2), value.Options{Room: 10, Counter: coretest.Counter{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: got %v, want %v", err, context.Canceled)
	}
}

// BenchmarkShorten brings sessions of n messages, of 300 tokens each, to a quarter.
func BenchmarkShorten(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		messages := session(n / 2)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(tokensOf(messages)) * 4)
			for b.Loop() {
				if _, err := value.Shorten(b.Context(), messages, value.Options{Room: tokensOf(messages) / 4, Counter: coretest.Counter{}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPasted checks that what was pasted into a long message does not take the place of
// what was said below it.
func TestPasted(t *testing.T) {
	var b strings.Builder
	var asked []string
	for i := range 400 {
		fmt.Fprintf(&b, "%03d: 0x%08x = [%d, %d, %d]\n", i, i*2654435761, i, i*i, i*7)
		if i%40 == 39 {
			asked = append(asked, fmt.Sprintf("Please look at what is above this line and then say in words what you see, as for the %dth one", i))
			b.WriteString(asked[len(asked)-1] + ".\n")
		}
	}
	messages := coretest.Conversation(append([]core.Message{coretest.User(core.Text(b.String()))}, session(40)[1:]...)...)
	got := text(shorten(t, messages, tokensOf(messages)/10).Messages)
	for _, want := range asked {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}
