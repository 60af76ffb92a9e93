package native_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
)

// promptSize returns the tokens of all that a model is sent.
func promptSize(p *model.Prompt) int {
	n := coretest.Counter{}.Count(core.Text(p.System), core.Text(p.Tools))
	for _, m := range p.Messages {
		n += core.MessageTokens(coretest.Counter{}, m)
	}
	return n
}

// TestLongConversationIsReadInParts holds that a conversation longer than the model's
// window is read whole, in parts that fit, and that one summary comes of them.
func TestLongConversationIsReadInParts(t *testing.T) {
	t.Parallel()
	const window = 12_000
	var begun, busy, most atomic.Int32
	both := make(chan struct{})
	gen := &fake{info: model.Info{Window: window}, answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		if n := busy.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer busy.Add(-1)
		switch begun.Add(1) { // the first waits for the second
		case 1:
			<-both
		case 2:
			close(both)
		}
		last := text(p.Messages[len(p.Messages)-1])
		if m := regexp.MustCompile(`this is part (\d+) of (\d+)`).FindStringSubmatch(last); m != nil {
			return say("Summary of part "+m[1]+".")(ctx, p)
		}
		return say("The whole: "+text(p.Messages[0]))(ctx, p)
	}}
	req := session(60, 60_000)
	res, err := open(t, `{}`, gen).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	var read strings.Builder
	parts := 0
	for _, ask := range gen.asks {
		checkPrompt(t, ask)
		if got := promptSize(ask) + ask.MaxOutput; got > window {
			t.Errorf("a request has %d tokens with its answer, and the window %d", got, window)
		}
		if strings.Contains(text(ask.Messages[len(ask.Messages)-1]), "this is part") {
			parts++
			read.WriteString(allText(ask.Messages))
		}
	}
	for i := range 60 {
		wantAll(t, "what was read", read.String(), fmt.Sprintf("Request number %d.", i), fmt.Sprintf("output %d ", i), fmt.Sprintf("Answer number %d.", i))
	}
	if mergers := len(gen.asks) - parts; parts < 5 || mergers < 1 || mergers > parts/2 {
		t.Errorf("%d parts in %d calls", parts, len(gen.asks))
	}
	if got := res.Usage.Calls; got != len(gen.asks) {
		t.Errorf("%d calls are reported, want %d", got, len(gen.asks))
	}
	if n := most.Load(); n < 2 || n > 4 {
		t.Errorf("%d parts were read at the same time, want 2 to 4", n)
	}
	summary := allText(res.Messages)
	for i := range parts {
		wantAll(t, "the summary", summary, fmt.Sprintf("Summary of part %d.", i+1))
	}
	// Neighbors overlap: what a part ends with, the next begins with.
	repeated := 0
	for i := range 60 {
		if strings.Count(read.String(), fmt.Sprintf("Answer number %d.", i)) > 1 {
			repeated++
		}
	}
	if repeated < parts-1 {
		t.Errorf("%d answers are in two parts, want one for each of %d borders", repeated, parts-1)
	}
}

// TestMergersNest holds that parts too many for one merger are merged in steps.
func TestMergersNest(t *testing.T) {
	t.Parallel()
	gen := &fake{info: model.Info{Window: 9000}, answer: say(strings.Repeat("w ", 400))}
	req := session(300, 200_000)
	p := open(t, `{"max_calls":100}`, gen)
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	mergers := 0
	for _, ask := range gen.asks {
		if got := promptSize(ask) + ask.MaxOutput; got > 9000 {
			t.Errorf("a request has %d tokens with its answer", got)
		}
		if strings.Contains(text(ask.Messages[0]), "# Part 1 of") {
			mergers++
		}
	}
	if mergers < 3 {
		t.Errorf("%d mergers, want some in steps", mergers)
	}
}

// TestLongSummariesOfParts holds that a model which says too much about every part cannot
// make the requests of the mergers too long.
func TestLongSummariesOfParts(t *testing.T) {
	t.Parallel()
	gen := &fake{info: model.Info{Window: 12_000}, answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		if strings.Contains(text(p.Messages[0]), "# Part 1 of") {
			return say("It works.")(ctx, p)
		}
		return say(strings.Repeat("bla ", 4000))(ctx, p)
	}}
	if _, err := open(t, `{}`, gen).Condense(t.Context(), session(60, 60_000)); err != nil {
		t.Fatal(err)
	}
	for _, ask := range gen.asks {
		if got := promptSize(ask) + ask.MaxOutput; got > 12_000 {
			t.Errorf("a request has %d tokens with its answer", got)
		}
	}
}

// TestToolsAsTools holds that with request native calls and results stay what they are, in
// the order that the APIs want: each result in the message after its call, and only once;
// what cannot be so is text.
func TestToolsAsTools(t *testing.T) {
	t.Parallel()
	filler := coretest.User(core.Text(strings.Repeat("Long. ", 2000)))
	req := coretest.HalfRequest(coretest.Conversation(
		filler,
		coretest.Assistant(coretest.Call("a"), coretest.Call("b")),
		coretest.Tool(coretest.Result("b", "B")),
		coretest.User(core.Text("Hurry.")),
		coretest.Tool(coretest.Result("a", "A")),
		coretest.Assistant(coretest.Call("a")),
		coretest.User(coretest.Result("a", "again"), coretest.Result("lost", "orphan")),
		coretest.Assistant(coretest.Call("c")),
		coretest.User(core.Text("Never mind.")),
		coretest.Assistant(core.Text("Fine.")),
	))
	req.Tools = `[{"name":"read"}]`
	gen := &fake{info: model.Info{Window: 1 << 20}}
	if _, err := open(t, `{"request":"native","prompt_text":"Go."}`, gen).Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	ask := gen.asks[0]
	checkPrompt(t, ask)
	if ask.Tools != req.Tools {
		t.Errorf("the tools are %q", ask.Tools)
	}
	var got []string
	for _, m := range ask.Messages[1 : len(ask.Messages)-1] {
		line := string(m.Role)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.ToolCall:
				line += " call:" + p.ID
			case core.ToolResult:
				line += " result:" + p.CallID + "=" + text(coretest.User(p.Content...))
			case core.Text:
				line += " " + string(p)
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"assistant call:a call:b",
		"user result:a=A result:b=B Hurry.",
		"assistant [Tool Use: read] path: src/a.go",
		"user [Tool Result] again [Tool Result] orphan",
		"assistant call:c",
		"user result:c=Context condensation triggered. Tool execution deferred. Never mind.",
		"assistant Fine.",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// TestVendorRefusesLength holds that a request which the vendor finds too long is tried
// once more, in smaller parts.
func TestVendorRefusesLength(t *testing.T) {
	t.Parallel()
	for _, accepts := range []int{14_000, 100} {
		gen := &fake{info: model.Info{Window: 30_000}}
		gen.answer = func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
			if promptSize(p) > accepts {
				return nil, fmt.Errorf("400: %w", model.ErrTooLong)
			}
			return say("It works.")(ctx, p)
		}
		req := session(20, 20_000)
		res, err := open(t, `{}`, gen).Condense(t.Context(), req)
		if accepts == 100 {
			if err == nil {
				t.Error("no error of a vendor that accepts nothing")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(gen.asks) < 4 {
			t.Errorf("asked %d times, want a refusal, parts and a merger", len(gen.asks))
		}
		wantAll(t, "the result", allText(res.Messages), "It works.")
	}
}

// TestLightening holds what is shortened before a conversation is read in parts: source
// files to their signatures, long results and arguments to their ends.
func TestLightening(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	source.WriteString("package big\n\n")
	for i := range 400 {
		fmt.Fprintf(&source, "// F%d does it.\nfunc F%d(a, b int) int {\n\tc := a * b\n\tfor a > 0 {\n\t\ta--\n\t}\n\treturn c\n}\n\n", i, i)
	}
	numbered := func(s string) string {
		var b strings.Builder
		for i, l := range strings.Split(s, "\n") {
			fmt.Fprintf(&b, "%4d | %s\n", i+1, l)
		}
		return b.String()
	}
	log := "first line\n" + strings.Repeat("noise\n", 8000) + "last line: exit status 1"
	var m []core.Message
	add := func(id, tool, args, result string) {
		m = append(m,
			coretest.Assistant(core.ToolCall{ID: id, Name: tool, Args: args}),
			coretest.User(coretest.Result(id, result)),
			coretest.Assistant(core.Text("seen "+id)),
		)
	}
	m = append(m, coretest.User(core.Text("Read all of it.")))
	add("a", "read_file", `{"path":"big.go"}`, numbered(source.String()))
	add("b", "run", `{"command":"make"}`, log)
	add("c", "write", `{"path":"x.txt","content":"`+strings.Repeat("z", 30_000)+`end"}`, "written")
	add("d", "run", `{"command":"true"}`, "ok")
	req := coretest.HalfRequest(coretest.Conversation(m...))
	gen := &fake{info: model.Info{Window: 20_000}}
	if _, err := open(t, `{}`, gen).Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if len(gen.asks) != 1 {
		t.Fatalf("asked %d times, want once", len(gen.asks))
	}
	read := allText(gen.asks[0].Messages)
	wantAll(t, "what was read", read, "Only the definitions of this file are shown here", "func F399(a, b int) int", "first line", "last line: exit status 1", "bytes left out here", "seen d")
	wantNone(t, "what was read", read, "c := a * b", strings.Repeat("noise\n", 3000), strings.Repeat("z", 10_000))

	// With room for it, everything is read as it is.
	gen = &fake{info: model.Info{Window: 1 << 20}}
	if _, err := open(t, `{}`, gen).Condense(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "what was read", allText(gen.asks[0].Messages), "c := a * b", log)
}

// TestStaleEnvironment holds that environment details are the first to go if a request is
// too long, and only the old ones.
func TestStaleEnvironment(t *testing.T) {
	t.Parallel()
	var m []core.Message
	for i := range 20 {
		m = append(
			m,
			coretest.User(core.Text(fmt.Sprintf("Request %d.\n<environment_details>\nstate %d %s\n</environment_details>", i, i, strings.Repeat("tab ", 1000)))),
			coretest.Assistant(core.Text(fmt.Sprintf("Answer %d.", i))),
		)
	}
	for window, all := range map[int]bool{1 << 20: true, 16_000: false} {
		gen := &fake{info: model.Info{Window: window}}
		if _, err := open(t, `{}`, gen).Condense(t.Context(), coretest.HalfRequest(coretest.Conversation(m...))); err != nil {
			t.Fatal(err)
		}
		if len(gen.asks) != 1 {
			t.Errorf("window %d: asked %d times, want once", window, len(gen.asks))
		}
		read := allText(gen.asks[0].Messages)
		wantAll(t, "what was read", read, "Request 0.", "Request 19.", "state 19 tab")
		if got := strings.Contains(read, "state 3 tab"); got != all {
			t.Errorf("window %d: old details are read: %v", window, got)
		}
	}
}

// TestPrefix holds that a vendor's cache can be used: the request is the agent's own, with
// the instructions after it and nothing before them changed.
func TestPrefix(t *testing.T) {
	t.Parallel()
	gen := &fake{info: model.Info{Window: 1 << 20}}
	req := coretest.HalfRequest(coretest.Session())
	req.Tools = `[{"name":"read"}]`
	res, err := open(t, `{"request":"prefix"}`, gen).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	ask := gen.asks[0]
	if !ask.Cached || ask.Tools != req.Tools {
		t.Errorf("cached %v, tools %q", ask.Cached, ask.Tools)
	}
	if want := text(req.Messages[0]); strings.TrimSpace(ask.System) != strings.TrimSpace(want) {
		t.Errorf("the system prompt is %q, want the agent's", ask.System)
	}
	for i, m := range req.Messages[1:] {
		if !core.EqualParts(m.Parts, ask.Messages[i].Parts) || m.Role != ask.Messages[i].Role {
			t.Errorf("message %d is not the agent's", i)
		}
	}
	last := ask.Messages[len(ask.Messages)-1]
	if r, ok := last.Parts[0].(core.ToolResult); !ok || r.CallID != "c6" {
		t.Errorf("the open call is not answered: %v", last.Parts[0])
	}
	wantAll(t, "the last message", text(last), "system operation", "stay as they are")

	// One that fits once it is shortened is sent as text.
	long := coretest.HalfRequest(coretest.Conversation(
		coretest.User(core.Text("Read it.")), coretest.Assistant(coretest.Call("a")),
		coretest.User(coretest.Result("a", strings.Repeat("noise ", 20_000))), coretest.Assistant(core.Text("Done.")),
	))
	gen = &fake{info: model.Info{Window: 16_000}}
	if _, err := open(t, `{"request":"prefix"}`, gen).Condense(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if ask := gen.asks[0]; ask.Cached || promptSize(ask) > 16_000 {
		t.Errorf("cached %v, %d tokens", ask.Cached, promptSize(ask))
	}

	// One that does not fit is sent in parts, as text, and says nothing of a cache.
	small := session(40, 60_000)
	gen = &fake{info: model.Info{Window: 16_000}}
	if _, err := open(t, `{"request":"prefix"}`, gen).Condense(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	for _, ask := range gen.asks {
		if ask.Cached {
			t.Error("a part claims to be cached")
		}
	}
}

// TestPictures: a model sees pictures if it can, and reads of them if not,
// also of those in the results of tools.
func TestPictures(t *testing.T) {
	t.Parallel()
	req := coretest.HalfRequest(coretest.Session())
	for _, settings := range []string{`{}`, `{"request":"native"}`} {
		for _, sees := range []bool{true, false} {
			gen := &fake{info: model.Info{Window: 1 << 20, Images: sees}}
			if _, err := open(t, settings, gen).Condense(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			images := 0
			for _, m := range gen.asks[0].Messages {
				images += countImages(m.Parts)
			}
			read := allText(gen.asks[0].Messages)
			if sees && images != 2 || !sees && images != 0 {
				t.Errorf("%s, sees %v: %d pictures were sent", settings, sees, images)
			}
			if !sees {
				wantAll(t, "what was read", read, "[Referenced image in conversation: image/png")
			}
			wantAll(t, "what was read", read, `A block of kind "document"`)
			wantNone(t, "what was read", read, "The test names the function") // reasoning
		}
	}
}

func countImages(parts []core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Image:
			n++
		case core.ToolResult:
			n += countImages(p.Content)
		case core.Text, core.ToolCall, core.Reasoning, core.Opaque:
		}
	}
	return n
}

// TestConcurrency holds that one provider serves many conversations at once, and that none
// gets the words of another.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	gen := &fake{info: model.Info{Window: 12_000}, answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		// It names the conversation that it was shown.
		id := regexp.MustCompile(`conversation-\d+`).FindString(allText(p.Messages))
		return say("About "+id+".")(ctx, p)
	}}
	p := open(t, `{}`, gen)
	errs := make(chan error)
	const n = 8
	for i := range n {
		go func() {
			req := session(30, 30_000)
			for j := range req.Messages {
				m := &req.Messages[j]
				m.Parts = append([]core.Part{core.Text(fmt.Sprintf("conversation-%d", i))}, m.Parts...)
				m.Tokens = core.MessageTokens(coretest.Counter{}, *m)
			}
			req = coretest.HalfRequest(req.Messages)
			res, err := p.Condense(t.Context(), req)
			if err == nil {
				err = core.Verify(req, res)
			}
			if err == nil && !strings.Contains(allText(res.Messages), fmt.Sprintf("About conversation-%d.", i)) {
				err = fmt.Errorf("conversation %d has the summary of another: %.300s", i, allText(res.Messages))
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
