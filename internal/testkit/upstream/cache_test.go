package upstream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A request of the cache's examples: blocks of 1,000 tokens each, with a marker after some.
type request struct {
	after  time.Duration // since the request before
	blocks string        // one letter for each block's content; a following * or ! is a marker of 5 minutes or an hour
	model  string
	effort string
	want   upstream.Usage
	long   int // of CacheWrite, for an hour
}

// filler is a text whose block counts 1,000 tokens of 4 bytes.
func filler(c rune) string {
	const frame = `{"text":"","type":"text"}`
	return strings.Repeat(string(c), 4000-len(frame))
}

// TestCache are the rules of the documentation by example. Usage counts thousands of tokens.
func TestCache(t *testing.T) {
	const m, h = time.Minute, time.Hour
	u := func(prompt, read, write int) upstream.Usage {
		return upstream.Usage{Prompt: prompt, CacheRead: read, CacheWrite: write}
	}
	many := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name     string
		requests []request
	}{
		{"nothing without markers", []request{{blocks: "abc", want: u(3, 0, 0)}, {blocks: "abc", want: u(3, 0, 0)}}},
		{"written up to the marker, then read", []request{{blocks: "ab*c", want: u(3, 0, 2)}, {blocks: "ab*d", want: u(3, 2, 0)}}},
		{"a marker moves", []request{{blocks: "ab*", want: u(2, 0, 2)}, {blocks: "abc*", want: u(3, 2, 1)}, {blocks: "abcd*", want: u(4, 3, 1)}}},
		{"a change before the marker", []request{{blocks: "abc*", want: u(3, 0, 3)}, {blocks: "axc*", want: u(3, 0, 3)}}},
		{"the longest of several", []request{{blocks: "a*bc*", want: u(3, 0, 3)}, {blocks: "a*xc*", want: u(3, 1, 2)}, {blocks: "a*bc*d*", want: u(4, 3, 1)}}},
		{"five minutes", []request{{blocks: "ab*", want: u(2, 0, 2)}, {after: 5*m - 1, blocks: "ab*", want: u(2, 2, 0)}, {after: 5 * m, blocks: "ab*", want: u(2, 0, 2)}}},
		{"reading refreshes", []request{{blocks: "ab*", want: u(2, 0, 2)}, {after: 4 * m, blocks: "ab*", want: u(2, 2, 0)}, {after: 4 * m, blocks: "ab*", want: u(2, 2, 0)}}},
		{"an hour", []request{{blocks: "ab!", want: u(2, 0, 2), long: 2}, {after: h - 1, blocks: "ab!", want: u(2, 2, 0)}, {after: h, blocks: "ab!", want: u(2, 0, 2), long: 2}}},
		{"an hour, then five minutes", []request{{blocks: "a!b*", want: u(2, 0, 2), long: 1}, {after: 6 * m, blocks: "a!b*", want: u(2, 1, 1)}}},
		{"another model", []request{{blocks: "ab*", want: u(2, 0, 2)}, {blocks: "ab*", model: "claude-sonnet-5-5", want: u(2, 0, 2)}, {blocks: "ab*", want: u(2, 2, 0)}}},
		{"another effort", []request{{blocks: "ab*", want: u(2, 0, 2)}, {blocks: "ab*", effort: "low", want: u(2, 0, 2)}}},
		{"too small", []request{{model: "claude-opus-4-6", blocks: "ab*", want: u(2, 0, 0)}, {model: "claude-opus-4-6", blocks: "abcde*", want: u(5, 0, 5)}}},
		{"twenty positions before the marker", []request{{blocks: "a*", want: u(1, 0, 1)}, {blocks: "a" + many(19) + "*", want: u(20, 1, 19)}}},
		{"twenty-one positions before the marker", []request{{blocks: "a*", want: u(1, 0, 1)}, {blocks: "a" + many(20) + "*", want: u(21, 0, 21)}}},
		{"a marker in between", []request{{blocks: "a*", want: u(1, 0, 1)}, {blocks: "a" + many(15) + "*" + many(15) + "*", want: u(31, 1, 30)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			v := upstream.New(upstream.Options{Now: func() time.Time { return now }})
			for i, r := range c.requests {
				now = now.Add(r.after)
				var content []any
				for _, l := range r.blocks {
					switch l {
					case '*':
						marker(content[len(content)-1].(object))
					case '!':
						marker(content[len(content)-1].(object), "1h")
					default:
						content = append(content, textBlock(filler(l)))
					}
				}
				o := object{"model": "claude-opus-5-5", "max_tokens": 99, "messages": []any{object{"role": "user", "content": content}}}
				if r.model != "" {
					o["model"] = r.model
				}
				if r.effort != "" {
					o["output_config"] = object{"effort": r.effort}
				}
				body, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				rec, answer := post(t, v, "/v1/messages", body)
				got := rec.Usage
				got.Prompt, got.CacheRead, got.CacheWrite, got.Output = got.Prompt/1000, got.CacheRead/1000, got.CacheWrite/1000, 0
				if got != r.want {
					t.Errorf("request %d: %+v, want %+v", i+1, got, r.want)
				}
				if want := fmt.Sprintf(`"ephemeral_1h_input_tokens":%d,"ephemeral_5m_input_tokens":%d`, 1000*r.long, 1000*(r.want.CacheWrite-r.long)); !strings.Contains(answer, want) {
					t.Errorf("request %d: want %s in %s", i+1, want, answer)
				}
			}
		})
	}
}

// TestReadable: an entry can be read once the answer of the request that writes it has begun.
func TestReadable(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	v, s := serve(t, upstream.Options{Fault: func(r upstream.Record) *upstream.Fault {
		if r.N > 1 {
			return nil
		}
		held <- struct{}{}
		return &upstream.Fault{Hold: hold}
	}})
	c := func() *upstream.Client {
		return &upstream.Client{URL: s.URL, API: upstream.Messages, Model: "claude-opus-5-5", System: filler('s'), HTTP: s.Client(), History: []object{{"role": "user", "content": []any{textBlock("x")}}}}
	}
	done := make(chan error)
	go func() { _, _, err := c().Step(t.Context()); done <- err }()
	<-held
	testkit.Eventually(t, "the first request is looked up in the cache", func() bool { return v.Records()[0].Conversation != "" })
	for range 2 {
		if _, _, err := c().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, warm := range []bool{false, false, true} {
		if u := v.Records()[i].Usage; (u.CacheRead > 0) != warm {
			t.Errorf("request %d: %+v", i+1, u)
		}
	}
}

// TestCacheOpenAI: prefixes are cached by themselves, for some minutes or a day.
func TestCacheOpenAI(t *testing.T) {
	for _, c := range []struct {
		name  string
		extra object
		idle  time.Duration
		model string
		read  bool
	}{
		{"warm", nil, 9 * time.Minute, "gpt-5.4", true},
		{"cold", nil, 10 * time.Minute, "gpt-5.4", false},
		{"a day", object{"prompt_cache_retention": "24h"}, 23 * time.Hour, "gpt-5.4", true},
		{"half an hour", object{"prompt_cache_options": object{"ttl": "30m"}}, 29 * time.Minute, "gpt-5.6", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			v := upstream.New(upstream.Options{Now: func() time.Time { return now }})
			send := func(more ...any) (upstream.Record, string) {
				o := object{"model": c.model, "messages": append([]any{message("system", filler('s')), message("user", filler('u'))}, more...)}
				maps.Copy(o, c.extra)
				body, err := json.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				return post(t, v, "/v1/chat/completions", body)
			}
			first, answer := send()
			if first.Usage.CacheRead != 0 {
				t.Errorf("first: %+v", first.Usage)
			}
			if writes := strings.Contains(answer, "cache_write_tokens"); writes != (c.model == "gpt-5.6") {
				t.Error(answer)
			}
			now = now.Add(c.idle)
			r, answer := send(message("assistant", "Yes."), message("user", "And?"))
			want := 0
			if c.read {
				want = first.Tokens / 128 * 128
			}
			if r.Usage.CacheRead != want || !strings.Contains(answer, fmt.Sprintf(`"cached_tokens":%d`, want)) || r.Ideal != first.Tokens {
				t.Errorf("want %d: %+v, ideal %d: %s", want, r.Usage, r.Ideal, answer)
			}
		})
	}
}

// TestIdeal: a loop with markers reads what an ideal cache would; without them, nothing.
func TestIdeal(t *testing.T) {
	for api, model := range models {
		for _, unmarked := range []bool{false, true} {
			v, s := serve(t, upstream.Options{Script: upstream.Loop(22, 6000, nil)})
			c := &upstream.Client{URL: s.URL, API: api, Model: model, Unmarked: unmarked, HTTP: s.Client()}
			if _, err := c.Say(t.Context(), "Play."); err != nil {
				t.Fatal(err)
			}
			read, ideal := v.Cached()
			if want := !unmarked || api != upstream.Messages; (read >= ideal*9/10) != want || ideal == 0 || read > ideal {
				t.Errorf("%s, unmarked %v: read %d of %d", api, unmarked, read, ideal)
			}
			if b := v.Breaks(); len(b) != 0 {
				t.Errorf("%s: %+v", api, b)
			}
		}
	}
}

// TestBreaks: a changed, removed or cut history is a break at the first block that differs.
func TestBreaks(t *testing.T) {
	v, s := serve(t, upstream.Options{})
	c := &upstream.Client{URL: s.URL, API: upstream.Messages, Model: "claude-opus-5", Session: "s1", HTTP: s.Client(), History: []object{{"role": "user", "content": []any{textBlock("x")}}}}
	step := func(n int) {
		t.Helper()
		for range n {
			if _, _, err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(4)
	c.History[2] = object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": at(c.History[2]["content"], 0, "tool_use_id"), "content": "short"}}}
	step(2)
	c.History = c.History[:5]
	step(1)
	c.System = "Other."
	step(1)
	var got []string
	for _, b := range v.Breaks() {
		got = append(got, fmt.Sprintf("%d-%d %s", b.From, b.To, b.Where))
		if b.Shared <= 0 || b.Lost <= 0 {
			t.Errorf("%+v", b)
		}
	}
	if want := "4-5 messages[2].content[0]; 6-7 messages[5].content[0]; 7-8 system[0]"; strings.Join(got, "; ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "; "), want)
	}
}
