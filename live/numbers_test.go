package live_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

var (
	extractText  = regexp.MustCompile(`^\[Extract of the conversation so far[^\n]*?(?:quoted; |; |begins with )([^\s:]+)[: ]`)
	contentsLine = regexp.MustCompile(`^ contents: [^\n]* with of ([0-9a-f]{6});`)
	unitNumber   = regexp.MustCompile(`(?:^|; )(m\d+(?:\.\d+)?)(?:-(m\d+))? `)
	lastNumber   = regexp.MustCompile(` (m\d+(?:\.\d+)?)$`)
)

// numbersIn returns the numbers that the extracts of a body promise, in their contents, in headers and with open work, and the key of the
// contents; nothing without contents.
func numbersIn(t *testing.T, body []byte) (key string, numbers []string) {
	t.Helper()
	for _, s := range textsOf(t, body) {
		mark := extractText.FindStringSubmatch(s)
		if mark == nil {
			continue
		}
		for i, section := range strings.Split(s, "\n"+mark[1]) {
			head, lines, _ := strings.Cut(section, "\n")
			at := contentsLine.FindStringSubmatch(section)
			if at != nil && i > 0 {
				key = at[1]
				for line := range strings.SplitSeq(lines, "\n") {
					for _, unit := range unitNumber.FindAllStringSubmatch(line, -1) {
						numbers = append(numbers, slices.DeleteFunc(unit[1:], func(s string) bool { return s == "" })...)
					}
				}
				continue
			}
			if !strings.HasPrefix(section, " open:") {
				lines = head
			}
			for line := range strings.SplitSeq(lines, "\n") {
				if at := lastNumber.FindStringSubmatch(line); at != nil && i > 0 {
					numbers = append(numbers, at[1])
				}
			}
		}
	}
	if key == "" {
		return "", nil
	}
	return key, numbers
}

// A promise is what a view's numbers must lead to: the client's history when the view was sent.
type promise struct {
	numbers []string
	history []core.Message
}

// check asks for every number, and compares what comes with the message at that place of the history.
func (p promise) check(t *testing.T, mcp, key string, first int) (results int) {
	t.Helper()
	calls := map[string]core.ToolCall{}
	for _, m := range p.history {
		for _, part := range m.Parts {
			if c, ok := part.(core.ToolCall); ok {
				calls[c.ID] = c
			}
		}
	}
	for _, number := range p.numbers {
		texts, failed, _ := ask(t, mcp, nil, "recall", object{"what": number, "of": key, "tokens": 10_000})
		message, result, _ := strings.Cut(number[1:], ".")
		n, _ := strconv.Atoi(message)
		if failed || n < first || n-first >= len(p.history) {
			t.Errorf("%s of %s: %.200q", number, key, texts)
			continue
		}
		nth := 0
		for _, part := range p.history[n-first].Parts {
			switch part := part.(type) {
			case core.Text:
				if result == "" && !slices.Contains(texts, string(part)) {
					t.Errorf("%s of %s: the text %.100q is not in %.300q", number, key, part, texts)
				}
			case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
			case core.ToolResult:
				if nth++; result != "" && result != strconv.Itoa(nth) {
					continue
				}
				text, _ := part.Content[0].(core.Text)
				call := calls[part.CallID]
				var command struct{ Command string }
				unmarshal(t, call.Args, &command)
				at := slices.Index(texts, string(text))
				before := slices.IndexFunc(texts, func(s string) bool { return command.Command != "" && strings.Contains(s, command.Command) })
				if results++; at < 0 || before < 0 || before > at {
					t.Errorf("%s of %s: the call %.100q is %d, the result %.100q %d, in %.300q", number, key, command.Command, before, text, at, texts)
				}
			}
		}
	}
	return results
}

// ranges asks for everything from the first to the last number of each view's contents, reports results that are missing in between, and
// returns how many the longest range has.
func (p *play) ranges(t *testing.T) (most int) {
	t.Helper()
	first, history, done := 1, p.messages(t), map[string]bool{}
	if p.client.API == upstream.Chat {
		first++
	}
	for _, r := range p.vendor.Turns() {
		key, numbers := numbersIn(t, r.Body)
		if done[key] || len(numbers) == 0 {
			continue
		}
		done[key] = true
		var at []int
		for _, number := range numbers {
			message, _, _ := strings.Cut(number[1:], ".")
			n, _ := strconv.Atoi(message)
			at = append(at, n)
		}
		from, to := slices.Min(at), slices.Max(at)
		text, ok := recallWith(t, p.server.URL+"/recall/"+secret+"/mcp", object{"what": fmt.Sprintf("m%d-m%d", from, to), "of": key})
		if !ok {
			t.Errorf("m%d-m%d of %s: %s", from, to, key, text)
		}
		results := 0
		for i, m := range history[from-first : to-first+1] {
			for _, part := range m.Parts {
				if r, is := part.(core.ToolResult); is {
					results++
					if said, _ := r.Content[0].(core.Text); !strings.Contains(text, string(said)) {
						t.Errorf("m%d-m%d of %s has no result m%d", from, to, key, from+i)
					}
				}
			}
		}
		most = max(most, results)
	}
	return most
}

// watching steps through a conversation, and remembers what each of its views promises.
func (p *play) watching(t *testing.T, all map[string]promise, goesOn func() bool) {
	t.Helper()
	for goesOn() {
		if p.steps(t, 1); len(p.client.History) > 400 {
			t.Fatalf("no epoch: %+v", p.Stats())
		}
		key, numbers := numbersIn(t, p.lastBody())
		if _, known := all[key]; key != "" && !known {
			all[key] = promise{numbers, p.messages(t)}
		}
	}
}

// On each API all numbers in all views of four epochs and of a branch lead to the calls and results of the messages at those places of the
// client's history of then: while the conversation goes on, in another process, and while others have the same numbers.
func TestContentsAreKept(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	converse := upstream.Client{API: upstream.Converse, Cloud: upstream.Bedrock, Model: "us.anthropic.claude-opus-5-5-v1:0", Thinking: "adaptive"}
	for _, c := range append(everyAPI(), converse) {
		t.Run(string(c.API)+"/"+c.Model, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "serve.db")
			stored := func(o *live.Options) { onEveryUpstream(o); o.Store.Path, o.Epoch.Target = file, 15 }
			const window = 30_000
			script := upstream.Loop(150, 2500, nil)
			c = recalls(c)
			c.Session = "s1"
			p := playIn(t, window, upstream.Options{Window: window, Script: script}, c, stored)
			mcp, all, first := p.server.URL+"/recall/"+secret+"/mcp", map[string]promise{}, 1
			if c.API == upstream.Chat {
				first++ // the system prompt is a message
			}
			var half []object
			p.watching(t, all, func() bool {
				if p.Stats().EpochCount < 2 {
					half = slices.Clone(p.client.History)
				}
				return p.Stats().EpochCount < 4
			})
			main := len(all)
			p.client.History = half
			p.client.Run = func(command string) string { return "of the branch\n" + upstream.Output(command) }
			epochs := p.Stats().EpochCount
			p.watching(t, all, func() bool { return p.Stats().EpochCount < epochs+1 })
			results := 0
			for _, key := range slices.Sorted(maps.Keys(all)) {
				results += all[key].check(t, mcp, key, first)
			}
			if main < 2 || len(all) <= main || results < 10 {
				t.Errorf("%d views, %d with the branch, %d results", main, len(all), results)
			}
			q := playIn(t, window, upstream.Options{Window: window, Script: script}, c, stored)
			q.client.Session = "s2"
			q.client.Run = func(command string) string { return "of another conversation\n" + upstream.Output(command) }
			q.watching(t, map[string]promise{}, func() bool { return q.Stats().EpochCount < 1 })
			for _, key := range slices.Sorted(maps.Keys(all)) {
				all[key].check(t, q.server.URL+"/recall/"+secret+"/mcp", key, first)
			}
			for _, s := range []live.Stats{p.Stats(), q.Stats()} {
				if len(s.Errors) > 0 {
					t.Errorf("faults %v", s.Errors)
				}
			}
			t.Logf("%d views, %d results", len(all), results)
		})
	}
}

// A sub-agent in the same session that was condensed later answers for no number of the main agent: without a key the answer names both
// conversations, and with the one in the view it is the content of that view.
func TestNumbersOfParallelConversations(t *testing.T) {
	p := newPlay(t, upstream.Options{}, recalls(claude("s1")), nil)
	all := map[string]promise{}
	mcp := p.server.URL + "/recall/" + secret + "/mcp"
	p.watching(t, all, func() bool { return p.Stats().EpochCount < 2 })
	main := slices.Sorted(maps.Keys(all))
	if texts, failed, _ := ask(t, mcp, nil, "recall", object{"what": "m3"}); failed {
		t.Errorf("alone: %q", texts)
	}
	d := recalls(claude("s1"))
	d.URL, d.Agent = p.server.URL, "sub"
	d.Run = func(command string) string { return "of the sub-agent\n" + upstream.Output(command) }
	d.History = []object{{"role": "user", "content": []any{object{"type": "text", "text": "Look for the pump."}}}}
	q := &play{Gateway: p.Gateway, vendor: p.vendor, server: p.server, client: &d}
	before := p.Stats().EpochCount
	q.watching(t, all, func() bool { return p.Stats().EpochCount <= before })
	if len(all) != len(main)+1 {
		t.Fatalf("%d and %d views", len(main), len(all))
	}
	for key, promise := range all {
		promise.check(t, mcp, key, 1)
	}
	for _, r := range p.Stats().Recalled {
		if r.What == "result of Bash" && r.Pass == "" {
			t.Errorf("the pass that left it out is unknown: %+v", r)
		}
	}
	for _, args := range []object{{"what": "m3"}, {"file": "handler.go"}, {"what": "m3", "of": "zzzz"}} {
		texts, failed, _ := ask(t, mcp, map[string]string{"X-Condense-Session": "s1"}, "recall", args)
		said := strings.Join(texts, "")
		if !failed || args["of"] == nil && (!strings.Contains(said, "Look for the pump.") || !strings.Contains(said, task)) {
			t.Errorf("%v: %q", args, texts)
			continue
		}
		for _, named := range regexp.MustCompile(`; of ([0-9a-f]{6}): `).FindAllStringSubmatch(said, -1) {
			texts, failed, _ := ask(t, mcp, nil, "recall", object{"what": "m3", "of": named[1]})
			if failed || slices.Contains(main, named[1]) == strings.Contains(strings.Join(texts, ""), "of the sub-agent") {
				t.Errorf("m3 of %s: %.200q", named[1], texts)
			}
		}
	}
	if texts, failed, _ := ask(t, mcp, nil, "recall", object{"grep": "of the sub-agent", "of": main[0]}); failed || !strings.Contains(texts[0], "no line") {
		t.Errorf("the main agent's lines: %.200q", texts)
	}
}

func unmarshal(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
